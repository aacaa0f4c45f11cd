// Time that only goes forward.

#pragma once

#include <cstdint>

namespace izh {

// Nanoseconds since some moment before the program started.
uint64_t clock_ns();

}  // namespace izh
