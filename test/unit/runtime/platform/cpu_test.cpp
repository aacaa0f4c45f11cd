// CPU features and the choice of the device.

#include "runtime/platform/cpu.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace izh {
namespace {

TEST(CpuTest, NamesAndBitsAgree) {
  unsigned known = 0;
  for (unsigned bit = 0; bit < 64; ++bit) {
    const char* name = cpu_feature_name(bit);
    if (!name) continue;
    ++known;
    EXPECT_EQ(cpu_feature_bit(name, strlen(name)), static_cast<int>(bit));
  }
  EXPECT_GT(known, 10u);
  EXPECT_EQ(cpu_feature_bit("avx51", 5), -1);
  EXPECT_EQ(cpu_feature_bit("avx512vnni", 4), -1);
}

TEST(CpuTest, ListsFeaturesWithinTheCapacity) {
  char text[64];
  cpu_feature_list((1ull << 6) | (1ull << 15) | (1ull << 63), text, sizeof(text));
  EXPECT_STREQ(text, "avx2, avx512vnni, feature 63");
  cpu_feature_list(~0ull, text, sizeof(text));
  EXPECT_LT(strlen(text), sizeof(text));
}

#if defined(__x86_64__)
// The compiler's own detection is an independent implementation.
TEST(CpuTest, AgreesWithTheCompilersDetection) {
  __builtin_cpu_init();
  auto has = [](const char* name) {
    return ((cpu_features() >> cpu_feature_bit(name, strlen(name))) & 1) != 0;
  };
  EXPECT_EQ(has("sse41"), __builtin_cpu_supports("sse4.1") != 0);
  EXPECT_EQ(has("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(has("fma"), __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(has("bmi2"), __builtin_cpu_supports("bmi2") != 0);
  EXPECT_EQ(has("avx512bw"), __builtin_cpu_supports("avx512bw") != 0);
  EXPECT_EQ(has("avx512vnni"), __builtin_cpu_supports("avx512vnni") != 0);
}
#endif

}  // namespace
}  // namespace izh
