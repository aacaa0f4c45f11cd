// Units are placed depth first, so that the letters of a word lie near each
// other. Only the first few free places are tried before the array grows, and a
// place that didn't fit several times is tried no more: so placing a unit takes
// a bounded time, and few places are never filled.

#include "compiler/tokenizers/ByteTrie.h"
#include "runtime/schema/byte_trie.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace izhc;
namespace schema = izh::schema;

namespace {

constexpr unsigned kMaxTries = 32;
constexpr uint8_t kMaxMisses = 8;

class TrieBuilder {
public:
  TrieBuilder(llvm::ArrayRef<TrieEntry> entries, uint32_t mostUnits)
      : entries(entries), mostUnits(mostUnits) {}

  std::vector<uint64_t> run() {
    if (entries.empty() || !grow())
      return {};
    take(0);
    stack.push_back({0, uint32_t(entries.size()), 0, 0});
    while (!stack.empty()) {
      Node node = stack.pop_back_val();
      if (!place(node))
        return {};
    }
    return std::move(units);
  }

private:
  // Entries first..last - 1 share their first `depth` bytes, which lead to `unit`.
  struct Node {
    uint32_t first, last, depth, unit;
  };

  // Sets value and base of a node's unit and takes units for its children.
  bool place(Node node) {
    auto [text, value] = entries[node.first];
    if (text.size() == node.depth) {
      units[node.unit] = schema::with_value(units[node.unit], value);
      if (++node.first == node.last)
        return true;
    }
    children.clear();
    for (uint32_t i = node.first; i < node.last; ++i) {
      uint8_t byte = uint8_t(entries[i].first[node.depth]);
      if (children.empty() || children.back().byte != byte)
        children.push_back({byte, i});
    }
    uint32_t base;
    if (!findBase(base))
      return false;
    bases[base] = true;
    units[node.unit] = schema::with_base(units[node.unit], base);
    for (size_t i = 0; i < children.size(); ++i) {
      uint32_t unit = base ^ children[i].byte;
      units[unit] = schema::make_trie_unit(children[i].byte);
      take(unit);
    }
    // The last one is placed last.
    for (size_t i = children.size(); i-- > 0;) {
      uint32_t last = i + 1 < children.size() ? children[i + 1].first : node.last;
      stack.push_back({children[i].first, last, node.depth + 1, base ^ children[i].byte});
    }
    return true;
  }

  bool findBase(uint32_t &base) {
    uint32_t next = firstFree;
    for (unsigned tries = 0; tries < kMaxTries && next != kNone; ++tries) {
      uint32_t place = next;
      next = nextFree[place];
      base = place ^ children.front().byte;
      if (base != 0 && !bases[base] &&
          llvm::all_of(children, [&](const Child &child) { return isFree[base ^ child.byte]; }))
        return true;
      if (++misses[place] == kMaxMisses)
        unlink(place);
    }
    base = uint32_t(units.size());
    return grow();
  }

  // Adds a block of free units at the end of the list.
  bool grow() {
    uint32_t begin = uint32_t(units.size()), end = begin + schema::kTrieBlock;
    if (end > mostUnits)
      return false;
    units.resize(end);
    bases.resize(end);
    isFree.resize(end, true);
    misses.resize(end);
    for (uint32_t i = begin; i < end; ++i) {
      previousFree.push_back(i == begin ? lastFree : i - 1);
      nextFree.push_back(i + 1 == end ? kNone : i + 1);
    }
    (lastFree == kNone ? firstFree : nextFree[lastFree]) = begin;
    lastFree = end - 1;
    return true;
  }

  void take(uint32_t unit) {
    isFree[unit] = false;
    if (misses[unit] < kMaxMisses)
      unlink(unit);
  }

  void unlink(uint32_t unit) {
    uint32_t before = previousFree[unit], behind = nextFree[unit];
    (before == kNone ? firstFree : nextFree[before]) = behind;
    (behind == kNone ? lastFree : previousFree[behind]) = before;
  }

  struct Child {
    uint8_t byte;
    uint32_t first;
  };
  static constexpr uint32_t kNone = ~0u;

  llvm::ArrayRef<TrieEntry> entries;
  uint32_t mostUnits;
  std::vector<uint64_t> units;
  std::vector<bool> isFree, bases;
  // How often a free place didn't fit; from kMaxMisses on it is in no list.
  std::vector<uint8_t> misses;
  std::vector<uint32_t> previousFree, nextFree;
  uint32_t firstFree = kNone, lastFree = kNone;
  llvm::SmallVector<Node> stack;
  llvm::SmallVector<Child, 256> children;
};

} // namespace

std::vector<uint64_t> izhc::buildTrie(llvm::ArrayRef<TrieEntry> entries, uint32_t mostUnits) {
  return TrieBuilder(entries, mostUnits).run();
}
