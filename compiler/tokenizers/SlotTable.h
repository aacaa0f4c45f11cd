// Open-addressing tables that the runtime reads in place.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <vector>

namespace izhc {

// A table in which `value + 1` of each entry is found within kMaxProbes slots
// of its hash's home slot. Keys must be distinct. Empty if there is no such
// table of a sensible size (only keys made to collide do that).
struct SlotEntry {
  uint64_t hash;
  uint32_t value;
};
std::vector<uint32_t> buildSlots(llvm::ArrayRef<SlotEntry> entries);

} // namespace izhc
