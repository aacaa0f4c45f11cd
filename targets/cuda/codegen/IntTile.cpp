// One step of columns is multiplied from one half of the shared memory while
// the next is brought to the other.

#include "targets/cuda/codegen/IntTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "targets/cuda/codegen/EarlyLoads.h"
#include "targets/cuda/codegen/TensorCore.h"

namespace izhc::cuda {

using namespace mlir;

static constexpr int64_t kTile = PackedLayout::kTileRows;
static constexpr int64_t kPart = 32;   // columns of a row that a thread decodes
static constexpr int64_t kPiece = 16;  // bytes of a record that a thread copies
static constexpr int64_t kBanks = 128; // bytes of shared memory that are read at once

// Addresses in shared memory: codes row by row, the rest run by run.
struct IntTile::Stage {
  Value weights, records; // bytes
  Value factors, minima;  // w and m of Spans.h, of rows
  Value steps, sums;      // a and s, of records
};

static int64_t stageBytes(const TileShape &shape) {
  int64_t runs = shape.columns / 16;
  return shape.columns * (shape.rows + shape.records) + 4 * runs * 2 * shape.rows +
         4 * (runs / 2 + runs) * shape.records;
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
  stage.weights = next(shape.rows * shape.columns);
  stage.records = next(shape.records * shape.columns);
  stage.factors = next(4 * runs * shape.rows);
  stage.minima = next(4 * runs * shape.rows);
  stage.steps = next(4 * runs / 2 * shape.records);
  stage.sums = next(4 * runs * shape.records);
  return stage;
}

// Where piece `piece` of a row's codes is. Pieces change places from row to row,
// so that the same ones of eight rows fall into different banks.
Value IntTile::codesAt(Value codes, Value row, Value piece) const {
  int64_t pieces = shape.columns / kPiece, rowsOfBanks = kBanks / shape.columns;
  Value turn = k.rem(k.div(row, rowsOfBanks), pieces);
  Value place = arith::XOrIOp::create(k.builder, k.loc, piece, turn);
  return k.at(codes, k.add(k.mul(row, shape.columns), k.mul(place, kPiece)));
}

// What a thread needs of its rows lies together, up to four numbers at a time: its
// rows are lane / 4 + 8 * slot of those of the warp, its records 2 * (lane % 4) +
// slot % 2 + 8 * (slot / 2).
static int64_t together(int64_t slots) { return std::min<int64_t>(slots, 4); }
static Value place(KernelBuilder &k, Value first, Value lanes, Value slot, int64_t laneCount,
                   int64_t each) {
  Value run = k.mul(k.div(slot, each), laneCount * each);
  return k.add(k.add(first, run), k.add(k.mul(lanes, each), k.rem(slot, each)));
}

Value IntTile::placeOfRow(Value row) const {
  int64_t ofWarp = shape.rows / shape.warpsDown;
  Value inWarp = k.rem(row, ofWarp);
  return place(k, k.sub(row, inWarp), k.rem(inWarp, 8), k.div(inWarp, 8), 8, together(2 * down()));
}

Value IntTile::placeOfRecord(Value record) const {
  int64_t ofWarp = shape.records / shape.warpsAcross;
  Value inWarp = k.rem(record, ofWarp), inEight = k.rem(inWarp, 8);
  Value slot = k.add(k.mul(k.div(inWarp, 8), 2), k.rem(inEight, 2));
  return place(k, k.sub(record, inWarp), k.div(inEight, 2), slot, 4, together(2 * across()));
}

static KernelBuilder::Values loadSlots(KernelBuilder &k, Value first, int64_t slots,
                                       int64_t laneCount) {
  KernelBuilder::Values values;
  int64_t each = together(slots);
  for (int64_t slot = 0; slot < slots; slot += each) {
    Value some = k.load(k.vec(each, k.f32()), k.at(first, 4 * slot * laneCount), 4 * each);
    for (int64_t i = 0; i < each; ++i)
      values.push_back(k.extract(some, i));
  }
  return values;
}

// Of run `run` of the step: by slots.
IntTile::Values IntTile::ofRows(Value table, int64_t run) const {
  Value first = k.add(firstRow(), k.mul(k.div(block.lane, 4), together(2 * down())));
  return loadSlots(k, k.at(table, k.mul(k.add(first, run * shape.rows), 4)), 2 * down(), 8);
}
IntTile::Values IntTile::ofRecords(Value table, int64_t run) const {
  Value first = k.add(firstRecord(), k.mul(k.rem(block.lane, 4), together(2 * across())));
  return loadSlots(k, k.at(table, k.mul(k.add(first, run * shape.records), 4)), 2 * across(), 4);
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
    Value at = placeOfRow(row);
    for (int64_t i = 0; i < runsEach; ++i) {
      Value inStep = k.add(k.mul(part, runsEach), i);
      Value index = k.add(k.mul(step, parts * runsEach), inStep);
      Weights::Bytes run = weights.bytes(tile, inTile, index);
      int64_t pieces = weights.runWeights() / kPiece;
      for (int64_t piece = 0; piece < pieces; ++piece) {
        Value four = k.zero(k.vec(4, k.i32()));
        for (int64_t j = 0; j < 4; ++j)
          four = k.insert(run.codes[4 * piece + j], four, j);
        Value number = k.add(k.mul(part, kPart / kPiece), i * pieces + piece);
        k.store(four, codesAt(to.weights, row, number), 16);
      }
      Value place = k.add(k.mul(inStep, shape.rows), at);
      storeFloat(k, run.factor, to.factors, place);
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
  bool ofPart = weights.runWeights() == kPart;
  if (weights.hasMinima()) {
    Value sum = k.zero(k.i32()), ones = k.constInt(k.i32(), 0x01010101);
    for (int64_t j = 0; j < 4; ++j)
      sum = block.dot4(sum, ones, k.extract(four, j), /*signedCodes=*/true);
    if (ofPart)
      sum = k.add(sum, block.exchange(sum, 1));
    scaled = k.mul(k.intToFloat(sum), scale);
  }
  auto store = [&] {
    k.store(four, codesAt(to.records, number, piece), 16);
    Value at = placeOfRecord(number);
    if (scaled && !ofPart)
      storeFloat(k, scaled, to.sums, k.add(k.mul(piece, shape.records), at));
    k.ifThen(k.equal(k.rem(piece, 2), k.constI64(0)), [&] {
      Value place = k.add(k.mul(k.div(piece, 2), shape.records), at);
      storeFloat(k, scale, to.steps, place);
      if (scaled && ofPart)
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
    return loadMatrices(
        k, codesAt(codes, k.add(firstRow, inTile), k.add(piece, part * (kPart / kPiece))));
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
  Values start(4, k.constInt(k.i32(), kFloatBits)), steps = ofRecords(from.steps, part);
  for (int64_t run = 0; run < runs; ++run) {
    int64_t number = part * runs + run;
    Values factors = ofRows(from.factors, number), less, minima, all;
    for (Value factor : factors)
      less.push_back(k.mul(factor, k.constFloat(k.f32(), -kFloats)));
    if (weights.hasMinima()) {
      minima = ofRows(from.minima, number);
      all = ofRecords(from.sums, number);
    }
    for (int64_t j = 0; j < across(); ++j)
      for (int64_t i = 0; i < down(); ++i) {
        Values left(a[i]), right(b[j]);
        if (depth == kPart / 2) {
          left = {a[i][2 * run], a[i][2 * run + 1]};
          right = {b[j][run]};
        }
        Values products = multiplyBytes(k, depth, left, right, start);
        for (int64_t e = 0; e < 4; ++e) {
          Value &sum = sums[(i * across() + j) * 4 + e];
          int64_t row = 2 * i + e / 2, record = 2 * j + e % 2;
          Value weighted = k.mulAdd(k.bitcast(products[e], k.f32()), factors[row], less[row]);
          sum = k.mulAdd(weighted, steps[record], sum);
          if (!all.empty())
            sum = k.mulAdd(minima[row], all[record], sum);
        }
      }
  }
}

IntTile::Values IntTile::compute(const Weights &weights, At tileAt, At recordAt,
                                 pack::ActType act) {
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

void IntTile::forSums(const Values &sums, bool paired,
                      llvm::function_ref<void(ArrayRef<Sum>)> body) {
  int64_t each = paired ? 2 : 1; // of 16 rows
  assert(down() % each == 0);
  Value row = k.add(k.div(firstRow(), each), k.div(block.lane, 4));
  Value record = k.add(firstRecord(), k.mul(k.rem(block.lane, 4), 2));
  for (int64_t i = 0; i < down(); i += each) {
    SmallVector<Sum> some;
    for (int64_t j = 0; j < across(); ++j)
      for (int64_t e = 0; e < 4; ++e) {
        auto sum = [&](int64_t sixteen) { return sums[(sixteen * across() + j) * 4 + e]; };
        some.push_back({k.add(row, 16 / each * i + 8 * (e / 2)), k.add(record, 8 * j + e % 2),
                        sum(i), paired ? sum(i + 1) : Value()});
      }
    body(some);
  }
}

} // namespace izhc::cuda
