// The first 64 bytes of an .izh file, read and checked before anything else.
// All numbers are little-endian.

#pragma once

#include <cstdint>

namespace izh::schema {

constexpr char kMagic[8] = {'I', 'Z', 'H', '\r', '\n', 0x1a, '\n', 0};
constexpr uint16_t kFormatMajor = 1;
// 1: tokenizers with tries, and with tokens that are looked for in changed text.
// 2: those with tokens that are whole words, and with marks that are no text.
// 3: GPU kernels whose launches bring memory.
// 4: the same of their forms.
constexpr uint16_t kFormatMinor = 4;
// The least minor whose code for GPUs this runtime reads: records of another size
// can't be told from damaged ones. Code for processors has no records.
constexpr uint16_t kDeviceFormatMinor = 4;
// The runtime's own version, as major * 10000 + minor * 100 + patch. An
// artifact names the least that can run it.
constexpr uint32_t kRuntimeVersion = 104;
// Sections (code, weights, constants, tokenizer) start at multiples of this.
constexpr uint64_t kSectionAlignment = 65536;

struct Header {
  char magic[8];
  uint16_t format_major;
  uint16_t format_minor;
  uint32_t least_runtime;
  uint64_t file_length;
  uint64_t root_offset;  // of the flatbuffer, a multiple of 64
  uint64_t root_size;
  uint64_t root_hash;  // XXH3 of the flatbuffer
  uint64_t reserved;   // 0
  uint64_t checksum;   // XXH3 of the 56 bytes before
};
static_assert(sizeof(Header) == 64);

}  // namespace izh::schema
