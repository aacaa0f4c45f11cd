// Texts that people hand to the programs: files, pipes, standard input.

#pragma once

#include "runtime/base/array.h"
#include "runtime/include/izh/izh.h"

namespace izh {

// Bytes of the longest text that is read.
constexpr size_t kMaxInputBytes = size_t{256} << 20;

// Replaces `out` with the whole of the file at `path`, or of standard input for
// "-". Only standard input, a terminal and a pipe that somebody writes to are
// waited for: a pipe without a writer, a device that has nothing to give now or
// gives bytes (it might do so without end), and a text of more than
// kMaxInputBytes are errors, whose sentence names the path.
[[nodiscard]] izh_status read_input(const char* path, Array<char>* out, izh_error* error);

}  // namespace izh
