// pack.map, pack.norm and pack.rope of every target against their
// definitions in double precision.

#include "compiler/formats/Format.h"
#include "test/conformance/harness.h"
#include <bit>
#include <cmath>

using namespace izhc;
using namespace izhc::conformance;

namespace {

constexpr int64_t kRows = 3;

std::string rows(int64_t width) { return "memref<?x" + number(width) + "xf32>"; }

class RowsTest : public TargetTest {
protected:
  // Runs units 0..kRows in two calls; the last binding is the result.
  void run(const Kernel &kernel, std::vector<void *> bindings) {
    kernel.run(bindings, {kRows, kRows}, 0, 1);
    kernel.run(bindings, {kRows, kRows}, 1, kRows);
  }
  void checkMap(const std::string &kind, bool two, double factor,
                const std::function<double(double, double)> &expected);
  void checkNorm(int64_t width, int64_t over, bool scaled, bool added);
  void checkHadamard(int64_t dim, int64_t n);
  void checkRope(const char *style, int64_t dim, int64_t rotary);
};

void RowsTest::checkMap(const std::string &kind, bool two, double factor,
                        const std::function<double(double, double)> &expected) {
  for (auto [from, first, width] : {std::array<int64_t, 3>{37, 0, 37}, {64, 16, 32}, {9, 7, 1}}) {
    SCOPED_TRACE(kind + " " + number(width));
    std::string types = rows(from) + (two ? ", " + rows(width) : "") + ", " + rows(width);
    Kernel kernel(target(), "plan.kernel @k(%x: " + rows(from) +
                                (two ? ", %y: " + rows(width) : "") + ", %o: " + rows(width) +
                                ") {\n  pack.map " + kind + " %x" + (two ? ", %y" : "") +
                                " into %o {lhs_first = " + number(first) + ", factor = " +
                                std::to_string(factor) + " : f32} : (" + types + ") -> ()\n}\n");
    ASSERT_TRUE(bool(kernel));
    Random random(width);
    Array<float> x(random.floats(kRows * from, 8)), y(random.floats(kRows * width));
    Array<float> out(kRows * width, 0xEE);
    std::vector<void *> bindings = {x.data()};
    if (two)
      bindings.push_back(y.data());
    bindings.push_back(out.data());
    run(kernel, bindings);
    for (int64_t t = 0; t < kRows; ++t)
      for (int64_t i = 0; i < width; ++i) {
        double wanted = expected(x[t * from + first + i], y[t * width + i]);
        ASSERT_NEAR(out[t * width + i], wanted, 1e-6 * (1 + std::abs(wanted))) << t << " " << i;
      }
  }
}

TEST_P(RowsTest, MapsValues) {
  auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  auto gelu = [](double x) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  };
  auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  checkMap("scale", false, 0.75, [](double x, double) { return 0.75 * x; });
  checkMap("soft_cap", false, 5, [](double x, double) { return 5 * std::tanh(x / 5); });
  checkMap("silu", false, 1, [&](double x, double) { return silu(x); });
  checkMap("gelu", false, 1, [&](double x, double) { return gelu(x); });
  checkMap("sigmoid", false, 1, [&](double x, double) { return sigmoid(x); });
  checkMap("silu", true, 1, [&](double x, double y) { return silu(x) * y; });
  checkMap("gelu", true, 1, [&](double x, double y) { return gelu(x) * y; });
  checkMap("sigmoid", true, 1, [&](double x, double y) { return sigmoid(x) * y; });
  checkMap("add", true, 0.25, [](double x, double y) { return 0.25 * x + y; });
  checkMap("mul", true, 1, [](double x, double y) { return x * y; });
}

void RowsTest::checkNorm(int64_t width, int64_t over, bool scaled, bool added) {
  SCOPED_TRACE(number(width) + " over " + number(over));
  std::string scale = "memref<" + number(over) + "xf32>";
  auto text = [&](const char *scaleName, const char *residualName, const char *separator) {
    return (scaled ? separator + (scaleName + scale) : "") +
           (added ? separator + (residualName + rows(width)) : "");
  };
  Kernel kernel(target(), "plan.kernel @k(%x: " + rows(width) + text("%s: ", "%r: ", ", ") +
                              ", %o: " + rows(width) + ") {\n  pack.norm %x" +
                              (scaled ? " scale %s" : "") + (added ? " residual %r" : "") +
                              " into %o {over = " + number(over) +
                              ", eps = 0.01 : f32, factor = 0.5 : f32} : (" + rows(width) +
                              text("", "", ", ") + ", " + rows(width) + ") -> ()\n}\n");
  ASSERT_TRUE(bool(kernel));
  Random random(over);
  Array<float> x(random.floats(kRows * width)), s(random.floats(over));
  Array<float> r(random.floats(kRows * width)), out(kRows * width, 0xEE);
  std::vector<void *> bindings = {x.data()};
  if (scaled)
    bindings.push_back(s.data());
  if (added)
    bindings.push_back(r.data());
  bindings.push_back(out.data());
  run(kernel, bindings);
  for (int64_t start = 0; start < kRows * width; start += over) {
    double squares = 0;
    for (int64_t i = 0; i < over; ++i)
      squares += double(x[start + i]) * x[start + i];
    double factor = 0.5 / std::sqrt(squares / over + 0.01f);
    for (int64_t i = 0; i < over; ++i) {
      double wanted = factor * x[start + i] * (scaled ? s[i] : 1) + (added ? r[start + i] : 0);
      ASSERT_NEAR(out[start + i], wanted, 1e-6) << start << " " << i;
    }
  }
}

TEST_P(RowsTest, NormsRunsOfValues) {
  checkNorm(128, 32, true, false);
  checkNorm(128, 128, true, true);
  checkNorm(90, 45, false, true);
  checkNorm(21, 7, false, false);
}

void RowsTest::checkRope(const char *style, int64_t dim, int64_t rotary) {
  SCOPED_TRACE(std::string(style) + " " + number(dim) + " " + number(rotary));
  bool halves = std::string(style) == "1";
  int64_t width = 3 * dim, half = rotary / 2;
  Kernel kernel(target(),
                fill("plan.kernel @k(%x: $x, %t: $t, %o: $x) {\n  pack.rope %x table %t into %o "
                     "{head_dim = $d, style = $s : i32} : ($x, $t, $x) -> ()\n}\n",
                     {{"x", rows(width)}, {"t", rows(rotary)}, {"d", number(dim)}, {"s", style}}));
  ASSERT_TRUE(bool(kernel));
  Random random(dim);
  Array<float> x(random.floats(kRows * width)), table(random.floats(kRows * rotary));
  Array<float> out(kRows * width, 0xEE);
  run(kernel, {x.data(), table.data(), out.data()});
  std::vector<double> wanted(&x[0], &x[0] + x.count);
  for (int64_t head = 0; head < 3 * kRows; ++head)
    for (int64_t i = 0; i < half; ++i) {
      int64_t a = head * dim + (halves ? i : 2 * i), b = a + (halves ? half : 1);
      double c = table[head / 3 * rotary + i], s = table[head / 3 * rotary + half + i];
      wanted[a] = x[a] * c - x[b] * s;
      wanted[b] = x[b] * c + x[a] * s;
    }
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(out[i], wanted[i], 1e-6) << i;
}

TEST_P(RowsTest, TurnsHeads) {
  for (const char *style : {"1", "2"}) {
    checkRope(style, 64, 64);
    checkRope(style, 40, 20);
    checkRope(style, 6, 2);
  }
}

// Against the definition, row by column.
void RowsTest::checkHadamard(int64_t dim, int64_t n) {
  SCOPED_TRACE(number(dim));
  int64_t width = 3 * dim;
  Kernel kernel(target(), fill("plan.kernel @k(%x: $x, %o: $x) {\n  pack.hadamard %x into %o "
                               "{head_dim = $d} : ($x, $x) -> ()\n}\n",
                               {{"x", rows(width)}, {"d", number(dim)}}));
  ASSERT_TRUE(bool(kernel));
  Random random(dim);
  Array<float> x(random.floats(kRows * width)), out(kRows * width, 0xEE);
  run(kernel, {x.data(), out.data()});
  for (int64_t i = 0; i < kRows * width; ++i) {
    double wanted = 0;
    for (int64_t j = 0; j < n; ++j)
      wanted += (std::popcount(uint64_t((i % n) & j)) % 2 ? -1 : 1) * double(x[i / n * n + j]);
    ASSERT_NEAR(out[i], wanted / std::sqrt(double(n)), 2e-6) << i;
  }
}

TEST_P(RowsTest, MultipliesHeadsWithAHadamardMatrix) {
  checkHadamard(32, 32);
  checkHadamard(128, 128);
  checkHadamard(96, 32);
  checkHadamard(576, 64);
}

IZH_FOR_EACH_TARGET(RowsTest);

} // namespace
