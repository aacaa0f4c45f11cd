// Byte strings as a trie in one array (a double array), which the runtime reads
// in place: one look a byte, whatever the strings are. Part of the artifact
// format; compiler and runtime share it.
//
// The child of a unit by a byte is the unit at its `base` XOR that byte, if that
// one says that this byte leads to it. No two units have the same base but
// those without children, whose base is 0. Unit 0 is the root. The number of
// units is a multiple of 256, so that no base leads out of the array.

#pragma once

#include <cstdint>

namespace izh::schema {

// Bits 0 to 8: the byte that leads here, plus 256 in units that are in use;
// 12 to 39: the base; 40 to 63: the value plus 1, 0 where no string ends.
using TrieUnit = uint64_t;

constexpr uint32_t kTrieBlock = 256;
constexpr uint32_t kMaxTrieUnits = 1u << 28;
constexpr uint32_t kMaxTrieValue = (1u << 24) - 2;

// What is searched for at every place of a text is no longer than this, and no
// more strings than that are the starts of one: so a place costs little,
// whatever the text.
constexpr uint32_t kMaxPieceBytes = 256;
constexpr uint32_t kMaxPieceStarts = 128;

constexpr TrieUnit make_trie_unit(uint8_t byte) { return 0x100u | byte; }
constexpr TrieUnit with_base(TrieUnit unit, uint32_t base) { return unit | uint64_t{base} << 12; }
constexpr TrieUnit with_value(TrieUnit unit, uint32_t value) {
  return unit | (uint64_t{value} + 1) << 40;
}

constexpr uint32_t base_of(TrieUnit unit) { return static_cast<uint32_t>(unit >> 12 & 0xfffffff); }
// -1 where no string ends.
constexpr int32_t value_of(TrieUnit unit) { return static_cast<int32_t>(unit >> 40) - 1; }

// 0 if there is no such child.
inline TrieUnit child_of(const TrieUnit* units, TrieUnit unit, uint8_t byte) {
  const TrieUnit child = units[base_of(unit) ^ byte];
  return (child & 0x1ff) == make_trie_unit(byte) ? child : 0;
}

}  // namespace izh::schema
