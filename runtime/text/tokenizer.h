// A model's tokenizer: text to ids and ids to bytes. Made from the bytes of the
// artifact's tokenizer section, which it reads in place; needs no model.

#pragma once

#include "runtime/base/array.h"
#include "runtime/base/span.h"
#include "runtime/text/specials.h"
#include "runtime/text/splitter.h"
#include "runtime/text/tokenizer_view.h"

namespace izh {

struct EncodeScratch;

struct EncodeOptions {
  // Begin and end tokens are added as the model wants them.
  bool add_bos = true;
  // Control tokens in the text are recognised.
  bool parse_special = true;
};

// All const functions may be called from several threads.
class Tokenizer {
 public:
  // Longest text that can be encoded at once.
  static constexpr size_t kMaxTextBytes = size_t{1} << 28;

  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // `section` must be aligned to 8 and outlive the tokenizer. On success `*out`
  // is to be destroyed by the caller; on failure it is NULL.
  [[nodiscard]] static izh_status create(const void* section, size_t bytes, Tokenizer** out,
                                         izh_error* error);
  // NULL is allowed.
  static void destroy(Tokenizer* tokenizer);

  // Appends the ids of `text` to `ids`. Bytes that are not UTF-8 become U+FFFD,
  // or byte tokens where the vocabulary has those. On failure `ids` may hold a
  // part.
  [[nodiscard]] izh_status encode(const char* text, size_t bytes, const EncodeOptions& options,
                                  Array<int32_t>* ids, izh_error* error) const;

  // Writes at most `capacity` of a token's bytes to `out` and returns how many
  // there are. They may be a part of a character. Control and unknown tokens
  // have bytes only if `special`; an id outside of the vocabulary has none.
  size_t token_bytes(int32_t id, bool special, char* out, size_t capacity) const;

  // Appends the bytes of all tokens to `out`, without the space that encoding
  // put before the text. False if there is no memory.
  [[nodiscard]] bool decode(const int32_t* ids, size_t count, bool special, Array<char>* out) const;

  bool ends_text(int32_t id) const;
  uint32_t size() const { return view_.tokens; }
  int32_t bos() const { return view_.bos; }
  int32_t eos() const { return view_.eos; }
  const TokenizerView& view() const { return view_; }

 private:
  // What the parts of one text share.
  struct Encoding;
  // Text between special tokens; `first` if the whole text begins with it.
  [[nodiscard]] izh_status encode_text(Span<const uint8_t> text, bool first, Encoding* encoding,
                                       izh_error* error) const;
  // The same between those of changed text too, of which the steps from `step` on
  // are left to do.
  [[nodiscard]] izh_status encode_piece(Span<const uint8_t> text, size_t step, bool first,
                                        Encoding* encoding, izh_error* error) const;
  // The same once no steps are left; it may not be empty.
  [[nodiscard]] izh_status encode_part(const uint8_t* text, uint32_t bytes, bool prefix,
                                       EncodeScratch* scratch, Array<int32_t>* ids,
                                       izh_error* error) const;

  TokenizerView view_;
  Splitter splitter_;
  SpecialFinder specials_;
  SpecialFinder changed_specials_;
};

}  // namespace izh
