// Cores: the affinity mask, ordered by /sys topology, limited by cgroup quotas.

#include "runtime/platform/cores.h"

#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

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

// cpu.max holds "QUOTA PERIOD" or "max PERIOD".
uint32_t quota_v2(const char* folder) {
  char path[640], text[64];
  snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", folder);
  if (!read_small_file(path, text, sizeof(text))) return kMaxCores;
  double quota = 0, period = 0;
  if (sscanf(text, "%lf %lf", &quota, &period) != 2) return kMaxCores;
  return cores_of(quota, period);
}

uint32_t quota_v1(const char* folder) {
  char path[640], quota[64], period[64];
  snprintf(path, sizeof(path), "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", folder);
  if (!read_small_file(path, quota, sizeof(quota))) return kMaxCores;
  snprintf(path, sizeof(path), "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", folder);
  if (!read_small_file(path, period, sizeof(period))) return kMaxCores;
  return cores_of(atof(quota), atof(period));
}

// The least of a group and all groups above it; `folder` is cut on the way.
uint32_t least_quota(char* folder, uint32_t (*quota)(const char*)) {
  uint32_t least = kMaxCores;
  for (;;) {
    const uint32_t here = quota(folder);
    if (here < least) least = here;
    char* slash = strrchr(folder, '/');
    if (!slash) return least;
    *slash = 0;
  }
}

// True if "cpu" is one of the comma-separated controllers.
bool names_cpu(const char* list, size_t length) {
  for (const char* end = list + length; list < end;) {
    const char* comma =
        static_cast<const char*>(memchr(list, ',', static_cast<size_t>(end - list)));
    const char* stop = comma ? comma : end;
    if (stop - list == 3 && memcmp(list, "cpu", 3) == 0) return true;
    list = stop + 1;
  }
  return false;
}

// Lines of /proc/self/cgroup are "number:controllers:/folder".
uint32_t cgroup_quota() {
  char text[4096];
  uint32_t least = kMaxCores;
  if (!read_small_file("/proc/self/cgroup", text, sizeof(text))) return least;
  char* rest = nullptr;
  for (char* line = strtok_r(text, "\n", &rest); line; line = strtok_r(nullptr, "\n", &rest)) {
    char* first = strchr(line, ':');
    char* second = first ? strchr(first + 1, ':') : nullptr;
    if (!second || strlen(second + 1) > 500) continue;
    char folder[512];
    snprintf(folder, sizeof(folder), "%s", second + 1);
    uint32_t here = kMaxCores;
    if (second == first + 1) {
      here = least_quota(folder, quota_v2);
    } else if (names_cpu(first + 1, static_cast<size_t>(second - first - 1))) {
      here = least_quota(folder, quota_v1);
    }
    if (here < least) least = here;
  }
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
