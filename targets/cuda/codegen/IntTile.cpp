// One step of columns is multiplied from one half of the shared memory while
// the next is brought to the other.

#include "targets/cuda/codegen/IntTile.h"
#include "targets/cuda/codegen/EarlyLoads.h"
#include "targets/cuda/codegen/TensorCore.h"

namespace izhc::cuda {

using namespace mlir;

static constexpr int64_t kTile = PackedLayout::kTileRows;
static constexpr int64_t kPart = 32;  // columns of a row that a thread decodes
static constexpr int64_t kPiece = 16; // bytes of a record that a thread copies

// kFloats + n for an integer |n| < 2^22 is the float whose bits are those of
// kFloats plus n: sums of products that begin with kFloatBits need no conversion.
// A weight's factor w has at most 19 significant bits (a float16's times those
// of a sub-scale), so kFloats * w is exact, and fma(kFloats + n, w, -kFloats * w)
// rounds as the product w * n does.
static constexpr double kFloats = 0x1.8p23;
static constexpr int64_t kFloatBits = 0x4B400000;

// Addresses in shared memory: codes row by row, the rest run by run.
struct IntTile::Stage {
  Value weights, records; // bytes
  Value factors;          // w of Spans.h and -kFloats * w, of rows
  Value minima;           // m, of rows
  Value steps, sums;      // a and s, of records
};

static int64_t stageBytes(const TileShape &shape) {
  int64_t rows = shape.rows + shape.records;
  return rows * (shape.columns + kPiece) + shape.columns / 16 * 4 * 3 * shape.rows +
         shape.columns / 32 * 4 * shape.records + shape.columns / 16 * 4 * shape.records;
}

int64_t IntTile::sharedBytes(const TileShape &shape) { return 2 * stageBytes(shape); }

bool IntTile::takes(pack::WeightType weights, pack::ActType act) {
  return Weights::hasByteCodes(weights) && act.getKind() != pack::ActKind::F32;
}

IntTile::Stage IntTile::stage(Value number) const {
  Value at = k.at(shared, k.mul(number, stageBytes(shape)));
  auto next = [&](int64_t bytes) {
    Value here = at;
    at = k.at(at, bytes);
    return here;
  };
  int64_t runs = shape.columns / 16;
  Stage stage;
  stage.weights = next(shape.rows * codeStride());
  stage.records = next(shape.records * codeStride());
  stage.factors = next(8 * runs * shape.rows);
  stage.minima = next(4 * runs * shape.rows);
  stage.steps = next(4 * runs / 2 * shape.records);
  stage.sums = next(4 * runs * shape.records);
  return stage;
}

// The first row and record of the warp.
Value IntTile::firstRow() const {
  return k.mul(k.div(block.warp, shape.warpsAcross), shape.rows / shape.warpsDown);
}
Value IntTile::firstRecord() const {
  return k.mul(k.rem(block.warp, shape.warpsAcross), shape.records / shape.warpsAcross);
}

// A thread decodes 32 columns of a row: neighbours have neighbouring rows.
void IntTile::fillWeights(const Weights &weights, llvm::function_ref<Value(Value)> tileAt,
                          Value step, const Stage &to) {
  int64_t parts = shape.columns / kPart, items = parts * shape.rows;
  int64_t runsEach = kPart / weights.runWeights();
  assert(items % block.threads == 0);
  for (int64_t first = 0; first < items; first += block.threads) {
    Value item = k.add(block.thread, first);
    Value row = k.rem(item, shape.rows), part = k.div(item, shape.rows);
    Value tile = tileAt(k.div(row, kTile)), inTile = k.rem(row, kTile);
    Value codes = k.at(to.weights, k.add(k.mul(row, codeStride()), k.mul(part, kPart)));
    for (int64_t i = 0; i < runsEach; ++i) {
      Value inStep = k.add(k.mul(part, runsEach), i);
      Value index = k.add(k.mul(step, parts * runsEach), inStep);
      Weights::Bytes run = weights.bytes(tile, inTile, index);
      for (size_t word = 0; word < run.codes.size(); word += 4) {
        Value four = k.zero(k.vec(4, k.i32()));
        for (int64_t j = 0; j < 4; ++j)
          four = k.insert(run.codes[word + j], four, j);
        k.store(four, k.at(codes, i * weights.runWeights() + 4 * int64_t(word)), 16);
      }
      Value place = k.add(k.mul(inStep, shape.rows), row);
      Value both = k.insert(run.factor, k.zero(k.vec(2, k.f32())), 0);
      both = k.insert(k.mul(run.factor, k.constFloat(k.f32(), -kFloats)), both, 1);
      k.store(both, k.at(to.factors, k.mul(place, 8)), 8);
      if (run.minimum)
        storeFloat(k, run.minimum, to.minima, place);
    }
  }
}

// A thread copies 16 columns of a record.
void IntTile::fillRecords(const Weights &weights, llvm::function_ref<Value(Value)> recordAt,
                          pack::ActType act, Value step, const Stage &to) {
  int64_t items = shape.columns / kPiece * shape.records;
  assert(items % kWarp == 0);
  for (int64_t first = 0; first < items; first += block.threads) {
    Value item = k.add(block.thread, first), isThere;
    if (first + block.threads > items) {
      isThere = k.less(item, k.constI64(items));
      item = k.select(isThere, item, k.constI64(0));
    }
    copyPiece(weights, recordAt, act, step, item, isThere, to);
  }
}

// Piece `item` of the records of the step; stored if `isThere` (null: it is).
void IntTile::copyPiece(const Weights &weights, llvm::function_ref<Value(Value)> recordAt,
                        pack::ActType act, Value step, Value item, Value isThere, const Stage &to) {
  int64_t pieces = shape.columns / kPiece;
  Value number = k.div(item, pieces), piece = k.rem(item, pieces);
  Value record = recordAt(number);
  Value column = k.add(k.mul(step, shape.columns), k.mul(piece, kPiece));
  Value codes = k.at(k.at(record, pack::ActLayout(act).codes), column);
  Value four = k.load(k.vec(4, k.i32()), codes, 16);
  Value scale = weights.actScale(record, column, act), scaled;
  bool together = weights.runWeights() == kPart;
  if (weights.hasMinima()) {
    Value sum = k.zero(k.i32()), ones = k.constInt(k.i32(), 0x01010101);
    for (int64_t j = 0; j < 4; ++j)
      sum = block.dot4(sum, ones, k.extract(four, j), /*signedCodes=*/true);
    if (together)
      sum = k.add(sum, block.exchange(sum, 1));
    scaled = k.mul(k.intToFloat(sum), scale);
  }
  auto store = [&] {
    k.store(four, k.at(to.records, k.add(k.mul(number, codeStride()), k.mul(piece, kPiece))), 16);
    if (scaled && !together)
      storeFloat(k, scaled, to.sums, k.add(k.mul(piece, shape.records), number));
    k.ifThen(k.equal(k.rem(piece, 2), k.constI64(0)), [&] {
      Value place = k.add(k.mul(k.div(piece, 2), shape.records), number);
      storeFloat(k, scale, to.steps, place);
      if (scaled && together)
        storeFloat(k, scaled, to.sums, place);
    });
  };
  if (isThere)
    k.ifThen(isThere, store);
  else
    store();
}

// Columns 32 * part and following of the step.
void IntTile::multiply(const Weights &weights, const Stage &from, int64_t part, Values &sums) {
  int64_t depth = weights.runWeights(), runs = kPart / depth;
  // Of four matrices, lanes give rows 0..7, 8..15, and these again 16 bytes on
  // for weights; 0..7 twice, then 8..15 twice for records.
  auto matrices = [&](Value codes, Value firstRow, Value inTile, Value piece) {
    Value row = k.add(firstRow, inTile);
    Value column = k.add(k.mul(piece, kPiece), part * kPart);
    return loadMatrices(k, k.at(codes, k.add(k.mul(row, codeStride()), column)));
  };
  Value lane = block.lane, eighth = k.rem(lane, 8);
  SmallVector<Values> a, b;
  for (int64_t i = 0; i < down(); ++i)
    a.push_back(
        matrices(from.weights, k.add(firstRow(), 16 * i), k.rem(lane, 16), k.div(lane, 16)));
  for (int64_t j = 0; j < across(); j += 2) {
    Values two = matrices(from.records, k.add(firstRecord(), 8 * j),
                          k.add(k.mul(k.div(lane, 16), 8), eighth), k.rem(k.div(lane, 8), 2));
    b.push_back({two[0], two[1]});
    b.push_back({two[2], two[3]});
  }
  Value row = k.add(firstRow(), k.div(lane, 4));
  Value record = k.add(firstRecord(), k.mul(k.rem(lane, 4), 2));
  Values start(4, k.constInt(k.i32(), kFloatBits));
  for (int64_t run = 0; run < runs; ++run) {
    int64_t number = part * runs + run;
    auto ofRow = [&](int64_t more) { return k.add(row, number * shape.rows + more); };
    auto factorOf = [&](int64_t more) {
      return k.load(k.vec(2, k.f32()), k.at(from.factors, k.mul(ofRow(more), 8)), 8);
    };
    auto ofRecords = [&](Value table, int64_t index, int64_t more) {
      Value at = k.add(record, index * shape.records + more);
      return k.load(k.vec(2, k.f32()), k.at(table, k.mul(at, 4)), 8);
    };
    for (int64_t j = 0; j < across(); ++j) {
      Value steps = ofRecords(from.steps, part, 8 * j), all;
      if (weights.hasMinima())
        all = ofRecords(from.sums, number, 8 * j);
      for (int64_t i = 0; i < down(); ++i) {
        Values left(a[i]), right(b[j]);
        if (depth == kPart / 2) {
          left = {a[i][2 * run], a[i][2 * run + 1]};
          right = {b[j][run]};
        }
        Values products = multiplyBytes(k, depth, left, right, start);
        for (int64_t e = 0; e < 4; ++e) {
          Value &sum = sums[(i * across() + j) * 4 + e];
          int64_t inRows = 16 * i + 8 * (e / 2);
          Value factor = factorOf(inRows);
          Value weighted = k.mulAdd(k.bitcast(products[e], k.f32()), k.extract(factor, 0),
                                    k.extract(factor, 1));
          sum = k.mulAdd(weighted, k.extract(steps, e % 2), sum);
          if (all)
            sum = k.mulAdd(loadFloat(k, from.minima, ofRow(inRows)), k.extract(all, e % 2), sum);
        }
      }
    }
  }
}

IntTile::Values IntTile::compute(const Weights &weights, llvm::function_ref<Value(Value i)> tileAt,
                                 llvm::function_ref<Value(Value i)> recordAt, pack::ActType act) {
  Spans spans = weights.spans();
  int64_t steps = spans.chunkCount() * Spans::kChunk / shape.columns;
  int64_t stepsEach = spans.columnsEach() / shape.columns;
  assert(Spans::kChunk % shape.columns == 0);
  auto fill = [&](Value step) {
    Stage to = stage(k.rem(step, 2));
    Value here = k.min(step, k.constI64(steps - 1));
    fillWeights(weights, tileAt, here, to);
    fillRecords(weights, recordAt, act, here, to);
  };
  fill(k.constI64(0));
  Values zeros(4 * down() * across(), k.zero(k.f32()));
  Value one = k.constI64(1), end = k.constI64(steps);
  auto oneStep = [&](Value step, ArrayRef<Value> carried) {
    Values sums(carried.begin(), carried.end());
    block.barrier();
    Operation *barrier = &k.builder.getInsertionBlock()->back();
    Stage from = stage(k.rem(step, 2));
    for (int64_t part = 0; part < shape.columns / kPart; ++part)
      multiply(weights, from, part, sums);
    Operation *multiplied = &k.builder.getInsertionBlock()->back();
    fill(k.add(step, 1));
    loadEarly(barrier, multiplied);
    return sums;
  };
  Values totals = k.loop(k.constI64(0), k.constI64(spans.count()), one, zeros,
                         [&](Value span, ArrayRef<Value> carried) {
                           Value first = k.mul(span, stepsEach);
                           Values sums = k.loop(first, k.min(k.add(first, stepsEach), end), one,
                                                zeros, oneStep);
                           Values next;
                           for (auto [total, sum] : llvm::zip(carried, sums))
                             next.push_back(k.add(total, sum));
                           return next;
                         });
  block.barrier();
  return totals;
}

void IntTile::forSums(const Values &sums, llvm::function_ref<void(Value, Value, Value)> body) {
  Value row = k.add(firstRow(), k.div(block.lane, 4));
  Value record = k.add(firstRecord(), k.mul(k.rem(block.lane, 4), 2));
  for (int64_t i = 0; i < down(); ++i)
    for (int64_t j = 0; j < across(); ++j)
      for (int64_t e = 0; e < 4; ++e)
        body(k.add(row, 16 * i + 8 * (e / 2)), k.add(record, 8 * j + e % 2),
             sums[(i * across() + j) * 4 + e]);
}

void IntTile::forPairs(const Values &sums,
                       llvm::function_ref<void(Value, Value, Value, Value)> body) {
  assert(down() % 2 == 0);
  Value row = k.add(k.div(firstRow(), 2), k.div(block.lane, 4));
  Value record = k.add(firstRecord(), k.mul(k.rem(block.lane, 4), 2));
  for (int64_t i = 0; i < down(); i += 2)
    for (int64_t j = 0; j < across(); ++j)
      for (int64_t e = 0; e < 4; ++e)
        body(k.add(row, 8 * i + 8 * (e / 2)), k.add(record, 8 * j + e % 2),
             sums[(i * across() + j) * 4 + e], sums[((i + 1) * across() + j) * 4 + e]);
}

} // namespace izhc::cuda
