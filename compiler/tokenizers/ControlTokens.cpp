// Tokens that are known by their text: files often mark them as ordinary text or
// name only one of several tokens that end a model's turn.

#include "compiler/tokenizers/Vocabulary.h"
#include "runtime/schema/tokenizer_generated.h"
#include "llvm/ADT/STLExtras.h"

using namespace izhc;
using izh::schema::TokenType;

namespace {

enum Role {
  // The turn is over.
  Turn,
  // So is everything, or a tool is called.
  End,
  // Part of filling in the middle: control tokens, but no end.
  Middle,
};

struct Known {
  const char *text;
  Role role;
};

constexpr Known kKnown[] = {
    {"<|eot_id|>", Turn},
    {"<|im_end|>", Turn},
    {"<|end|>", Turn},
    {"<end_of_turn>", Turn},
    {"<|endoftext|>", Turn},
    {"<|end_of_text|>", Turn},
    {"<EOT>", Turn},
    {"_<EOT>", Turn},
    {"[EOT]", Turn},
    {"<｜end▁of▁sentence｜>", Turn},
    {"<end_of_utterance>", Turn},
    {"<|eom_id|>", End},
    {"<|return|>", End},
    {"<|call|>", End},
    {"<|flush|>", End},
    {"<|calls|>", End},
    {"</s>", End},
    {"[EOS]", End},
    {"<eos>", End},
    {"<turn|>", End},
    {"<|tool_response>", End},
    {"[e~[", End},
    {"<|fim_pad|>", End},
    {"<fim-pad>", End},
    {"<fim_pad>", End},
    {"<PAD>", End},
    {"[PAD]", End},
    {"<|fim_repo|>", End},
    {"<|repo_name|>", End},
    {"<fim-repo>", End},
    {"<REPO>", End},
    {"<reponame>", End},
    {"<|file_sep|>", End},
    {"<|fim_prefix|>", Middle},
    {"<fim-prefix>", Middle},
    {"<fim_prefix>", Middle},
    {"<｜fim▁begin｜>", Middle},
    {"<PRE>", Middle},
    {"▁<PRE>", Middle},
    {"<|code_prefix|>", Middle},
    {"<|fim_suffix|>", Middle},
    {"<fim-suffix>", Middle},
    {"<fim_suffix>", Middle},
    {"<｜fim▁hole｜>", Middle},
    {"<SUF>", Middle},
    {"▁<SUF>", Middle},
    {"<|code_suffix|>", Middle},
    {"<|fim_middle|>", Middle},
    {"<fim-middle>", Middle},
    {"<fim_middle>", Middle},
    {"<｜fim▁end｜>", Middle},
    {"<MID>", Middle},
    {"▁<MID>", Middle},
    {"<|code_middle|>", Middle},
};

void eraseEnd(Vocabulary &v, llvm::StringRef text, TokenType type) {
  int32_t id = v.find(text);
  if (id < 0)
    return;
  llvm::erase(v.ends, uint32_t(id));
  v.types[id] = uint8_t(type);
}

} // namespace

void izhc::markControlTokens(Vocabulary &v) {
  for (const Known &known : kKnown) {
    int32_t id = v.find(known.text);
    if (id < 0)
      continue;
    v.types[id] = uint8_t(TokenType::Control);
    if (known.role == Turn && v.eot < 0)
      v.eot = id;
    if (known.role != Middle)
      v.ends.push_back(uint32_t(id));
  }
  // Where a return or flush token ends the turn, <|end|> only ends a message in it.
  bool calls = v.find("<|call|>") >= 0 || v.find("<|calls|>") >= 0;
  bool returns = v.find("<|return|>") >= 0 || v.find("<|flush|>") >= 0;
  if (calls && returns) {
    eraseEnd(v, "<|end|>", TokenType::UserDefined);
    // The frame of those messages is text for the reader of a stream.
    for (const char *text : {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"})
      if (int32_t id = v.find(text); id >= 0)
        v.types[id] = uint8_t(TokenType::UserDefined);
  }
  // HTML's </s> beside another end of turn.
  if (v.find("<|tool_response>") >= 0)
    eraseEnd(v, "</s>", TokenType::Normal);
  llvm::sort(v.ends);
  v.ends.erase(llvm::unique(v.ends), v.ends.end());
}
