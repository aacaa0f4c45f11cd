// Upper and lower case of whole texts.

#pragma once

#include "runtime/text/jinja/machine.h"
#include "runtime/text/letter_case.h"

namespace izh::jinja {

// Adds the character of `text` at byte `at` in the case asked for, as Python has
// it: a capital sigma that ends a word has a lower case of its own.
void add_in_case(Text text, uint32_t at, LetterCase to, Builder* out);
// The same of all characters, each of which costs as many steps as it has bytes:
// those beyond ASCII are looked up.
void add_in_case(Machine& machine, Text text, LetterCase to, Builder* out);

}  // namespace izh::jinja
