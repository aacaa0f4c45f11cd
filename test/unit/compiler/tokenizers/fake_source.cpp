// The two starting points of most tests.

#include "test/unit/compiler/tokenizers/fake_source.h"

using namespace izhc::test;

static std::string utf8(unsigned point) {
  if (point < 0x80)
    return std::string(1, char(point));
  return {char(0xc0 | point >> 6), char(0x80 | (point & 0x3f))};
}

FakeSource izhc::test::byteSource(const std::vector<std::string> &more,
                                  const std::vector<std::string> &merges) {
  FakeSource source;
  std::vector<std::string> tokens;
  // As GPT-2 defines it: bytes 0-32, 127-160 and 173 are numbered from U+0100.
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    bool moved = byte <= 32 || (byte >= 127 && byte <= 160) || byte == 173;
    tokens.push_back(utf8(moved ? next++ : byte));
  }
  tokens.insert(tokens.end(), more.begin(), more.end());
  source.values["tokenizer.ggml.model"] = "gpt2";
  source.values["tokenizer.ggml.pre"] = "gpt-2";
  source.values["tokenizer.ggml.tokens"] = tokens;
  source.values["tokenizer.ggml.merges"] = merges;
  return source;
}

FakeSource izhc::test::scoreSource(const std::vector<std::string> &more) {
  FakeSource source;
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  tokens.insert(tokens.end(), more.begin(), more.end());
  std::vector<int64_t> types(tokens.size(), 1);
  types[0] = 2;
  types[1] = types[2] = 3;
  source.values["tokenizer.ggml.model"] = "llama";
  source.values["tokenizer.ggml.scores"] = std::vector<float>(tokens.size(), -1.0f);
  source.values["tokenizer.ggml.tokens"] = std::move(tokens);
  source.values["tokenizer.ggml.token_type"] = std::move(types);
  return source;
}
