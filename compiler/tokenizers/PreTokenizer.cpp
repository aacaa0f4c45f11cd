// The patterns are those of the models' tokenizer.json files, with (?i:...)
// spelled out: contractions are ASCII only. Names are those that GGUF
// converters write to tokenizer.ggml.pre.

#include "compiler/tokenizers/PreTokenizer.h"

using namespace izhc;

// Contractions in any case.
#define CONTRACTIONS R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]))"
// What most patterns of the GPT-4 family end with.
#define REST R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define REST_SLASH R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define WORD R"([^\r\n\p{L}\p{N}]?\p{L}+)"
// Words that keep a capital at their start, and all capitals.
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define CAPITALISED R"([^\r\n\p{L}\p{N}]?)" UPPER "*" LOWER "+"
#define CAPITALS R"([^\r\n\p{L}\p{N}]?)" UPPER "+" LOWER "*"
#define GPT2 R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"
#define QWEN2 CONTRACTIONS "|" WORD R"(|\p{N}|)" REST
#define LLAMA3 CONTRACTIONS "|" WORD R"(|\p{N}{1,3}|)" REST
#define PUNCTUATED                                                                                 \
  R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define NOT_STOPS R"( ?[^(\s|.,!?…。，、।۔،)]+)"

llvm::ArrayRef<PreTokenizer> izhc::preTokenizers() {
  static const std::vector<PreTokenizer> table = {
      {{GPT2},
       {"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "gigachat", "a.x-4.0",
        "mellum", "modern-bert", "exaone4", "mpt", "olmo", "jais", "trillion", "granite-docling"}},
      {{LLAMA3},
       {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
        "jina-v5-nano"},
       true,
       true},
      {{LLAMA3}, {"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}},
      {{QWEN2},
       {"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan",
        "solar-open", "grok-2"}},
      {{CONTRACTIONS
        R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
       {"qwen35"}},
      {{R"(\p{N})", GPT2},
       {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b",
        "mellum2"}},
      {{R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", R"([一-龥ࠀ-一가-퟿]+)", R"(\p{N})"},
       {"deepseek-coder"}},
      {{R"([\r\n])", R"(\s?\p{L&}+)", R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)", R"(\s+$)",
        R"([一-龥ࠀ-一가-퟿]+)", R"(\p{N}+)"},
       {"deepseek-llm"}},
      {{R"(\p{N}{1,3})", R"([一-龥぀-ゟ゠-ヿ]+)", PUNCTUATED},
       {"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"}},
      {{R"([\p{P}\$\+<=>\^~\|`]+)", GPT2, R"([0-9][0-9][0-9])"}, {"falcon"}},
      {{R"(\p{N}{1,3})", CONTRACTIONS "|" WORD R"(|\p{N}+|)" REST}, {"minicpm5"}, true},
      {{CAPITALISED "|" CAPITALS R"(|\p{N}|)" REST_SLASH}, {"tekken"}, true, true},
      {{CAPITALISED CONTRACTIONS "?|" CAPITALS CONTRACTIONS R"(?|\p{N}{1,3}|)" REST_SLASH},
       {"gpt-4o", "llama4", "kanana2", "minimax-m2"}},
      {{R"('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|)" WORD
        R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"},
       {"bailingmoe", "bailingmoe2", "llada-moe"}},
      {{CONTRACTIONS "|" WORD R"(|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"},
       {"seed-coder"}},
      {{R"([^\n]+|[\n]+)", QWEN2}, {"laguna"}},
      {{CONTRACTIONS
        R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"},
       {"exaone-moe"}},
      {{NOT_STOPS}, {"poro-chat", "bloom", "gpt3-finnish"}},
      {{NOT_STOPS, R"(\p{N})"}, {"viking"}},
  };
  return table;
}

const PreTokenizer *izhc::findPreTokenizer(llvm::StringRef name) {
  for (const PreTokenizer &entry : preTokenizers())
    for (const char *spelling : entry.names)
      if (name == spelling)
        return &entry;
  return nullptr;
}

std::string izhc::toPcre2(llvm::StringRef pattern) {
  // Unicode's White_Space property.
  const char *members = R"(\t-\r\x{85}\p{Z})";
  std::string out;
  bool inClass = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    if (c != '\\' || i + 1 == pattern.size()) {
      inClass = inClass ? c != ']' : c == '[';
      out += c;
      continue;
    }
    char next = pattern[++i];
    if (next == 's')
      out += inClass ? members : "[" + std::string(members) + "]";
    else if (next == 'S' && !inClass)
      out += "[^" + std::string(members) + "]";
    else
      (out += c) += next;
  }
  return out;
}
