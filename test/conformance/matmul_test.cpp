// pack.matmul of every target, weight format and kind of activations against
// sums in double precision, and against itself with tokens and units divided
// otherwise.

#include "test/conformance/operands.h"
#include <cmath>

using namespace izhc;
using namespace izhc::conformance;

namespace {

enum Epilogue { Store, Add, SiluGate, GeluGate, SoftCap };

constexpr double kTolerance = 1e-5;
constexpr float kScale = 0.75f;
// More than are computed together; for some products more than pass by before
// the next weights are read.
constexpr int64_t kMostTokens = 17, kManyTokens = 270;

// One product and what it should give.
struct Case {
  std::vector<std::unique_ptr<Matrix>> matrices;
  Epilogue epilogue = Store;
  bool biased = false;
  bool outputs = false; // row set

  std::vector<std::unique_ptr<Array<float>>> biases = {};

  bool gated() const { return epilogue == SiluGate || epilogue == GeluGate; }
  int64_t width() const { return matrices[0]->cols; }
  int64_t outRows() const {
    int64_t rows = 0;
    for (const auto &matrix : matrices)
      rows += matrix->rows;
    return gated() ? rows / 2 : rows;
  }
  int64_t units() const {
    int64_t tiles = 0;
    for (const auto &matrix : matrices)
      tiles += (matrix->rows + 15) / 16;
    return gated() ? tiles / 2 : tiles;
  }
  void add(const FormatSpec &format, int64_t rows, int64_t cols) {
    matrices.push_back(
        std::make_unique<Matrix>(format, rows, cols, 7 * rows + cols + matrices.size()));
  }
  void makeBiases() {
    Random random(units());
    for (const auto &matrix : matrices)
      if (biased)
        biases.push_back(std::make_unique<Array<float>>(random.floats(matrix->rows)));
  }
  std::string text(const std::string &act) const;
};

std::string Case::text(const std::string &act) const {
  std::string arguments = "%a: " + act, types = act, weights, biasNames;
  auto operand = [&](std::string &names, const std::string &name, const std::string &type) {
    arguments += ", " + name + ": " + type;
    types += ", " + type;
    names += (names.empty() ? "" : ", ") + name;
  };
  for (size_t i = 0; i < matrices.size(); ++i)
    operand(weights, "%w" + number(i), matrices[i]->type());
  for (size_t i = 0; i < biases.size(); ++i)
    operand(biasNames, "%b" + number(i), "memref<" + number(matrices[i]->rows) + "xf32>");
  std::string out = "memref<?x" + number(outRows()) + "xf32>";
  arguments += ", %o: " + out;
  types += ", " + out;
  return "plan.kernel @k(" + arguments + ") {\n  pack.matmul %a weights(" + weights + ")" +
         (biases.empty() ? "" : " biases(" + biasNames + ")") +
         " into %o {epilogue = " + number(epilogue) + " : i32, scale = " + std::to_string(kScale) +
         " : f32, row_set = " + number(outputs) + " : i32} : (" + types + ") -> ()\n}\n";
}

// What an element should be, and by how much it may differ.
struct Expected {
  double value, slack;
};

Dot product(const Case &c, size_t matrix, int64_t row, const Activations &act, int64_t token) {
  Dot y = dot(*c.matrices[matrix], row, act, token);
  if (c.biased) {
    float bias = (*c.biases[matrix])[row];
    y.value += bias;
    y.size += std::abs(bias);
  }
  return y;
}

Expected expected(const Case &c, int64_t row, const Activations &act, int64_t token, float before) {
  if (c.gated()) {
    Dot gate = product(c, 0, row, act, token), up = product(c, 1, row, act, token);
    double x = gate.value;
    double bent = c.epilogue == SiluGate
                      ? x / (1 + std::exp(-x))
                      : x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    // The slope of silu is at most 1.1, that of gelu 1.13.
    double size = 1.13 * gate.size * std::abs(up.value) + std::abs(bent) * up.size;
    return {bent * up.value, kTolerance * size};
  }
  size_t matrix = 0;
  for (; row >= c.matrices[matrix]->rows; ++matrix)
    row -= c.matrices[matrix]->rows;
  Dot y = product(c, matrix, row, act, token);
  if (c.epilogue == Add)
    return {before + kScale * y.value, kTolerance * (kScale * y.size + std::abs(before))};
  if (c.epilogue == SoftCap)
    return {kScale * std::tanh(y.value / kScale), kTolerance * (y.size + kScale)};
  return {kScale * y.value, kTolerance * kScale * y.size};
}

class MatmulTest : public TargetTest {
protected:
  void check(Case &c, pack::ActType type, int64_t tokens = kMostTokens) {
    Activations act(type, tokens, c.outRows());
    check(c, act);
  }
  void check(Case &c, Activations &act);
  void checkFormat(const FormatSpec &format, bool exact, bool epilogues);

private:
  std::vector<float> run(const Kernel &kernel, Case &c, Activations &act, int64_t first,
                         int64_t tokens, std::vector<int64_t> cuts = {});
  void compare(Case &c, const Activations &act, const std::vector<float> &got, int64_t tokens);
  float before(const Case &c, int64_t row) { return 0.01f * float(row) - 0.3f; }
};

// The rows of tokens [first, first + tokens), with the units cut at `cuts`.
std::vector<float> MatmulTest::run(const Kernel &kernel, Case &c, Activations &act, int64_t first,
                                   int64_t tokens, std::vector<int64_t> cuts) {
  Array<float> out(tokens * c.outRows(), 0xEE);
  if (c.epilogue == Add)
    for (size_t i = 0; i < out.count; ++i)
      out[i] = before(c, i % c.outRows());
  std::vector<void *> bindings = {act.record(first)};
  for (const auto &matrix : c.matrices)
    bindings.push_back(matrix->packed.data());
  for (const auto &bias : c.biases)
    bindings.push_back(bias->data());
  bindings.push_back(out.data());
  // The count of the other row set must not be used.
  Kernel::Step step{c.outputs ? 0 : tokens, c.outputs ? tokens : 0};
  cuts.insert(cuts.begin(), 0);
  cuts.push_back(c.units());
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    kernel.run(bindings, step, cuts[i], cuts[i + 1], cuts.size() == 2);
  return std::vector<float>(&out[0], &out[0] + out.count);
}

void MatmulTest::compare(Case &c, const Activations &act, const std::vector<float> &got,
                         int64_t tokens) {
  for (int64_t token = 0; token < tokens; ++token)
    for (int64_t row = 0; row < c.outRows(); ++row) {
      Expected wanted = expected(c, row, act, token, before(c, row));
      ASSERT_NEAR(got[token * c.outRows() + row], wanted.value, wanted.slack)
          << "token " << token << " of " << tokens << ", row " << row << " of " << c.outRows();
    }
}

void MatmulTest::check(Case &c, Activations &act) {
  int64_t most = act.tokens;
  c.makeBiases();
  std::string text = c.text(act.typeText());
  SCOPED_TRACE(text);
  Kernel kernel(target(), text);
  ASSERT_TRUE(bool(kernel));
  std::vector<float> all = run(kernel, c, act, 0, most);
  compare(c, act, all, most);
  if (HasFatalFailure())
    return;
  auto same = [&](const std::vector<float> &got, int64_t first) {
    return std::memcmp(got.data(), &all[first * c.outRows()], 4 * got.size()) == 0;
  };
  for (int64_t token = 0; token < most; token += 1 + most / 32)
    ASSERT_TRUE(same(run(kernel, c, act, token, 1), token))
        << "token " << token << " alone differs from the same among " << most;
  for (int64_t tokens : {2, 3, 5, 8, 9, 31, 128, 129, 144, 259})
    if (4 + tokens <= most)
      ASSERT_TRUE(same(run(kernel, c, act, 4, tokens), 4)) << tokens << " tokens from token 4";
  std::vector<int64_t> single;
  for (int64_t unit = 1; unit < c.units(); ++unit)
    single.push_back(unit);
  ASSERT_TRUE(same(run(kernel, c, act, 0, most, single), 0)) << "one unit a call";
  ASSERT_TRUE(same(run(kernel, c, act, 0, most, {0, c.units() / 2}), 0)) << "two calls";
}

// Widths: an odd number of blocks of 32, one unit, several units.
void MatmulTest::checkFormat(const FormatSpec &format, bool exact, bool epilogues) {
  int64_t block = std::max<int64_t>(format.blockWeights, 32);
  auto type = [&](int64_t width) {
    return exact ? floatActs(width) : actTypeFor({&format}, width);
  };
  Case store;
  store.add(format, 40, 5 * block);
  store.add(format, 7, 5 * block);
  check(store, type(5 * block));
  if (!epilogues)
    return;
  Case biased{{}, Add, true};
  biased.add(format, 5, block);
  biased.add(format, 32, block);
  check(biased, type(block));
  // Code for float activations differs by format in the reading of weights only.
  if (exact)
    return;
  Case add{{}, Add};
  add.add(format, 37, 2 * block);
  check(add, type(2 * block));
  Case gated{{}, SiluGate};
  gated.add(format, 48, 3 * block);
  gated.add(format, 48, 3 * block);
  check(gated, type(3 * block));
  Case ragged{{}, SiluGate};
  ragged.add(format, 21, block);
  ragged.add(format, 21, block);
  check(ragged, format.kind == ElementKind::Quantized ? widestActs(type(block).getKind(), block)
                                                      : type(block));
}

TEST_P(MatmulTest, MultipliesEveryFormatWithItsActivations) {
  for (const FormatSpec *format : formatsFor(target())) {
    SCOPED_TRACE(format->name.str());
    checkFormat(*format, false, llvm::is_contained(oneOfEachSize(), format));
  }
}

TEST_P(MatmulTest, MultipliesQuantizedFormatsWithFloats) {
  for (const FormatSpec *format : formatsFor(target())) {
    SCOPED_TRACE(format->name.str());
    if (format->kind == ElementKind::Quantized)
      checkFormat(*format, true, llvm::is_contained(oneOfEachSize(), format));
  }
}

TEST_P(MatmulTest, TakesMatricesOfDifferentFormats) {
  for (uint32_t block : {1, 32, 64, 256}) {
    Case c{{}, Store, true};
    std::vector<const FormatSpec *> formats;
    for (const FormatSpec *format : formatsFor(target()))
      if (format->blockWeights == block) {
        formats.push_back(format);
        c.add(*format, 24, 256);
      }
    check(c, actTypeFor(formats, 256));
  }
}

// As many tokens as a prompt has, and rows of weights longer than what is
// decoded at once.
TEST_P(MatmulTest, MultipliesManyTokensWithLongRows) {
  if (target().arch() == "nvptx64")
    GTEST_SKIP() << "interpreting takes long, and its rows know nothing of each other";
  for (const FormatSpec *format : oneOfEachSize()) {
    SCOPED_TRACE(format->name.str());
    Case c;
    c.add(*format, 17, 1280);
    check(c, actTypeFor({format}, 1280), kManyTokens);
  }
}

// Among sums that are 0 others lie in the middle of two floats, and what is left
// of a 0 that is not quite 0 would decide between them.
TEST_P(MatmulTest, SumsOfZeroLeaveNothing) {
  constexpr int64_t kWidth = 512;
  Random random(3);
  std::vector<std::vector<float>> rows(kMostTokens, std::vector<float>(kWidth));
  for (std::vector<float> &row : rows)
    for (int64_t i = 0; i < kWidth; i += 16)
      row[i + random.below(16)] = std::ldexp(random.next(), -int(random.below(7)));
  for (const FormatSpec *format : formatsFor(target())) {
    if (format->blockWeights != 256)
      continue;
    SCOPED_TRACE(format->name.str());
    Case c;
    c.add(*format, 96, kWidth);
    Activations act(actTypeFor({format}, kWidth), rows);
    check(c, act);
  }
}

// A product of several encodings reads activations with a scale for each 32
// values, whatever the blocks of the encodings are.
TEST_P(MatmulTest, TakesBlocksOf256WithScalesOf32) {
  Case c;
  for (const FormatSpec *format : formatsFor(target()))
    if (format->kind == ElementKind::Quantized)
      c.add(*format, 17, 512);
  check(c, widestActs(pack::ActKind::Block32, 512));
}

// A mixture of block sizes shares activations with a scale for each 32.
TEST_P(MatmulTest, TakesBlocksOf32And256Together) {
  Case c;
  for (const FormatSpec *format : oneOfEachSize())
    if (format->kind == ElementKind::Quantized)
      c.add(*format, 24, 512);
  check(c, widestActs(pack::ActKind::Block32, 512));
}

TEST_P(MatmulTest, AddsBiasesToGateAndUp) {
  for (const FormatSpec *format : {allFormats().front(), allFormats().back()}) {
    Case c{{}, SiluGate, true};
    c.add(*format, 37, 256);
    c.add(*format, 37, 256);
    check(c, actTypeFor({format}, 256));
  }
}

TEST_P(MatmulTest, GatesWithGeluAndCaps) {
  for (Epilogue epilogue : {GeluGate, SoftCap}) {
    Case c{{}, epilogue, true};
    c.add(*allFormats().front(), 37, 64);
    if (epilogue == GeluGate)
      c.add(*allFormats().front(), 37, 64);
    check(c, actTypeFor({allFormats().front()}, 64));
  }
}

TEST_P(MatmulTest, TakesTheRowsOfOutputs) {
  for (const FormatSpec *format : {allFormats().front(), allFormats().back()}) {
    Case c{{}, Store, false, true};
    c.add(*format, 33, 256);
    check(c, actTypeFor({format}, 256));
  }
}

TEST_P(MatmulTest, TakesFloatWidthsOfAnyLength) {
  for (const FormatSpec *format : allFormats())
    if (format->kind != ElementKind::Quantized) {
      Case c;
      c.add(*format, 20, 83);
      check(c, floatActs(83));
    }
}

IZH_FOR_EACH_TARGET(MatmulTest);

} // namespace
