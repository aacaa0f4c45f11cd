// pack.head_matmul, pack.join and pack.scale_rows of every target against their definitions.

#include "test/conformance/operands.h"
#include <cmath>

using namespace izhc;
using namespace izhc::conformance;

namespace {

class HeadsTest : public TargetTest {
protected:
  void checkMatmul(const FormatSpec &format, int64_t heads, int64_t rows);
};

void HeadsTest::checkMatmul(const FormatSpec &format, int64_t heads, int64_t rows) {
  constexpr int64_t kTokens = 11;
  int64_t cols = std::max<int64_t>(format.blockWeights, 32) * 2;
  PackedLayout layout(format);
  int64_t bytes = layout.matrixBytes(rows, cols);
  Buffer packed(heads * bytes);
  std::vector<std::unique_ptr<Matrix>> matrices;
  for (int64_t h = 0; h < heads; ++h) {
    matrices.push_back(std::make_unique<Matrix>(format, rows, cols, h + rows));
    std::memcpy(packed.data() + h * bytes, matrices[h]->packed.data(), bytes);
  }
  Activations act(actTypeFor({&format}, cols), kTokens * heads, rows);
  std::string weight = matrices[0]->type();
  weight = weight.substr(0, weight.size() - 1) + ", count " + number(heads) + ">";
  std::string out = "memref<?x" + number(heads * rows) + "xf32>";
  std::string types = "(" + act.typeText() + ", " + weight + ", " + out + ")";
  Kernel kernel(target(),
                "plan.kernel @k(%a: " + act.typeText() + ", %w: " + weight + ", %o: " + out +
                    ") {\n  pack.head_matmul %a weight %w into %o : " + types + " -> ()\n}\n");
  ASSERT_TRUE(bool(kernel));
  int64_t units = heads * ((rows + 15) / 16);
  auto run = [&](int64_t first, int64_t tokens, int64_t step) {
    Array<float> result(tokens * heads * rows, 0xEE);
    for (int64_t unit = 0; unit < units; unit += step)
      kernel.run({act.record(first * heads), packed.data(), result.data()}, {tokens}, unit,
                 std::min(unit + step, units));
    return std::vector<float>(&result[0], &result[0] + result.count);
  };
  std::vector<float> all = run(0, kTokens, units);
  for (int64_t t = 0; t < kTokens; ++t)
    for (int64_t i = 0; i < heads * rows; ++i) {
      Dot y = dot(*matrices[i / rows], i % rows, act, t * heads + i / rows);
      ASSERT_NEAR(all[t * heads * rows + i], y.value, 1e-5 * y.size) << t << " " << i;
    }
  for (int64_t t : {int64_t(0), kTokens - 1}) {
    std::vector<float> alone = run(t, 1, 1);
    ASSERT_EQ(std::memcmp(alone.data(), &all[t * heads * rows], 4 * alone.size()), 0) << t;
  }
}

TEST_P(HeadsTest, MultipliesEachHeadWithItsMatrix) {
  for (const FormatSpec *format : formatsFor(target())) {
    SCOPED_TRACE(format->name.str());
    checkMatmul(*format, 3, 32);
  }
  checkMatmul(*allFormats().front(), 2, 21);
  checkMatmul(*allFormats().back(), 5, 8);
}

TEST_P(HeadsTest, JoinsHeads) {
  constexpr int64_t kTokens = 3, kHeads = 2, kLeft = 19, kRight = 5;
  Kernel kernel(
      target(),
      "plan.kernel @k(%x: memref<?x38xf32>, %y: memref<?x10xf32>, %o: memref<?x48xf32>) {\n"
      "  pack.join %x, %y heads 2 into %o : (memref<?x38xf32>, memref<?x10xf32>, "
      "memref<?x48xf32>) -> ()\n}\n");
  ASSERT_TRUE(bool(kernel));
  Random random(1);
  Array<float> left(random.floats(kTokens * kHeads * kLeft));
  Array<float> right(random.floats(kTokens * kHeads * kRight));
  Array<float> out(kTokens * kHeads * (kLeft + kRight), 0xEE);
  kernel.run({left.data(), right.data(), out.data()}, {kTokens}, 0, 1);
  kernel.run({left.data(), right.data(), out.data()}, {kTokens}, 1, kTokens);
  for (int64_t run = 0; run < kTokens * kHeads; ++run)
    for (int64_t i = 0; i < kLeft + kRight; ++i)
      ASSERT_EQ(out[run * (kLeft + kRight) + i],
                i < kLeft ? left[run * kLeft + i] : right[run * kRight + i - kLeft]);
}

TEST_P(HeadsTest, ScalesRows) {
  constexpr int64_t kTokens = 3, kWidth = 37;
  Kernel kernel(
      target(),
      "plan.kernel @k(%x: memref<?x37xf32>, %f: memref<?x1xf32>, %o: memref<?x37xf32>) {\n"
      "  pack.scale_rows %x, %f into %o : (memref<?x37xf32>, memref<?x1xf32>, "
      "memref<?x37xf32>) -> ()\n}\n");
  ASSERT_TRUE(bool(kernel));
  Random random(2);
  Array<float> rows(random.floats(kTokens * kWidth)), factors(random.floats(kTokens));
  Array<float> out(kTokens * kWidth, 0xEE);
  kernel.run({rows.data(), factors.data(), out.data()}, {kTokens}, 0, 1);
  kernel.run({rows.data(), factors.data(), out.data()}, {kTokens}, 1, kTokens);
  for (int64_t i = 0; i < kTokens * kWidth; ++i)
    ASSERT_EQ(out[i], rows[i] * factors[i / kWidth]);
}

IZH_FOR_EACH_TARGET(HeadsTest);

} // namespace
