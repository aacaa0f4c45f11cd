// One look at a table a character.

#include "runtime/text/scanner.h"

#include "runtime/text/utf8.h"

namespace izh {
namespace {

// Of a match that looked less far into nothing not even the next one profits.
constexpr size_t kLongWay = 4;
constexpr uint64_t kMaxBits = uint64_t{1} << 29;

}  // namespace

void DeadEnds::start(uint32_t bytes, uint32_t states) {
  bytes_ = bytes;
  states_ = states;
  bits_.clear();
  visited_.clear();
}

void DeadEnds::add_visited() {
  const uint64_t bits = bit(bytes_ + kBlock, 0);
  if (visited_.size() >= kLongWay && bits_.empty() && bits <= kMaxBits) {
    static_cast<void>(bits_.resize(static_cast<size_t>(bits / 64 + 1)));
  }
  for (const Place& place : visited_) {
    if (bits_.empty()) break;
    bits_[bit(place.at, place.state) / 64] |= uint64_t{1} << bit(place.at, place.state) % 64;
  }
  visited_.clear();
}

uint32_t Scanner::find_start(const uint8_t* text, uint32_t at, uint32_t end) const {
  const uint16_t* first = transitions_.data + classes_->symbols;
  const uint8_t* ascii =
      classes_->classes.data + size_t{classes_->pages[0]} * CharacterClasses::kPage;
  // A line feed at the end is another symbol.
  while (at < end && !(text[at] == '\n' && at + 1 == end)) {
    uint32_t length = 1;
    const uint32_t symbol =
        text[at] < 0x80 ? ascii[text[at]] : classes_->of(utf8_decode(text + at, &length));
    if (first[symbol] >> 1 != 0) break;
    at += length;
  }
  return at;
}

Scanner::Match Scanner::match(const uint8_t* text, uint32_t at, uint32_t end,
                              DeadEnds* dead) const {
  const uint32_t symbols = classes_->symbols;
  const uint16_t* table = transitions_.data;
  const uint8_t* ascii =
      classes_->classes.data + size_t{classes_->pages[0]} * CharacterClasses::kPage;
  // A line feed at the end is a symbol of its own.
  const uint32_t last = text[end - 1] == '\n' ? end - 1 : end;
  Match match = {at, at};
  uint32_t state = 1;
  uint32_t next_block = (at | (DeadEnds::kBlock - 1)) + 1;
  while (true) {
    if (at >= next_block) {
      if (dead->has(at, state)) break;
      dead->visit(at, state);
      next_block = (at | (DeadEnds::kBlock - 1)) + 1;
    }
    uint32_t symbol, length = 1;
    if (at < last) {
      symbol = text[at] < 0x80 ? ascii[text[at]] : classes_->of(utf8_decode(text + at, &length));
    } else {
      symbol = at == end ? symbols - 1 : symbols - 2;
    }
    const uint32_t entry = table[state * symbols + symbol];
    if (entry & 1) {
      match.end = at;
      dead->clear_visited();
    }
    state = entry >> 1;
    if (state == 0) break;
    // Behind the end of the text nothing goes on.
    if (at == end) break;
    at += length;
  }
  dead->add_visited();
  match.seen = at;
  return match;
}

}  // namespace izh
