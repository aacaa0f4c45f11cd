// tokenizer.json, tokenizer.model and the files beside them on hostile bytes:
// the compiler refuses them or writes a section that the runtime takes and that
// encodes text. The first byte chooses the file, or that a section is damaged.

#include "compiler/tokenizers/ChatTemplate.h"
#include "compiler/tokenizers/Tokenizers.h"
#include "runtime/text/tokenizer.h"
#include "test/fuzz/fuzz.h"
#include "test/unit/compiler/import/folder_files.h"
#include "tools/izhc/ChangedText.h"

#include "llvm/Support/FormatVariadic.h"
#include <cstring>
#include <iterator>

using namespace izhc;
using namespace izhc::test;

static void check(bool fact) {
  if (!fact)
    __builtin_trap();
}

static void encode(const std::vector<uint8_t> &bytes, bool trusted = true) {
  std::vector<uint64_t> section((bytes.size() + 7) / 8);
  memcpy(section.data(), bytes.data(), bytes.size());
  izh::Tokenizer *tokenizer = nullptr;
  izh_error error = {};
  // Patterns of the file may be no patterns.
  if (izh::Tokenizer::create(section.data(), bytes.size(), &tokenizer, &error) != IZH_OK) {
    check(!trusted || strstr(error.message, "pattern") != nullptr);
    return;
  }
  const char text[] = "a ab  11 \xc3\xa4\xff<|end|> \xe2\x96\x81 b \xc3\x84_x x 1a\xe2\x96\x81";
  izh::Array<int32_t> ids;
  izh::Array<char> out;
  if (tokenizer->encode(text, sizeof(text) - 1, {true, true}, &ids, &error) == IZH_OK)
    check(tokenizer->decode(ids.data(), ids.size(), true, &out));
  izh::Tokenizer::destroy(tokenizer);
}

static std::vector<uint8_t> buildSeed(size_t index) {
  static const std::vector<std::vector<uint8_t>> seeds = fuzzSeeds();
  const std::vector<uint8_t> &json = seeds[index];
  std::vector<FolderFile> files;
  files.push_back({"config.json", nullptr, {reinterpret_cast<const uint8_t *>("{}"), 2}});
  files.push_back({"tokenizer.json", nullptr, {json.data() + 1, json.size() - 1}});
  return llvm::cantFail(buildTokenizer(
      *llvm::cantFail(FolderSource::open("fuzz", std::move(files))), tool::changeText));
}

// The runtime takes no section on trust: bytes of a good one are overwritten,
// three bytes of input each: where, and by what.
static void damageSection(size_t index, const uint8_t *data, size_t size) {
  static const std::vector<uint8_t> good[] = {buildSeed(0), buildSeed(1), buildSeed(2),
                                              buildSeed(3), buildSeed(4), buildSeed(5),
                                              buildSeed(6)};
  std::vector<uint8_t> bytes = good[index % std::size(good)];
  for (; size >= 3; data += 3, size -= 3)
    bytes[(data[0] | data[1] << 8) * 7919u % bytes.size()] = data[2];
  encode(bytes, /*trusted=*/false);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size != 0 && (data[0] & 3) == 2) {
    damageSection(data[0] >> 2 & 7, data + 1, size - 1);
    return 0;
  }
  static constexpr char kConfig[] = R"({"bos_token_id": 1, "eos_token_id": [2, 3]})";
  static const char *const names[] = {"tokenizer.json", "tokenizer.model"};
  bool isModel = size != 0 && data[0] & 1;
  std::vector<FolderFile> files;
  files.push_back(
      {"config.json", nullptr, {reinterpret_cast<const uint8_t *>(kConfig), sizeof(kConfig) - 1}});
  files.push_back({names[isModel], nullptr, {data + (size != 0), size - (size != 0)}});
  // The same bytes where a template may be.
  if (!isModel)
    files.push_back({"tokenizer_config.json", nullptr, files.back().bytes});
  auto source = llvm::cantFail(FolderSource::open("fuzz", std::move(files)));
  auto bytes = buildTokenizer(*source, tool::changeText);
  if (bytes)
    encode(*bytes);
  else
    check(!llvm::toString(bytes.takeError()).empty());
  return 0;
}

std::vector<std::vector<uint8_t>> fuzzSeeds() {
  const char *const jsons[] = {
      R"(0{"added_tokens": [{"id": 9, "content": "<|end|>", "special": true}],
        "normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": true}, {"type": "Split", "pattern": {"Regex": " ?\\p{L}+"},
        "behavior": "Isolated"}, {"type": "ByteLevel", "add_prefix_space": false}]},
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|end|>"}},
        {"Sequence": {"id": "A"}}]}, "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE",
        "ignore_merges": true, "vocab": {"a": 0, "b": 1, "ab": 2, "1": 3, "11": 4}, "merges": ["a b", ["1", "1"]]}})",
      R"(0{"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true},
        "bos_token": "<s>", "chat_template": "{{ messages }}", "model": {"type": "BPE", "fuse_unk": true,
        "unk_token": "<unk>", "byte_fallback": false, "vocab": {"<unk>": 0, "▁": 1, "a": 2, "▁a": 3},
        "merges": ["▁ a"]}})",
      R"(0{"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "StripAccents"},
        {"type": "Replace", "pattern": {"String": "a"}, "content": "ab"}, {"type": "Precompiled",
        "precompiled_charsmap": "DAAAAACAAQBhDQAAAAAAgGIA"}, {"type": "Replace", "pattern": {"Regex": " {2,}"},
        "content": " "}, {"type": "Strip", "strip_left": true, "strip_right": false}]}, "pre_tokenizer":
        {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement":
        "▁"}]}, "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": true, "vocab": [["<unk>", 0], ["▁", -2.5],
        ["a", -3], ["▁a", -4], ["ab", -4.5], ["b", -3.5], BYTES]}})",
      R"(0{"added_tokens": [{"id": 0, "content": "[UNK]", "special": true}, {"id": 1, "content": "[CLS]"}],
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
        "strip_accents": null, "lowercase": true}, "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[CLS]", 1], "cls": ["[CLS]", 1]},
        "decoder": {"type": "WordPiece", "prefix": "##"}, "model": {"type": "WordPiece", "unk_token": "[UNK]",
        "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "[CLS]": 1,
        "a": 2, "##b": 3, "11": 4, "▁": 5, "##ab": 6}}})",
      // Whole words, blanks beside tokens, tokens that the normalizer changes or that
      // are pieces too, and steps behind ByteLevel.
      R"(0{"added_tokens": [{"id": 9, "content": "Ä", "normalized": true, "single_word": true},
        {"id": 10, "content": "x", "single_word": true, "lstrip": true}, {"id": 11, "content": "<|end|>",
        "special": true, "rstrip": true}, {"id": 2, "content": "ab", "normalized": true}],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "Lowercase"}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Punctuation", "behavior": "Contiguous"},
        {"type": "ByteLevel", "add_prefix_space": false}, {"type": "Digits"}, {"type": "Split", "pattern":
        {"Regex": "[0-9][0-9]"}, "behavior": "Isolated"}]}, "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE",
        "ignore_merges": true, "vocab": {"a": 0, "b": 1, "ab": 2, "1": 3, "11": 4, "Ã": 5, "¤": 6, "Ġ": 7},
        "merges": ["a b", ["1", "1"]]}})",
      R"(0{"added_tokens": [{"id": 4, "content": "Ä", "normalized": true}, {"id": 5, "content": "x",
        "single_word": true, "normalized": true}, {"id": 2, "content": "a", "single_word": true}],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}, "model": {"type": "BPE",
        "unk_token": "<unk>", "vocab": {"<unk>": 0, "▁": 1, "a": 2, "▁a": 3}, "merges": ["▁ a"]}})",
      R"(0{"added_tokens": [{"id": 0, "content": "[UNK]", "special": true}, {"id": 2, "content": "a",
        "single_word": true}], "normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": ""}, "model": {"type": "WordPiece", "unk_token": "[UNK]",
        "continuing_subword_prefix": "", "vocab": {"[UNK]": 0, "▁": 1, "a": 2, "▁a": 3, "1": 4, "11": 5}}})"};
  std::string bytes;
  for (unsigned byte = 0; byte < 256; ++byte)
    bytes += llvm::formatv("{0}[\"<0x{1:X-2}>\", -9]", byte ? ", " : "", byte).str();
  std::vector<std::vector<uint8_t>> seeds;
  for (std::string json : jsons) {
    if (size_t at = json.find("BYTES"); at != std::string::npos)
      json.replace(at, strlen("BYTES"), bytes);
    seeds.emplace_back(json.begin(), json.end());
  }
  // Pieces <unk>, a, aa, then trainer and normalizer.
  const uint8_t model[] = {'1', 0x0a, 14,   0x0a, 5,    '<',  'u',  'n',  'k',  '>',  0x15, 0,
                           0,   0,    0,    0x18, 2,    0x0a, 8,    0x0a, 1,    'a',  0x15, 0,
                           0,   0x80, 0xbf, 0x0a, 9,    0x0a, 2,    'a',  'a',  0x15, 0,    0,
                           0,   0xc0, 0x12, 2,    0x18, 2,    0x1a, 4,    0x18, 1,    0x20, 0};
  seeds.emplace_back(model, model + sizeof(model));
  // The same as a unigram model with a map of characters, and a section's bytes.
  std::vector<uint8_t> unigram(model, model + 37);
  const uint8_t rest[] = {0x12, 2,    0x18, 1, 0x1a, 24, 0x12, 18, 12,   0,   0, 0,    0, 0x80, 1,
                          0,    0x61, 0x0d, 0, 0,    0,  0,    0,  0x80, 'b', 0, 0x18, 1, 0x20, 1};
  unigram.insert(unigram.end(), std::begin(rest), std::end(rest));
  seeds.push_back(std::move(unigram));
  for (uint8_t which = 0; which < std::size(jsons); ++which)
    seeds.push_back({uint8_t('2' + 4 * which), 40, 0, 1, 90, 1, 255, 200, 3, 7});
  return seeds;
}
