// The code section of a variant whose kernels run on a device that compiles
// their text itself: one DeviceCode, then in any order a DeviceKernel for each
// kernel (the variant's entries are their offsets), names and the text. Offsets
// are from the start of the section; names and text end with a zero byte.
//
// A kernel takes the base address of each of its bindings, the address of
// `params` (the counts of the step, as in runtime/exec/program.h), and as 64-bit
// numbers the first unit and the one behind the last. It is launched with one
// block of `threads` threads for each of these units.

#pragma once

#include <cstdint>

namespace izh::schema {

struct DeviceCode {
  uint64_t text_offset;
  uint64_t text_size;  // with the zero byte
};

struct DeviceKernel {
  uint32_t name_offset;
  uint32_t threads;
  uint32_t bindings;
  uint32_t reserved;  // 0
};
static_assert(sizeof(DeviceCode) == 16 && sizeof(DeviceKernel) == 16);

}  // namespace izh::schema
