// The code section of a variant whose kernels run on a device that compiles
// their text itself: one DeviceCode, then in any order a DeviceKernel for each
// kernel (the variant's entries are their offsets), other forms of dispatches,
// names and the text. Offsets are from the start of the section; names and text
// end with a zero byte.
//
// A kernel takes the base address of each of its bindings, the address of
// `params` (the counts of the step, as in runtime/exec/program.h), and as 64-bit
// numbers the first unit and the one behind the last. It is launched with one
// block of `threads` threads for each of these units.
//
// Behind a DeviceKernel lie its forms for many rows, with ascending least_rows:
// kernels that do the work of all units in another way, with the same results
// to the bit and the same arguments but for their units (form_units). A form may be
// two kernels, one after the other: the second has a block for each row of the step,
// or a fixed number.
// What the first leaves for the second is in the rows' scratch, whose address
// lies behind the counts of the step (word kRowScratchCount, of 64 bits).
//
// A step may have one row of activations, as those that generate text have. Then
// a dispatch may have another form: a kernel that does the work of other
// dispatches beside its own, or nothing, where others do its work.

#pragma once

#include <cstdint>

namespace izh::schema {

struct DeviceCode {
  uint64_t text_offset;
  uint64_t text_size;  // with the zero byte
  // Of the first OneRowForm, one for each dispatch of the plan; 0: none has one.
  uint64_t one_rows_offset;
  // Not 0: kernels wait themselves for what comes before them, so they may be
  // launched to begin while that still runs.
  uint32_t overlaps;
  // Of the DeviceKernel for choices: it takes the address of rows of logits, where
  // an int32 for each goes, how many floats a row has, and the address of
  // kBestScratchBytes for each row that are zeroes at first, and is launched with
  // kBestBlocks for each. What goes there is the number of the largest logit, of
  // equal ones the first, or -1 where one is not below infinity.
  uint32_t best_offset;
  // Memory that kernels of OneRowForm share, from kScratchOffset behind `params` on:
  // the device's alone, zeroes before the first of them, one at a time.
  uint64_t scratch_bytes;
  uint64_t row_scratch_bytes;  // of other memory, for each row that a step may have
};

constexpr uint32_t kBestBlocks = 32;
constexpr uint64_t kBestScratchBytes = 512;

// A multiple of 16, as the address of `params` is.
constexpr uint64_t kScratchOffset = 64;
constexpr uint32_t kRowScratchCount = 5;
constexpr uint64_t kMaxScratchBytes = uint64_t{64} << 20;

struct DeviceKernel {
  uint32_t name_offset;
  uint32_t threads;
  uint32_t bindings;
  uint32_t forms;  // at most kMaxForms
  // Of memory that a block shares, those that the launch brings; at most
  // kMaxSharedBytes.
  uint32_t shared_bytes;
};

constexpr uint32_t kMaxForms = 4;
constexpr uint32_t kMaxSharedBytes = uint32_t{227} << 10;

// What a form counts: all rows of the step, those with outputs, or attention's
// tiles.
enum FormRows : uint32_t { kTokenRows, kOutputRows, kTileRows, kFormRows };

struct DeviceForm {
  uint32_t name_offset;
  uint32_t threads;
  uint32_t groups;
  uint32_t rows_each;     // not with tiles: 1
  uint32_t least_rows;    // with tiles: how many rows a tile has, on average
  uint32_t rows;          // FormRows
  uint32_t shared_bytes;  // as of a DeviceKernel; what follows brings none
  uint32_t then_name_offset;
  uint32_t then_threads;  // 0: it is one kernel
  uint32_t then_units;    // 0: as many as rows
};

// Units of a form in a step: `groups` for each `rows_each` rows that there are
// or have begun, or for each tile; 0 where the step has too few rows for it.
constexpr uint64_t form_units(const DeviceForm& form, uint64_t tokens, uint64_t outputs,
                              uint64_t tiles) {
  const uint64_t rows = form.rows == kOutputRows ? outputs : tokens;
  const uint64_t units = form.rows == kTileRows ? tiles : 1;
  if (rows < form.least_rows * units) return 0;
  if (form.rows == kTileRows) return form.groups * tiles;
  return form.groups * ((rows + form.rows_each - 1) / form.rows_each);
}

struct OneRowForm {
  // Where this count of the step is 1 (Extent of artifact.fbs: tokens or
  // outputs); 0: there is no other form.
  uint32_t rows;
  uint32_t skipped;  // not 0: nothing is launched
  // Offset of its DeviceKernel. Its bindings are those of the dispatch, then
  // those of dispatch number `prologue` - 1 if that isn't 0.
  uint32_t kernel;
  uint32_t prologue;
  uint32_t units;  // for each that `extent` counts
  // Blocks that a multiprocessor has at a time, where blocks take units in turn (the
  // number of blocks apart) and there need not be more; 0: a block for each unit.
  uint32_t at_once;
  uint32_t extent;  // of artifact.fbs; with at_once: fixed
};
static_assert(sizeof(DeviceCode) == 48 && sizeof(DeviceKernel) == 20 && sizeof(DeviceForm) == 40 &&
              sizeof(OneRowForm) == 28);

}  // namespace izh::schema
