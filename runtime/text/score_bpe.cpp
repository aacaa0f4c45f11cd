// SentencePiece-style BPE: spaces are written as U+2581, characters merge in the
// order of their results' scores or of a list of merges, and what is no token
// falls back to bytes.

#include "runtime/base/status.h"
#include "runtime/text/encode.h"
#include "runtime/text/utf8.h"

namespace izh {
namespace {

// Unsigned numbers in the reverse order of the floats, none of which is NaN.
uint32_t descending_key(float score) {
  // Zero has two patterns of bits.
  score += 0.0f;
  uint32_t bits;
  memcpy(&bits, &score, 4);
  return (bits & 0x80000000u) ? bits : 0x7fffffffu - bits;
}

bool append_symbol(const TokenizerView& view, const uint8_t* text, const Symbol& symbol,
                   Array<int32_t>* ids) {
  if (symbol.id >= 0) return ids->push(symbol.id);
  // Vocabularies with merges have a token for each byte, or one for the character.
  if ((!view.merges.empty() || view.fuse_unknown) && view.byte_tokens[text[symbol.begin]] < 0) {
    const bool fused = view.fuse_unknown && !ids->empty() && ids->back() == view.unk;
    return view.unk < 0 || fused || ids->push(view.unk);
  }
  for (uint32_t i = symbol.begin; i < symbol.end; ++i) {
    const int32_t byte = view.byte_tokens[text[i]];
    const int32_t id = byte >= 0 ? byte : view.unk;
    if (id >= 0 && !ids->push(id)) return false;
  }
  return true;
}

bool encode_word(const TokenizerView& view, const uint8_t* text, uint32_t begin, uint32_t end,
                 EncodeScratch* scratch, Array<int32_t>* ids) {
  if (view.whole_words) {
    const int32_t id = view.find_token(text + begin, end - begin);
    if (id >= 0) return ids->push(id);
  }
  Array<Symbol>& symbols = scratch->symbols;
  symbols.clear();
  for (uint32_t i = begin; i < end;) {
    const Utf8Step step = utf8_step(text + i, end - i);
    const uint32_t length = step.state == Utf8::kValid ? step.length : 1;
    if (!symbols.push({i, i + length, view.find_token(text + i, length)})) return false;
    i += length;
  }
  const auto find = [&view, text](const Symbol& left, const Symbol& right) -> MergeResult {
    const int32_t id = view.find_token(text + left.begin, right.end - left.begin);
    if (id < 0) return {kNoMerge, -1};
    return {descending_key(view.scores[id]), id};
  };
  const auto find_ranked = [&view](const Symbol& left, const Symbol& right) -> MergeResult {
    return find_ranked_merge(view, left.id, right.id);
  };
  if (!(view.merges.empty() ? scratch->merger.merge(&symbols, find)
                            : scratch->merger.merge(&symbols, find_ranked))) {
    return false;
  }
  for (const Symbol& symbol : symbols) {
    if (!append_symbol(view, text, symbol, ids)) return false;
  }
  return true;
}

}  // namespace

izh_status encode_score_bpe(const TokenizerView& view, const uint8_t* text, uint32_t bytes,
                            bool prefix, EncodeScratch* scratch, Array<int32_t>* ids,
                            izh_error* error) {
  Array<uint8_t>& escaped = scratch->text;
  scratch->cache.prepare(bytes);
  bool done = escape_spaces(text, bytes, prefix, &escaped);
  for (uint32_t begin = 0; done && begin < escaped.size();) {
    const uint32_t end = word_end(view, escaped, begin);
    const auto encode = [&] { return encode_word(view, escaped.data(), begin, end, scratch, ids); };
    // Unknown tokens that fuse depend on what is before.
    done = view.fuse_unknown ? encode()
                             : encode_cached(escaped.data(), begin, end, scratch, ids, encode);
    begin = end;
  }
  if (done) return IZH_OK;
  return fail(error, IZH_OUT_OF_MEMORY, "no memory is left to tokenize %u bytes", bytes);
}

}  // namespace izh
