// Spaces as U+2581, and the words that SentencePiece's kinds can be cut into.

#include "runtime/text/encode.h"

namespace izh {
namespace {

constexpr uint8_t kSpace[3] = {0xe2, 0x96, 0x81};

bool is_space(const uint8_t* text, uint32_t left) {
  return left >= 3 && memcmp(text, kSpace, 3) == 0;
}

// Whether no token reaches across byte `at`, which is not the first one.
bool is_border(const TokenizerView& view, const uint8_t* text, uint32_t size, uint32_t at) {
  if ((text[at] & 0xc0) == 0x80) return false;
  if (!view.joins_bytes(text[at - 1], text[at])) return true;
  return is_space(text + at, size - at) && (view.split_spaces || !view.joins_space(text[at - 1]));
}

}  // namespace

bool escape_spaces(const uint8_t* text, uint32_t bytes, bool prefix, Array<uint8_t>* out) {
  size_t spaces = prefix;
  for (uint32_t i = 0; i < bytes; ++i) spaces += text[i] == ' ';
  const size_t size = size_t{bytes} + 2 * spaces + prefix;
  if (!out->resize(size)) return false;
  uint8_t* to = out->data();
  const auto put_space = [&to] {
    memcpy(to, kSpace, 3);
    to += 3;
  };
  if (prefix) put_space();
  for (uint32_t i = 0; i < bytes; ++i) {
    if (text[i] == ' ') {
      put_space();
    } else {
      *to++ = text[i];
    }
  }
  return true;
}

uint32_t word_end(const TokenizerView& view, const Array<uint8_t>& text, uint32_t begin) {
  const uint32_t size = static_cast<uint32_t>(text.size());
  // What is a token as a whole must not be cut.
  const bool whole =
      view.whole_words || (view.kind == TokenizerKind::kUnigram && view.split_spaces);
  if (!view.joins.empty() && !whole) {
    uint32_t end = begin + 1;
    while (end < size && !is_border(view, text.data(), size, end)) ++end;
    return end;
  }
  if (!view.words_at_spaces && !view.split_spaces) return size;
  uint32_t at = begin;
  if (view.split_spaces && is_space(text.data() + at, size - at)) at += 3;
  while (!view.split_spaces && is_space(text.data() + at, size - at)) at += 3;
  while (at < size && !is_space(text.data() + at, size - at)) ++at;
  return at;
}

}  // namespace izh
