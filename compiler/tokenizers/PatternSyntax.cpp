// Differences that patterns of tokenizers meet: shorthands hold all of Unicode,
// classes may stand in classes, $ ends a line, and {n}+ repeats {n}. Whatever
// else is wrong with a pattern is seen by those that read it next.

#include "compiler/tokenizers/PatternSyntax.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace izhc;

namespace {

// What a shorthand holds, as members of a class.
llvm::StringRef membersOf(char letter) {
  switch (llvm::toLower(letter)) {
  case 's':
    return R"(\t-\r\x{85}\p{Z})";
  case 'd':
    return R"(\p{Nd})";
  case 'w':
    return R"(\p{L}\p{M}\p{N}\p{Pc})";
  case 'h':
    return "0-9A-Fa-f";
  default:
    return "";
  }
}

class Translator {
public:
  explicit Translator(llvm::StringRef pattern) : left(pattern) {}

  std::optional<std::string> run() {
    while (!left.empty() && good) {
      if (left[0] == '\\')
        escape(/*inClass=*/false);
      else if (left[0] == '[')
        takeClass();
      else if (left[0] == '{')
        braces();
      else if (left.consume_front("$"))
        // Before every line feed.
        out += R"((?:$|(?=\n)))";
      else
        copy(1);
    }
    return good ? std::optional(std::move(out)) : std::nullopt;
  }

private:
  void copy(size_t count) {
    out += left.take_front(count);
    left = left.drop_front(count);
  }

  void escape(bool inClass) {
    if (left.size() < 2) {
      good = false;
      return;
    }
    char letter = left[1];
    llvm::StringRef members = membersOf(letter);
    if (!members.empty()) {
      bool negative = llvm::isUpper(letter);
      // The rest of a class can't hold what another one doesn't.
      good &= !(inClass && negative);
      out += inClass ? members.str() : (negative ? "[^" : "[") + members.str() + "]";
      left = left.drop_front(2);
    } else if (letter == 'v') {
      out += R"(\x{b})";
      left = left.drop_front(2);
    } else if (letter == 'u') {
      llvm::StringRef digits = left.substr(2, 4);
      good &= digits.size() == 4 && llvm::all_of(digits, llvm::isHexDigit);
      out += (R"(\x{)" + digits + "}").str();
      left = left.drop_front(2 + digits.size());
    } else if ((letter == 'p' || letter == 'P' || letter == 'x') &&
               left.substr(2).starts_with("{")) {
      copy(std::min(left.find('}'), left.size() - 1) + 1);
    } else {
      good &= !llvm::isAlnum(letter) || llvm::StringRef("eaftnr").contains(letter);
      copy(2);
    }
  }

  // Classes inside of a class are part of it, unless they are negative.
  void takeClass() {
    unsigned depth = 0;
    do {
      if (left.empty() || left.starts_with("&&")) {
        good = false;
      } else if (left[0] == '[') {
        open(depth++);
      } else if (left[0] == ']') {
        // Next to a border this would join the sides to a range.
        good &= depth == 1 || !llvm::StringRef(out).ends_with("-");
        --depth;
        depth == 0 ? copy(1) : void(left = left.drop_front(1));
        good &= depth == 0 || !left.starts_with("-");
      } else if (left[0] == '\\') {
        escape(/*inClass=*/true);
      } else {
        copy(1);
      }
    } while (depth > 0 && good);
  }

  void open(unsigned depth) {
    if (depth == 0) {
      copy(1);
      if (left.starts_with("^"))
        copy(1);
      // The first one is a letter.
      if (left.starts_with("]"))
        copy(1);
      return;
    }
    good &= !llvm::StringRef(out).ends_with("-");
    left = left.drop_front(1);
    good &= !left.starts_with("^") && !left.starts_with(":") && !left.starts_with("-") &&
            !left.starts_with("]");
  }

  // A number of times; more than that is another quantifier here.
  void braces() {
    size_t size = left.find('}');
    good &= size != llvm::StringRef::npos;
    if (!good)
      return;
    bool range = left.take_front(size).contains(',');
    copy(size + 1);
    good &= !left.starts_with("+") && (range || !left.starts_with("?"));
  }

  llvm::StringRef left;
  std::string out;
  bool good = true;
};

} // namespace

std::optional<std::string> izhc::fromOniguruma(llvm::StringRef pattern) {
  return Translator(pattern).run();
}
