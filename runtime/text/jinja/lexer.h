// Cuts a template into tokens. White space is handled here: blocks alone on
// their line leave nothing of it, '-' strips on its side, '+' keeps.

#pragma once

#include "runtime/base/array.h"
#include "runtime/text/jinja/machine.h"

namespace izh::jinja {

enum class TokenKind : uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kInteger,
  kFloat,
  kString,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind;
  uint32_t line;
  // Of strings: without quotes and escapes.
  Text text;
};

// Appends the tokens of `source`, which is UTF-8, and kEnd. False after a
// failure.
bool tokenize_template(Machine& machine, Text source, Array<Token>* tokens);

}  // namespace izh::jinja
