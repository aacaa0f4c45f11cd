// SentencePiece's unigram model: of all ways to cut a word into tokens the one
// with the largest sum of scores. Words are cut where no token reaches across,
// which changes nothing but lets them be cached.

#include <algorithm>

#include "runtime/base/status.h"
#include "runtime/text/encode.h"
#include "runtime/text/piece_finder.h"
#include "runtime/text/utf8.h"

namespace izh {
namespace {

// Bytes of token starts that are looked at in all, and how many more for each
// byte of the text; beyond them text and vocabulary were made to be slow.
constexpr uint64_t kMaxLooks = uint64_t{1} << 28;
constexpr uint64_t kMaxLooksPerByte = 16;

class PathFinder {
 public:
  PathFinder(const TokenizerView& view, uint32_t bytes, EncodeScratch* scratch)
      : view_(view),
        control_(scratch->control),
        most_looks_(kMaxLooks + kMaxLooksPerByte * bytes),
        best_(scratch->best),
        symbols_(scratch->symbols) {}

  // False if there is no memory or too much to look at.
  bool encode(const uint8_t* text, uint32_t bytes, Array<int32_t>* ids) {
    return find(text, bytes) && write(text, bytes, ids);
  }

  bool gave_up() const { return looks_ > most_looks_; }

 private:
  void offer(uint32_t from, uint32_t to, double score, int32_t id) {
    PathEnd& end = best_[to];
    if (end.reached && end.score >= best_[from].score + score) return;
    end = {best_[from].score + score, from, id, true};
  }

  bool find(const uint8_t* text, uint32_t bytes) {
    best_.clear();
    if (!best_.resize(size_t{bytes} + 1)) return false;
    for (uint32_t at = 0; at < bytes;) {
      const uint32_t length = utf8_step(text + at, bytes - at).length;
      bool whole = false;
      looks_ += find_pieces(view_, text + at, bytes - at, [&](size_t size, int32_t id) {
        if (!control_ && view_.token_type(static_cast<uint32_t>(id)) == TokenType::kControl) return;
        whole |= size == length;
        offer(at, at + static_cast<uint32_t>(size), view_.score(static_cast<uint32_t>(id)), id);
      });
      if (!whole) offer(at, at + length, view_.unknown_score, -1);
      if (gave_up()) return false;
      at += length;
    }
    return true;
  }

  // Backwards from the end; unknown characters in a row become one.
  bool write(const uint8_t* text, uint32_t bytes, Array<int32_t>* ids) {
    symbols_.clear();
    for (uint32_t at = bytes; at > 0; at = best_[at].from) {
      if (!symbols_.push({best_[at].from, at, best_[at].id})) return false;
    }
    for (size_t i = symbols_.size(); i-- > 0;) {
      const Symbol& symbol = symbols_[i];
      if (symbol.id >= 0) {
        if (!ids->push(symbol.id)) return false;
      } else if (view_.byte_tokens[text[symbol.begin]] >= 0) {
        for (uint32_t at = symbol.begin; at < symbol.end; ++at) {
          if (!ids->push(view_.byte_tokens[text[at]])) return false;
        }
      } else if (view_.unk >= 0 && (i + 1 == symbols_.size() || symbols_[i + 1].id >= 0)) {
        if (!ids->push(view_.unk)) return false;
      }
    }
    return true;
  }

  const TokenizerView& view_;
  const bool control_;
  uint64_t looks_ = 0, most_looks_;
  Array<PathEnd>& best_;
  Array<Symbol>& symbols_;
};

}  // namespace

izh_status encode_unigram(const TokenizerView& view, const uint8_t* text, uint32_t bytes,
                          bool prefix, EncodeScratch* scratch, Array<int32_t>* ids,
                          izh_error* error) {
  Array<uint8_t>& escaped = scratch->text;
  scratch->cache.prepare(bytes);
  PathFinder finder(view, bytes, scratch);
  const size_t first = ids->size();
  bool done = escape_spaces(text, bytes, prefix, &escaped);
  for (uint32_t begin = 0; done && begin < escaped.size();) {
    const uint32_t end = word_end(view, escaped, begin);
    const auto encode = [&] { return finder.encode(escaped.data() + begin, end - begin, ids); };
    const size_t before = ids->size();
    done = encode_cached(escaped.data(), begin, end, scratch, ids, encode);
    // What is unknown on both sides of a cut is one thing too.
    if (done && before > first && ids->size() > before && (*ids)[before] == view.unk &&
        (*ids)[before - 1] == view.unk) {
      std::copy(ids->begin() + before + 1, ids->end(), ids->begin() + before);
      ids->pop();
    }
    begin = end;
  }
  if (done) return IZH_OK;
  if (finder.gave_up()) {
    return fail(error, IZH_LIMIT,
                "the tokenizer gave up on the text: its tokens start alike over and over");
  }
  return fail(error, IZH_OUT_OF_MEMORY, "no memory is left to tokenize %u bytes", bytes);
}

}  // namespace izh
