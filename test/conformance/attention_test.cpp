// pack.attention and pack.merge of every target against softmax attention in
// double precision, and against themselves with tokens and spans grouped otherwise.

#include "test/conformance/kv_cache.h"
#include <numeric>

using namespace izhc;
using namespace izhc::conformance;

namespace {

enum Feature : unsigned {
#define IZH_CPU_FEATURE(bit, name, arch) name = bit,
#include "runtime/schema/cpu_features.def"
};

constexpr float kScale = 0.125f;
constexpr int64_t kSpan = 256;

struct Shape {
  int64_t heads, kvHeads, dim;
  int64_t valueDim = 0; // 0: dim
  int64_t window = 0;
  float softcap = 0;
  bool sinks = false;
  bool exact = true;

  int64_t values() const { return valueDim ? valueDim : dim; }
  KvShape kv() const { return {kvHeads, dim, values()}; }
  int64_t partialFloats() const { return heads * (16 + (values() + 15) / 16 * 16); }
};

// A sequence of `context` tokens in pages that lie in the pool in any order,
// among unused slots filled with NaN.
struct Sequence {
  Shape shape;
  KvShape kv;
  int64_t context;
  Array<int32_t> pages;
  Array<uint16_t> cache;
  Array<float> sinks;

  Sequence(Shape shape, int64_t context)
      : shape(shape), kv(shape.kv()), context(context), pages((context + kPage - 1) / kPage),
        cache((pages.count + 2) * kv.pageBytes() / 2), sinks(shape.heads) {
    std::fill(&cache[0], &cache[0] + cache.count, uint16_t(0x7e00));
    for (size_t i = 0; i < pages.count; ++i)
      pages[i] = int32_t(pages.count - i);
    Random random(context + shape.dim);
    for (int64_t t = 0; t < context; ++t)
      for (int64_t h = 0; h < shape.kvHeads; ++h)
        for (int64_t d = 0; d < std::max(shape.dim, shape.values()); ++d) {
          float k = 2 * random.next(), v = random.next();
          if (d < shape.dim)
            key(t, h, d) = floatToHalf(k);
          if (d < shape.values())
            value(t, h, d) = floatToHalf(v);
          if (d == shape.dim - 1 && shape.dim % 2)
            key(t, h, d + 1) = 0;
        }
    for (int64_t h = 0; h < shape.heads; ++h)
      sinks[h] = 4 * random.next();
  }
  uint16_t &key(int64_t t, int64_t h, int64_t d) {
    return cache[(pages[t / kPage] * kv.pageBytes() + kv.key16(h, t % kPage, d)) / 2];
  }
  uint16_t &value(int64_t t, int64_t h, int64_t d) {
    return cache[(pages[t / kPage] * kv.pageBytes() + kv.value16(h, t % kPage, d)) / 2];
  }
};

std::string kernelText(Shape shape) {
  return fill(
      R"(
    plan.kernel @k(%q: $row, %c: $kv, %t: memref<?xi32>, %p: memref<?xi32>, %r: memref<?xi32>$arg, %o: $out, %l: $part) {
      pack.attention %q cache %c tiles %t pages %p parts %r $use into %o partials %l
        {scale = 0.125 : f32, heads = $h : i64, tile = 8 : i64, window = $w : i64, softcap = $cap : f32$exact}
        : ($row, $kv, memref<?xi32>, memref<?xi32>, memref<?xi32>$type, $out, $part) -> ()
    })",
      {{"row", "memref<?x" + number(shape.heads * shape.dim) + "xf32>"},
       {"out", "memref<?x" + number(shape.heads * shape.values()) + "xf32>"},
       {"part", "memref<?x" + number(shape.partialFloats()) + "xf32>"},
       {"kv", shape.kv().type()},
       {"arg", shape.sinks ? ", %s: memref<" + number(shape.heads) + "xf32>" : ""},
       {"use", shape.sinks ? "sinks %s" : ""},
       {"type", shape.sinks ? ", memref<" + number(shape.heads) + "xf32>" : ""},
       {"exact", shape.exact ? ", exact" : ""},
       {"cap", number(int64_t(shape.softcap)) + ".0"},
       {"w", number(shape.window)},
       {"h", number(shape.heads)}});
}

std::string mergeText(Shape shape) {
  return fill(
      R"(
    plan.kernel @k(%l: $part, %m: memref<?xi32>$arg, %c: $kv, %o: $out) {
      pack.merge partials %l merges %m $use cache %c into %o {heads = $h : i64, window = $w : i64}
        : ($part, memref<?xi32>$type, $kv, $out) -> ()
    })",
      {{"out", "memref<?x" + number(shape.heads * shape.values()) + "xf32>"},
       {"part", "memref<?x" + number(shape.partialFloats()) + "xf32>"},
       {"kv", shape.kv().type()},
       {"arg", shape.sinks ? ", %s: memref<" + number(shape.heads) + "xf32>" : ""},
       {"use", shape.sinks ? "sinks %s" : ""},
       {"type", shape.sinks ? ", memref<" + number(shape.heads) + "xf32>" : ""},
       {"w", number(shape.window)},
       {"h", number(shape.heads)}});
}

// Softmax attention of one head of one row.
std::vector<double> expected(Sequence &s, const float *query, int64_t position, int64_t head) {
  int64_t kvHead = head / (s.shape.heads / s.shape.kvHeads);
  int64_t first = s.shape.window ? std::max<int64_t>(0, position - s.shape.window + 1) : 0;
  std::vector<double> scores, out(s.shape.values());
  for (int64_t t = first; t <= position; ++t) {
    double dot = 0;
    for (int64_t d = 0; d < s.shape.dim; ++d)
      dot += double(query[d]) * halfToFloat(s.key(t, kvHead, d));
    double score = dot * kScale, cap = s.shape.softcap;
    scores.push_back(cap ? cap * std::tanh(score / cap) : score);
  }
  double most = *std::max_element(scores.begin(), scores.end());
  double total = s.shape.sinks ? std::exp(s.sinks[head] - most) : 0;
  for (double score : scores)
    total += std::exp(score - most);
  for (int64_t t = first; t <= position; ++t)
    for (int64_t d = 0; d < s.shape.values(); ++d)
      out[d] += std::exp(scores[t - first] - most) / total * halfToFloat(s.value(t, kvHead, d));
  return out;
}

class AttentionTest : public TargetTest {
protected:
  // The last `rows` tokens of a context, in tiles of at most `perTile` rows.
  std::vector<float> run(const Kernel &kernel, Sequence &s, Array<float> &queries, int64_t rows,
                         int64_t perTile);
  // The same, each tile span by span.
  std::vector<float> runSpans(const Kernel &kernel, Sequence &s, Array<float> &queries,
                              int64_t rows, int64_t perTile);
  void check(Shape shape, int64_t context, int64_t rows);
  // Largest error of what is rounded to bfloat16, or to float16.
  double slack(Shape shape) {
    if (shape.exact)
      return 3e-6;
    if (target().arch() == "nvptx64")
      return 1e-3;
    auto has = [&](Feature feature) {
      return target().arch() == "x86_64" && (target().requiredFeatures() >> feature & 1);
    };
    return has(avx512fp16) ? 5e-3 : has(avx512bf16) ? 2e-2 : 3e-6;
  }

private:
  void runTiles(const Kernel &kernel, Sequence &s, Array<float> &queries,
                const std::vector<int32_t> &tiles, const std::vector<int32_t> &parts,
                Array<float> &out, Array<float> &partials);
};

void AttentionTest::runTiles(const Kernel &kernel, Sequence &s, Array<float> &queries,
                             const std::vector<int32_t> &tiles, const std::vector<int32_t> &parts,
                             Array<float> &out, Array<float> &partials) {
  Array<int32_t> tileWords(tiles), partWords(parts);
  int64_t count = tiles.size() / 4, units = count * s.shape.kvHeads;
  std::vector<void *> bindings = {queries.data(), s.cache.data(), tileWords.data(), s.pages.data(),
                                  partWords.data()};
  if (s.shape.sinks)
    bindings.push_back(s.sinks.data());
  bindings.push_back(out.data());
  bindings.push_back(partials.data());
  int64_t rows = 0;
  for (size_t i = 1; i < tiles.size(); i += 4)
    rows += tiles[i];
  if (kernel.hasForms())
    return kernel.run(bindings, {rows, rows, count}, 0, units, /*all=*/true);
  kernel.run(bindings, {rows, rows, count}, 0, units / 2);
  kernel.run(bindings, {rows, rows, count}, units / 2, units);
}

std::vector<float> AttentionTest::run(const Kernel &kernel, Sequence &s, Array<float> &queries,
                                      int64_t rows, int64_t perTile) {
  std::vector<int32_t> tiles, parts;
  for (int64_t row = 0; row < rows; row += perTile) {
    for (int64_t word : {row, std::min(perTile, rows - row), s.context - rows + row, int64_t(0)})
      tiles.push_back(int32_t(word));
    for (int32_t word : {0, INT32_MAX, -1, 0})
      parts.push_back(word);
  }
  Array<float> out(rows * s.shape.heads * s.shape.values(), 0xEE), partials(16);
  runTiles(kernel, s, queries, tiles, parts, out, partials);
  return {&out[0], &out[0] + out.count};
}

std::vector<float> AttentionTest::runSpans(const Kernel &kernel, Sequence &s, Array<float> &queries,
                                           int64_t rows, int64_t perTile) {
  std::vector<int32_t> tiles, parts, merges;
  int64_t used = 0;
  for (int64_t row = 0; row < rows; row += perTile) {
    int64_t count = std::min(perTile, rows - row), position = s.context - rows + row;
    int64_t spans = (position + count - 1) / kSpan + 1;
    for (int64_t span = 0; span < spans; ++span) {
      for (int64_t word : {row, count, position, int64_t(0)})
        tiles.push_back(int32_t(word));
      for (int64_t word : {span, span + 1, used + span * count, int64_t(0)})
        parts.push_back(int32_t(word));
    }
    for (int64_t i = 0; i < count; ++i)
      for (int64_t word : {row + i, position + i, used + i, count})
        merges.push_back(int32_t(word));
    used += spans * count;
  }
  Array<float> out(rows * s.shape.heads * s.shape.values(), 0xEE);
  Array<float> partials(used * s.shape.partialFloats(), 0xEE);
  runTiles(kernel, s, queries, tiles, parts, out, partials);
  Kernel merge(target(), mergeText(s.shape));
  EXPECT_TRUE(bool(merge));
  Array<int32_t> mergeWords(merges);
  std::vector<void *> bindings = {partials.data(), mergeWords.data()};
  if (s.shape.sinks)
    bindings.push_back(s.sinks.data());
  bindings.push_back(s.cache.data());
  bindings.push_back(out.data());
  merge.run(bindings, {rows, rows, 0}, 0, rows * s.shape.heads);
  return {&out[0], &out[0] + out.count};
}

void AttentionTest::check(Shape shape, int64_t context, int64_t rows) {
  SCOPED_TRACE("heads " + number(shape.heads) + "/" + number(shape.kvHeads) + " dim " +
               number(shape.dim) + " context " + number(context) + " rows " + number(rows) +
               " window " + number(shape.window));
  Kernel kernel(target(), kernelText(shape));
  ASSERT_TRUE(bool(kernel));
  Sequence s(shape, context);
  Array<float> queries(Random(rows).floats(rows * shape.heads * shape.dim, 2.0f));
  std::vector<float> out = run(kernel, s, queries, rows, 8);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t head = 0; head < shape.heads; ++head) {
      auto wanted =
          expected(s, &queries[(row * shape.heads + head) * shape.dim], context - rows + row, head);
      for (int64_t d = 0; d < shape.values(); ++d)
        ASSERT_NEAR(out[(row * shape.heads + head) * shape.values() + d], wanted[d], slack(shape))
            << row << " " << head << " " << d;
    }
  auto same = [&](const std::vector<float> &other) {
    return std::memcmp(other.data(), out.data(), 4 * out.size()) == 0;
  };
  for (int64_t perTile : {1, 3, 5, 32})
    EXPECT_TRUE(same(run(kernel, s, queries, rows, perTile)))
        << "the result depends on tiles: " << perTile << " rows";
  for (int64_t perTile : {1, 4})
    EXPECT_TRUE(same(runSpans(kernel, s, queries, rows, perTile)))
        << "the result depends on what computes spans: " << perTile << " rows";
}

TEST_P(AttentionTest, StartsWithOneToken) { check({3, 1, 64}, 1, 1); }

TEST_P(AttentionTest, MatchesSoftmaxAtEveryGroupSize) {
  for (int64_t group : {1, 2, 3, 4, 5, 6, 7, 8})
    check({2 * group, 2, 64}, 150, 11);
}

TEST_P(AttentionTest, CrossesPagesWithinATile) {
  check({3, 1, 64}, 68, 8);
  check({4, 2, 64}, 64, 64);
  check({4, 2, 64}, 65, 3);
}

TEST_P(AttentionTest, TakesAnyHeadSize) {
  for (int64_t dim : {16, 48, 80, 96, 128, 256})
    check({4, 2, dim}, 70, 4);
  check({2, 2, 100}, 70, 4);
  check({3, 1, 37}, 70, 4);
}

TEST_P(AttentionTest, TakesValuesOfAnotherSizeThanKeys) {
  check({4, 1, 96, 64}, 70, 4);
  check({2, 2, 32, 48}, 130, 9);
}

TEST_P(AttentionTest, SeesNothingBehindItsWindow) {
  for (int64_t window : {1, 5, 64, 65, 149, 150})
    check({4, 2, 64, 0, window}, 150, 70);
}

TEST_P(AttentionTest, CapsScores) { check({4, 2, 64, 0, 0, 2.0f}, 150, 11); }

TEST_P(AttentionTest, CountsSinks) {
  check({4, 2, 64, 0, 0, 0, true}, 150, 11);
  check({6, 2, 64, 0, 20, 3.0f, true}, 150, 11);
}

TEST_P(AttentionTest, MergesSpansOfLongContexts) {
  check({4, 2, 64}, 600, 3);
  check({3, 1, 64}, 514, 5);
  check({4, 2, 64, 0, 300, 0, true}, 700, 6);
  check({4, 2, 64, 0, 10}, 515, 6);
  check({16, 2, 128}, 520, 3);
}

TEST_P(AttentionTest, TakesMoreHeadsPerKeyHeadThanAMatrixHasRows) {
  check({40, 2, 32}, 300, 5);
  check({18, 1, 64, 0, 100, 0, true}, 600, 2);
}

TEST_P(AttentionTest, MayRoundWhereNotExact) {
  for (int64_t dim : {64, 80, 128})
    check({4, 2, dim, 0, 0, 0, false, /*exact=*/false}, 300, 7);
  check({4, 2, 64, 0, 100, 3.0f, true, /*exact=*/false}, 600, 3);
  check({3, 1, 37, 0, 0, 0, false, /*exact=*/false}, 70, 4);
}

// Sums of such keys' and values' products are beyond float16, and so are the
// queries: all tokens' keys point their way, the last one's furthest.
TEST_P(AttentionTest, TakesLargeNumbers) {
  Shape shape = {4, 2, 64, 0, 0, 0, false, /*exact=*/false};
  Kernel kernel(target(), kernelText(shape));
  ASSERT_TRUE(bool(kernel));
  Sequence s(shape, 150);
  for (int64_t t = 0; t < s.context; ++t)
    for (int64_t h = 0; h < shape.kvHeads; ++h)
      for (int64_t d = 0; d < shape.dim; ++d) {
        s.key(t, h, d) = floatToHalf(t + 1 == s.context ? 65504.0f : 60000.0f);
        s.value(t, h, d) = floatToHalf(d % 2 ? 65504.0f : -65504.0f);
      }
  Array<float> queries(std::vector<float>(shape.heads * shape.dim, 1e5f));
  std::vector<float> out = run(kernel, s, queries, 1, 8);
  for (size_t i = 0; i < out.size(); ++i)
    ASSERT_NEAR(out[i], i % 2 ? 65504.0f : -65504.0f, 100) << i;
}

IZH_FOR_EACH_TARGET(AttentionTest);

} // namespace
