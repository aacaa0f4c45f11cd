// A trie says what special tokens begin at a place of the text; few bytes begin
// any. What is found is then cut out, in one of two orders.

#include "runtime/text/specials.h"

#include <algorithm>

#include "runtime/text/characters.h"
#include "runtime/text/normalizer.h"
#include "runtime/text/piece_finder.h"
#include "runtime/text/utf8.h"

namespace izh {
namespace {

// A character of a text; size 0 where there is none, or bytes that are none.
struct Character {
  uint32_t code_point;
  uint32_t size;
};

Character first_of(const uint8_t* text, uint32_t begin, uint32_t end) {
  if (begin == end) return {0, 0};
  const Utf8Step step = utf8_step(text + begin, end - begin);
  uint32_t length;
  if (step.state != Utf8::kValid) return {0, 0};
  return {utf8_decode(text + begin, &length), step.length};
}

Character last_of(const uint8_t* text, uint32_t begin, uint32_t end) {
  if (begin == end) return {0, 0};
  uint32_t start = end - 1;
  while (start > begin && end - start < 4 && (text[start] & 0xc0) == 0x80) --start;
  const Character found = first_of(text, start, end);
  return found.size == end - start ? found : Character{0, 0};
}

bool is_blank(const Character& c) { return c.size != 0 && is_white_space(c.code_point); }

}  // namespace

void SpecialFinder::create(const TokenizerView* view, const SpecialTokens* specials) {
  view_ = view;
  specials_ = specials;
  for (unsigned byte = 0; byte < 256 && !specials->ids.empty(); ++byte) {
    const Span<const uint64_t> trie = specials->trie;
    if (view->step_count > 0 && (byte & 0xc0) == 0x80) continue;
    begins_[byte] = schema::child_of(trie.data, trie[0], static_cast<uint8_t>(byte)) != 0;
  }
}

// The next place from `at` on where a special token may begin.
uint32_t SpecialFinder::next_start(const uint8_t* text, uint32_t at, uint32_t bytes) const {
  while (at < bytes && !begins_[text[at]]) ++at;
  return at;
}

// The longest special token at the start of `text`; size 0 if there is none.
SpecialFinder::Found SpecialFinder::longest(const uint8_t* text, uint32_t bytes,
                                            bool parse_control) const {
  Found found = {0, 0, 0};
  walk_trie(specials_->trie, text, bytes, [&](size_t size, int32_t index) {
    const uint32_t id = specials_->ids[static_cast<size_t>(index)];
    // Steps read whole characters, whatever a damaged trie says.
    if (view_->step_count > 0 && size < bytes && (text[size] & 0xc0) == 0x80) return;
    if (parse_control || view_->token_type(id) == TokenType::kUserDefined) {
      found = {0, static_cast<uint32_t>(size), static_cast<uint32_t>(index)};
    }
  });
  return found;
}

bool SpecialFinder::is_whole(const uint8_t* text, uint32_t bytes, const Found& found) const {
  if (!(strips_of(found.index) & SpecialTokens::kWholeWord)) return true;
  const Character before = last_of(text, 0, found.at),
                  behind = first_of(text, found.at + found.size, bytes);
  return !(before.size != 0 && is_word(before.code_point)) &&
         !(behind.size != 0 && is_word(behind.code_point));
}

bool SpecialFinder::find_leftmost(const uint8_t* text, uint32_t bytes, bool parse_control,
                                  Array<Found>* found) const {
  for (uint32_t at = next_start(text, 0, bytes); at < bytes; at = next_start(text, at, bytes)) {
    Found here = longest(text + at, bytes - at, parse_control);
    here.at = at;
    at += here.size == 0 ? 1 : here.size;
    if (here.size != 0 && is_whole(text, bytes, here) && !found->push(here)) return false;
  }
  return true;
}

// All places start with their longest token. What overlaps one that was taken
// before tries again with a shorter one: as everything taken is at least as
// long as what is looked at, it then covers the first or the last byte of that.
bool SpecialFinder::find_longest(const uint8_t* text, uint32_t bytes, bool parse_control,
                                 Array<Found>* found) const {
  Array<Found> heap;
  for (uint32_t at = next_start(text, 0, bytes); at < bytes; at = next_start(text, at + 1, bytes)) {
    Found here = longest(text + at, bytes - at, parse_control);
    here.at = at;
    if (here.size != 0 && !heap.push(here)) return false;
  }
  if (heap.empty()) return true;
  const auto later = [this](const Found& a, const Found& b) {
    if (a.size != b.size) return a.size < b.size;
    const uint32_t id_a = specials_->ids[a.index], id_b = specials_->ids[b.index];
    return id_a != id_b ? id_a > id_b : a.at > b.at;
  };
  std::make_heap(heap.begin(), heap.end(), later);
  // Of each byte that is taken: where its token begins, plus 1.
  Array<uint32_t> taken;
  if (!taken.resize(bytes)) return false;
  while (!heap.empty()) {
    Found here = heap[0];
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop();
    if (taken[here.at] != 0) continue;
    const uint32_t behind = taken[here.at + here.size - 1];
    if (behind == 0) {
      std::fill_n(taken.begin() + here.at, here.size, here.at + 1);
      if (!found->push(here)) return false;
      continue;
    }
    const uint32_t at = here.at;
    here = longest(text + at, behind - 1 - at, parse_control);
    here.at = at;
    if (here.size == 0) continue;
    if (!heap.push(here)) return false;
    std::push_heap(heap.begin(), heap.end(), later);
  }
  std::sort(found->begin(), found->end(),
            [](const Found& a, const Found& b) { return a.at < b.at; });
  return true;
}

// Tells where the blanks from a place on end. A run of them is walked once, however
// many places in it are asked for.
class BlankRun {
 public:
  uint32_t end_from(const uint8_t* text, uint32_t at, uint32_t bytes) {
    if (at >= begin_ && at <= end_) return end_;
    begin_ = end_ = at;
    for (Character here; is_blank(here = first_of(text, end_, bytes));) end_ += here.size;
    return end_;
  }

 private:
  uint32_t begin_ = 1, end_ = 0;
};

bool SpecialFinder::cut(const uint8_t* text, uint32_t bytes, bool parse_control,
                        Array<Fragment>* fragments) const {
  fragments->clear();
  Array<Found> found;
  if (!specials_->ids.empty() &&
      !(view_->leftmost_specials ? find_leftmost(text, bytes, parse_control, &found)
                                 : find_longest(text, bytes, parse_control, &found))) {
    return false;
  }
  uint32_t done = 0;
  BlankRun blanks;
  for (const Found& one : found) {
    const uint8_t strips = strips_of(one.index);
    uint32_t begin = one.at, end = one.at + one.size;
    // A token may lie among the blanks that the one before took: then it takes only
    // what is left, and is gone if that is nothing. Without the rule it stays.
    if (strips & SpecialTokens::kStripsLeft) {
      begin = std::max(begin, done);
      for (Character c; is_blank(c = last_of(text, done, begin));) begin -= c.size;
    }
    if (strips & SpecialTokens::kStripsRight) end = blanks.end_from(text, end, bytes);
    if (begin >= end) continue;
    if (begin > done && !fragments->push({done, begin, -1})) return false;
    if (!fragments->push({begin, end, static_cast<int32_t>(specials_->ids[one.index])})) {
      return false;
    }
    done = end;
  }
  return done >= bytes || fragments->push({done, bytes, -1});
}

}  // namespace izh
