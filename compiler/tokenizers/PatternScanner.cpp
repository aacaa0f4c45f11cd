// A pattern becomes a program of steps (as in Thompson's construction), and
// sets of its places become states. Places of a state stand in the order in
// which a backtracking matcher would try them, and a match ends the list: so the
// last match that a table reports is the one that such a matcher finds. What is
// looked ahead for is known when the next symbol is.

#include "compiler/tokenizers/PatternScanner.h"
#include "compiler/tokenizers/PatternTree.h"
#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace izhc;

namespace {

constexpr size_t kMaxSteps = 4096;
constexpr size_t kMaxTransitions = 1 << 16;
constexpr unsigned kMaxClasses = 250;
// Places of a pattern that are looked at to make its table: about a second.
constexpr uint64_t kMaxWork = 1 << 27;

struct Step {
  enum Kind { Take, Look, Fork, Match } kind;
  // Symbols that it takes, or that may follow.
  std::vector<bool> symbols;
  // Fork: where to go first and second.
  unsigned next = 0, other = 0;
};

class Program {
public:
  explicit Program(const CharacterClasses &classes) : classes(classes) {}

  // False if it gets too long.
  bool build(const PatternNode &root) {
    start = add(root, push({Step::Match, {}, 0, 0}));
    return steps.size() <= kMaxSteps;
  }

  std::vector<Step> steps;
  unsigned start = 0;

private:
  unsigned push(Step step) {
    steps.push_back(std::move(step));
    return unsigned(steps.size() - 1);
  }

  std::vector<bool> symbolsOf(unsigned set) const {
    std::vector<bool> symbols;
    for (uint64_t members : classes.members)
      symbols.push_back(members >> set & 1);
    symbols.push_back(symbols[classes.of('\n')]);
    symbols.push_back(false);
    return symbols;
  }

  // Adds what matches `node` and goes on at `next`; returns where it begins.
  unsigned add(const PatternNode &node, unsigned next) {
    if (steps.size() > kMaxSteps)
      return next;
    switch (node.kind) {
    case PatternNode::Sequence:
      for (const PatternNode &part : llvm::reverse(node.parts))
        next = add(part, next);
      return next;
    case PatternNode::Choice: {
      unsigned begin = add(node.parts.back(), next);
      for (const PatternNode &part : llvm::reverse(llvm::drop_end(node.parts))) {
        unsigned first = add(part, next);
        begin = push({Step::Fork, {}, first, begin});
      }
      return begin;
    }
    case PatternNode::Set:
      return push({Step::Take, symbolsOf(node.set), next, 0});
    case PatternNode::Ahead:
      return push({Step::Look, symbolsOf(node.set), next, 0});
    case PatternNode::NotAhead: {
      std::vector<bool> symbols = symbolsOf(node.set);
      symbols.flip();
      return push({Step::Look, std::move(symbols), next, 0});
    }
    case PatternNode::End: {
      std::vector<bool> symbols(classes.count, false);
      symbols.resize(classes.count + 2, true);
      return push({Step::Look, std::move(symbols), next, 0});
    }
    case PatternNode::Repeat:
      return repeat(node, next);
    }
    return next;
  }

  unsigned fork(bool lazy, unsigned inside, unsigned behind) {
    return lazy ? push({Step::Fork, {}, behind, inside}) : push({Step::Fork, {}, inside, behind});
  }

  unsigned repeat(const PatternNode &node, unsigned next) {
    const PatternNode &part = node.parts[0];
    if (node.most == PatternNode::kEndless) {
      unsigned loop = push({Step::Fork, {}, 0, 0});
      unsigned inside = add(part, loop);
      steps[loop].next = node.lazy ? next : inside;
      steps[loop].other = node.lazy ? inside : next;
      next = loop;
    } else {
      // Each of these may be the last one.
      unsigned behind = next;
      for (unsigned i = node.least; i < node.most; ++i)
        next = fork(node.lazy, add(part, next), behind);
    }
    for (unsigned i = 0; i < node.least; ++i)
      next = add(part, next);
    return next;
  }

  const CharacterClasses &classes;
};

class TableBuilder {
public:
  TableBuilder(const Program &program, unsigned symbols)
      : steps(program.steps), symbols(symbols), seen(steps.size()), listed(steps.size()) {
    number({});
    number({program.start});
  }

  // Empty if it gets too large; `work` is what may still be done.
  std::vector<uint16_t> run(uint64_t &work) {
    for (size_t state = 0; state < states.size(); ++state) {
      if ((state + 1) * symbols > kMaxTransitions || work < looked)
        return {};
      for (unsigned symbol = 0; symbol < symbols; ++symbol)
        table.push_back(transition(states[state], symbol));
    }
    work -= looked;
    return std::move(table);
  }

private:
  using Places = std::vector<unsigned>;

  unsigned number(Places places) {
    auto [found, added] = numbers.try_emplace(places, unsigned(states.size()));
    if (added)
      states.push_back(std::move(places));
    return found->second;
  }

  uint16_t transition(Places from, unsigned symbol) {
    ++round;
    Places to, stack(from.rbegin(), from.rend());
    bool match = false;
    while (!stack.empty() && !match) {
      unsigned at = stack.back();
      stack.pop_back();
      ++looked;
      if (seen[at] == round)
        continue;
      seen[at] = round;
      const Step &step = steps[at];
      switch (step.kind) {
      case Step::Take:
        if (step.symbols[symbol] && listed[step.next] != round) {
          listed[step.next] = round;
          to.push_back(step.next);
        }
        break;
      case Step::Look:
        if (step.symbols[symbol])
          stack.push_back(step.next);
        break;
      case Step::Fork:
        stack.push_back(step.other);
        stack.push_back(step.next);
        break;
      case Step::Match:
        match = true;
      }
    }
    return uint16_t(number(std::move(to)) * 2 + match);
  }

  const std::vector<Step> &steps;
  unsigned symbols;
  // The round in which a step was looked at, and in which it was listed.
  std::vector<uint32_t> seen, listed;
  uint32_t round = 0;
  uint64_t looked = 0;
  std::vector<Places> states;
  std::map<Places, unsigned> numbers;
  std::vector<uint16_t> table;
};

} // namespace

bool PatternScanners::matchesEverything(size_t pattern) const {
  const std::vector<uint16_t> &table = tables[pattern];
  for (unsigned first = 0; first < symbols() - 1; ++first) {
    unsigned state = table[symbols() + first] / 2;
    // Nothing follows a line feed that ends the text but its end.
    unsigned next = first == classes.count ? symbols() - 1 : 0;
    for (; next < symbols(); ++next)
      if (!(table[state * symbols() + next] & 1))
        return false;
  }
  return true;
}

PatternScanners izhc::buildScanners(llvm::ArrayRef<std::string> patterns) {
  std::vector<std::string> sets;
  std::vector<std::optional<PatternNode>> trees;
  for (const std::string &pattern : patterns)
    trees.push_back(parsePattern(pattern, sets));
  PatternScanners scanners;
  scanners.tables.resize(patterns.size());
  std::vector<CharacterSet> members;
  for (const std::string &set : sets) {
    auto found = charactersOf(set);
    if (!found)
      return scanners;
    members.push_back(std::move(*found));
  }
  auto classes = classify(members, kMaxClasses);
  if (!classes || sets.size() > 64)
    return scanners;
  scanners.classes = std::move(*classes);
  uint64_t work = kMaxWork;
  for (auto [tree, table] : llvm::zip(trees, scanners.tables)) {
    Program program(scanners.classes);
    if (tree && program.build(*tree))
      table = TableBuilder(program, scanners.symbols()).run(work);
  }
  return scanners;
}
