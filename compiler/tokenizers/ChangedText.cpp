// Normal forms, case and marks leave most of ASCII as it is; the runtime has the
// same steps for any text.

#include "compiler/tokenizers/ChangedText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

using namespace izhc;
using izh::schema::NormalStepKind;

// Whether all characters are of ASCII or U+2581, which no normal form changes.
static bool isPlain(llvm::StringRef text) {
  while (!text.empty())
    if (!text.consume_front("\xe2\x96\x81")) {
      if (!llvm::isASCII(text.front()))
        return false;
      text = text.drop_front();
    }
  return true;
}

static bool isBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool isControl(char c) { return (c >= 0 && c < ' ') || c == 0x7f; }

static std::string replaceAll(llvm::StringRef text, llvm::StringRef from, llvm::StringRef to) {
  std::string out;
  for (size_t at; (at = text.find(from)) != llvm::StringRef::npos;
       text = text.drop_front(at + from.size())) {
    out += text.take_front(at);
    out += to;
  }
  return out + text.str();
}

// Runs of two and more.
static std::string replaceSpaces(llvm::StringRef text, llvm::StringRef to) {
  std::string out;
  while (!text.empty()) {
    size_t spaces = text.take_while([](char c) { return c == ' '; }).size();
    if (spaces == 0)
      spaces = 1, out += text.front();
    else
      out += spaces > 1 ? to.str() : " ";
    text = text.drop_front(spaces);
  }
  return out;
}

// Of a plain text; nullopt for kinds that look characters up.
static std::optional<std::string> changePlain(const TextStep &step, llvm::StringRef text) {
  switch (step.kind) {
  case NormalStepKind::Compose:
  case NormalStepKind::Decompose:
  case NormalStepKind::CompatCompose:
  case NormalStepKind::CompatDecompose:
  case NormalStepKind::StripMarks:
  case NormalStepKind::StripNonspacing:
  case NormalStepKind::SpaceIdeographs:
    return text.str();
  case NormalStepKind::Lowercase:
    return text.lower();
  case NormalStepKind::StripLeft:
  case NormalStepKind::StripRight:
    if (!step.from.empty())
      return std::nullopt;
    return (step.kind == NormalStepKind::StripLeft ? text.drop_while(isBlank)
                                                   : text.rtrim(" \t\n\v\f\r"))
        .str();
  case NormalStepKind::Clean:
    if (llvm::any_of(text, isControl))
      return std::nullopt;
    return text.str();
  case NormalStepKind::Blanks: {
    std::string out = text.str();
    std::replace_if(out.begin(), out.end(), isBlank, ' ');
    return out;
  }
  default:
    return std::nullopt;
  }
}

std::optional<std::string> izhc::changedText(llvm::ArrayRef<TextStep> steps, std::string text) {
  for (const TextStep &step : steps) {
    std::optional<std::string> next;
    if (step.kind == NormalStepKind::Replace && !step.from.empty())
      next = replaceAll(text, step.from, step.to);
    else if (step.kind == NormalStepKind::ReplaceSpaces)
      next = replaceSpaces(text, step.to);
    else if (step.kind == NormalStepKind::Prepend)
      next = text.empty() ? "" : step.to + text;
    else if (isPlain(text))
      next = changePlain(step, text);
    if (!next)
      return std::nullopt;
    text = std::move(*next);
  }
  return text;
}
