// The floating-point environment of kernels: rounding to nearest, subnormals
// kept, no traps. Programs that changed theirs get the same results.

#pragma once

#include <cstdint>

namespace izh {

#if defined(__x86_64__)
inline uint64_t float_mode_default() {
  const uint32_t before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(0x1f80);
  return before;
}
inline void float_mode_restore(uint64_t before) {
  __builtin_ia32_ldmxcsr(static_cast<uint32_t>(before));
}
#elif defined(__aarch64__)
inline uint64_t float_mode_default() {
  uint64_t before;
  const uint64_t wanted = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  __asm__ volatile("msr fpcr, %0" : : "r"(wanted));
  return before;
}
inline void float_mode_restore(uint64_t before) {
  __asm__ volatile("msr fpcr, %0" : : "r"(before));
}
#else
inline uint64_t float_mode_default() { return 0; }
inline void float_mode_restore(uint64_t) {}
#endif

}  // namespace izh
