// The code section of a variant whose kernels run on a device that compiles
// their text itself: one DeviceCode, then in any order a DeviceKernel for each
// kernel (the variant's entries are their offsets), names and the text. Offsets
// are from the start of the section; names and text end with a zero byte.
//
// A kernel takes the base address of each of its bindings, the address of
// `params` (the counts of the step, as in runtime/exec/program.h), and as 64-bit
// numbers the first unit and the one behind the last. It is launched with one
// block of `threads` threads for each of these units.
//
// Behind a DeviceKernel lie its forms for many rows, with ascending least_rows:
// kernels that do the work of all units in another way, with the same results
// to the bit and the same arguments but for their units: `groups` for each
// `rows_each` rows of the step that there are or have begun.

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
  uint32_t forms;  // at most kMaxForms
};

constexpr uint32_t kMaxForms = 4;

struct DeviceForm {
  uint32_t name_offset;
  uint32_t threads;
  uint32_t groups;
  uint32_t rows_each;
  uint32_t least_rows;
  uint32_t outputs;  // 1 where the rows are those with outputs, 0: all
};
static_assert(sizeof(DeviceCode) == 16 && sizeof(DeviceKernel) == 16 && sizeof(DeviceForm) == 24);

// Units of a form for a step of `rows` rows.
constexpr uint64_t form_units(const DeviceForm& form, uint64_t rows) {
  return form.groups * ((rows + form.rows_each - 1) / form.rows_each);
}

}  // namespace izh::schema
