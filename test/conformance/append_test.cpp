// pack.append of every target, into caches of every type: what is stored is the
// rows, within the rounding of the type, and nothing beside it is touched. Then
// attention on such caches against the values stored.

#include "test/conformance/kv_cache.h"

using namespace izhc;
using namespace izhc::conformance;

namespace {

constexpr int64_t kPages = 3;
// Two tokens that share pairs, others around the ends of panels and pages.
const std::vector<int32_t> kSlots = {70, 71, 0, 15, 16, 63, 64, 127, 128};

class AppendTest : public TargetTest {
protected:
  void check(KvShape kv);
};

std::vector<double> head(Array<float> &rows, int64_t number, int64_t size) {
  std::vector<double> result;
  for (int64_t i = 0; i < size; ++i)
    result.push_back(rows[number * size + i]);
  return result;
}

// What may lie between a value and its code, given the largest of its block.
double slack(int64_t bits, double most) { return bits == 8 ? most / 127 * 0.502 : most / 8 * 1.01; }

void AppendTest::check(KvShape kv) {
  SCOPED_TRACE(kv.type());
  Kernel kernel(target(), fill(R"(
    plan.kernel @k(%k: $k, %v: $v, %s: memref<?xi32>, %c: $c) {
      pack.append %k, %v slots %s into %c : ($k, $v, memref<?xi32>, $c) -> ()
    })",
                               {{"k", "memref<?x" + number(kv.heads * kv.dim) + "xf32>"},
                                {"v", "memref<?x" + number(kv.heads * kv.values) + "xf32>"},
                                {"c", kv.type()}}));
  ASSERT_TRUE(bool(kernel));
  int64_t count = kSlots.size();
  Array<float> keys(Random(1).floats(count * kv.heads * kv.dim, 3.0f));
  Array<float> values(Random(2).floats(count * kv.heads * kv.values));
  Array<int32_t> slots(kSlots);
  Array<uint8_t> cache(kPages * kv.pageBytes());
  kernel.run({keys.data(), values.data(), slots.data(), cache.data()}, {count}, 0, 4);
  kernel.run({keys.data(), values.data(), slots.data(), cache.data()}, {count}, 4, count);
  for (int64_t token = 0; token < count; ++token)
    for (int64_t h = 0; h < kv.heads; ++h)
      for (bool isKey : {true, false}) {
        int64_t size = isKey ? kv.dim : kv.values, slot = kSlots[token] % kPage;
        auto exact = head(isKey ? keys : values, token * kv.heads + h, size);
        const uint8_t *page = cache.data() + kSlots[token] / kPage * kv.pageBytes();
        if (kv.bits < 16)
          exact = turned(exact);
        for (int64_t i = 0; i < size; ++i) {
          if (kv.bits == 16) {
            uint16_t half;
            std::memcpy(&half, page + (isKey ? kv.key16(h, slot, i) : kv.value16(h, slot, i)), 2);
            ASSERT_NEAR(halfToFloat(half), exact[i], std::abs(exact[i]) * 0x1p-11 + 0x1p-25);
            continue;
          }
          double most = 0;
          for (int64_t j = i / 32 * 32; j < i / 32 * 32 + 32; ++j)
            most = std::max(most, std::abs(exact[j]));
          double stored = isKey ? kv.keyCode(page, h, slot, i) : kv.valueCode(page, h, slot, i);
          ASSERT_NEAR(stored, exact[i], slack(kv.bits, most)) << token << " " << h << " " << i;
        }
      }
}

TEST_P(AppendTest, StoresHalves) {
  check({2, 64, 64});
  check({1, 37, 24});
  check({1, 96, 64});
}

TEST_P(AppendTest, StoresBlocksOfCodes) {
  for (int64_t bits : {8, 4}) {
    check({2, 64, 64, bits});
    check({1, 96, 32, bits});
    check({1, 128, 128, bits});
  }
}

// One token that sees itself only gets its value back; its neighbour in the
// pair holds what is no number.
TEST_P(AppendTest, IsReadBackByAttention) {
  for (int64_t bits : {16, 8, 4}) {
    KvShape kv = {2, 64, 96, bits};
    Kernel append(target(), fill(R"(
    plan.kernel @k(%k: memref<?x128xf32>, %v: memref<?x192xf32>, %s: memref<?xi32>, %c: $c) {
      pack.append %k, %v slots %s into %c
        : (memref<?x128xf32>, memref<?x192xf32>, memref<?xi32>, $c) -> ()
    })",
                                 {{"c", kv.type()}}));
    Kernel attention(target(), fill(R"(
    plan.kernel @k(%q: memref<?x128xf32>, %c: $c, %t: memref<?xi32>, %p: memref<?xi32>, %o: memref<?x192xf32>) {
      pack.attention %q cache %c tiles %t pages %p into %o {scale = 1.0 : f32, heads = 2 : i64, tile = 8 : i64, exact}
        : (memref<?x128xf32>, $c, memref<?xi32>, memref<?xi32>, memref<?x192xf32>) -> ()
    })",
                                    {{"c", kv.type()}}));
    ASSERT_TRUE(append && attention);
    Array<float> keys(Random(1).floats(128)), values(Random(2).floats(192)), out(192);
    Array<int32_t> slots(std::vector<int32_t>{0}), pages(std::vector<int32_t>{0});
    Array<int32_t> tiles(std::vector<int32_t>{0, 1, 0, 0});
    Array<uint8_t> cache(kv.pageBytes(), 0x7e);
    append.run({keys.data(), values.data(), slots.data(), cache.data()}, {1}, 0, 1);
    attention.run({keys.data(), cache.data(), tiles.data(), pages.data(), out.data()}, {1, 1, 1}, 0,
                  2);
    double error = 0, size = 0;
    for (int64_t i = 0; i < 192; ++i) {
      error += (out[i] - values[i]) * (out[i] - values[i]);
      size += values[i] * values[i];
    }
    EXPECT_LT(error / size, bits == 16 ? 1e-6 : bits == 8 ? 5e-5 : 1.5e-2) << bits << " bits";
  }
}

IZH_FOR_EACH_TARGET(AppendTest);

} // namespace
