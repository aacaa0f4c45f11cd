// Byte-level BPE: each word starts as the tokens of its bytes, and pairs merge
// in the order of the merge list.

#include "runtime/base/status.h"
#include "runtime/text/encode.h"

namespace izh {
namespace {

// False if there is no memory.
bool encode_word(const TokenizerView& view, const uint8_t* text, uint32_t begin, uint32_t end,
                 EncodeScratch* scratch, Array<int32_t>* ids) {
  if (view.whole_words) {
    const int32_t id = view.find_token(text + begin, end - begin);
    if (id >= 0) return ids->push(id);
  }
  Array<Symbol>& symbols = scratch->symbols;
  if (!symbols.reserve(end - begin)) return false;
  symbols.clear();
  for (uint32_t i = begin; i < end; ++i) {
    const int32_t id = view.byte_tokens[text[i]];
    if (id < 0 && view.fuse_unknown) {
      // Without a token for what is unknown, the bytes on its sides are neighbours.
      if (view.unk < 0) continue;
      if (!symbols.empty() && symbols.back().id < 0) {
        symbols.back().end = i + 1;
        continue;
      }
    }
    if (!symbols.push({i, i + 1, id})) return false;
  }
  const auto find = [&view](const Symbol& left, const Symbol& right) -> MergeResult {
    return find_ranked_merge(view, left.id, right.id);
  };
  if (!scratch->merger.merge(&symbols, find)) return false;
  for (const Symbol& symbol : symbols) {
    const int32_t id = symbol.id >= 0 ? symbol.id : view.unk;
    if (id >= 0 && !ids->push(id)) return false;
  }
  return true;
}

// Where the part of a word at `begin` ends.
uint32_t part_end(const TokenizerView& view, const uint8_t* text, uint32_t begin, uint32_t end) {
  if (view.byte_cuts.empty()) return end;
  uint32_t at = begin + 1;
  while (at < end && !view.cuts_bytes(text[at - 1], text[at])) ++at;
  return at;
}

}  // namespace

izh_status encode_byte_bpe(const TokenizerView& view, const Splitter& splitter, const uint8_t* text,
                           uint32_t bytes, bool prefix, EncodeScratch* scratch, Array<int32_t>* ids,
                           izh_error* error) {
  if (prefix) {
    scratch->text.clear();
    if (!scratch->text.push(' ') || !scratch->text.append(text, bytes)) {
      return fail(error, IZH_OUT_OF_MEMORY, "no memory is left to tokenize %u bytes", bytes);
    }
    text = scratch->text.data();
    ++bytes;
  }
  IZH_TRY(splitter.split(text, bytes, &scratch->splitter, &scratch->words, error));
  scratch->cache.prepare(bytes);
  uint32_t begin = 0;
  for (const uint32_t word_end : scratch->words) {
    while (begin < word_end) {
      const uint32_t end = part_end(view, text, begin, word_end);
      const auto encode = [&] { return encode_word(view, text, begin, end, scratch, ids); };
      if (!encode_cached(text, begin, end, scratch, ids, encode)) {
        return fail(error, IZH_OUT_OF_MEMORY, "no memory is left to tokenize %u bytes", bytes);
      }
      begin = end;
    }
  }
  return IZH_OK;
}

}  // namespace izh
