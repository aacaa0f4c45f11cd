// One chunk of columns is multiplied while the weights of the next come to
// registers and the records of those behind it to shared memory.

#include "targets/cuda/codegen/PairTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "targets/cuda/codegen/PairSums.h"

namespace izhc::cuda {

using namespace mlir;

static constexpr int64_t kTile = PackedLayout::kTileRows;
static constexpr int64_t kChunk = Spans::kChunk, kRun = 32, kPiece = 16;
static constexpr int64_t kStages = 4; // of records; one is multiplied
static constexpr int64_t kStepBytes = kChunk / kRun * 4;

bool PairTile::takes(pack::WeightType weights, pack::ActType act) {
  return PairDot::supports(weights, act) && Weights::hasByteCodes(weights);
}

static bool hasMinimaOf(pack::WeightType weights) {
  return findFormat(weights.getFormat().getValue())->hasMin;
}

static int64_t stageBytes(const TileShape &shape, bool hasMinima) {
  return shape.records * (kChunk + kStepBytes * (hasMinima ? 2 : 1));
}

int64_t PairTile::sharedBytes(const TileShape &shape, pack::WeightType weights) {
  return kStages * stageBytes(shape, hasMinimaOf(weights));
}

PairTile::PairTile(Block &block, const TileShape &shape, Value shared, pack::WeightType weights,
                   pack::ActType act)
    : block(block), k(block.k), shape(shape), shared(shared),
      dot(block, weights, act, /*oneRecord=*/false), act(act), hasMinima(hasMinimaOf(weights)) {
  assert(shape.rows % (32 * shape.warpsDown) == 0 && shape.records % (16 * shape.warpsAcross) == 0);
}

// The first row and record of the warp.
Value PairTile::firstRow() const {
  return k.mul(k.div(block.warp, shape.warpsAcross), shape.rows / shape.warpsDown);
}
Value PairTile::firstRecord() const {
  return k.mul(k.rem(block.warp, shape.warpsAcross), shape.records / shape.warpsAcross);
}

PairTile::Stage PairTile::stage(Value chunk) const {
  Value at = k.at(shared, k.mul(k.rem(chunk, kStages), stageBytes(shape, hasMinima)));
  Stage stage;
  stage.codes = at;
  stage.steps = k.at(at, shape.records * kChunk);
  stage.sums = k.at(stage.steps, shape.records * kStepBytes);
  return stage;
}

// Where a byte of a record's codes is. Pieces of 16 change places from record to
// record, so that those that lanes read together fall into different banks.
Value PairTile::codesAt(Value codes, Value record, Value byte) const {
  Value pair = k.div(record, 2);
  Value turn = k.add(k.mul(k.rem(pair, 2), 2), k.rem(k.div(pair, 2), 2));
  Value piece = arith::XOrIOp::create(k.builder, k.loc, k.div(byte, kPiece), turn);
  Value inRecord = k.add(k.mul(piece, kPiece), k.rem(byte, kPiece));
  return k.at(codes, k.add(k.mul(record, kChunk), inRecord));
}

PairTile::Values PairTile::fetch(At tileAt, Value chunk) const {
  Values words;
  for (int64_t pair = 0; pair < pairs(); ++pair) {
    Value tile = k.add(k.div(firstRow(), kTile), 2 * pair);
    words.append(dot.fetch(tileAt(k.add(tile, dot.tile())), chunk));
  }
  return words;
}

// Calls body(item, isThere) for the thread's items; isThere is null where all are.
static void forItems(Block &block, int64_t items, llvm::function_ref<void(Value, Value)> body) {
  KernelBuilder &k = block.k;
  for (int64_t first = 0; first < items; first += block.threads) {
    Value item = k.add(block.thread, first), isThere;
    if (first + block.threads > items) {
      isThere = k.less(item, k.constI64(items));
      item = k.select(isThere, item, k.constI64(0));
    }
    body(item, isThere);
  }
}

void PairTile::copyCodes(At recordAt, Value chunk, const Stage &to) const {
  constexpr int64_t pieces = kChunk / kPiece;
  forItems(block, shape.records * pieces, [&](Value item, Value isThere) {
    Value record = k.div(item, pieces), byte = k.mul(k.rem(item, pieces), kPiece);
    Value from = k.at(recordAt(record), pack::ActLayout(act).codes);
    from = k.at(from, k.add(k.mul(chunk, kChunk), byte));
    auto copy = [&] { block.copyAsync(codesAt(to.codes, record, byte), from); };
    if (isThere)
      k.ifThen(isThere, copy);
    else
      copy();
  });
  block.commitCopies();
}

SmallVector<PairTile::Fresh> PairTile::loadSteps(At recordAt, Value chunk) const {
  pack::ActLayout fields(act);
  constexpr int64_t runs = kChunk / kRun;
  SmallVector<Fresh> all;
  forItems(block, shape.records * runs, [&](Value item, Value isThere) {
    Value record = recordAt(k.div(item, runs)), run = k.add(k.mul(chunk, runs), k.rem(item, runs));
    Fresh one = {k.mul(item, 4), isThere, {}, {}};
    auto field = [&](int64_t offset, Value i) { return loadFloat(k, k.at(record, offset), i); };
    Value step;
    if (act.getKind() == pack::ActKind::Block32) {
      one.step = field(fields.scales, run);
    } else {
      // A power of two, its exponent where a float has it.
      Value exponent = k.bitcast(field(fields.exponents, run), k.i32());
      step = field(fields.scales, k.div(run, 256 / kRun));
      one.step = k.mul(step, k.bitcast(k.add(exponent, int64_t(127) << 23), k.f32()));
    }
    // A power of two.
    if (dot.unit() != 1)
      one.step = k.mul(one.step, k.constFloat(k.f32(), dot.unit()));
    if (hasMinima) {
      one.sum = field(fields.sums, run);
      // There the sums are in units of the group's step.
      if (step)
        one.sum = k.mul(one.sum, step);
    }
    all.push_back(one);
  });
  return all;
}

void PairTile::storeSteps(ArrayRef<Fresh> all, const Stage &to) const {
  for (const Fresh &one : all) {
    auto store = [&] {
      k.store(one.step, k.at(to.steps, one.at), 4);
      if (hasMinima)
        k.store(one.sum, k.at(to.sums, one.at), 4);
    };
    if (one.isThere)
      k.ifThen(one.isThere, store);
    else
      store();
  }
}

// Run `run` of the chunk with the warp's records.
void PairTile::multiplyRun(ArrayRef<PairDot::Bytes> weights, int64_t run, const Stage &from,
                           Values &sums) const {
  int64_t part = run * dot.runWeights() / kRun;
  PairSums terms(k, SmallVector<PairDot::Bytes, 2>(weights));
  Value inEight = k.div(block.lane, 4), mine = k.mul(k.rem(block.lane, 4), 2);
  // Of records 2t and 2t + 1 of each eight, t being lane % 4, of this part.
  auto ofRecords = [&](Value table, Value first) -> std::array<Value, 2> {
    Value all = k.load(k.vec(4, k.f32()), k.at(table, k.mul(k.add(first, mine), kStepBytes)), 16);
    return {k.extract(all, part), k.extract(all, part + 2)};
  };
  for (int64_t j = 0; j < across(); ++j) {
    Value first = k.add(firstRecord(), 8 * j);
    std::array<Value, 2> all;
    auto words = loadPieces(
        k, dot, part, [&](Value byte) { return codesAt(from.codes, k.add(first, inEight), byte); });
    if (hasMinima)
      all = ofRecords(from.sums, first);
    terms.add(dot.masked(words, run), ofRecords(from.steps, first), all, j, across(), sums);
  }
}

void PairTile::multiply(ArrayRef<Value> words, Value chunk, const Stage &from, Values &sums) const {
  int64_t each = words.size() / pairs();
  for (int64_t run = 0; run < kChunk / dot.runWeights(); ++run) {
    SmallVector<PairDot::Bytes> weights;
    for (int64_t pair = 0; pair < pairs(); ++pair)
      weights.push_back(dot.bytes(words.slice(pair * each, each), chunk, run));
    multiplyRun(weights, run, from, sums);
  }
}

PairTile::Values PairTile::compute(const Weights &weights, At tileAt, At recordAt,
                                   pack::ActType act) {
  Spans spans = weights.spans();
  int64_t chunks = spans.chunkCount();
  Value one = k.constI64(1), end = k.constI64(chunks), last = k.constI64(chunks - 1);
  auto ahead = [&](Value chunk, int64_t by) { return k.min(k.add(chunk, by), last); };
  SmallVector<SmallVector<Fresh>> first;
  for (int64_t i = 0; i < kStages - 1; ++i) {
    Value chunk = k.constI64(std::min(i, chunks - 1));
    copyCodes(recordAt, chunk, stage(k.constI64(i)));
    first.push_back(loadSteps(recordAt, chunk));
  }
  Values words = fetch(tileAt, k.constI64(0)), zeros(sumCount(), k.zero(k.f32()));
  for (auto [i, steps] : llvm::enumerate(first))
    storeSteps(steps, stage(k.constI64(i)));
  auto oneChunk = [&](Value chunk, ArrayRef<Value> carried) {
    Values sums(carried.begin() + words.size(), carried.end());
    // Before the barrier: assemblers would load later.
    Values next = fetch(tileAt, ahead(chunk, 1));
    SmallVector<Fresh> steps = loadSteps(recordAt, ahead(chunk, kStages - 1));
    block.awaitCopies(kStages - 2);
    block.barrier();
    Stage free = stage(k.add(chunk, kStages - 1));
    copyCodes(recordAt, ahead(chunk, kStages - 1), free);
    multiply(carried.take_front(words.size()), chunk, stage(chunk), sums);
    storeSteps(steps, free);
    next.append(sums.begin(), sums.end());
    return next;
  };
  // Registers for the words of the next chunk become those of this one without moves.
  int64_t turn = spans.chunksEach() % 2 == 0 && chunks % 2 == 0 ? 2 : 1;
  Values init = words;
  init.append(zeros.begin(), zeros.end());
  Values totals = k.loop(k.constI64(0), k.constI64(spans.count()), one, init,
                         [&](Value span, ArrayRef<Value> carried) {
                           Value first = k.mul(span, spans.chunksEach());
                           Values inner(carried.begin(), carried.begin() + words.size());
                           inner.append(zeros.begin(), zeros.end());
                           Value behind = k.min(k.add(first, spans.chunksEach()), end);
                           Values next = k.loop(first, behind, k.constI64(turn), inner,
                                                [&](Value chunk, ArrayRef<Value> carried) {
                                                  Values values(carried.begin(), carried.end());
                                                  for (int64_t i = 0; i < turn; ++i)
                                                    values = oneChunk(k.add(chunk, i), values);
                                                  return values;
                                                });
                           for (size_t i = words.size(); i < next.size(); ++i)
                             next[i] = k.add(carried[i], next[i]);
                           return next;
                         });
  block.awaitCopies(0);
  block.barrier();
  return Values(totals.begin() + words.size(), totals.end());
}

void PairTile::forSums(const Values &sums, bool paired,
                       llvm::function_ref<void(ArrayRef<Sum>)> body) {
  auto sum = [&](int64_t pair, int64_t row, int64_t j, int64_t column) {
    return sums[((pair * PairDot::kRows + row) * across() + j) * 2 + column];
  };
  Value record = k.add(firstRecord(), dot.firstRecord());
  Value isSecond = k.equal(dot.tile(), k.constI64(1));
  for (int64_t pair = 0; pair < pairs(); ++pair) {
    if (!paired) {
      Value row =
          k.add(k.add(firstRow(), 32 * pair), k.add(k.mul(dot.tile(), kTile), dot.firstRow()));
      SmallVector<Sum> some;
      for (int64_t j = 0; j < across(); ++j)
        for (int64_t i = 0; i < PairDot::kRows; ++i)
          for (int64_t column = 0; column < 2; ++column)
            some.push_back(
                {k.add(row, i), k.add(record, 8 * j + column), sum(pair, i, j, column), {}});
      body(some);
      continue;
    }
    // The lane 16 away has the same rows of the other matrix: each takes every
    // other eight records.
    Value row = k.add(k.add(k.div(firstRow(), 2), 16 * pair), dot.firstRow());
    Value mine = k.add(record, k.mul(dot.tile(), 8));
    SmallVector<Sum> some;
    for (int64_t j = 0; j < across(); j += 2)
      for (int64_t i = 0; i < PairDot::kRows; ++i)
        for (int64_t column = 0; column < 2; ++column) {
          Value even = sum(pair, i, j, column), odd = sum(pair, i, j + 1, column);
          Value kept = k.select(isSecond, odd, even);
          Value got = block.exchange(k.select(isSecond, even, odd), 16);
          some.push_back({k.add(row, i), k.add(mine, 8 * j + column), k.select(isSecond, got, kept),
                          k.select(isSecond, kept, got)});
        }
    body(some);
  }
}

} // namespace izhc::cuda
