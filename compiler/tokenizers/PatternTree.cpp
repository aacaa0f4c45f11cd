// Recursive descent over a pattern. What a set of characters holds is not read
// here: its text goes to PCRE2, which then can't mean anything else by it.

#include "compiler/tokenizers/PatternTree.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace izhc;

namespace {

// Beyond these a table would be too large anyway.
constexpr unsigned kMaxRepeat = 64;
constexpr unsigned kMaxDepth = 32;
constexpr size_t kMaxSets = 64;

class Parser {
public:
  Parser(llvm::StringRef pattern, std::vector<std::string> &sets) : left(pattern), sets(sets) {}

  std::optional<PatternNode> run() {
    auto node = choice(/*anyCase=*/false, 0);
    if (!node || !left.empty())
      return std::nullopt;
    return node;
  }

private:
  using Node = std::optional<PatternNode>;

  Node choice(bool anyCase, unsigned depth) {
    if (depth > kMaxDepth)
      return std::nullopt;
    PatternNode all;
    all.kind = PatternNode::Choice;
    do {
      PatternNode sequence;
      while (!left.empty() && left[0] != '|' && left[0] != ')') {
        Node part = quantified(anyCase, depth);
        if (!part)
          return std::nullopt;
        sequence.parts.push_back(std::move(*part));
      }
      all.parts.push_back(std::move(sequence));
    } while (left.consume_front("|"));
    return all.parts.size() == 1 ? std::move(all.parts[0]) : std::move(all);
  }

  Node quantified(bool anyCase, unsigned depth) {
    Node node = atom(anyCase, depth);
    if (!node)
      return std::nullopt;
    PatternNode repeat;
    repeat.kind = PatternNode::Repeat;
    if (left.consume_front("?"))
      repeat.most = 1;
    else if (left.consume_front("*"))
      repeat.most = PatternNode::kEndless;
    else if (left.consume_front("+"))
      repeat.least = 1, repeat.most = PatternNode::kEndless;
    else if (!left.starts_with("{"))
      return node;
    else if (!braces(repeat))
      return std::nullopt;
    repeat.lazy = left.consume_front("?");
    if (!repeat.lazy && node->kind == PatternNode::Set && left.consume_front("+"))
      return possessive(repeat, std::move(*node));
    // Other possessive ones and quantifiers of quantifiers.
    if (!left.empty() && llvm::StringRef("?*+{").contains(left[0]))
      return std::nullopt;
    bool looks = node->kind == PatternNode::Ahead || node->kind == PatternNode::NotAhead ||
                 node->kind == PatternNode::End;
    if (looks || (repeat.most > 1 && node->canBeEmpty()))
      return std::nullopt;
    repeat.parts.push_back(std::move(*node));
    return repeat;
  }

  // As many as there are, and never fewer: a smaller number than the largest one
  // only counts where the set's character doesn't follow.
  static Node possessive(PatternNode repeat, PatternNode set) {
    PatternNode end = set;
    end.kind = PatternNode::NotAhead;
    repeat.parts.push_back(std::move(set));
    if (repeat.least == repeat.most)
      return repeat;
    PatternNode fewer;
    if (repeat.most == PatternNode::kEndless) {
      fewer.parts.push_back(std::move(repeat));
      fewer.parts.push_back(std::move(end));
      return fewer;
    }
    PatternNode most = repeat;
    most.least = most.most;
    if (--repeat.most > 0)
      fewer.parts.push_back(std::move(repeat));
    fewer.parts.push_back(std::move(end));
    PatternNode all;
    all.kind = PatternNode::Choice;
    all.parts.push_back(std::move(most));
    all.parts.push_back(std::move(fewer));
    return all;
  }

  bool braces(PatternNode &repeat) {
    llvm::StringRef rest = left.drop_front();
    if (rest.consumeInteger(10, repeat.least))
      return false;
    repeat.most = repeat.least;
    if (rest.consume_front(",")) {
      repeat.most = PatternNode::kEndless;
      if (!rest.starts_with("}") && rest.consumeInteger(10, repeat.most))
        return false;
    }
    if (!rest.consume_front("}") || repeat.least > kMaxRepeat || repeat.most < repeat.least ||
        (repeat.most != PatternNode::kEndless && repeat.most > kMaxRepeat))
      return false;
    left = rest;
    return true;
  }

  Node atom(bool anyCase, unsigned depth) {
    char c = left[0];
    if (c == '(')
      return group(anyCase, depth);
    if (c == '[') {
      size_t size = classSize();
      return size == 0 ? std::nullopt : set(left.take_front(size), size, anyCase);
    }
    if (c == '\\')
      return escape(anyCase);
    if (c == '$') {
      left = left.drop_front();
      PatternNode node;
      node.kind = PatternNode::End;
      return node;
    }
    if (c == '.')
      return set(".", 1, anyCase);
    if (llvm::StringRef("^?*+{").contains(c))
      return std::nullopt;
    size_t size = 1;
    while (size < left.size() && (left[size] & 0xc0) == 0x80)
      ++size;
    return set(left.take_front(size), size, anyCase);
  }

  Node group(bool anyCase, unsigned depth) {
    bool ahead = false, negative = false;
    left = left.drop_front();
    if (left.consume_front("?i:"))
      anyCase = true;
    else if (left.consume_front("?="))
      ahead = true;
    else if (left.consume_front("?!"))
      ahead = negative = true;
    else if (!left.consume_front("?:") && (left.starts_with("?") || left.starts_with("*")))
      return std::nullopt;
    Node inside = choice(anyCase, depth + 1);
    if (!inside || !left.consume_front(")"))
      return std::nullopt;
    if (!ahead)
      return inside;
    while (inside->kind == PatternNode::Sequence && inside->parts.size() == 1) {
      PatternNode only = std::move(inside->parts[0]);
      inside = std::move(only);
    }
    if (inside->kind != PatternNode::Set)
      return std::nullopt;
    inside->kind = negative ? PatternNode::NotAhead : PatternNode::Ahead;
    return inside;
  }

  Node escape(bool anyCase) {
    if (left.size() < 2)
      return std::nullopt;
    char c = left[1];
    size_t size = 2;
    if (c == 'p' || c == 'P' || c == 'x') {
      size_t close = left.size() > 2 && left[2] == '{' ? left.find('}') : llvm::StringRef::npos;
      if (close != llvm::StringRef::npos)
        size = close + 1;
      else if (c != 'x' && left.size() > 2)
        size = 3;
      else
        return std::nullopt;
    } else if (llvm::isAlnum(c) && !llvm::StringRef("sSdDwWhHvVrntfea").contains(c)) {
      // Back references and what looks around.
      return std::nullopt;
    } else if (c & 0x80) {
      return std::nullopt;
    }
    return set(left.take_front(size), size, anyCase);
  }

  // Bytes of the bracketed class at the start of what is left; 0 if it has no end.
  size_t classSize() const {
    size_t at = 1;
    if (at < left.size() && left[at] == '^')
      ++at;
    if (at < left.size() && left[at] == ']')
      ++at;
    while (at < left.size() && left[at] != ']') {
      if (left[at] == '\\') {
        // \Q, \E
        if (at + 1 < left.size() && (left[at + 1] == 'Q' || left[at + 1] == 'E'))
          return 0;
        ++at;
      } else if (left.substr(at).starts_with("[:")) {
        size_t close = left.find(":]", at + 2);
        if (close == llvm::StringRef::npos)
          return 0;
        ++(at = close);
      }
      ++at;
    }
    return at < left.size() ? at + 1 : 0;
  }

  Node set(llvm::StringRef text, size_t size, bool anyCase) {
    std::string pattern = anyCase ? "(?i:" + text.str() + ")" : text.str();
    left = left.drop_front(size);
    PatternNode node;
    node.kind = PatternNode::Set;
    node.set = unsigned(llvm::find(sets, pattern) - sets.begin());
    if (node.set == sets.size())
      sets.push_back(std::move(pattern));
    if (sets.size() > kMaxSets)
      return std::nullopt;
    return node;
  }

  llvm::StringRef left;
  std::vector<std::string> &sets;
};

} // namespace

bool PatternNode::canBeEmpty() const {
  switch (kind) {
  case Sequence:
    return llvm::all_of(parts, [](const PatternNode &part) { return part.canBeEmpty(); });
  case Choice:
    return llvm::any_of(parts, [](const PatternNode &part) { return part.canBeEmpty(); });
  case Set:
    return false;
  case Repeat:
    return least == 0 || parts[0].canBeEmpty();
  case Ahead:
  case NotAhead:
  case End:
    return true;
  }
  return true;
}

std::optional<PatternNode> izhc::parsePattern(llvm::StringRef pattern,
                                              std::vector<std::string> &sets) {
  return Parser(pattern, sets).run();
}
