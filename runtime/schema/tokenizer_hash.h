// The hash functions behind the slot tables of tokenizer.fbs. Compiler and
// runtime share them; they are part of the artifact format.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace izh::schema {

// A look-up ends after this many slots: the compiler enlarges a table until
// every entry lies that near to its home slot.
constexpr uint32_t kMaxProbes = 64;

inline uint64_t mix_bits(uint64_t h) {
  h ^= h >> 32;
  h *= 0x9e3779b97f4a7c15u;
  h ^= h >> 29;
  return h;
}

inline uint64_t hash_pair(uint32_t left, uint32_t right) {
  return mix_bits(((uint64_t{left} << 32) | right) * 0xbf58476d1ce4e5b9u);
}

inline uint64_t hash_bytes(const uint8_t* bytes, size_t count) {
  uint64_t h = count * 0x94d049bb133111ebu;
  while (count >= 8) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    h = mix_bits(h ^ word) * 0xbf58476d1ce4e5b9u;
    bytes += 8;
    count -= 8;
  }
  uint64_t word = 0;
  for (size_t i = 0; i < count; ++i) word |= uint64_t{bytes[i]} << (8 * i);
  return mix_bits((h ^ word) * 0xbf58476d1ce4e5b9u);
}

// Home slot in a table of `slots` slots.
inline uint32_t home_slot(uint64_t hash, uint32_t slots) {
  return static_cast<uint32_t>(((hash & 0xffffffffu) * slots) >> 32);
}

// A slot is 0 (free), or an entry's number plus one below the highest 8 bits of
// its hash, so that most entries that are not the one need no look at them.
constexpr uint32_t kSlotValue = 0xffffff;

inline uint32_t slot_tag(uint64_t hash) { return static_cast<uint32_t>(hash >> 56) << 24; }
inline uint32_t make_slot(uint64_t hash, uint32_t number) { return slot_tag(hash) | (number + 1); }

}  // namespace izh::schema
