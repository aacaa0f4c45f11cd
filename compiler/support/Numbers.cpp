// As the standard library writes numbers that are to be read back.

#include "compiler/support/Numbers.h"

#include <charconv>

std::string izhc::shortText(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}
