// pack.short_conv and pack.delta_rule of every target against their definitions
// in double precision, and against themselves with tokens taken in other steps.

#include "test/conformance/harness.h"
#include <cmath>

using namespace izhc;
using namespace izhc::conformance;

namespace {

std::string rows(int64_t width) { return "memref<?x" + number(width) + "xf32>"; }
std::string vec(int64_t count) { return "memref<" + number(count) + "xf32>"; }

// Two sequences of 5 and 3 tokens whose slots are 2 and 0.
constexpr int64_t kTokens = 8, kSlots = 3;

class RecurrentTest : public TargetTest {
protected:
  // All rows in one step, or one row of each sequence a step.
  using Run = std::function<void(std::vector<int32_t> sequences, int64_t count)>;
  static void inOneStep(const Run &run) { run({0, 5, 0, 2, 5, 3, 0, 0}, 2); }
  static void oneByOne(const Run &run) {
    for (int32_t i = 0; i < 5; ++i) {
      std::vector<int32_t> entries = {i, 1, i, 2};
      if (i < 3)
        entries.insert(entries.end(), {5 + i, 1, i, 0});
      run(entries, int64_t(entries.size()) / 4);
    }
  }
  void checkConv(int64_t width, int64_t taps, bool silu);
  void checkDelta(int64_t heads, int64_t keyHeads, int64_t keys, int64_t values, bool tiled);
};

void RecurrentTest::checkConv(int64_t width, int64_t taps, bool silu) {
  SCOPED_TRACE(number(width) + " x " + number(taps));
  int64_t slot = (4 * width * (taps - 1) + 63) / 64 * 64, blocks = (width + 255) / 256;
  std::string state = "!pack.slots<" + number(width * (taps - 1)) + ">";
  Kernel kernel(target(), fill(R"(
    plan.kernel @k(%x: $x, %w: $w, %q: memref<?xi32>, %s: $s, %o: $x) {
      pack.short_conv %x weight %w sequences %q state %s into %o $u
        : ($x, $w, memref<?xi32>, $s, $x) -> ()
    })",
                               {{"x", rows(width)},
                                {"w", vec(width * taps)},
                                {"s", state},
                                {"u", silu ? "{silu}" : "{}"}}));
  ASSERT_TRUE(bool(kernel));
  Random random(width);
  Array<float> x(random.floats(kTokens * width)), w(random.floats(width * taps));
  std::vector<float> first;
  for (bool whole : {true, false}) {
    // Slots may hold anything at first.
    Buffer slots(kSlots * slot, 0x7f);
    Array<float> out(kTokens * width, 0xEE);
    Run run = [&](std::vector<int32_t> sequences, int64_t count) {
      Array<int32_t> entries(sequences);
      for (int64_t unit = 0; unit < count * blocks; ++unit)
        kernel.run({x.data(), w.data(), entries.data(), slots.data(), out.data()}, {kTokens}, unit,
                   unit + 1);
    };
    whole ? inOneStep(run) : oneByOne(run);
    for (int64_t t = 0; t < kTokens; ++t)
      for (int64_t c = 0; c < width; ++c) {
        double sum = 0;
        for (int64_t j = 0; j < taps; ++j)
          if (int64_t from = t - (taps - 1) + j; from >= (t < 5 ? 0 : 5))
            sum += double(w[c * taps + j]) * x[from * width + c];
        double wanted = silu ? sum / (1 + std::exp(-sum)) : sum;
        ASSERT_NEAR(out[t * width + c], wanted, 2e-6) << t << " " << c;
      }
    std::vector<float> got(&out[0], &out[0] + out.count);
    if (whole)
      first = got;
    else
      EXPECT_EQ(first, got);
  }
}

TEST_P(RecurrentTest, ConvolvesColumns) {
  checkConv(64, 3, false);
  checkConv(300, 4, true);
  checkConv(7, 2, true);
}

void RecurrentTest::checkDelta(int64_t heads, int64_t keyHeads, int64_t keys, int64_t values,
                               bool tiled) {
  SCOPED_TRACE(number(heads) + " " + number(keys) + " " + number(values));
  int64_t width = 2 * keyHeads * keys + heads * values, count = heads * keys * values;
  Kernel kernel(target(), fill(R"(
    plan.kernel @k(%m: $m, %a: $h, %b: $h, %r: $v, %d: $v, %q: memref<?xi32>, %s: $s, %o: $o) {
      pack.delta_rule %m decay %a beta %b rate %r bias %d sequences %q state %s into %o
        {key_heads = $k, key_dim = $i, value_dim = $j, eps = 0.01 : f32$t}
        : ($m, $h, $h, $v, $v, memref<?xi32>, $s, $o) -> ()
    })",
                               {{"m", rows(width)},
                                {"h", rows(heads)},
                                {"v", vec(heads)},
                                {"s", "!pack.slots<" + number(count) + ">"},
                                {"o", rows(heads * values)},
                                {"k", number(keyHeads)},
                                {"i", number(keys)},
                                {"j", number(values)},
                                {"t", tiled ? ", tiled" : ""}}));
  ASSERT_TRUE(bool(kernel));
  Random random(width);
  Array<float> m(random.floats(kTokens * width)), a(random.floats(kTokens * heads, 3));
  Array<float> b(random.floats(kTokens * heads, 3)), r(random.floats(heads)),
      d(random.floats(heads));
  for (size_t h = 0; h < r.count; ++h)
    r[h] = -std::abs(r[h]);

  // By the definition.
  std::vector<double> wanted(kTokens * heads * values), memory(count);
  for (int64_t t = 0; t < kTokens; ++t) {
    if (t == 0 || t == 5)
      memory.assign(count, 0);
    for (int64_t h = 0; h < heads; ++h) {
      int64_t keyHead = tiled ? h % keyHeads : h / (heads / keyHeads);
      const float *q = &m[t * width + keyHead * keys], *k = q + keyHeads * keys;
      const float *v = &m[t * width + 2 * keyHeads * keys + h * values];
      double qq = 0.01f, kk = 0.01f;
      for (int64_t i = 0; i < keys; ++i) {
        qq += double(q[i]) * q[i];
        kk += double(k[i]) * k[i];
      }
      double kept = std::exp(r[h] * std::log1p(std::exp(double(a[t * heads + h]) + d[h])));
      double share = 1 / (1 + std::exp(-double(b[t * heads + h])));
      double *s = &memory[h * keys * values];
      for (int64_t j = 0; j < values; ++j) {
        double found = 0, result = 0;
        for (int64_t i = 0; i < keys; ++i)
          found += (s[i * values + j] *= kept) * k[i] / std::sqrt(kk);
        for (int64_t i = 0; i < keys; ++i) {
          s[i * values + j] += k[i] / std::sqrt(kk) * share * (v[j] - found);
          result += s[i * values + j] * q[i] / std::sqrt(qq * keys);
        }
        wanted[(t * heads + h) * values + j] = result;
      }
    }
  }

  std::vector<float> first;
  for (bool whole : {true, false}) {
    Buffer slots(kSlots * ((4 * count + 63) / 64 * 64), 0x7f);
    Array<float> out(kTokens * heads * values, 0xEE);
    Run run = [&](std::vector<int32_t> sequences, int64_t entries) {
      Array<int32_t> list(sequences);
      std::vector<void *> bindings = {m.data(), a.data(),    b.data(),     r.data(),
                                      d.data(), list.data(), slots.data(), out.data()};
      kernel.run(bindings, {kTokens}, 0, 1);
      kernel.run(bindings, {kTokens}, 1, entries * heads);
    };
    whole ? inOneStep(run) : oneByOne(run);
    for (size_t i = 0; i < wanted.size(); ++i)
      ASSERT_NEAR(out[i], wanted[i], 3e-6) << i;
    std::vector<float> got(&out[0], &out[0] + out.count);
    if (whole)
      first = got;
    else
      EXPECT_EQ(first, got);
  }
}

TEST_P(RecurrentTest, CorrectsItsMemory) {
  checkDelta(4, 2, 32, 32, false);
  checkDelta(4, 2, 16, 48, true);
  checkDelta(3, 3, 20, 9, false);
}

IZH_FOR_EACH_TARGET(RecurrentTest);

} // namespace
