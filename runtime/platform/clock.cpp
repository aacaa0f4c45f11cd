// The system's clocks.

#include "runtime/platform/clock.h"

#include <ctime>

namespace izh {

uint64_t clock_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

void clock_calendar(CalendarTime* out) {
  const time_t seconds = time(nullptr);
  tm local = {};
  localtime_r(&seconds, &local);
  *out = {local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
          local.tm_hour,        local.tm_min,     local.tm_sec};
}

}  // namespace izh
