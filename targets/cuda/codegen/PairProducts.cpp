// A block has two tiles: those of gate and up, two neighbours of a matrix, or
// all of a group of heads. Units are single tiles where there may be several
// rows, so every other block of a matrix without a gate has nothing to do then.

#include "targets/cuda/codegen/PairProducts.h"
#include "targets/cuda/codegen/Epilogue.h"
#include "targets/cuda/codegen/HeadFinish.h"
#include "targets/cuda/codegen/PairBatch.h"
#include <numeric>

namespace izhc::cuda {

using namespace mlir;

namespace {

constexpr int64_t kTile = PackedLayout::kTileRows;
constexpr int64_t kRecords = PairDot::kRecords;

pack::WeightType typeOf(Value operand) { return cast<pack::WeightType>(operand.getType()); }
int64_t tilesOf(pack::WeightType type) { return llvm::divideCeil(type.getRows(), kTile); }
int64_t tileBytes(pack::WeightType type) {
  return PackedLayout(*findFormat(type.getFormat().getValue())).tileBytes(type.getCols());
}

bool allPaired(ValueRange weights, Value act) {
  return llvm::all_of(weights, [&](Value weight) {
    return PairDot::supports(typeOf(weight), cast<pack::ActType>(act.getType()));
  });
}

// Calls body(first row, whether it is the only one): all rows, kRecords at a time.
void forRows(Block &block, Value rows, llvm::function_ref<void(Value first)> body) {
  KernelBuilder &k = block.k;
  if (block.oneRow)
    return body(k.constI64(0));
  k.loop(k.constI64(0), rows, kRecords, body);
}

// With a gate, the second matrix belongs to the first.
size_t matricesOf(pack::MatmulOp op) {
  return pack::isGated(op.getEpilogue()) ? 1 : op.getWeights().size();
}
// Tiles of a matrix that a block has where there is one row.
int64_t tilesOfUnit(pack::MatmulOp op) { return pack::isGated(op.getEpilogue()) ? 1 : 2; }

struct PairedMatmul {
  Block &block;
  pack::MatmulOp op;
  KernelBuilder &k;
  pack::ActType act;
  Value rows;
  bool gated;
  Value memory; // of products

  PairedMatmul(Block &block, pack::MatmulOp op)
      : block(block), op(op), k(block.k), act(cast<pack::ActType>(op.getAct().getType())),
        rows(block.rowCount(op.getRowSet())), gated(pack::isGated(op.getEpilogue())),
        memory(block.shared(PairBatch::sharedBytes(block, 2, block.oneRow, act.getWidth()))) {}

  Value recordAt(Value first, Value i) {
    if (block.oneRow)
      return block.address(op.getAct());
    return actRecord(block, op.getAct(), k.add(first, i), rows);
  }

  Value biased(Value y, size_t matrix, Value row) {
    if (op.getBiases().empty())
      return y;
    return k.add(y, loadFloat(k, block.address(op.getBiases()[matrix]), row));
  }

  // Tiles from `tile` of matrix `matrix` on, `count` of them (or one, and that of
  // the next matrix); rows of the matrix begin at `firstRow` of the result.
  void emitTiles(size_t matrix, Value tile, Value count, int64_t firstRow) {
    pack::WeightType type = typeOf(op.getWeights()[matrix]);
    PairBatch batch(block, 2, block.oneRow, type, act, memory);
    auto tileAt = [&](Value i) {
      Value base = block.address(op.getWeights()[matrix]);
      if (gated)
        base = k.select(k.equal(i, k.constI64(0)), base, block.address(op.getWeights()[1]));
      return k.at(base, k.mul(gated ? tile : k.add(tile, i), tileBytes(type)));
    };
    if (block.oneRow)
      batch.fetch(tileAt, count);
    block.prepare();
    int64_t stored = gated ? kTile : 2 * kTile;
    auto placeOf = [&](Value token, Value row) {
      return k.at(block.rowOf(op.getInto(), token), k.mul(k.add(row, firstRow), 4));
    };
    // What is added to is on its way while products are made.
    Value before;
    if (block.oneRow && op.getEpilogue() == pack::Epilogue::Add) {
      Value row = k.add(k.mul(tile, kTile), k.rem(block.thread, stored));
      Value there = k.min(row, k.constI64(type.getRows() - 1));
      before = k.load(k.f32(), placeOf(k.constI64(0), there), 4);
    }
    forRows(block, rows, [&](Value first) {
      batch.compute(tileAt, count, [&](Value i) { return recordAt(first, i); });
      block.forThreads((block.oneRow ? 1 : kRecords) * stored, [&](Value i) {
        Value inPair = k.rem(i, stored), record = k.div(i, stored), token = k.add(first, record);
        Value row = k.add(k.mul(tile, kTile), inPair);
        Value inside = k.andBits(k.less(row, k.constI64(type.getRows())), k.less(token, rows));
        k.ifThen(inside, [&] {
          Value y = biased(batch.product(record, inPair), matrix, row), up;
          if (gated)
            up = biased(batch.product(record, k.add(inPair, kTile)), matrix + 1, row);
          Value place = placeOf(token, row);
          k.store(matmulResult(k, op, y, up, place, before), place, 4);
        });
      });
      if (!block.oneRow)
        batch.release();
    });
  }

  void emit() {
    int64_t firstUnit = 0, firstRow = 0;
    for (size_t matrix = 0; matrix < matricesOf(op); ++matrix) {
      pack::WeightType type = typeOf(op.getWeights()[matrix]);
      int64_t each = block.oneRow ? tilesOfUnit(op) : 1, tiles = tilesOf(type);
      int64_t units = llvm::divideCeil(tiles, each);
      Value unit = k.add(block.unit, -firstUnit), tile = k.mul(unit, each);
      auto emitHere = [&] {
        if (gated)
          return emitTiles(matrix, tile, k.constI64(2), firstRow);
        Value count = k.min(k.sub(k.constI64(tiles), tile), k.constI64(2));
        if (each == 2)
          return emitTiles(matrix, tile, count, firstRow);
        k.ifThenElse(
            k.equal(k.rem(tile, 2), k.constI64(0)),
            [&] { emitTiles(matrix, tile, count, firstRow); }, [&] { block.awaitInputs(); });
      };
      Value inside = k.andBits(k.lessEqual(k.constI64(0), unit), k.less(unit, k.constI64(units)));
      if (matricesOf(op) == 1)
        emitHere();
      else
        k.ifThen(inside, emitHere);
      firstUnit += units;
      firstRow += type.getRows();
    }
  }
};

struct PairedHeads {
  Block &block;
  pack::MatmulHeadsOp op;
  KernelBuilder &k;
  pack::ActType act;
  int64_t dim, groupRows;
  HeadFinish finisher;
  Value memory; // of products
  Value heads;  // dim floats a warp, of the head that it finishes

  PairedHeads(Block &block, pack::MatmulHeadsOp op)
      : block(block), op(op), k(block.k), act(cast<pack::ActType>(op.getAct().getType())), dim(op.getHeadDim()),
        groupRows(std::lcm(dim, kTile)), finisher(block, op),
        memory(block.shared(PairBatch::sharedBytes(block, groupRows / kTile, block.oneRow,
                                                   act.getWidth()))),
        heads(k.at(block.shared(4 * dim * block.warps()), k.mul(block.warp, 4 * dim))) {}

  // Group `group` of a matrix.
  void emitGroup(size_t matrix, Value group) {
    pack::WeightType type = typeOf(op.getWeights()[matrix]);
    int64_t groupTiles = groupRows / kTile, groupHeads = groupRows / dim;
    Value firstTile = k.mul(group, groupTiles), firstHead = k.mul(group, groupHeads);
    Value tiles = k.min(k.constI64(groupTiles), k.sub(k.constI64(tilesOf(type)), firstTile));
    Value present =
        k.min(k.constI64(groupHeads), k.sub(k.constI64(type.getRows() / dim), firstHead));
    Value rows = block.rowCount(pack::RowSet::Tokens);
    PairBatch batch(block, groupTiles, block.oneRow, type, act, memory);
    auto tileAt = [&](Value i) {
      return k.at(block.address(op.getWeights()[matrix]),
                  k.mul(k.add(firstTile, i), tileBytes(type)));
    };
    if (block.oneRow) {
      batch.fetch(tileAt, tiles);
      finisher.fetchWeights(matrix);
    }
    block.prepare();
    if (block.oneRow)
      finisher.loadRow(matrix);
    forRows(block, rows, [&](Value first) {
      batch.compute(tileAt, tiles, [&](Value i) {
        return block.oneRow ? block.address(op.getAct())
                            : actRecord(block, op.getAct(), k.add(first, i), rows);
      });
      Value here = k.min(k.constI64(kRecords), k.sub(rows, first));
      k.loop(block.warp, k.mul(here, present), block.warps(), [&](Value pair) {
        Value record = k.div(pair, present), inGroup = k.rem(pair, present);
        block.forLanes(dim, [&](Value i) {
          Value row = k.add(k.mul(inGroup, dim), i);
          storeFloat(k, batch.product(record, row), heads, i);
        });
        block.syncWarp();
        finisher.finish(matrix, k.add(firstHead, inGroup), k.add(first, record), heads);
        block.syncWarp();
      });
      if (!block.oneRow)
        batch.release();
    });
  }

  void emit() {
    int64_t firstGroup = 0;
    for (auto [matrix, operand] : llvm::enumerate(op.getWeights())) {
      int64_t groups = llvm::divideCeil(typeOf(operand).getRows(), groupRows);
      Value group = k.add(block.unit, -firstGroup);
      Value inside =
          k.andBits(k.lessEqual(k.constI64(0), group), k.less(group, k.constI64(groups)));
      k.ifThen(inside, [&] { emitGroup(matrix, group); });
      firstGroup += groups;
    }
  }
};

} // namespace

bool isPaired(pack::MatmulOp op) {
  bool gated = pack::isGated(op.getEpilogue());
  return allPaired(op.getWeights(), op.getAct()) &&
         (!gated || op.getWeights()[0].getType() == op.getWeights()[1].getType());
}

bool isPaired(pack::MatmulHeadsOp op) { return allPaired(op.getWeights(), op.getAct()); }

int64_t oneRowUnits(pack::MatmulOp op) {
  int64_t units = 0;
  for (size_t matrix = 0; matrix < matricesOf(op); ++matrix)
    units += llvm::divideCeil(tilesOf(typeOf(op.getWeights()[matrix])), tilesOfUnit(op));
  return units;
}

void emitPairedMatmul(Block &block, pack::MatmulOp op) { PairedMatmul(block, op).emit(); }
void emitPairedHeads(Block &block, pack::MatmulHeadsOp op) { PairedHeads(block, op).emit(); }

} // namespace izhc::cuda
