// pack.quantize of every target against its definition in PackOps.td and
// ActLayout.h, written out here in plain floats and doubles.

#include "dialects/pack/ActLayout.h"
#include "mlir/AsmParser/AsmParser.h"
#include "test/conformance/harness.h"
#include <cmath>

using namespace izhc;
using namespace izhc::conformance;

namespace {

struct Case {
  int64_t width;
  const char *kind;
  bool norm = false, sums = true;
  std::vector<int64_t> corr32 = {}, corr16 = {};
};

std::string list(const std::vector<int64_t> &values) {
  std::string text;
  for (int64_t value : values)
    text += (text.empty() ? "" : ", ") + number(value);
  return text;
}

std::string actText(const Case &c) {
  return fill("!pack.act<$w x $kind, sums $sums, corr32 [$c], corr16 [$d]>",
              {{"w", number(c.width)},
               {"kind", c.kind},
               {"sums", c.sums ? "true" : "false"},
               {"c", list(c.corr32)},
               {"d", list(c.corr16)}});
}

std::string kernelText(const Case &c) {
  std::string text = c.norm ? R"(
    plan.kernel @k(%x: memref<?x$wxf32>, %n: memref<$wxf32>, %a: $act) {
      pack.quantize %x norm %n into %a {eps = 1.0e-5 : f32}
        : (memref<?x$wxf32>, memref<$wxf32>, $act) -> ()
    })"
                            : R"(
    plan.kernel @k(%x: memref<?x$wxf32>, %a: $act) {
      pack.quantize %x into %a : (memref<?x$wxf32>, $act) -> ()
    })";
  // The width is followed by letters of the type.
  for (size_t at; (at = text.find("$wxf32")) != std::string::npos;)
    text.replace(at, 2, number(c.width));
  return fill(text, {{"act", actText(c)}});
}

// One record, read by the layout.
struct Record {
  const pack::ActLayout &layout;
  const uint8_t *bytes;
  template <typename T> T get(int64_t field, int64_t i) const {
    T value;
    std::memcpy(&value, bytes + field + i * sizeof(T), sizeof(T));
    return value;
  }
  int code(int64_t i) const { return get<int8_t>(layout.codes, i); }
  int sum(int64_t first, int64_t count) const {
    int total = 0;
    for (int64_t i = 0; i < count; ++i)
      total += code(first + i);
    return total;
  }
  // 2^exponent of a block of 32.
  float power(int64_t block) const {
    if (layout.exponents < 0)
      return 1;
    return std::ldexp(1.0f, get<int32_t>(layout.exponents, block) >> 23);
  }
  float scale(int64_t i) const {
    if (layout.exponents < 0)
      return get<float>(layout.scales, i / 32);
    return get<float>(layout.scales, i / 256) * power(i / 32);
  }
};

float largest(const std::vector<double> &values, int64_t first, int64_t count) {
  double most = 0;
  for (int64_t i = first; i < first + count; ++i)
    most = std::max(most, std::abs(values[i]));
  return float(most);
}

class QuantizeTest : public TargetTest {
protected:
  void check(const Case &c, float scale = 1.0f);
  void checkSums(const Case &c, const Record &record);
  void checkCodes(const Case &c, const Record &record, const std::vector<double> &values);
  void checkScales(const Case &c, const Record &record, const std::vector<double> &values);
};

std::vector<double> normalized(const Case &c, const float *row, const float *weights) {
  double squares = 0;
  for (int64_t i = 0; i < c.width; ++i)
    squares += double(row[i]) * row[i];
  double factor = 1 / std::sqrt(squares / c.width + 1.0e-5f);
  std::vector<double> values;
  for (int64_t i = 0; i < c.width; ++i)
    values.push_back(c.norm ? row[i] * factor * weights[i] : row[i]);
  return values;
}

// What the record says of sums follows from its codes, exactly.
void QuantizeTest::checkSums(const Case &c, const Record &record) {
  for (int64_t block = 0; block < record.layout.padded / 32; ++block) {
    int sum = record.sum(32 * block, 32);
    for (size_t z = 0; z < c.corr32.size(); ++z)
      ASSERT_EQ(record.get<int32_t>(record.layout.corr32[z], block), -c.corr32[z] * sum) << block;
    for (size_t z = 0; z < c.corr16.size(); ++z)
      for (int64_t i = 2 * block; i < 2 * block + 2; ++i)
        ASSERT_EQ(record.get<int32_t>(record.layout.corr16[z], i),
                  -c.corr16[z] * record.sum(16 * i, 16))
            << i;
    if (!c.sums)
      continue;
    float factor = record.layout.exponents < 0 ? record.scale(32 * block) : record.power(block);
    ASSERT_EQ(record.get<float>(record.layout.sums, block), factor * sum) << block;
  }
}

void QuantizeTest::checkScales(const Case &c, const Record &record,
                               const std::vector<double> &values) {
  // A norm in float32 may turn the last bits.
  double slack = c.norm ? 4e-6 : 0;
  bool grouped = record.layout.exponents >= 0;
  for (int64_t first = 0; first < record.layout.padded; first += grouped ? 256 : 32) {
    float amax = largest(values, first, grouped ? 256 : 32);
    if (!grouped) {
      ASSERT_NEAR(record.scale(first), amax / 127, slack * amax);
      continue;
    }
    int n[8], most = 0;
    for (int block = 0; block < 8; ++block) {
      float m = largest(values, first + 32 * block, 32);
      n[block] = m == 0 ? 15 : std::min(15, std::ilogb(amax / m));
      most = std::max(most, n[block]);
    }
    ASSERT_NEAR(record.get<float>(record.layout.scales, first / 256), std::ldexp(amax / 127, -most),
                slack * amax);
    for (int block = 0; block < 8; ++block)
      ASSERT_EQ(record.get<int32_t>(record.layout.exponents, first / 32 + block),
                (most - n[block]) * (1 << 23))
          << first / 32 + block;
  }
}

void QuantizeTest::checkCodes(const Case &c, const Record &record,
                              const std::vector<double> &values) {
  for (int64_t i = 0; i < record.layout.padded; ++i) {
    double scale = record.scale(i);
    if (scale == 0) {
      ASSERT_EQ(record.code(i), 0) << i;
      continue;
    }
    // To the nearest, but for what two roundings to float32 turn.
    ASSERT_NEAR(record.code(i), values[i] / scale, 0.5 + (c.norm ? 4e-4 : 3e-5)) << i;
    ASSERT_GE(record.code(i), -127);
  }
}

void QuantizeTest::check(const Case &c, float scale) {
  SCOPED_TRACE(actText(c));
  auto type = llvm::cast<pack::ActType>(mlir::parseType(actText(c), &context()));
  pack::ActLayout layout(type);
  constexpr int64_t rows = 3;
  Random random(c.width + c.norm);
  Array<float> x(random.floats(rows * c.width, scale));
  // A block of zeros, a value that stands out, and one that rounds to even.
  std::fill(&x[32], &x[64], 0.0f);
  x[c.width + 5] = 40 * scale;
  Array<float> weights(random.floats(c.width));
  Buffer record(rows * layout.stride, 0xEE);
  Kernel kernel(target(), kernelText(c));
  ASSERT_TRUE(bool(kernel));
  std::vector<void *> bindings = {x.data()};
  if (c.norm)
    bindings.push_back(weights.data());
  bindings.push_back(record.data());
  kernel.run(bindings, {rows}, 0, 2);
  kernel.run(bindings, {rows}, 2, rows);
  for (int64_t row = 0; row < rows; ++row) {
    SCOPED_TRACE(row);
    std::vector<double> values = normalized(c, &x[row * c.width], &weights[0]);
    values.resize(layout.padded);
    Record made{layout, record.data() + row * layout.stride};
    if (type.getKind() == pack::ActKind::F32) {
      for (int64_t i = 0; i < layout.padded; ++i)
        ASSERT_NEAR(made.get<float>(layout.codes, i), values[i],
                    c.norm ? 2e-6 * std::abs(values[i]) : 0)
            << i;
      continue;
    }
    checkScales(c, made, values);
    checkCodes(c, made, values);
    checkSums(c, made);
  }
}

TEST_P(QuantizeTest, CopiesFloats) {
  check({128, "f32", false, false});
  check({576, "f32", true, false});
  check({83, "f32", true, false});
}

TEST_P(QuantizeTest, MakesBlocksOf32) {
  check({64, "block32", false, true, {8, 16, 128}, {}});
  check({576, "block32", true, true, {8, 128}, {32}});
  check({96, "block32", true, false, {8}, {}});
  check({96, "block32", false, false, {}, {}});
}

TEST_P(QuantizeTest, MakesGroupsOf256) {
  check({256, "block256", false, true, {}, {32}});
  check({1536, "block256", true, true, {128}, {4, 32}});
}

TEST_P(QuantizeTest, FillsWidthsThatAreNoWholeBlocks) {
  check({72, "block32", true, true, {8}, {32}});
  check({107, "block32", false, true, {8}, {32}});
  check({400, "block256", false, true, {8}, {32}});
}

TEST_P(QuantizeTest, KeepsTinyAndLargeValuesFinite) {
  check({256, "block32", false, true, {8}, {}}, 1e-25f);
  check({256, "block32", false, true, {8}, {}}, 1e30f);
  check({512, "block256", false, true, {8}, {}}, 1e-20f);
  check({512, "block256", false, true, {8}, {}}, 1e30f);
}

TEST_P(QuantizeTest, MakesZerosOfValuesWithoutReciprocal) {
  Case c{64, "block32", false, true, {8}, {}};
  pack::ActLayout layout(llvm::cast<pack::ActType>(mlir::parseType(actText(c), &context())));
  Array<float> x(std::vector<float>(64, 1e-39f));
  Buffer record(layout.stride, 0xEE);
  Kernel kernel(target(), kernelText(c));
  ASSERT_TRUE(bool(kernel));
  kernel.run({x.data(), record.data()}, {1}, 0, 1);
  Record made{layout, record.data()};
  for (int64_t i = 0; i < 64; ++i)
    ASSERT_EQ(made.code(i), 0);
  EXPECT_EQ(made.scale(0), 0.0f);
}

TEST_P(QuantizeTest, TakesTheRowsThatIndicesName) {
  Kernel kernel(target(), R"(
    plan.kernel @k(%x: memref<?x64xf32>, %i: memref<?xi32>,
                   %a: !pack.act<64 x f32, sums false, corr32 [], corr16 []>) {
      pack.quantize %x indices %i into %a {row_set = 1 : i32}
        : (memref<?x64xf32>, memref<?xi32>,
           !pack.act<64 x f32, sums false, corr32 [], corr16 []>) -> ()
    })");
  ASSERT_TRUE(bool(kernel));
  Array<float> x(Random(1).floats(5 * 64));
  // Equal ones in a row, and one where a piece begins.
  Array<int32_t> indices(std::vector<int32_t>{4, 0, 0, 0, 4, 4, 1});
  Array<float> out(7 * 64);
  kernel.run({x.data(), indices.data(), out.data()}, {5, 7}, 2, 7);
  kernel.run({x.data(), indices.data(), out.data()}, {5, 7}, 0, 2);
  for (int64_t i = 0; i < 7 * 64; ++i)
    ASSERT_EQ(out[i], x[indices[i / 64] * 64 + i % 64]) << i;
}

// The same records as of rows that were gathered before.
TEST_P(QuantizeTest, EncodesTheRowsThatIndicesName) {
  const std::string act = "!pack.act<320 x block32, sums true, corr32 [8], corr16 []>";
  auto text = [&](const std::string &indices, const std::string &type, const std::string &rows) {
    return "plan.kernel @k(%x: memref<?x320xf32>, %n: memref<320xf32>, %i: memref<?xi32>, %a: " +
           act + ") {\n  pack.quantize %x norm %n " + indices + "into %a {eps = 1.0e-5 : f32" +
           rows + "} : " + "(memref<?x320xf32>, memref<320xf32>" + type + ", " + act + ") -> ()\n}";
  };
  Kernel plain(target(), text("", "", "")),
      named(target(), text("indices %i ", ", memref<?xi32>", ", row_set = 1 : i32"));
  ASSERT_TRUE(bool(plain) && bool(named));
  pack::ActLayout layout(llvm::cast<pack::ActType>(mlir::parseType(act, &context())));
  Array<float> x(Random(2).floats(3 * 320)), norm(Random(3).floats(320)), gathered(5 * 320);
  Array<int32_t> indices(std::vector<int32_t>{2, 2, 2, 0, 0});
  for (int64_t i = 0; i < 5 * 320; ++i)
    gathered[i] = x[indices[i / 320] * 320 + i % 320];
  Buffer expected(5 * layout.stride, 0xEE), found(5 * layout.stride, 0xEE);
  plain.run({gathered.data(), norm.data(), indices.data(), expected.data()}, {5}, 0, 5);
  named.run({x.data(), norm.data(), indices.data(), found.data()}, {3, 5}, 0, 5);
  for (int64_t i = 0; i < 5 * layout.stride; ++i)
    ASSERT_EQ(found.data()[i], expected.data()[i]) << i;
}

IZH_FOR_EACH_TARGET(QuantizeTest);

} // namespace
