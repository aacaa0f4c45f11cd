// pack.matmul_heads of every target against products, norm and rotation in
// double precision: where queries, keys and values are written, that nothing
// else is, and how keys and values are rounded.

#include "test/conformance/kv_cache.h"
#include "test/conformance/operands.h"
#include <numeric>
#include <set>

using namespace izhc;
using namespace izhc::conformance;

namespace {

enum Rope { None, Halves, Pairs };

constexpr double kTolerance = 1e-5;
constexpr float kEps = 1e-6f;
constexpr int64_t kPages = 4;
constexpr uint16_t kUnwritten = 0xEEEE;

// Slots of the tokens: around the ends of pages, in no order.
const std::vector<int32_t> kSlots = {62,  63,  128, 129, 64,  0,   255, 200, 65,
                                     127, 191, 192, 1,   254, 130, 66,  31};

struct Case {
  const FormatSpec &format;
  int64_t heads, kvHeads, dim, width;
  Rope rope = None;
  int64_t rotary = 0;
  bool norms = false, biased = false, exact = false;
};

std::string memref(int64_t count) { return "memref<" + number(count) + "xf32>"; }
std::string rowsOf(int64_t count) { return "memref<?x" + number(count) + "xf32>"; }

// All operands of one case.
struct Operands {
  Case c;
  Activations act;
  Matrix weights[3];
  Array<float> biases[3];
  Array<float> qNorm, kNorm, table;
  Array<int32_t> slots;

  explicit Operands(Case c)
      : c(c),
        act(c.exact ? floatActs(c.width) : actTypeFor({&c.format}, c.width), kSlots.size(), 3),
        weights{{c.format, c.heads * c.dim, c.width, 1},
                {c.format, c.kvHeads * c.dim, c.width, 2},
                {c.format, c.kvHeads * c.dim, c.width, 3}},
        biases{numbers(c.heads * c.dim, 4), numbers(c.kvHeads * c.dim, 5),
               numbers(c.kvHeads * c.dim, 6)},
        qNorm(numbers(c.dim, 7)), kNorm(numbers(c.dim, 8)), table(kSlots.size() * c.rotary),
        slots(kSlots) {
    Random random(9);
    for (size_t token = 0; token < kSlots.size(); ++token)
      for (int64_t i = 0; i < c.rotary / 2; ++i) {
        double angle = 3 * random.next();
        table[token * c.rotary + i] = float(std::cos(angle));
        table[token * c.rotary + c.rotary / 2 + i] = float(std::sin(angle));
      }
  }
  static std::vector<float> numbers(int64_t count, int seed) { return Random(seed).floats(count); }

  std::string text() const;
  std::vector<void *> bindings(int64_t token, void *cache, void *queries);
  int64_t groups() const {
    int64_t headsPerGroup = std::lcm(c.dim, int64_t(16)) / c.dim;
    auto of = [&](int64_t heads) { return (heads + headsPerGroup - 1) / headsPerGroup; };
    return of(c.heads) + 2 * of(c.kvHeads);
  }
  int64_t queryWidth() const { return c.heads * c.dim; }
  KvShape kv() const { return {c.kvHeads, c.dim, c.dim}; }
  int64_t pageHalves() const { return kv().pageBytes() / 2; }
};

std::string Operands::text() const {
  std::string arguments, types, op = "pack.matmul_heads ";
  auto operand = [&](const std::string &name, const std::string &type) {
    std::string separator = arguments.empty() ? "" : ", ";
    arguments += separator + name + ": " + type;
    types += separator + type;
    op += name;
  };
  operand("%a", act.typeText());
  op += " weights(";
  for (int i = 0; i < 3; ++i, op += i < 3 ? ", " : ")")
    operand("%w" + number(i), weights[i].type());
  if (c.biased)
    op += " biases(";
  for (int i = 0; c.biased && i < 3; ++i, op += i < 3 ? ", " : ")")
    operand("%b" + number(i), memref(weights[i].rows));
  if (c.norms) {
    op += " q_norm ";
    operand("%qn", memref(c.dim));
    op += " k_norm ";
    operand("%kn", memref(c.dim));
  }
  if (c.rope != None) {
    op += " table ";
    operand("%t", rowsOf(c.rotary));
  }
  op += " slots ";
  operand("%s", "memref<?xi32>");
  op += " cache ";
  operand("%c", kv().type());
  op += " into ";
  operand("%q", rowsOf(queryWidth()));
  return "plan.kernel @k(" + arguments + ") {\n  " + op + " {head_dim = " + number(c.dim) +
         " : i64, rotary = " + number(c.rotary) + " : i64, rope = " + number(c.rope) +
         " : i32, eps = 1.0e-6 : f32} : (" + types + ") -> ()\n}\n";
}

std::vector<void *> Operands::bindings(int64_t token, void *cache, void *queries) {
  std::vector<void *> result = {act.record(token)};
  for (Matrix &matrix : weights)
    result.push_back(matrix.packed.data());
  if (c.biased)
    for (Array<float> &bias : biases)
      result.push_back(bias.data());
  if (c.norms) {
    result.push_back(qNorm.data());
    result.push_back(kNorm.data());
  }
  if (c.rope != None)
    result.push_back(&table[token * c.rotary]);
  result.push_back(&slots[token]);
  result.push_back(cache);
  result.push_back(queries);
  return result;
}

// One head in double precision; `size` bounds what rounding may do to a value.
struct Head {
  std::vector<double> values, sizes;
};

Head expected(Operands &o, int role, int64_t head, int64_t token) {
  const Case &c = o.c;
  Head result;
  for (int64_t i = head * c.dim; i < (head + 1) * c.dim; ++i) {
    Dot y = dot(o.weights[role], i, o.act, token);
    double bias = c.biased ? o.biases[role][i] : 0;
    result.values.push_back(y.value + bias);
    result.sizes.push_back(y.size + std::abs(bias));
  }
  if (c.norms && role < 2) {
    double squares = 0;
    for (double value : result.values)
      squares += value * value;
    double factor = 1 / std::sqrt(squares / c.dim + kEps);
    for (int64_t i = 0; i < c.dim; ++i) {
      float weight = role == 0 ? o.qNorm[i] : o.kNorm[i];
      result.values[i] *= factor * weight;
      result.sizes[i] *= factor * std::abs(weight);
    }
  }
  for (int64_t i = 0; c.rope != None && role < 2 && i < c.rotary / 2; ++i) {
    int64_t first = c.rope == Halves ? i : 2 * i,
            second = c.rope == Halves ? i + c.rotary / 2 : 2 * i + 1;
    double cos = o.table[token * c.rotary + i], sin = o.table[token * c.rotary + c.rotary / 2 + i];
    double a = result.values[first], b = result.values[second];
    result.values[first] = a * cos - b * sin;
    result.values[second] = b * cos + a * sin;
    result.sizes[first] = result.sizes[second] = result.sizes[first] + result.sizes[second];
  }
  return result;
}

struct Results {
  std::vector<float> queries;
  std::vector<uint16_t> cache;
  bool operator==(const Results &other) const {
    return std::memcmp(queries.data(), other.queries.data(), 4 * queries.size()) == 0 &&
           cache == other.cache;
  }
};

class MatmulHeadsTest : public TargetTest {
protected:
  void check(Case c);

private:
  void compare(Operands &o, const Results &got);
};

// Calls the kernel for `tokens` of the tokens at a time, for `units` groups at
// a time.
Results runHeads(const Kernel &kernel, Operands &o, int64_t tokens, int64_t units) {
  int64_t count = kSlots.size();
  Array<float> queries(count * o.queryWidth(), 0xEE);
  Array<uint16_t> cache(kPages * o.pageHalves(), 0xEE);
  for (int64_t token = 0; token < count; token += tokens)
    for (int64_t unit = 0; unit < o.groups(); unit += units)
      kernel.run(o.bindings(token, cache.data(), &queries[token * o.queryWidth()]),
                 {std::min(tokens, count - token)}, unit, std::min(unit + units, o.groups()),
                 units >= o.groups());
  return {std::vector<float>(&queries[0], &queries[0] + queries.count),
          std::vector<uint16_t>(&cache[0], &cache[0] + cache.count)};
}

void MatmulHeadsTest::compare(Operands &o, const Results &got) {
  const Case &c = o.c;
  std::vector<uint16_t> left = got.cache;
  auto checkHead = [&](int role, int64_t head, int64_t token) {
    Head wanted = expected(o, role, head, token);
    int64_t slot = kSlots[token], base = slot / kPage * o.pageHalves();
    for (int64_t i = 0; i < c.dim; ++i) {
      double slack = kTolerance * wanted.sizes[i];
      if (role == 0) {
        ASSERT_NEAR(got.queries[token * o.queryWidth() + head * c.dim + i], wanted.values[i], slack)
            << "query head " << head << ", token " << token << ", value " << i;
        continue;
      }
      KvShape kv = o.kv();
      int64_t at =
          base +
          (role == 1 ? kv.key16(head, slot % kPage, i) : kv.value16(head, slot % kPage, i)) / 2;
      // Half a unit in the last place of a float16.
      slack += std::abs(wanted.values[i]) * 0x1p-11 + 0x1p-25;
      ASSERT_NEAR(halfToFloat(got.cache[at]), wanted.values[i], slack)
          << (role == 1 ? "key head " : "value head ") << head << ", token " << token << ", value "
          << i;
      left[at] = kUnwritten;
    }
  };
  for (int role = 0; role < 3; ++role)
    for (int64_t head = 0; head < (role == 0 ? c.heads : c.kvHeads); ++head)
      for (size_t token = 0; token < kSlots.size(); ++token) {
        checkHead(role, head, token);
        if (HasFatalFailure())
          return;
      }
  for (size_t i = 0; i < left.size(); ++i)
    ASSERT_EQ(left[i], kUnwritten) << "half " << i << " of the cache belongs to no token";
}

void MatmulHeadsTest::check(Case c) {
  Operands o(c);
  SCOPED_TRACE(o.text());
  Kernel kernel(target(), o.text());
  ASSERT_TRUE(bool(kernel));
  Results all = runHeads(kernel, o, kSlots.size(), o.groups());
  compare(o, all);
  if (HasFatalFailure())
    return;
  for (int64_t tokens : {1, 2, 3, 5, 8, 9})
    ASSERT_TRUE(runHeads(kernel, o, tokens, o.groups()) == all) << tokens << " tokens a call";
  ASSERT_TRUE(runHeads(kernel, o, kSlots.size(), 1) == all) << "one group a call";
}

TEST_P(MatmulHeadsTest, MultipliesEveryFormat) {
  std::set<uint32_t> sizes;
  for (const FormatSpec *format : formatsFor(target())) {
    SCOPED_TRACE(format->name.str());
    int64_t width = format->blockWeights > 32 ? format->blockWeights : 96;
    check({*format, 2, 1, 64, width, Halves, 64});
    // Reading weights is tested with `matmul`; here one format of each size of blocks.
    if (sizes.insert(format->blockWeights).second)
      check({*format, 2, 2, 32, width, Pairs, 32, true, true, /*exact=*/true});
  }
}

TEST_P(MatmulHeadsTest, TurnsHalvesAndPairs) {
  const FormatSpec &format = *findFormat("q8_0");
  check({format, 3, 1, 64, 64, None, 0});
  check({format, 3, 1, 64, 64, Halves, 64});
  check({format, 3, 1, 64, 64, Pairs, 64});
}

TEST_P(MatmulHeadsTest, TurnsPartOfAHead) {
  const FormatSpec &format = *findFormat("q8_0");
  check({format, 2, 1, 64, 64, Halves, 32});
  check({format, 2, 1, 80, 64, Halves, 20});
  check({format, 2, 1, 64, 64, Pairs, 24});
}

TEST_P(MatmulHeadsTest, NormalizesQueriesAndKeys) {
  const FormatSpec &format = *findFormat("q8_0");
  check({format, 4, 2, 128, 64, Halves, 128, true});
  check({format, 2, 1, 64, 64, None, 0, true, true});
}

TEST_P(MatmulHeadsTest, TakesHeadsThatAreNoWholeTiles) {
  const FormatSpec &format = *findFormat("q8_0");
  check({format, 4, 2, 24, 64, Halves, 24, true, true});
  check({format, 3, 1, 24, 64, Halves, 12, false, true});
  check({format, 3, 3, 72, 64, Pairs, 72, true});
}

// Values that pass through the product unchanged show the rounding.
TEST_P(MatmulHeadsTest, RoundsToTheNearestHalfOrEven) {
  const std::vector<float> inputs = {0.0f,       1.0f,          -1.0f,           0x1.002p0f,
                                     0x1.006p0f, -0x1.002p0f,   0x1.0020002p0f,  0x1.001ffep0f,
                                     65504.0f,   65519.0f,      65520.0f,        -1e6f,
                                     0x1p-14f,   0x1.ffcp-15f,  0x1.ffep-15f,    0x1p-24f,
                                     0x1p-25f,   0x1.8p-25f,    0x1.000002p-25f, 0x1p-26f,
                                     0x1.8p-24f, 0x1.4p-23f,    -0x1.cp-23f,     3.14159274f,
                                     1e-30f,     2047.5f,       2048.5f,         2049.0f,
                                     2051.0f,    -0.333333343f, 1e-5f,           6.1e-5f};
  constexpr int64_t n = 32;
  ASSERT_EQ(inputs.size(), size_t(n));
  std::vector<float> identity(n * n);
  for (int64_t i = 0; i < n; ++i)
    identity[i * n + i] = 1;
  Matrix weights(n, n, identity);
  Activations act(floatActs(n), {inputs});
  Kernel kernel(target(), fill(R"(
    plan.kernel @k(%a: $a, %q: $w, %k: $w, %v: $w, %s: memref<?xi32>, %c: $c, %o: $o) {
      pack.matmul_heads %a weights(%q, %k, %v) slots %s cache %c into %o
        {head_dim = 32 : i64, rotary = 0 : i64, rope = 0 : i32}
        : ($a, $w, $w, $w, memref<?xi32>, $c, $o) -> ()
    })",
                               {{"a", act.typeText()},
                                {"w", weights.type()},
                                {"c", "!pack.kv<1 x 32, page 64>"},
                                {"o", rowsOf(n)}}));
  ASSERT_TRUE(bool(kernel));
  Array<int32_t> slots(std::vector<int32_t>{5});
  Array<uint16_t> cache(2 * n * kPage);
  Array<float> queries(n);
  void *matrix = weights.packed.data();
  kernel.run({act.record(0), matrix, matrix, matrix, slots.data(), cache.data(), queries.data()},
             {1}, 0, 6);
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_EQ(queries[i], inputs[i]);
    _Float16 half = _Float16(inputs[i]);
    uint16_t wanted;
    std::memcpy(&wanted, &half, 2);
    KvShape kv = {1, n, n};
    EXPECT_EQ(cache[kv.key16(0, 5, i) / 2], wanted) << "key " << inputs[i];
    EXPECT_EQ(cache[kv.value16(0, 5, i) / 2], wanted) << "value " << inputs[i];
  }
}

IZH_FOR_EACH_TARGET(MatmulHeadsTest);

} // namespace
