// Feature detection: CPUID and XCR0 on x86, getauxval on arm.

#include "runtime/platform/cpu.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/base/status.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace izh {
namespace {

struct Feature {
  unsigned bit;
  const char* name;
};

constexpr Feature kFeatures[] = {
#define IZH_CPU_FEATURE(bit, name, arch) {bit, #name},
#include "runtime/schema/cpu_features.def"
};

// Constants named k_<feature>, from the shared list.
#define IZH_CPU_FEATURE(bit, name, arch) [[maybe_unused]] constexpr uint64_t k_##name = 1ull << bit;
#include "runtime/schema/cpu_features.def"

#if defined(__x86_64__)

// Which register files the system saves and restores. An instruction that uses
// another one faults even where CPUID offers it.
uint64_t enabled_states() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

// Tile data is 8 KiB a thread, so the system hands it out on request only.
bool request_tiles() {
  constexpr int kRequest = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

uint64_t detect() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  uint64_t found = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
  const uint32_t basic = c;
  auto add = [&found](uint32_t word, unsigned bit, uint64_t feature) {
    if ((word >> bit) & 1) found |= feature;
  };
  add(basic, 0, k_sse3);
  add(basic, 9, k_ssse3);
  add(basic, 19, k_sse41);
  add(basic, 20, k_sse42);
  add(basic, 23, k_popcnt);
  const uint64_t states = (basic >> 27) & 1 ? enabled_states() : 0;
  const bool ymm = (states & 0x6) == 0x6;
  const bool zmm = ymm && (states & 0xe0) == 0xe0;
  const bool tiles = (states & 0x60000) == 0x60000;
  if (ymm) {
    add(basic, 28, k_avx);
    add(basic, 12, k_fma);
    add(basic, 29, k_f16c);
  }
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return found;
  const uint32_t most = a;
  add(b, 8, k_bmi2);
  if (ymm) add(b, 5, k_avx2);
  if (zmm) {
    add(b, 16, k_avx512f);
    add(b, 17, k_avx512dq);
    add(b, 30, k_avx512bw);
    add(b, 31, k_avx512vl);
    add(c, 11, k_avx512vnni);
    add(d, 23, k_avx512fp16);
  }
  if (tiles && ((d >> 24) & 1) && request_tiles()) {
    found |= k_amxtile;
    add(d, 25, k_amxint8);
  }
  if (ymm && most >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) {
    add(a, 4, k_avxvnni);
    if (zmm) add(a, 5, k_avx512bf16);
  }
  return found;
}

#elif defined(__aarch64__)

uint64_t detect() {
  const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  uint64_t found = 0;
  if (first & (1ul << 1)) found |= k_neon;      // HWCAP_ASIMD
  if (first & (1ul << 20)) found |= k_dotprod;  // HWCAP_ASIMDDP
  if (second & (1ul << 13)) found |= k_i8mm;    // HWCAP2_I8MM
  return found;
}

#else

uint64_t detect() { return 0; }

#endif

}  // namespace

const char* cpu_arch() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

uint64_t cpu_features() {
  // Detecting twice at once is harmless: both find the same.
  static uint64_t cached = 0;
  static bool known = false;
  if (__atomic_load_n(&known, __ATOMIC_ACQUIRE)) return __atomic_load_n(&cached, __ATOMIC_RELAXED);
  const uint64_t found = detect();
  __atomic_store_n(&cached, found, __ATOMIC_RELAXED);
  __atomic_store_n(&known, true, __ATOMIC_RELEASE);
  return found;
}

uint64_t cpu_features_known() {
  uint64_t bits = 0;
  for (const Feature& feature : kFeatures) bits |= uint64_t{1} << feature.bit;
  return bits;
}

const char* cpu_feature_name(unsigned bit) {
  for (const Feature& feature : kFeatures) {
    if (feature.bit == bit) return feature.name;
  }
  return nullptr;
}

int cpu_feature_bit(const char* name, size_t length) {
  for (const Feature& feature : kFeatures) {
    if (strlen(feature.name) == length && memcmp(feature.name, name, length) == 0) {
      return static_cast<int>(feature.bit);
    }
  }
  return -1;
}

void cpu_feature_list(uint64_t bits, char* out, size_t capacity) {
  size_t used = 0;
  out[0] = 0;
  for (unsigned bit = 0; bit < 64 && used < capacity; ++bit) {
    if (!((bits >> bit) & 1)) continue;
    const char* name = cpu_feature_name(bit);
    const char* separator = used ? ", " : "";
    const int count = name ? snprintf(out + used, capacity - used, "%s%s", separator, name)
                           : snprintf(out + used, capacity - used, "%sfeature %u", separator, bit);
    if (count < 0) return;
    used += static_cast<size_t>(count);
  }
}

}  // namespace izh
