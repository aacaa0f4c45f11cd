#include "targets/cuda/codegen/PairSplit.h"
#include "targets/cuda/codegen/PairSums.h"

namespace izhc::cuda {

using namespace mlir;

static constexpr int64_t kTile = PackedLayout::kTileRows;
static constexpr int64_t kChunk = Spans::kChunk, kRun = 32, kRuns = kChunk / kRun;

// Floats from one record to the next in a slot: so that lanes that write four each
// fall into different banks.
static int64_t lineOf(const TileShape &shape) { return shape.rows + 4; }

int64_t PairSplit::sharedBytes(const TileShape &shape) {
  return 4 * shape.split * shape.records * lineOf(shape);
}

PairSplit::PairSplit(Block &block, const TileShape &shape, Value shared, pack::WeightType weights,
                     pack::ActType act)
    : block(block), k(block.k), shape(shape), shared(shared),
      dot(block, weights, act, /*oneRecord=*/false), act(act),
      hasMinima(findFormat(weights.getFormat().getValue())->hasMin) {
  assert(shape.rows == 32 * shape.warpsDown && shape.warpsAcross == 1);
  assert(items() * shape.threads() == shape.rows / 2 * shape.records);
}

Value PairSplit::slotAt(Value slot, Value record, Value row) const {
  Value line = k.mul(k.add(k.mul(slot, shape.records), record), lineOf(shape));
  return k.at(shared, k.mul(k.add(line, row), 4));
}

PairSplit::Item PairSplit::item(int64_t number) const {
  Value i = k.add(block.thread, number * shape.threads()), line = k.div(i, kTile);
  Value pair = k.div(line, shape.records);
  return {k.add(k.rem(i, kTile), k.mul(pair, 2 * kTile)), k.rem(line, shape.records)};
}

void PairSplit::addChunk(ArrayRef<Value> words, Value chunk, ArrayRef<Value> mine,
                         ArrayRef<Value> others, Values &sums) const {
  pack::ActLayout fields(act);
  SmallVector<std::array<std::array<Value, 2>, kRuns>> codes;
  SmallVector<ChunkScales> scales;
  for (Value record : mine) {
    codes.emplace_back();
    for (int64_t run = 0; run < kRuns; ++run)
      codes.back()[run] = loadPieces(k, dot, run, [&](Value byte) {
        return k.at(k.at(record, fields.codes), k.add(k.mul(chunk, kChunk), byte));
      });
  }
  for (Value record : others)
    scales.push_back(loadScales(k, act, hasMinima, dot.unit(), record, chunk));
  for (int64_t run = 0; run < kChunk / dot.runWeights(); ++run) {
    int64_t part = run * dot.runWeights() / kRun;
    PairSums pair(k, {dot.bytes(words, chunk, run)});
    for (int64_t j = 0; j < across(); ++j) {
      const ChunkScales &first = scales[2 * j], &second = scales[2 * j + 1];
      pair.add(dot.masked(codes[j][part], run), {first.steps[part], second.steps[part]},
               {first.sums[part], second.sums[part]}, j, across(), sums);
    }
  }
}

PairSplit::Values PairSplit::sumSpan(Value tile, Value span, const Spans &spans,
                                     At recordAt) const {
  Value end = k.constI64(spans.chunkCount()), last = k.add(end, -1);
  Value first = k.min(k.mul(span, spans.chunksEach()), end);
  Value behind = k.min(k.add(first, spans.chunksEach()), end);
  Values mine, others;
  for (int64_t j = 0; j < across(); ++j) {
    mine.push_back(recordAt(k.add(k.div(block.lane, 4), 8 * j)));
    for (int64_t column = 0; column < 2; ++column)
      others.push_back(recordAt(k.add(dot.firstRecord(), 8 * j + column)));
  }
  Values carried = dot.fetch(tile, k.min(first, last));
  size_t count = carried.size();
  carried.append(PairDot::kRows * across() * 2, k.zero(k.f32()));
  carried = k.loop(first, behind, k.constI64(1), carried, [&](Value chunk, ArrayRef<Value> from) {
    Values next = dot.fetch(tile, k.min(k.add(chunk, 1), last));
    // Assemblers move loads to where they are used, but not across this.
    block.awaitInputs();
    Values sums(from.begin() + count, from.end());
    addChunk(from.take_front(count), chunk, mine, others, sums);
    next.append(sums.begin(), sums.end());
    return next;
  });
  return Values(carried.begin() + count, carried.end());
}

void PairSplit::keep(const Values &sums, Value slot, Value pair) const {
  Value row = k.add(k.mul(pair, 2 * kTile), k.add(k.mul(dot.tile(), kTile), dot.firstRow()));
  for (int64_t j = 0; j < across(); ++j)
    for (int64_t column = 0; column < 2; ++column) {
      Value four = k.zero(k.vec(PairDot::kRows, k.f32()));
      for (int64_t i = 0; i < PairDot::kRows; ++i)
        four = k.insert(sums[(i * across() + j) * 2 + column], four, i);
      k.store(four, slotAt(slot, k.add(dot.firstRecord(), 8 * j + column), row), 16);
    }
}

// Those of the spans from `firstSpan` on, in their order.
PairSplit::Values PairSplit::addSlots(const Values &totals, Value firstSpan, int64_t spans) const {
  Values sums = totals;
  for (int64_t i = 0; i < items(); ++i) {
    Item mine = item(i);
    for (int64_t slot = 0; slot < shape.split; ++slot) {
      Value isSpan;
      if (spans % shape.split)
        isSpan = k.less(k.add(firstSpan, slot), k.constI64(spans));
      for (int64_t tile = 0; tile < 2; ++tile) {
        Value at = slotAt(k.constI64(slot), mine.record, k.add(mine.row, tile * kTile));
        Value &sum = sums[2 * i + tile], more = k.add(sum, k.load(k.f32(), at, 4));
        sum = isSpan ? k.select(isSpan, more, sum) : more;
      }
    }
  }
  return sums;
}

PairSplit::Values PairSplit::compute(const Weights &weights, At tileAt, At recordAt,
                                     pack::ActType act) {
  Spans spans = weights.spans();
  Value pair = k.div(block.warp, shape.split), slot = k.rem(block.warp, shape.split);
  Value tile = tileAt(k.add(k.mul(pair, 2), dot.tile()));
  Values zeros(2 * items(), k.zero(k.f32()));
  return k.loop(k.constI64(0), k.constI64(spans.count()), k.constI64(shape.split), zeros,
                [&](Value first, ArrayRef<Value> totals) {
                  keep(sumSpan(tile, k.add(first, slot), spans, recordAt), slot, pair);
                  block.barrier();
                  Values next =
                      addSlots(Values(totals.begin(), totals.end()), first, spans.count());
                  block.barrier();
                  return next;
                });
}

void PairSplit::forSums(const Values &sums, bool paired,
                        llvm::function_ref<void(ArrayRef<Sum>)> body) {
  SmallVector<Sum> all;
  for (int64_t i = 0; i < items(); ++i) {
    Item mine = item(i);
    Value first = sums[2 * i], second = sums[2 * i + 1];
    if (paired) {
      Value row = k.add(k.mul(k.div(mine.row, 2 * kTile), kTile), k.rem(mine.row, kTile));
      all.push_back({row, mine.record, first, second});
    } else {
      all.push_back({mine.row, mine.record, first, {}});
      all.push_back({k.add(mine.row, kTile), mine.record, second, {}});
    }
  }
  body(all);
}

} // namespace izhc::cuda
