// Cores: the affinity mask, ordered by /sys topology, limited by cgroup quotas.

#include "runtime/platform/cores.h"

#include <sched.h>

#include <cstdio>
#include <cstdlib>

#include "runtime/platform/control_group.h"
#include "runtime/platform/small_file.h"

namespace izh {
namespace {

// The lowest hardware thread of the physical core that `id` belongs to.
uint32_t core_leader(uint32_t id) {
  char path[96], text[256];
  snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", id);
  if (!read_small_file(path, text, sizeof(text))) return id;
  char* end = text;
  const unsigned long first = strtoul(text, &end, 10);
  return end == text || first >= 65536 ? id : static_cast<uint32_t>(first);
}

uint32_t cores_of(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return kMaxCores;
  const double cores = quota / period;
  if (cores >= kMaxCores) return kMaxCores;
  // Half a core still needs one thread; 1.5 cores keep two threads busy.
  const uint32_t whole = static_cast<uint32_t>(cores);
  return whole < cores || whole == 0 ? whole + 1 : whole;
}

// Version 2: cpu.max holds "QUOTA PERIOD" or "max PERIOD".
uint32_t quota_of(const ControlGroup& group) {
  char text[64], period_text[64];
  double quota = 0, period = 0;
  if (group.unified) {
    if (!read_group_file(group, "cpu.max", text, sizeof(text))) return kMaxCores;
    if (sscanf(text, "%lf %lf", &quota, &period) != 2) return kMaxCores;
    return cores_of(quota, period);
  }
  if (!read_group_file(group, "cpu.cfs_quota_us", text, sizeof(text)) ||
      !read_group_file(group, "cpu.cfs_period_us", period_text, sizeof(period_text))) {
    return kMaxCores;
  }
  return cores_of(atof(text), atof(period_text));
}

uint32_t cgroup_quota() {
  uint32_t least = kMaxCores;
  auto visit = [](void* argument, const ControlGroup& group) {
    uint32_t* quota = static_cast<uint32_t*>(argument);
    const uint32_t here = quota_of(group);
    if (here < *quota) *quota = here;
  };
  visit_control_groups("cpu", visit, &least);
  return least;
}

}  // namespace

void usable_cores(Cores* out) {
  constexpr size_t kMaskBits = 8192;
  unsigned long mask[kMaskBits / 8 / sizeof(unsigned long)] = {};
  constexpr size_t kWord = 8 * sizeof(unsigned long);
  *out = Cores();
  out->quota = cgroup_quota();
  cpu_set_t* set = reinterpret_cast<cpu_set_t*>(mask);
  out->known = sched_getaffinity(0, sizeof(mask), set) == 0;
  // Two passes: the first hardware thread of each core, then the others.
  uint8_t seen[kMaskBits] = {};
  uint16_t others[kMaxCores];
  uint32_t other_count = 0;
  for (uint32_t id = 0; out->known && id < kMaskBits; ++id) {
    if (!((mask[id / kWord] >> (id % kWord)) & 1)) continue;
    if (out->count + other_count == kMaxCores) break;
    const uint32_t leader = core_leader(id) % kMaskBits;
    if (seen[leader]) {
      others[other_count++] = static_cast<uint16_t>(id);
    } else {
      seen[leader] = 1;
      out->ids[out->count++] = static_cast<uint16_t>(id);
    }
  }
  out->physical = out->count;
  for (uint32_t i = 0; i < other_count; ++i) out->ids[out->count++] = others[i];
  if (out->count == 0) {
    out->known = false;
    out->count = out->physical = 1;
  }
}

uint32_t default_threads(const Cores& cores) {
  return cores.physical < cores.quota ? cores.physical : cores.quota;
}

}  // namespace izh
