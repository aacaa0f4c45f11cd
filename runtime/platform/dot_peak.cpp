// Register-only loops, one an instruction set. Twelve sums are in flight, which
// hides the latency of every machine known. They compute nothing of use.

#include "runtime/platform/dot_peak.h"

#include <cstring>

#include "runtime/platform/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace izh {
namespace {

constexpr int kSums = 12;
constexpr int kRepeats = 16;

// Keeps the compiler from dropping a loop whose result nobody reads.
volatile int32_t sink;

[[maybe_unused]] bool has(const char* feature) {
  const int bit = cpu_feature_bit(feature, strlen(feature));
  return bit >= 0 && (cpu_features() >> bit & 1) != 0;
}

#if defined(__x86_64__)

__attribute__((target("avx512f,avx512vnni"))) DotPeak run_vnni512(uint64_t rounds) {
  __m512i sums[kSums] = {};
  const __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-5);
  for (uint64_t round = 0; round < rounds; ++round) {
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, a, b);
    }
  }
  for (const __m512i& sum : sums) sink = _mm_cvtsi128_si32(_mm512_castsi512_si128(sum));
  return {rounds * kRepeats * kSums * 64 * 2, "vpdpbusd, 512 bits"};
}

__attribute__((target("avx2,avxvnni"))) DotPeak run_vnni256(uint64_t rounds) {
  __m256i sums[kSums] = {};
  const __m256i a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(-5);
  for (uint64_t round = 0; round < rounds; ++round) {
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      for (__m256i& sum : sums) sum = _mm256_dpbusd_avx_epi32(sum, a, b);
    }
  }
  for (const __m256i& sum : sums) sink = _mm_cvtsi128_si32(_mm256_castsi256_si128(sum));
  return {rounds * kRepeats * kSums * 32 * 2, "vpdpbusd, 256 bits"};
}

// Two products are added in 16 bits before they are widened: what a kernel
// does whose codes are small enough.
__attribute__((target("avx2"))) DotPeak run_maddubs(uint64_t rounds) {
  __m256i sums[kSums] = {};
  __m256i a = _mm256_set1_epi8(3);
  const __m256i b = _mm256_set1_epi8(-5), ones = _mm256_set1_epi16(1);
  for (uint64_t round = 0; round < rounds; ++round) {
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      for (__m256i& sum : sums) {
        // Or the products, always the same, would be computed once.
        asm volatile("" : "+x"(a));
        const __m256i pairs = _mm256_maddubs_epi16(a, b);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
      }
    }
  }
  for (const __m256i& sum : sums) sink = _mm_cvtsi128_si32(_mm256_castsi256_si128(sum));
  return {rounds * kRepeats * kSums * 32 * 2, "vpmaddubsw and vpmaddwd, 256 bits"};
}

DotPeak run_baseline(uint64_t rounds) {
  __m128i sums[kSums] = {};
  __m128i a = _mm_set1_epi16(3);
  const __m128i b = _mm_set1_epi16(-5);
  for (uint64_t round = 0; round < rounds; ++round) {
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      for (__m128i& sum : sums) {
        asm volatile("" : "+x"(a));
        sum = _mm_add_epi32(sum, _mm_madd_epi16(a, b));
      }
    }
  }
  for (const __m128i& sum : sums) sink = _mm_cvtsi128_si32(sum);
  return {rounds * kRepeats * kSums * 8 * 2, "pmaddwd, 128 bits"};
}

#else

#if defined(__aarch64__)

__attribute__((target("arch=armv8.2-a+dotprod"))) DotPeak run_sdot(uint64_t rounds) {
  int32x4_t sums[kSums] = {};
  const int8x16_t a = vdupq_n_s8(3), b = vdupq_n_s8(-5);
  for (uint64_t round = 0; round < rounds; ++round) {
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      for (int32x4_t& sum : sums) sum = vdotq_s32(sum, a, b);
    }
  }
  for (const int32x4_t& sum : sums) sink = vgetq_lane_s32(sum, 0);
  return {rounds * kRepeats * kSums * 16 * 2, "sdot, 128 bits"};
}

#endif

// Whatever the compiler makes of it.
DotPeak run_baseline(uint64_t rounds) {
  int32_t sums[kSums * 16] = {};
  int8_t a[kSums * 16], b = -5;
  memset(a, 3, sizeof(a));
  for (uint64_t round = 0; round < rounds; ++round) {
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      asm volatile("" : "+r"(b) : "r"(a) : "memory");
      for (int i = 0; i < kSums * 16; ++i) sums[i] += a[i] * b;
    }
  }
  for (const int32_t sum : sums) sink = sum;
  return {rounds * kRepeats * kSums * 16 * 2, "C loop"};
}

#endif

}  // namespace

DotPeak dot_peak_run(uint64_t rounds) {
#if defined(__x86_64__)
  if (has("avx512vnni")) return run_vnni512(rounds);
  if (has("avxvnni")) return run_vnni256(rounds);
  if (has("avx2")) return run_maddubs(rounds);
#elif defined(__aarch64__)
  if (has("dotprod")) return run_sdot(rounds);
#endif
  return run_baseline(rounds);
}

}  // namespace izh
