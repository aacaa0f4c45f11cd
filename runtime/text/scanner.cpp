// One look at a table a character.

#include "runtime/text/scanner.h"

#include "runtime/text/utf8.h"

namespace izh {
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

Scanner::Match Scanner::match(const uint8_t* text, uint32_t at, uint32_t end) const {
  const uint32_t symbols = classes_->symbols;
  const uint16_t* table = transitions_.data;
  const uint8_t* ascii =
      classes_->classes.data + size_t{classes_->pages[0]} * CharacterClasses::kPage;
  // A line feed at the end is a symbol of its own.
  const uint32_t last = text[end - 1] == '\n' ? end - 1 : end;
  Match match = {at, at};
  uint32_t state = 1;
  while (true) {
    uint32_t symbol, length = 1;
    if (at < last) {
      symbol = text[at] < 0x80 ? ascii[text[at]] : classes_->of(utf8_decode(text + at, &length));
    } else {
      symbol = at == end ? symbols - 1 : symbols - 2;
    }
    const uint32_t entry = table[state * symbols + symbol];
    if (entry & 1) match.end = at;
    state = entry >> 1;
    if (state == 0) break;
    // Behind the end of the text nothing goes on.
    if (at == end) break;
    at += length;
  }
  match.seen = at;
  return match;
}

}  // namespace izh
