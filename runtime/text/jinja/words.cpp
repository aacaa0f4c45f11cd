// The case of a character is Unicode's; only sigma looks around itself.

#include "runtime/text/jinja/words.h"

#include "runtime/text/jinja/characters.h"

namespace izh::jinja {
namespace {

constexpr uint32_t kCapitalSigma = 0x3a3, kFinalSigma = 0x3c2;

// Whether the letter at `at` has letters of its word before it and none behind.
bool ends_word(Text text, uint32_t at) {
  Text before = text.part(0, at);
  uint32_t c = 0;
  bool found = false;
  while (!found && before.size != 0) {
    before.size -= last_character_bytes(before);
    c = character_at(text, before.size);
    found = !is_case_ignorable(c);
  }
  if (!found || !is_cased(c)) return false;
  for (at += character_bytes(text.data[at]); at < text.size; at += character_bytes(text.data[at])) {
    c = character_at(text, at);
    if (!is_case_ignorable(c)) return !is_cased(c);
  }
  return true;
}

}  // namespace

void add_in_case(Text text, uint32_t at, LetterCase to, Builder* out) {
  const uint32_t c = character_at(text, at);
  if (c == kCapitalSigma && to == LetterCase::kLower && ends_word(text, at)) {
    return out->add_point(kFinalSigma);
  }
  const CaseMapping mapping = map_case(c, to);
  for (uint32_t i = 0; i < mapping.count; ++i) out->add_point(mapping.points[i]);
}

void add_in_case(Machine& machine, Text text, LetterCase to, Builder* out) {
  for (uint32_t at = 0, bytes; at < text.size; at += bytes) {
    bytes = character_bytes(text.data[at]);
    if (!machine.charge(bytes)) return;
    add_in_case(text, at, to, out);
  }
}

}  // namespace izh::jinja
