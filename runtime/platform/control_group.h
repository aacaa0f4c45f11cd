// The control groups that this process is in: where their limits are found.

#pragma once

#include <cstddef>

namespace izh {

// One group: the folder that holds its files, and whether they are those of
// version 2.
struct ControlGroup {
  const char* folder;
  bool unified;
};

// Visits the groups of `controller` ("cpu", "memory") from the innermost one
// outwards: a limit of any of them holds. What can't be read is left out.
void visit_control_groups(const char* controller,
                          void (*visit)(void* argument, const ControlGroup& group), void* argument);

// Reads the file `name` of a group, as read_small_file does.
[[nodiscard]] bool read_group_file(const ControlGroup& group, const char* name, char* out,
                                   size_t capacity);

}  // namespace izh
