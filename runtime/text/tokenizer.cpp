// Cutting out special tokens, encoding what lies between them, and the way back.

#include "runtime/text/tokenizer.h"

#include <algorithm>

#include "runtime/base/status.h"
#include "runtime/text/encode.h"
#include "runtime/text/normalizer.h"
#include "runtime/text/utf8.h"

namespace izh {
namespace {

izh_status no_memory(izh_error* error, size_t bytes) {
  return fail(error, IZH_OUT_OF_MEMORY, "no memory is left to tokenize %zu bytes", bytes);
}

// Normal forms make at most 11 bytes of one, and spaces 3; what goes on beyond
// that would take as long as a text that is so much longer.
constexpr size_t kMaxGrowth = 16;

int hex_digit(uint8_t c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// The byte that a text of the form <0xNN> names, or -1.
int named_byte(Span<const uint8_t> text) {
  if (text.size != 6 || memcmp(text.data, "<0x", 3) != 0 || text[5] != '>') return -1;
  const int high = hex_digit(text[3]), low = hex_digit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool begins_with_space(TokenizerKind kind, const uint8_t* text, uint32_t bytes) {
  return text[0] == ' ' ||
         (kind != TokenizerKind::kByteBpe && bytes >= 3 && memcmp(text, "\xe2\x96\x81", 3) == 0);
}

// Replaces `out` by what these steps make of `text`.
izh_status change(const TokenizerView& view, StepRange steps, Span<const uint8_t> text,
                  Array<uint8_t>* out, izh_error* error) {
  out->clear();
  if (!out->append(text.data, text.size)) return no_memory(error, text.size);
  const size_t longest = kMaxGrowth * text.size + kMaxGrowth * 4096;
  return normalize(view, steps, std::min(longest, Tokenizer::kMaxTextBytes), out, error);
}

}  // namespace

izh_status Tokenizer::create(const void* section, size_t bytes, Tokenizer** out, izh_error* error) {
  *out = nullptr;
  auto* tokenizer = heap_create<Tokenizer>();
  if (!tokenizer) return fail(error, IZH_OUT_OF_MEMORY, "no memory is left for the tokenizer");
  PatternList patterns;
  izh_status status = view_tokenizer(section, bytes, &tokenizer->view_, &patterns, error);
  if (status == IZH_OK) status = tokenizer->splitter_.create(patterns, error);
  if (status != IZH_OK) {
    heap_destroy(tokenizer);
    return status;
  }
  const TokenizerView* view = &tokenizer->view_;
  tokenizer->specials_.create(view, &view->specials);
  tokenizer->changed_specials_.create(view, &view->changed_specials);
  *out = tokenizer;
  return IZH_OK;
}

void Tokenizer::destroy(Tokenizer* tokenizer) { heap_destroy(tokenizer); }

struct Tokenizer::Encoding {
  const EncodeOptions& options;
  Array<int32_t>* ids;
  EncodeScratch scratch = {};
  // Memory of encode_text and encode_piece.
  Array<Fragment> pieces = {};
  Array<uint8_t> changed = {}, piece = {};
  bool after_special = true;
};

izh_status Tokenizer::encode(const char* text, size_t bytes, const EncodeOptions& options,
                             Array<int32_t>* ids, izh_error* error) const {
  if (bytes > kMaxTextBytes) {
    return fail(error, IZH_LIMIT, "the text has %zu bytes, at most %zu can be tokenized at once",
                bytes, kMaxTextBytes);
  }
  const uint8_t* data = reinterpret_cast<const uint8_t*>(text);
  Array<uint8_t> repaired;
  // Byte tokens keep what is no character; all else is only done to text.
  if ((view_.kind != TokenizerKind::kScoreBpe || view_.step_count > 0) &&
      !utf8_is_valid(data, bytes)) {
    if (!utf8_repair(data, bytes, &repaired)) return no_memory(error, bytes);
    data = repaired.data();
    bytes = repaired.size();
  }
  Array<Fragment> fragments;
  if (!specials_.cut(data, static_cast<uint32_t>(bytes), options.parse_special, &fragments)) {
    return no_memory(error, bytes);
  }
  if (options.add_bos && view_.add_bos && !ids->push(view_.bos)) return no_memory(error, bytes);
  Encoding encoding = {options, ids};
  encoding.scratch.control = options.parse_special;
  for (const Fragment& fragment : fragments) {
    if (fragment.token >= 0) {
      if (!ids->push(fragment.token)) return no_memory(error, bytes);
      encoding.after_special = true;
      continue;
    }
    IZH_TRY(encode_text({data + fragment.begin, fragment.end - fragment.begin}, fragment.begin == 0,
                        &encoding, error));
  }
  if (options.add_bos && view_.add_eos && !ids->push(view_.eos)) return no_memory(error, bytes);
  return IZH_OK;
}

izh_status Tokenizer::encode_text(Span<const uint8_t> text, bool first, Encoding* encoding,
                                  izh_error* error) const {
  if (view_.changed_specials.ids.empty()) return encode_piece(text, 0, first, encoding, error);
  const size_t step = view_.steps_before_specials;
  Array<uint8_t>& changed = encoding->changed;
  IZH_TRY(change(view_, {0, step}, text, &changed, error));
  const auto bytes = static_cast<uint32_t>(changed.size());
  if (!changed_specials_.cut(changed.data(), bytes, encoding->options.parse_special,
                             &encoding->pieces)) {
    return no_memory(error, bytes);
  }
  for (const Fragment& piece : encoding->pieces) {
    if (piece.token >= 0) {
      if (!encoding->ids->push(piece.token)) return no_memory(error, bytes);
      encoding->after_special = true;
      continue;
    }
    IZH_TRY(encode_piece({changed.data() + piece.begin, piece.end - piece.begin}, step,
                         first && piece.begin == 0, encoding, error));
  }
  return IZH_OK;
}

izh_status Tokenizer::encode_piece(Span<const uint8_t> text, size_t step, bool first,
                                   Encoding* encoding, izh_error* error) const {
  if (step < view_.step_count) {
    IZH_TRY(change(view_, {step, view_.step_count}, text, &encoding->piece, error));
    text = {encoding->piece.data(), encoding->piece.size()};
    if (text.empty()) return IZH_OK;
  }
  const auto bytes = static_cast<uint32_t>(text.size);
  const bool prefix =
      view_.add_space_prefix && !view_.prefix_in_steps && encoding->after_special &&
      !(view_.space_prefix_once && !first) &&
      !(view_.space_prefix_skips && begins_with_space(view_.kind, text.data, bytes));
  IZH_TRY(encode_part(text.data, bytes, prefix, &encoding->scratch, encoding->ids, error));
  encoding->after_special = false;
  return IZH_OK;
}

izh_status Tokenizer::encode_part(const uint8_t* text, uint32_t bytes, bool prefix,
                                  EncodeScratch* scratch, Array<int32_t>* ids,
                                  izh_error* error) const {
  switch (view_.kind) {
    case TokenizerKind::kByteBpe:
      return encode_byte_bpe(view_, splitter_, text, bytes, prefix, scratch, ids, error);
    case TokenizerKind::kScoreBpe:
      return encode_score_bpe(view_, text, bytes, prefix, scratch, ids, error);
    case TokenizerKind::kUnigram:
      return encode_unigram(view_, text, bytes, prefix, scratch, ids, error);
    case TokenizerKind::kWordPiece:
      return encode_word_piece(view_, splitter_, text, bytes, scratch, ids, error);
  }
  return IZH_OK;
}

size_t Tokenizer::token_bytes(int32_t id, bool special, char* out, size_t capacity) const {
  if (id < 0 || static_cast<uint32_t>(id) >= view_.tokens) return 0;
  const Span<const uint8_t> text = view_.token_text(static_cast<uint32_t>(id));
  const TokenType type = view_.token_type(static_cast<uint32_t>(id));
  const bool control = type == TokenType::kControl || type == TokenType::kUnknown;
  if (control && !special) return 0;
  size_t count = 0;
  const auto put = [&](uint8_t byte) {
    if (count < capacity) out[count] = static_cast<char>(byte);
    ++count;
  };
  if (type == TokenType::kByte && named_byte(text) >= 0) {
    put(static_cast<uint8_t>(named_byte(text)));
    return count;
  }
  const bool verbatim = control || type == TokenType::kUserDefined ||
                        view_.kind == TokenizerKind::kByteBpe || view_.byte_marks;
  for (size_t i = 0; i < text.size;) {
    if (!verbatim && text.size - i >= 3 && memcmp(text.data + i, "\xe2\x96\x81", 3) == 0) {
      put(' ');
      i += 3;
    } else {
      put(text[i++]);
    }
  }
  return count;
}

bool Tokenizer::decode(const int32_t* ids, size_t count, bool special, Array<char>* out) const {
  const bool strip = view_.kind != TokenizerKind::kByteBpe && view_.add_space_prefix;
  bool first = true;
  for (size_t i = 0; i < count; ++i) {
    const size_t bytes = token_bytes(ids[i], special, nullptr, 0);
    const size_t start = out->size();
    if (!out->resize(start + bytes)) return false;
    char* text = out->data() + start;
    token_bytes(ids[i], special, text, bytes);
    if (i == 0 && view_.add_bos && ids[0] == view_.bos) continue;
    if (strip && first && bytes > 0 && text[0] == ' ') {
      memmove(text, text + 1, bytes - 1);
      if (!out->resize(start + bytes - 1)) return false;
    }
    first = false;
  }
  return true;
}

bool Tokenizer::ends_text(int32_t id) const {
  return id >= 0 &&
         std::binary_search(view_.ends.begin(), view_.ends.end(), static_cast<uint32_t>(id));
}

}  // namespace izh
