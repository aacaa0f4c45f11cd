// pack.rope_table of every target against the C library's cosine and sine in
// double precision.

#include "test/conformance/harness.h"
#include <cmath>

using namespace izhc;
using namespace izhc::conformance;

namespace {

class RopeTableTest : public TargetTest {
protected:
  void check(int64_t n, float magnitude);
};

void RopeTableTest::check(int64_t n, float magnitude) {
  SCOPED_TRACE(n);
  std::string freqs = "memref<" + number(n) + "xf32>";
  std::string table = "memref<?x" + number(2 * n) + "xf32>";
  Kernel kernel(target(), fill(R"(
    plan.kernel @k(%p: memref<?xi32>, %f: $f, %t: $t) {
      pack.rope_table %p, %f into %t {magnitude = $m : f32} : (memref<?xi32>, $f, $t) -> ()
    })",
                               {{"f", freqs}, {"t", table}, {"m", std::to_string(magnitude)}}));
  ASSERT_TRUE(bool(kernel));
  Array<int32_t> positions(std::vector<int32_t>{0, 1, 2, 77, 4095, 131071, 1048575});
  Array<float> frequencies(n);
  for (int64_t i = 0; i < n; ++i)
    frequencies[i] = float(std::pow(10000.0, -double(i) / n));
  Array<float> out(positions.count * 2 * n, 0xEE);
  int64_t tokens = positions.count;
  kernel.run({positions.data(), frequencies.data(), out.data()}, {tokens}, 0, 3);
  kernel.run({positions.data(), frequencies.data(), out.data()}, {tokens}, 3, tokens);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t i = 0; i < n; ++i) {
      float angle = float(positions[t]) * frequencies[i];
      ASSERT_NEAR(out[t * 2 * n + i], magnitude * std::cos(double(angle)), 2e-7) << t << " " << i;
      ASSERT_NEAR(out[t * 2 * n + n + i], magnitude * std::sin(double(angle)), 2e-7)
          << t << " " << i;
    }
}

TEST_P(RopeTableTest, MatchesTheLibrary) {
  check(32, 1.0f);
  check(64, 1.25f);
}

TEST_P(RopeTableTest, TakesAnyNumberOfFrequencies) {
  check(1, 1.0f);
  check(15, 1.0f);
  check(20, 1.5f);
}

// Positions of one period share a magnitude; the first period's is plain.
TEST_P(RopeTableTest, GrowsWithTheLogarithmOfThePosition) {
  Kernel kernel(target(), R"(
    plan.kernel @k(%p: memref<?xi32>, %f: memref<1xf32>, %t: memref<?x2xf32>) {
      pack.rope_table %p, %f into %t {magnitude = 0.5 : f32, growth = 0.1 : f32, period = 64}
        : (memref<?xi32>, memref<1xf32>, memref<?x2xf32>) -> ()
    })");
  ASSERT_TRUE(bool(kernel));
  Array<int32_t> positions(std::vector<int32_t>{0, 63, 64, 200, 1000000});
  Array<float> frequency(std::vector<float>{0.0f});
  Array<float> out(2 * positions.count, 0xEE);
  kernel.run({positions.data(), frequency.data(), out.data()}, {5}, 0, 5);
  for (size_t t = 0; t < positions.count; ++t)
    EXPECT_NEAR(out[2 * t], 0.5 * (1 + 0.1 * std::log(1.0 + positions[t] / 64)), 3e-7) << t;
}

IZH_FOR_EACH_TARGET(RopeTableTest);

} // namespace
