// Encoding text without special tokens, one function a kind of tokenizer.

#pragma once

#include "runtime/text/merge.h"
#include "runtime/text/splitter.h"
#include "runtime/text/tokenizer_view.h"

namespace izh {

// Memory that encoding reuses from fragment to fragment.
struct EncodeScratch {
  Splitter::Scratch splitter;
  Array<uint32_t> words;
  Array<Symbol> symbols;
  Array<uint8_t> text;
  Merger merger;
};

// Both append the ids of `text`; 0 < bytes < 2^30.

// `text` is UTF-8.
[[nodiscard]] izh_status encode_byte_bpe(const TokenizerView& view, const Splitter& splitter,
                                         const uint8_t* text, uint32_t bytes,
                                         EncodeScratch* scratch, Array<int32_t>* ids,
                                         izh_error* error);

// `text` may be any bytes; a space is put before it if `prefix`.
[[nodiscard]] izh_status encode_score_bpe(const TokenizerView& view, const uint8_t* text,
                                          uint32_t bytes, bool prefix, EncodeScratch* scratch,
                                          Array<int32_t>* ids, izh_error* error);

}  // namespace izh
