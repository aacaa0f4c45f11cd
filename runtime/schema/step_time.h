// How long a step takes at least: what izhc predicts for a machine that it is
// told of, and izh-rt for the one that it has measured.

#pragma once

#include <algorithm>

namespace izh::schema {

struct MachineSpeed {
  double gbps;      // bytes read from memory in a second, in 10^9; over 0
  double gops;      // operations of int8 products in a second, in 10^9; 0: without end
  double phase_us;  // microseconds that a phase takes beyond its bytes and operations
};

struct StepTime {
  double seconds;
  bool memory;  // reading takes longer than computing
};

// The slower of memory and arithmetic, and the threads' meetings.
inline StepTime step_time(const MachineSpeed& machine, double bytes, double operations,
                          double phases) {
  const double reading = bytes / (machine.gbps * 1e9);
  const double computing = machine.gops > 0 ? operations / (machine.gops * 1e9) : 0;
  return {std::max(reading, computing) + phases * machine.phase_us / 1e6, reading >= computing};
}

}  // namespace izh::schema
