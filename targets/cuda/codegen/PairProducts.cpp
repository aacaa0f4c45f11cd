// A block has two tiles: those of gate and up, two neighbours of a matrix, or
// all of a group of heads. Units are single tiles where there may be several
// rows, so every other block of a matrix without a gate has nothing to do then.
// Where there is one row, units are pairs, a block may take several, and weights come
// as a stream (PairStream.h) if there is room for it.

#include "targets/cuda/codegen/PairProducts.h"
#include "targets/cuda/codegen/Epilogue.h"
#include "targets/cuda/codegen/HeadFinish.h"
#include "targets/cuda/codegen/Lowering.h"
#include "targets/cuda/codegen/PairBatch.h"
#include "targets/cuda/codegen/PairStream.h"
#include "targets/cuda/codegen/Records.h"
#include <numeric>

namespace izhc::cuda {

using namespace mlir;

namespace {

constexpr int64_t kTile = PackedLayout::kTileRows;
constexpr int64_t kRecords = PairDot::kRecords;
// Of a large GPU, and the threads of one that leave registers enough for loads
// that are far ahead.
constexpr int64_t kMultiprocessors = 132, kThreadsAtOnce = 512;
// Of a multiprocessor, that blocks share; and what a block has beside a stream.
constexpr int64_t kSharedBytes = 227 << 10, kBesideStream = 12 << 10;

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

template <typename Op> pack::ActType act(Op op) {
  return cast<pack::ActType>(op.getAct().getType());
}

// Blocks of the launch.
Value numberOfBlocks(KernelBuilder &k) {
  Value count = LLVM::CallIntrinsicOp::create(
                    k.builder, k.loc, k.i32(),
                    k.builder.getStringAttr("llvm.nvvm.read.ptx.sreg.nctaid.x"), ValueRange())
                    .getResult(0);
  return k.extendU(count, k.i64());
}

// With a gate, the second matrix belongs to the first.
size_t matricesOf(pack::MatmulOp op) {
  return pack::isGated(op.getEpilogue()) ? 1 : op.getWeights().size();
}
// Tiles of a matrix that a block has where there is one row.
int64_t tilesOfUnit(pack::MatmulOp op) { return pack::isGated(op.getEpilogue()) ? 1 : 2; }

// Units of the form for one row; 0: there is none.
int64_t oneRowUnits(pack::MatmulOp op) {
  if (!isPaired(op) || matricesOf(op) != 1)
    return 0;
  return llvm::divideCeil(tilesOf(typeOf(op.getWeights()[0])), tilesOfUnit(op));
}

// What blocks of so many at once need.
int64_t memoryOf(const StreamShape &shape, pack::ActType act) {
  return shape.bytes() + pack::ActLayout(act).stride + kBesideStream;
}

// Streams of the form for one row, where a multiprocessor has so many blocks at a time.
std::optional<StreamShape> streamOf(pack::MatmulOp op, int64_t atOnce) {
  auto turns = llvm::divideCeil(oneRowUnits(op), kMultiprocessors * atOnce);
  auto shape = StreamShape::of({typeOf(op.getWeights()[0])}, turns);
  if (shape && (shape->threads() * atOnce > kThreadsAtOnce ||
                memoryOf(*shape, act(op)) * atOnce > kSharedBytes))
    return std::nullopt;
  return shape;
}
// Those of the products of heads, of which a block has one unit.
std::optional<StreamShape> streamOf(pack::MatmulHeadsOp op) {
  auto shape = StreamShape::of(llvm::map_to_vector(op.getWeights(), typeOf), 1);
  if (shape && memoryOf(*shape, act(op)) > kSharedBytes)
    return std::nullopt;
  return shape;
}

// Blocks that registers are to suffice for: one of the next kernel's is to begin where
// there is memory for it.
int64_t togetherOf(const StreamShape &shape, int64_t atOnce, pack::ActType act) {
  return std::clamp<int64_t>(kSharedBytes / memoryOf(shape, act), atOnce, atOnce + 1);
}

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
        memory(block.shared((block.recordType ? 4
                             : block.oneRow   ? 2
                                              : 1) *
                            PairBatch::sharedBytes(block, 2, block.oneRow, act.getWidth()))) {}

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

  // What a block needs to know of a matrix (and of the next where that is `up`).
  struct Matrix {
    size_t number;
    pack::WeightType type;
    int64_t firstRow; // of its rows in the result

    int64_t tiles() const { return tilesOf(type); }
  };

  Value tileAt(const Matrix &matrix, Value tile, Value i) {
    Value base = block.address(op.getWeights()[matrix.number]);
    if (gated)
      base = k.select(k.equal(i, k.constI64(0)), base, block.address(op.getWeights()[1]));
    return k.at(base, k.mul(gated ? tile : k.add(tile, i), tileBytes(matrix.type)));
  }
  // Tiles from `tile` on that a block has (with a gate, one of each matrix).
  Value countOf(const Matrix &matrix, Value tile) {
    if (gated)
      return k.constI64(2);
    return k.min(k.sub(k.constI64(matrix.tiles()), tile), k.constI64(2));
  }

  Value placeOf(const Matrix &matrix, Value token, Value row) {
    return k.at(block.rowOf(op.getInto(), token), k.mul(k.add(row, matrix.firstRow), 4));
  }

  // Rows of a pair's products that are stored.
  int64_t storedRows() const { return gated ? kTile : 2 * kTile; }

  // What the thread's row of the result has before, for an epilogue that adds to
  // it: loaded before it is needed.
  Value before(const Matrix &matrix, Value tile) {
    if (op.getEpilogue() != pack::Epilogue::Add)
      return {};
    Value row = k.add(k.mul(tile, kTile), k.rem(block.thread, storedRows()));
    Value there = k.min(row, k.constI64(matrix.type.getRows() - 1));
    return k.load(k.f32(), placeOf(matrix, k.constI64(0), there), 4);
  }

  void store(llvm::function_ref<Value(Value record, Value row)> product, const Matrix &matrix,
             Value tile, Value first, int64_t records, Value before) {
    int64_t stored = storedRows();
    block.forThreads(records * stored, [&](Value i) {
      Value inPair = k.rem(i, stored), record = k.div(i, stored), token = k.add(first, record);
      Value row = k.add(k.mul(tile, kTile), inPair);
      Value inside = k.andBits(k.less(row, k.constI64(matrix.type.getRows())), k.less(token, rows));
      k.ifThen(inside, [&] {
        Value y = biased(product(record, inPair), matrix.number, row), up;
        if (gated)
          up = biased(product(record, k.add(inPair, kTile)), matrix.number + 1, row);
        Value place = placeOf(matrix, token, row);
        k.store(matmulResult(k, op, y, up, place, before), place, 4);
      });
    });
  }

  // All rows of activations with the tiles from `tile` on.
  void emitRows(const Matrix &matrix, Value tile) {
    PairBatch batch(block, 2, /*oneRecord=*/false, matrix.type, act, memory,
                    /*fewRegisters=*/true);
    k.loop(k.constI64(0), rows, kRecords, [&](Value first) {
      batch.compute([&](Value i) { return tileAt(matrix, tile, i); }, countOf(matrix, tile),
                    [&](Value i) { return recordAt(first, i); });
      block.barrier();
      store([&](Value record, Value row) { return batch.product(record, row); }, matrix, tile,
            first, kRecords, {});
      block.barrier();
    });
  }

  // One pair's products with the record, stored. `words`: of its first weights.
  void emitUnit(PairBatch &batch, const Matrix &matrix, Value unit, const Block::Values &words,
                llvm::function_ref<void()> beforeLast) {
    Value tile = k.mul(unit, tilesOfUnit(op)), old = before(matrix, tile);
    batch.compute([&](Value i) { return tileAt(matrix, tile, i); }, countOf(matrix, tile),
                  [&](Value) { return block.address(op.getAct()); }, words, beforeLast);
    block.barrier();
    store([&](Value record, Value row) { return batch.product(record, row); }, matrix, tile,
          k.constI64(0), 1, old);
  }

  // Every block takes units in turn. Where there are several for each, weights of
  // the next are on their way while one is finished and stored, and its products
  // go to other memory.
  void emitOneRow(const Matrix &matrix) {
    OneRowShape shape = oneRowShape(op, /*streams=*/false);
    int64_t units = shape.units;
    bool many = units > kMultiprocessors * shape.atOnce;
    PairBatch batch(block, 2, /*oneRecord=*/true, matrix.type, act, memory, many);
    auto fetch = [&](Value unit) {
      Value tile = k.mul(k.min(unit, k.constI64(units - 1)), tilesOfUnit(op));
      return batch.fetch([&](Value i) { return tileAt(matrix, tile, i); }, countOf(matrix, tile));
    };
    Value step = numberOfBlocks(k), end = k.constI64(units);
    Block::Values first = fetch(block.unit);
    block.prepare();
    if (!many) {
      emitUnit(batch, matrix, block.unit, first, {});
      k.loop(k.add(block.unit, step), end, step, {}, [&](Value unit, ArrayRef<Value>) {
        block.barrier();
        emitUnit(batch, matrix, unit, fetch(unit), {});
        return Block::Values();
      });
      return;
    }
    int64_t bytes = PairBatch::sharedBytes(block, 2, true, act.getWidth());
    first.push_back(memory);
    first.push_back(k.at(memory, bytes));
    k.loop(block.unit, end, step, first, [&](Value unit, ArrayRef<Value> values) {
      Value here = values[values.size() - 2], there = values.back();
      Block::Values next, words(values.drop_back(2));
      batch.setMemory(here);
      emitUnit(batch, matrix, unit, words, [&] { next = fetch(k.add(unit, step)); });
      next.push_back(there);
      next.push_back(here);
      return next;
    });
  }

  // The same with a stream, which products that go to other memory each time don't
  // hold up.
  void emitStream(const Matrix &matrix, const StreamShape &shape) {
    Value step = numberOfBlocks(k), end = k.constI64(oneRowUnits(op));
    PairStream stream(block, shape, matrix.type, act, step, end);
    auto tileOf = [&](Value unit, Value which) {
      Value tile = k.mul(unit, tilesOfUnit(op));
      return tileAt(matrix, tile, k.min(which, k.add(countOf(matrix, tile), -1)));
    };
    Block::Values reached = stream.begin(tileOf);
    block.prepare();
    reached.push_back(memory);
    reached.push_back(k.at(memory, PairStream::productBytes(matrix.type)));
    k.loop(block.unit, end, step, reached, [&](Value unit, ArrayRef<Value> values) {
      Value here = values[values.size() - 2], there = values.back();
      Value tile = k.mul(unit, tilesOfUnit(op)), old = before(matrix, tile);
      Block::Values next =
          stream.compute(here, block.address(op.getAct()), tileOf, values.drop_back(2));
      block.barrier();
      store([&](Value, Value row) { return stream.product(here, row); }, matrix, tile,
            k.constI64(0), 1, old);
      next.push_back(there);
      next.push_back(here);
      return next;
    });
  }

  // The same where two neighbouring pairs make a block of 32 results, which one warp
  // stores, and leaves in a record.
  void emitBlocks(const Matrix &matrix, const StreamShape &shape) {
    int64_t pairs = oneRowUnits(op), bytes = PairStream::productBytes(matrix.type);
    Value step = numberOfBlocks(k), end = k.constI64(pairs / 2);
    PairStream stream(block, shape, matrix.type, act, step, k.constI64(pairs), /*together=*/2);
    auto tileOf = [&](Value pair, Value which) { return tileAt(matrix, pair, which); };
    Block::Values reached = stream.begin(tileOf);
    block.prepare();
    reached.push_back(memory);
    reached.push_back(k.at(memory, 2 * bytes));
    k.loop(block.unit, end, step, reached, [&](Value unit, ArrayRef<Value> values) {
      Value here = values[values.size() - 2], there = values.back();
      Block::Values next(values.drop_back(2));
      for (int64_t i = 0; i < 2; ++i)
        next = stream.compute(k.at(here, i * bytes), block.address(op.getAct()), tileOf, next);
      block.barrier();
      k.ifThen(k.equal(block.warp, k.constI64(0)), [&] {
        Value products = k.at(here, k.mul(k.div(block.lane, kTile), bytes));
        Value inPair = k.rem(block.lane, kTile), row = k.add(k.mul(unit, 2 * kTile), block.lane);
        Value y = biased(stream.product(products, inPair), matrix.number, row);
        Value up = biased(stream.product(products, k.add(inPair, kTile)), matrix.number + 1, row);
        Value place = placeOf(matrix, k.constI64(0), row);
        Value result = matmulResult(k, op, y, up, place, {});
        k.store(result, place, 4);
        Value record = k.at(block.rowOf(op.getInto(), k.constI64(0)), block.recordOffset);
        RecordWriter(block, block.recordType).writeBlock(result, unit, record);
      });
      next.push_back(there);
      next.push_back(here);
      return next;
    });
  }

  void emitOne(const Matrix &matrix) {
    for (int64_t atOnce : {2, 1})
      if (auto shape = block.overlaps ? streamOf(op, atOnce) : std::nullopt)
        return block.recordType ? emitBlocks(matrix, *shape) : emitStream(matrix, *shape);
    emitOneRow(matrix);
  }

  void emit() {
    int64_t firstTile = 0, firstRow = 0;
    for (size_t number = 0; number < matricesOf(op); ++number) {
      Matrix matrix = {number, typeOf(op.getWeights()[number]), firstRow};
      if (block.oneRow)
        return emitOne(matrix);
      Value tile = k.add(block.unit, -firstTile);
      auto emitHere = [&] {
        block.awaitInputs();
        if (gated)
          return emitRows(matrix, tile);
        k.ifThen(k.equal(k.rem(tile, 2), k.constI64(0)), [&] { emitRows(matrix, tile); });
      };
      Value inside =
          k.andBits(k.lessEqual(k.constI64(0), tile), k.less(tile, k.constI64(matrix.tiles())));
      if (matricesOf(op) == 1)
        emitHere();
      else
        k.ifThen(inside, emitHere);
      firstTile += matrix.tiles();
      firstRow += matrix.type.getRows();
    }
  }
};

struct RawHeads {
  Block &block;
  pack::MatmulHeadsOp op;
  KernelBuilder &k;
  pack::ActType act;
  Value memory; // of products

  RawHeads(Block &block, pack::MatmulHeadsOp op)
      : block(block), op(op), k(block.k), act(cast<pack::ActType>(op.getAct().getType())),
        memory(block.shared(PairBatch::sharedBytes(block, 2, true, act.getWidth()))) {}

  Value placeOf(size_t matrix) {
    if (matrix == 0)
      return block.address(op.getQueries());
    int64_t before = matrix == 1 ? 0 : typeOf(op.getWeights()[1]).getRows();
    return k.at(block.scratch, kRawHeads + 4 * before);
  }

  // One pair's, of which `product` gives a row.
  void store(size_t matrix, Value tile, llvm::function_ref<Value(Value row)> product) {
    Value row = k.add(k.mul(tile, kTile), block.thread);
    Value inside = k.andBits(k.less(block.thread, k.constI64(2 * kTile)),
                             k.less(row, k.constI64(typeOf(op.getWeights()[matrix]).getRows())));
    k.ifThen(inside, [&] { storeFloat(k, product(block.thread), placeOf(matrix), row); });
  }

  void emitPair(size_t matrix, Value pair) {
    pack::WeightType type = typeOf(op.getWeights()[matrix]);
    Value tile = k.mul(pair, 2);
    auto tileAt = [&](Value i) {
      return k.at(block.address(op.getWeights()[matrix]), k.mul(k.add(tile, i), tileBytes(type)));
    };
    Value count = k.min(k.sub(k.constI64(tilesOf(type)), tile), k.constI64(2));
    Value record = block.address(op.getAct());
    if (auto shape = block.overlaps ? streamOf(op) : std::nullopt) {
      PairStream stream(block, *shape, type, act, k.constI64(1), k.add(block.unit, 1));
      auto tileOf = [&](Value, Value which) { return tileAt(k.min(which, k.add(count, -1))); };
      Block::Values reached = stream.begin(tileOf);
      block.prepare();
      stream.compute(memory, record, tileOf, reached);
      block.barrier();
      return store(matrix, tile, [&](Value row) { return stream.product(memory, row); });
    }
    PairBatch batch(block, 2, /*oneRecord=*/true, type, act, memory, /*fewRegisters=*/false);
    Block::Values words = batch.fetch(tileAt, count);
    block.prepare();
    batch.compute(tileAt, count, [&](Value) { return record; }, words);
    block.barrier();
    store(matrix, tile, [&](Value row) { return batch.product(k.constI64(0), row); });
  }

  void emit() {
    int64_t firstPair = 0;
    for (auto [matrix, operand] : llvm::enumerate(op.getWeights())) {
      int64_t pairs = llvm::divideCeil(tilesOf(typeOf(operand)), 2);
      Value pair = k.add(block.unit, -firstPair);
      Value inside = k.andBits(k.lessEqual(k.constI64(0), pair), k.less(pair, k.constI64(pairs)));
      k.ifThen(inside, [&] { emitPair(matrix, pair); });
      firstPair += pairs;
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
      : block(block), op(op), k(block.k), act(cast<pack::ActType>(op.getAct().getType())),
        dim(op.getHeadDim()), groupRows(std::lcm(dim, kTile)), finisher(block, op),
        memory(block.shared(
            PairBatch::sharedBytes(block, groupRows / kTile, block.oneRow, act.getWidth()))),
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
    PairBatch batch(block, groupTiles, block.oneRow, type, act, memory,
                    /*fewRegisters=*/!block.oneRow);
    auto tileAt = [&](Value i) {
      return k.at(block.address(op.getWeights()[matrix]),
                  k.mul(k.add(firstTile, i), tileBytes(type)));
    };
    Block::Values words;
    if (block.oneRow) {
      words = batch.fetch(tileAt, tiles);
      finisher.fetchWeights(matrix);
    }
    block.prepare();
    if (block.oneRow)
      finisher.loadRow(matrix);
    forRows(block, rows, [&](Value first) {
      auto recordAt = [&](Value i) {
        return block.oneRow ? block.address(op.getAct())
                            : actRecord(block, op.getAct(), k.add(first, i), rows);
      };
      batch.compute(tileAt, tiles, recordAt, words);
      block.barrier();
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
        block.barrier();
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

OneRowShape oneRowShape(pack::MatmulOp op, bool streams) {
  int64_t units = oneRowUnits(op);
  if (!units)
    return {};
  if (streams)
    for (int64_t atOnce : {2, 1})
      if (auto stream = streamOf(op, atOnce))
        return {units, stream->threads(), atOnce, togetherOf(*stream, atOnce, act(op))};
  int64_t threads = threadsOf(op), atOnce = std::max<int64_t>(1, kThreadsAtOnce / threads);
  return {units, threads, atOnce, atOnce};
}

bool canLeaveRecord(pack::MatmulOp op) {
  bool streams = oneRowUnits(op) && (streamOf(op, 2) || streamOf(op, 1));
  return streams && pack::isGated(op.getEpilogue()) &&
         typeOf(op.getWeights()[0]).getRows() % (2 * kTile) == 0;
}

OneRowShape rawHeadsShape(pack::MatmulHeadsOp op, bool streams) {
  int64_t units = 0;
  for (Value weight : op.getWeights())
    units += llvm::divideCeil(tilesOf(typeOf(weight)), 2);
  if (auto stream = streams ? streamOf(op) : std::nullopt)
    return {units, stream->threads(), 0, togetherOf(*stream, 1, act(op))};
  int64_t spans = Spans(act(op).getWidth()).count();
  return {units, kWarp * std::max<int64_t>(spans, 4), 0, 0};
}

int64_t rawHeadsScratch(pack::MatmulHeadsOp op) {
  int64_t rows = 0;
  for (Value weight : op.getWeights().drop_front())
    rows += typeOf(weight).getRows();
  return kRawHeads + 4 * rows;
}

void emitRawHeads(Block &block, pack::MatmulHeadsOp op) { RawHeads(block, op).emit(); }
void emitPairedMatmul(Block &block, pack::MatmulOp op) { PairedMatmul(block, op).emit(); }
void emitPairedHeads(Block &block, pack::MatmulHeadsOp op) { PairedHeads(block, op).emit(); }

} // namespace izhc::cuda
