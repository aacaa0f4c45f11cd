// Open-addressing tables that the runtime reads in place.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <vector>

namespace izhc {

struct SlotEntry {
  uint64_t hash;
  uint32_t value;
};
// A table in which each entry is found within kMaxProbes slots of its hash's
// home slot. Keys must be distinct. Empty if there is no such table of a
// sensible size (only keys made to collide do that) or a value has over 24 bits.
std::vector<uint32_t> buildSlots(llvm::ArrayRef<SlotEntry> entries);

} // namespace izhc
