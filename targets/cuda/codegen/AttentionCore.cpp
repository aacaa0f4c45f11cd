#include "targets/cuda/codegen/AttentionCore.h"
#include "targets/cuda/codegen/AttentionSums.h"
#include "targets/cuda/codegen/TensorCore.h"
#include <cmath>

namespace izhc::cuda {

using namespace mlir;
using pack::KvLayout;

// A word is two values, a row of a panel 16 words, of which a lane reads four.
static constexpr int64_t kRowUnits = KvLayout::kLanes / 4;
// Rows of words that a matrix instruction takes.
static constexpr int64_t kWordRows = 8;

bool AttentionCore::takes(pack::AttentionOp op) {
  auto type = cast<pack::KvType>(op.getCache().getType());
  KvLayout layout(type);
  int64_t dim = type.getDim(), valueDim = type.getValueDim();
  return layout.bits == 16 && !type.isTurned() && layout.page % kGroup == 0 && dim % 16 == 0 &&
         valueDim % 16 == 0 && dim <= kMostDim && valueDim <= kMostDim;
}

AttentionCore::AttentionCore(Block &block, pack::AttentionOp op)
    : block(block), k(block.k), op(op), cache(block, cast<pack::KvType>(op.getCache().getType())),
      dim(cache.type.getDim()), valueDim(cache.type.getValueDim()), chunks(dim / 16),
      panels(valueDim / 16), terms(op.getExact() ? 2 : 1), row(k.div(block.lane, 4)),
      fourth(k.rem(block.lane, 4)) {
  static_assert(KvLayout::kSpan % kGroup == 0);
}

// The largest value becomes 2^9 to 2^10: products with keys stay finite, and the second
// term of values a thousandth of it has its bits. Of zeros and numbers next to it a
// float's exponent is kept in its range.
std::pair<Value, Value> AttentionCore::factorsOf(Value most) {
  constexpr int64_t kExponent = 0x7F800000, kShift = 23, kLeast = 20, kTarget = 9, kBias = 127;
  Value exponent = k.andBits(k.bitcast(most, k.i32()), kExponent);
  exponent = k.max(exponent, k.constInt(k.i32(), kLeast << kShift));
  Value factor = k.sub(k.constInt(k.i32(), (2 * kBias + kTarget) << kShift), exponent);
  return {k.bitcast(factor, k.f32()), k.bitcast(k.add(exponent, -(kTarget << kShift)), k.f32())};
}

Block::Values AttentionCore::split(Value low, Value high) {
  Values words = {packHalves(k, low, high)};
  if (terms == 2) {
    auto [a, b] = unpackHalves(k, words[0]);
    words.push_back(packHalves(k, k.sub(low, a), k.sub(high, b)));
  }
  return words;
}

Value AttentionCore::stageQuery(Value stage, Value number,
                                llvm::function_ref<std::pair<Value, Value>(Value)> read) {
  SmallVector<std::pair<Value, Value>> pairs;
  Value most = k.zero(k.f32());
  for (int64_t first = 0; first < dim / 2; first += kWarp) {
    pairs.push_back(read(k.min(k.add(block.lane, first), k.constI64(dim / 2 - 1))));
    auto [a, b] = pairs.back();
    most = k.max(most, k.max(k.abs(a), k.abs(b)));
  }
  auto [factor, inverse] = factorsOf(block.warpMax(most));
  Value inRow = k.mul(k.rem(number, 8), 4), lower = k.div(number, 8);
  for (auto [turn, pair] : llvm::enumerate(pairs)) {
    Value i = k.add(block.lane, int64_t(turn) * kWarp);
    Value lane = k.add(inRow, k.rem(i, 4)), word = k.add(lower, k.mul(k.rem(k.div(i, 4), 2), 2));
    Value at = k.add(k.mul(k.add(k.mul(k.div(i, kWordRows), kWarp), lane), 16), k.mul(word, 4));
    Values words = split(k.mul(pair.first, factor), k.mul(pair.second, factor));
    auto store = [&] {
      for (auto [term, value] : llvm::enumerate(words))
        k.store(value, k.at(k.at(stage, at), int64_t(term) * chunks * 16 * kWarp), 4);
    };
    if ((int64_t(turn) + 1) * kWarp <= dim / 2)
      store();
    else
      k.ifThen(k.less(i, k.constI64(dim / 2)), store);
  }
  return inverse;
}

Block::Values loadWords(KernelBuilder &k, Value address, int64_t count) {
  Value vector = k.load(k.vec(count, k.i32()), address, 4 * count);
  Block::Values words;
  for (int64_t i = 0; i < count; ++i)
    words.push_back(k.extract(vector, i));
  return words;
}

Block::Values AttentionCore::stagedWords(Value stage, int64_t term, int64_t chunk) {
  Value mine = k.at(stage, k.mul(block.lane, 16));
  return loadWords(k, k.at(mine, (term * chunks + chunk) * 16 * kWarp), 4);
}

Value AttentionCore::keyOfLane() {
  return k.add(k.mul(k.rem(row, 2), KvLayout::kLanes), k.mul(k.div(row, 2), 4));
}

Value AttentionCore::keyOf(int64_t i, int64_t odd) {
  return k.add(k.truncate(k.mul(fourth, 4), k.i32()), i + odd * KvLayout::kLanes);
}

Block::Values AttentionCore::scores(QueryWords queries, KeyWords keys, ArrayRef<Value> inverses) {
  Values sums(kKeys / 2, k.zero(k.f32()));
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    Values first = keys(chunk, 0), second = keys(chunk, 1);
    for (int64_t term = 0; term < terms; ++term) {
      Values words = queries(term, chunk);
      for (int64_t i = 0; i < 4; ++i) {
        auto four = MutableArrayRef(sums).slice(4 * i, 4);
        llvm::copy(multiplyHalves(k, words, {first[i], second[i]}, four), four.begin());
      }
    }
  }
  for (auto [number, score] : llvm::enumerate(sums)) {
    score = k.mul(score, inverses[number % 4 / 2]);
    score = k.mul(score, k.constFloat(k.f32(), op.getScale().convertToFloat()));
    score = k.softcap(score, op.getSoftcap().convertToFloat());
  }
  return sums;
}

// Two rows of a panel are as wide as all banks: rows that lanes read together differ in
// which of their units is where.
Value AttentionCore::placeOf(Value unit) {
  Value pairs = k.andBits(k.div(unit, 2 * kRowUnits), 3);
  return k.xorBits(unit, k.mul(pairs, 2));
}

Value AttentionCore::keyPlace(Value unit, Value panel) {
  return k.add(k.mul(panel, keyPanelBytes()),
               k.mul(k.xorBits(placeOf(unit), k.andBits(panel, 1)), 16));
}

Block::Values AttentionCore::sharedKeys(Value keys, int64_t number, int64_t chunk, int64_t half) {
  // A chunk's rows are a multiple of what placeOf looks at.
  static_assert(kWordRows % 8 == 0);
  Value panel = k.rem(row, 2);
  Value unit =
      k.add(k.add(k.mul(fourth, kRowUnits), half * kWordRows / 2 * kRowUnits), k.div(row, 2));
  int64_t fixed = number * 2 * keyPanelBytes() + chunk * kWordRows * kRowUnits * 16;
  return loadWords(k, k.at(k.at(keys, keyPlace(unit, panel)), fixed), 4);
}

std::pair<Block::Values, Block::Values> AttentionCore::sharedValues(Value values, Value step,
                                                                    Value panel) {
  Value base = k.at(values, k.mul(k.add(k.mul(step, panels), panel), kStepPanelBytes));
  auto read = [&](int64_t odd) {
    Value unit = k.add(k.add(k.mul(fourth, 2 * kRowUnits), odd * kRowUnits), k.div(row, 2));
    Value at = k.add(k.mul(placeOf(unit), 16), k.mul(k.rem(row, 2), 8));
    return loadWords(k, k.at(base, at), 2);
  };
  Values first = read(0), second = read(1);
  return {{first[0], second[0]}, {first[1], second[1]}};
}

Value AttentionCore::overQuery(Value value) {
  for (int64_t mask : {2, 1})
    value = k.max(value, block.exchange(value, mask));
  return value;
}

Value AttentionCore::maskOf(Value isFirst, Value isSecond) {
  Value zero = k.zero(k.i32());
  return k.orBits(k.select(isFirst, k.constInt(k.i32(), 0xFFFF), zero),
                  k.select(isSecond, k.constInt(k.i32(), -0x10000), zero));
}

Value AttentionCore::exp(Value x) {
  return exp2Fast(k, k.mul(x, k.constFloat(k.f32(), 1 / std::log(2.0))));
}

// So that small weights keep the bits of their second term.
double AttentionCore::weightUnit() const { return terms == 2 ? 0x1p-10 : 1; }

Value AttentionCore::weightOf(Value score, Value most, Value seen) {
  Value weight = exp(k.sub(score, most));
  if (terms == 2)
    weight = k.mul(weight, k.constFloat(k.f32(), 1 / weightUnit()));
  return k.select(seen, weight, k.zero(k.f32()));
}

SmallVector<Block::Values> AttentionCore::weightWords(ArrayRef<Value> weights, int64_t step) {
  SmallVector<Values> all(terms);
  for (int64_t pair = 0; pair < 2; ++pair)
    for (int64_t lower = 0; lower < 2; ++lower) {
      int64_t from = 8 * pair + 2 * lower + step;
      for (auto [term, word] : llvm::enumerate(split(weights[from], weights[from + 4])))
        all[term].push_back(word);
    }
  return all;
}

Value AttentionCore::columnOf(Value panel, int64_t tile, int64_t odd) {
  return k.add(k.add(k.mul(panel, 16), k.mul(fourth, 4)), 2 * odd + tile % 2);
}

void AttentionCore::addStep(ArrayRef<Values> weights, llvm::function_ref<Values(int64_t)> values,
                            Values &sums) {
  Value ones = k.constInt(k.i32(), 0x3C003C00);
  int64_t tiles = int64_t(sums.size()) / 4;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    Values right = tile + 1 < tiles ? values(tile) : Values{ones, ones};
    auto four = MutableArrayRef(sums).slice(4 * tile, 4);
    for (const Values &words : weights)
      llvm::copy(multiplyHalves(k, words, right, four), four.begin());
  }
}

void AttentionCore::scaleSums(ArrayRef<Value> factors, Values &sums) {
  for (auto [number, sum] : llvm::enumerate(sums))
    sum = k.mul(sum, factors[number % 4 / 2]);
}

} // namespace izhc::cuda
