// Lane l = 4 g + t has run g of the activations, and gets products of runs 2 t and
// 2 t + 1 for its rows.

#include "targets/cuda/codegen/RowDot.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "targets/cuda/codegen/TensorCore.h"

namespace izhc::cuda {

using namespace mlir;

static constexpr int64_t kChunk = Spans::kChunk, kRun = 32;

static PackedLayout layoutOf(pack::WeightType type) {
  return PackedLayout(*findFormat(type.getFormat().getValue()));
}

bool RowDot::isWholeUnit(pack::WeightType type) {
  return layoutOf(type).unitWeights == kStageChunks * kChunk;
}

int64_t RowDot::unitBytes(pack::WeightType type) { return layoutOf(type).unitBytes; }

int64_t RowDot::stageBytes(pack::WeightType type, int64_t present) {
  return isWholeUnit(type) ? unitBytes(type) : present * unitBytes(type);
}

RowDot::RowDot(Block &block, pack::WeightType type, pack::ActType act, int64_t present)
    : PairDot(block, type, act, /*oneRecord=*/true),
      present(isWholeUnit(type) ? kStageChunks : present) {}

Value RowDot::counts(const Stage &stage, Value chunk) const {
  if (!stage.from)
    return {};
  return k.andBits(k.lessEqual(stage.from, chunk), k.less(chunk, stage.to));
}

// A run of the row's number, or the last where there is none of that number.
Value RowDot::clamped(const Stage &stage, Value run, int64_t last) const {
  return stage.from ? k.min(run, k.constI64((last + 1) * perChunk() - 1)) : run;
}

RowDot::Values RowDot::activations(const Stage &stage, int64_t base, Value record,
                                   int64_t last) const {
  pack::ActLayout fields(actType);
  Value chunk = k.add(k.div(group, perChunk()), base), inRow = k.add(stage.first, chunk);
  if (stage.from)
    inRow = k.min(inRow, k.constI64(last));
  Value run = k.div(k.mul(k.rem(group, perChunk()), runWeights()), kRun);
  Value first = k.add(k.add(k.mul(inRow, kChunk), k.mul(run, kRun)), k.mul(place, wordWeights));
  Value at = k.at(k.at(record, fields.codes), first), zero = k.zero(k.i32());
  Values bytes;
  for (int64_t i = 0; i < 2; ++i)
    bytes.push_back(wordWeights == 8 ? Value() : k.load(k.i32(), k.at(at, i * kRun / 2), 4));
  if (wordWeights == 8) {
    Value both = k.load(k.vec(2, k.i32()), at, 8);
    bytes = {k.extract(both, 0), k.extract(both, 1)};
  }
  // Where runs have 16 columns, one of the two halves.
  if (runWeights() == 16) {
    Value half = k.rem(group, 2);
    for (int64_t i = 0; i < 2; ++i) {
      Value here = wordWeights == 8 ? k.equal(k.div(place, 2), half) : k.equal(half, k.constI64(i));
      bytes[i] = k.select(here, bytes[i], zero);
    }
  }
  if (Value there = counts(stage, chunk))
    for (Value &one : bytes)
      one = k.select(there, one, zero);
  return bytes;
}

RowDot::Values RowDot::starts(const Stage &stage, int64_t base, Value lanesChunk, Value record,
                              int64_t last) const {
  Value number = k.add(k.mul(k.add(stage.first, base), perChunk()), k.mul(place, 2));
  Values result;
  for (int64_t i = 0; i < 2; ++i) {
    Value start = act(record, clamped(stage, k.add(number, i), last), {}).start;
    if (Value there = counts(stage, lanesChunk))
      start = k.select(there, start, k.zero(k.i32()));
    result.push_back(start);
  }
  return result;
}

RowDot::Words RowDot::run32(const Stage &stage, int64_t chunk, int64_t run) const {
  int64_t chunks = layout.unitWeights / kChunk;
  Value unit = k.at(stage.address, chunk / chunks * layout.unitBytes);
  auto reader = [&](Value offset, int64_t words) {
    Value vector = k.load(k.vec(words, k.i32()), k.at(unit, offset), 4 * words);
    Values found;
    for (int64_t i = 0; i < words; ++i)
      found.push_back(k.extract(vector, i));
    return found;
  };
  Value inUnit = k.constI64(chunk % chunks);
  Values first = readPlanes(inUnit, run * kRun, reader), next = first;
  if (wordWeights == 4)
    next = readPlanes(inUnit, run * kRun + kRun / 2, reader);
  Words words;
  for (const Values &one : {first, next}) {
    words.groups.emplace_back();
    for (size_t p = 0; p < layout.planes.size(); ++p)
      words.groups.back().emplace_back(one.begin() + kRows * p, one.begin() + kRows * (p + 1));
  }
  return words;
}

RowDot::Words RowDot::scalesOf(const Stage &stage, Value lanesChunk) const {
  int64_t chunks = layout.unitWeights / kChunk;
  Value chunk = k.min(lanesChunk, k.constI64(present - 1));
  Value unit = k.at(stage.address, k.mul(k.div(chunk, chunks), layout.unitBytes));
  Words words;
  readScales(words, k.rem(chunk, chunks), [&](Value offset, int64_t count) {
    Value vector = k.load(k.vec(count, k.i32()), k.at(unit, offset), 4 * count);
    Values found;
    for (int64_t i = 0; i < count; ++i)
      found.push_back(k.extract(vector, i));
    return found;
  });
  // Of four runs of a chunk, the lane has the first two or the others.
  if (runWeights() == 16) {
    Value by = k.truncate(k.mul(k.rem(place, 2), 16), k.i32());
    for (Values *subs : {&words.subs, &words.subsHigh})
      for (Value &word : *subs)
        word = shifted(word, by);
  }
  return words;
}

RowDot::Values RowDot::transpose(ArrayRef<Value> values, Value exchange) const {
  Value row = k.add(k.mul(tile(), PackedLayout::kTileRows), firstRow());
  Value to = k.at(k.at(exchange, k.mul(row, 4 * kLine)), k.mul(place, 8));
  for (int64_t i = 0; i < kRows; ++i) {
    Value pair = k.insert(values[2 * i], k.zero(k.vec(2, k.f32())), 0);
    k.store(k.insert(values[2 * i + 1], pair, 1), k.at(to, 4 * kLine * i), 8);
  }
  block.syncWarp();
  Values mine;
  Value from = k.at(exchange, k.mul(block.lane, 4 * kLine));
  for (int64_t i = 0; i < kRuns; i += 4) {
    Value four = k.load(k.vec(4, k.f32()), k.at(from, 4 * i), 16);
    for (int64_t j = 0; j < 4; ++j)
      mine.push_back(k.extract(four, j));
  }
  block.syncWarp();
  return mine;
}

Value RowDot::addGroup(const Stage &stage, int64_t base, Value record, int64_t last,
                       Value exchange, Value sum) const {
  Values bytes = activations(stage, base, record, last);
  Value lanesChunk = k.add(k.div(k.mul(place, 2), perChunk()), base), zero = k.zero(k.i32());
  Values start = starts(stage, base, lanesChunk, record, last);
  Values products[2];
  for (Values &one : products)
    one = {start[0], start[1], start[0], start[1]};
  int64_t here = std::min(groupChunks(), present - base);
  for (int64_t number = 0; number < here * kChunk / kRun; ++number) {
    Words words = run32(stage, base + number / 2, number % 2);
    Value mine = k.equal(k.div(k.mul(group, runWeights()), kRun), k.constI64(number));
    Value right[] = {k.select(mine, bytes[0], zero), k.select(mine, bytes[1], zero)};
    for (int64_t row = 0; row < kRows; row += 2) {
      Value left[] = {codes(words, 0, row), codes(words, 0, row + 1), codes(words, 1, row),
                      codes(words, 1, row + 1)};
      products[row / 2] = multiplyBytes(k, kRun, left, right, products[row / 2]);
    }
  }
  Words words = scalesOf(stage, lanesChunk);
  Value there = counts(stage, lanesChunk), none = k.zero(k.f32());
  // Scales of what isn't there may be no numbers.
  auto onlyThere = [&](Value value) { return there ? k.select(there, value, none) : value; };
  Value inUnit = k.rem(lanesChunk, layout.unitWeights / kChunk);
  Values scaled, mins;
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t run = 0; run < 2; ++run) {
      Value product = k.intToFloat(products[row / 2][row % 2 * 2 + run]);
      scaled.push_back(onlyThere(k.mul(factor(words, inUnit, run, row), product)));
      if (format.hasMin)
        mins.push_back(onlyThere(minimum(words, inUnit, run, row)));
    }
  scaled = transpose(scaled, exchange);
  if (format.hasMin)
    mins = transpose(mins, exchange);
  Value first = k.mul(k.add(stage.first, base), perChunk());
  for (int64_t run = 0; run < here * perChunk(); ++run) {
    Act one = act(record, clamped(stage, k.add(first, run), last), {});
    sum = k.mulAdd(scaled[run], one.scale, sum);
    if (format.hasMin)
      sum = k.mulAdd(mins[run], one.sum, sum);
  }
  return sum;
}

Value RowDot::add(const Stage &stage, Value record, int64_t last, Value exchange,
                  Value sum) const {
  for (int64_t base = 0; base < present; base += groupChunks())
    sum = addGroup(stage, base, record, last, exchange, sum);
  return sum;
}

} // namespace izhc::cuda
