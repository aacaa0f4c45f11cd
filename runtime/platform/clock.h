// Time that only goes forward, and the time of day.

#pragma once

#include <cstdint>

namespace izh {

// Nanoseconds since some moment before the program started.
uint64_t clock_ns();

// The date and time here and now; month and day count from 1.
struct CalendarTime {
  int year, month, day, hour, minute, second;
};
void clock_calendar(CalendarTime* out);

}  // namespace izh
