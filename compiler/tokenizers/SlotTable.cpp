// Linear probing at two thirds full, growing until no entry is far from home.

#include "compiler/tokenizers/SlotTable.h"
#include "runtime/schema/tokenizer_hash.h"

using namespace izhc;

static bool place(llvm::ArrayRef<SlotEntry> entries, std::vector<uint32_t> &slots) {
  uint32_t count = uint32_t(slots.size());
  for (const SlotEntry &entry : entries) {
    uint32_t slot = izh::schema::home_slot(entry.hash, count);
    uint32_t probes = 0;
    while (slots[slot] != 0) {
      if (++probes == izh::schema::kMaxProbes)
        return false;
      slot = slot + 1 == count ? 0 : slot + 1;
    }
    slots[slot] = izh::schema::make_slot(entry.hash, entry.value);
  }
  return true;
}

std::vector<uint32_t> izhc::buildSlots(llvm::ArrayRef<SlotEntry> entries) {
  for (const SlotEntry &entry : entries)
    if (entry.value >= izh::schema::kSlotValue)
      return {};
  uint64_t limit = uint64_t(entries.size()) * 8 + 16;
  for (uint64_t count = entries.size() * 3 / 2 + 1; count <= limit; count += count / 4 + 1) {
    std::vector<uint32_t> slots(count);
    if (place(entries, slots))
      return slots;
  }
  return {};
}
