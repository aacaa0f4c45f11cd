// Merging neighbouring symbols in the order of their priority, which both kinds
// of BPE do. Takes O(n log n): long runs of one character are no problem.

#pragma once

#include <algorithm>

#include "runtime/base/array.h"

namespace izh {

// Bytes begin..end of a text and the token that they are, or -1.
struct Symbol {
  uint32_t begin;
  uint32_t end;
  int32_t id;
};

// What two neighbours become: `id`. The lowest `key` is merged first, of equal
// ones the leftmost.
struct MergeResult {
  uint32_t key;
  int32_t id;
};

constexpr uint32_t kNoMerge = UINT32_MAX;

class Merger {
 public:
  // Merges until nothing more can be, and leaves the rest in `symbols`. `find`
  // is MergeResult(const Symbol& left, const Symbol& right), `key` kNoMerge if
  // they don't merge. False if there is no memory; `symbols` is then undefined.
  template <typename Find>
  [[nodiscard]] bool merge(Array<Symbol>* symbols, const Find& find) {
    if (symbols->size() < 2) return true;
    return symbols->size() <= kShort ? merge_short(symbols, find) : merge_long(symbols, find);
  }

 private:
  // Below this, looking at all pairs each time is faster than a heap.
  static constexpr size_t kShort = 64;

  struct Candidate {
    uint64_t order;  // key, then index of the left symbol
    uint32_t end;    // of the right symbol when this was found
    int32_t id;
  };
  // A heap's front is its largest element.
  static bool later(const Candidate& a, const Candidate& b) { return a.order > b.order; }

  template <typename Find>
  bool merge_short(Array<Symbol>* symbols, const Find& find) {
    Symbol* s = symbols->data();
    size_t count = symbols->size();
    MergeResult pairs[kShort];
    for (size_t i = 0; i + 1 < count; ++i) pairs[i] = find(s[i], s[i + 1]);
    while (count > 1) {
      size_t best = 0;
      for (size_t i = 1; i + 1 < count; ++i) {
        if (pairs[i].key < pairs[best].key) best = i;
      }
      if (pairs[best].key == kNoMerge) break;
      s[best].end = s[best + 1].end;
      s[best].id = pairs[best].id;
      --count;
      for (size_t i = best + 1; i < count; ++i) s[i] = s[i + 1];
      for (size_t i = best + 1; i + 1 < count; ++i) pairs[i] = pairs[i + 1];
      if (best + 1 < count) pairs[best] = find(s[best], s[best + 1]);
      if (best > 0) pairs[best - 1] = find(s[best - 1], s[best]);
    }
    return symbols->resize(count);
  }

  template <typename Find>
  bool offer(const Array<Symbol>& symbols, uint32_t left, uint32_t right, const Find& find) {
    const MergeResult result = find(symbols[left], symbols[right]);
    if (result.key == kNoMerge) return true;
    return heap_.push({uint64_t{result.key} << 32 | left, symbols[right].end, result.id});
  }

  template <typename Find>
  bool merge_long(Array<Symbol>* symbols, const Find& find) {
    const uint32_t count = static_cast<uint32_t>(symbols->size());
    const uint32_t none = count;
    heap_.clear();
    if (!next_.resize(count) || !previous_.resize(count)) return false;
    for (uint32_t i = 0; i < count; ++i) {
      next_[i] = i + 1;
      previous_[i] = i == 0 ? none : i - 1;
      if (i > 0 && !offer(*symbols, i - 1, i, find)) return false;
    }
    std::make_heap(heap_.begin(), heap_.end(), later);
    while (!heap_.empty()) {
      const Candidate candidate = heap_[0];
      std::pop_heap(heap_.begin(), heap_.end(), later);
      heap_.pop();
      const uint32_t left = static_cast<uint32_t>(candidate.order);
      const uint32_t right = next_[left];
      // A symbol that was merged away links to itself. A right end that moved
      // means that either side has grown since.
      if (right == left || right == none || (*symbols)[right].end != candidate.end) continue;
      (*symbols)[left].end = candidate.end;
      (*symbols)[left].id = candidate.id;
      next_[left] = next_[right];
      if (next_[right] != none) previous_[next_[right]] = left;
      next_[right] = right;
      const size_t before = heap_.size();
      if (next_[left] != none && !offer(*symbols, left, next_[left], find)) return false;
      if (heap_.size() > before) std::push_heap(heap_.begin(), heap_.end(), later);
      const size_t between = heap_.size();
      if (previous_[left] != none && !offer(*symbols, previous_[left], left, find)) return false;
      if (heap_.size() > between) std::push_heap(heap_.begin(), heap_.end(), later);
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i = next_[i]) (*symbols)[kept++] = (*symbols)[i];
    return symbols->resize(kept);
  }

  Array<uint32_t> next_;
  Array<uint32_t> previous_;
  Array<Candidate> heap_;
};

}  // namespace izh
