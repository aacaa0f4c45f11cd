// Makes the tries of runtime/schema/byte_trie.h.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <utility>
#include <vector>

namespace izhc {

// A string and what it stands for.
using TrieEntry = std::pair<llvm::StringRef, uint32_t>;

// Strings that are not empty, distinct and ascending by their bytes; values up
// to kMaxTrieValue. Takes time in proportion to the bytes of the strings. Empty
// if there would be more than `mostUnits` units.
std::vector<uint64_t> buildTrie(llvm::ArrayRef<TrieEntry> entries, uint32_t mostUnits);

} // namespace izhc
