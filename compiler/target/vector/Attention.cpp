// pack.attention: causal attention of one tile of query rows to one key head.
//
// Pages of the cache are taken in order; within a page the query vectors (rows
// of the tile times the heads that share the key head) are taken in blocks, so
// that a page comes from memory once and each conversion of a key or value
// from float16 serves a whole block. For each block and page:
//   1. scores  s[j] = scale * sum over d of q[d] * K[d][j], keys in lanes;
//   2. softmax m' = max(m, s), c = e^(m - m'), p = e^(s - m'), l = l c + sum p;
//   3. values  out = out c + sum over j of p[j] * V[j], columns in lanes.
// `out` is the result's row itself; m and l live in the stack frame. A query
// vector's operations don't depend on the block that it is in: keys beyond its
// position have p = 0, and a page without visible keys leaves c = 1.

#include "compiler/target/vector/Pieces.h"
#include "compiler/target/vector/VectorLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace izhc {

using namespace mlir;

namespace {

// Below every score and above minus infinity, so that differences are numbers.
constexpr double kMasked = -1e30;

class Attention {
public:
  Attention(KernelFrame &frame, pack::AttentionOp op);
  void emit();

private:
  using Values = KernelBuilder::Values;

  void emitUnit(Value unit);
  void forEachBlock(Value count, llvm::function_ref<void(Value, int64_t)> body);
  void emitPageOfBlock(Value firstIndex, int64_t size);
  void emitScores(int64_t size, Value keys);
  void emitSoftmax(Value firstIndex, int64_t size, Value keys);
  void emitValues(int64_t size, Value keys);
  void emitColumns(int64_t size, Value keys, Value column, ArrayRef<int64_t> pieces);
  void emitQuotient(Value index);
  Value headNumber(Value index);
  Value rowOffset(Value index, int64_t size);

  KernelFrame &frame;
  KernelBuilder &k;
  int64_t lanes, heads, kvHeads, group, dim, valueDim, page, tile, pageBytes, valuesOffset;
  int64_t window;
  double scale, softcap;
  // Query vectors of a block, largest first; the last divides `group`.
  SmallVector<int64_t, 3> blocks;
  // Accumulators that registers have room for, beside keys and queries.
  int64_t accumulators;
  Value queries, cache, tiles, pages, sinks, out;
  // Stack: scores and then weights of a block, factors c, m and l.
  Value scores, factors, maxima, sums;
  // Of the unit at hand.
  Value firstRow, firstPosition, kvHead;
  // Of the page at hand.
  Value keysAt, valuesAt, firstKey;
  // Of the block at hand.
  SmallVector<Value> offsets, outs;
};

Attention::Attention(KernelFrame &frame, pack::AttentionOp op) : frame(frame), k(frame.k) {
  auto kv = cast<pack::KvType>(op.getCache().getType());
  lanes = frame.machine.lanes;
  heads = op.getHeads();
  kvHeads = kv.getHeads();
  group = heads / kvHeads;
  dim = kv.getDim();
  valueDim = kv.getValueDim();
  window = op.getWindow();
  softcap = op.getSoftcap().convertToDouble();
  page = kv.getPage();
  tile = op.getTile();
  pageBytes = kv.getPageBytes();
  valuesOffset = kv.getValuesOffset();
  scale = op.getScale().convertToDouble();
  // Narrow machines have 16 registers, wide ones 32.
  accumulators = lanes == 16 ? 16 : 8;
  if (group % 4 == 0)
    blocks = {4};
  else if (group % 3 == 0)
    blocks = {3};
  else if (group % 2 == 0)
    blocks = {4, 2};
  else
    blocks = {4, 2, 1};
  queries = frame.address(op.getQueries());
  cache = frame.address(op.getCache());
  tiles = frame.address(op.getTiles());
  pages = frame.address(op.getPages());
  if (op.getSinks())
    sinks = frame.address(op.getSinks());
  out = frame.address(op.getInto());
}

void Attention::emit() {
  scores = k.stack(4 * blocks.front() * page);
  factors = k.stack(4 * blocks.front());
  maxima = k.stack(4 * tile * group);
  sums = k.stack(4 * tile * group);
  k.loop(frame.begin, frame.end, 1, [&](Value unit) { emitUnit(unit); });
}

// Calls body(first index, size) for blocks of `count` query vectors.
void Attention::forEachBlock(Value count, function_ref<void(Value, int64_t)> body) {
  Value done = k.constI64(0);
  for (int64_t size : blocks) {
    Value end = k.mul(k.div(count, size), size);
    k.loop(done, end, size, [&](Value first) { body(first, size); });
    done = end;
  }
}

Value Attention::headNumber(Value index) {
  return k.add(k.mul(kvHead, group), k.rem(index, group));
}

// Byte offset of a query vector, or of its result, of `size` values. Vectors of
// one row are neighbours.
Value Attention::rowOffset(Value index, int64_t size) {
  Value row = k.add(firstRow, k.div(index, group));
  return k.mul(k.add(k.mul(row, heads), headNumber(index)), 4 * size);
}

void Attention::emitUnit(Value unit) {
  kvHead = k.rem(unit, kvHeads);
  Value entry = k.at(tiles, k.mul(k.div(unit, kvHeads), 16));
  auto word = [&](int64_t i) { return k.extendS(k.load(k.i32(), k.at(entry, 4 * i), 4), k.i64()); };
  firstRow = word(0);
  Value rows = word(1);
  firstPosition = word(2);
  Value pageList = k.at(pages, k.mul(word(3), 4));
  Value count = k.mul(rows, group);

  k.loop(k.constI64(0), count, 1, [&](Value index) {
    Value slot = k.mul(index, 4);
    k.store(k.constFloat(k.f32(), kMasked), k.at(maxima, slot), 4);
    k.store(k.zero(k.f32()), k.at(sums, slot), 4);
    Value row = k.at(out, rowOffset(index, valueDim));
    forEachPiece(k, valueDim, lanes, [&](Value offset, int64_t piece) {
      k.store(k.zero(k.vec(piece, k.f32())), k.at(row, offset), 4);
    });
  });

  Value pageCount = k.add(k.div(k.add(k.add(firstPosition, rows), -1), page), 1);
  Value firstPage = k.constI64(0);
  if (window)
    firstPage = k.div(k.max(k.add(firstPosition, 1 - window), firstPage), page);
  k.loop(firstPage, pageCount, 1, [&](Value index) {
    Value physical = k.extendS(k.load(k.i32(), k.at(pageList, k.mul(index, 4)), 4), k.i64());
    Value base = k.at(cache, k.mul(physical, pageBytes));
    keysAt = k.at(base, k.mul(kvHead, 2 * dim * page));
    valuesAt = k.at(k.at(base, valuesOffset), k.mul(kvHead, 2 * valueDim * page));
    firstKey = k.mul(index, page);
    forEachBlock(count, [&](Value first, int64_t size) { emitPageOfBlock(first, size); });
  });

  k.loop(k.constI64(0), count, 1, [&](Value index) { emitQuotient(index); });
}

void Attention::emitPageOfBlock(Value firstIndex, int64_t size) {
  // Keys of the page that the last vector of the block sees. Slots behind them
  // may hold anything and are not read as values.
  Value last = k.add(firstPosition, k.div(k.add(firstIndex, size - 1), group));
  Value keys = k.min(k.add(k.sub(last, firstKey), 1), k.constI64(page));
  k.ifThen(k.less(k.constI64(0), keys), [&] {
    offsets.clear();
    outs.clear();
    for (int64_t i = 0; i < size; ++i) {
      offsets.push_back(rowOffset(k.add(firstIndex, i), dim));
      outs.push_back(rowOffset(k.add(firstIndex, i), valueDim));
    }
    emitScores(size, keys);
    emitSoftmax(firstIndex, size, keys);
    emitValues(size, keys);
  });
}

// scores[i][j] for the keys below `keys`, and some behind them.
void Attention::emitScores(int64_t size, Value keys) {
  int64_t width = std::min(accumulators / size, page / lanes);
  // A divisor of the page, so that no vector reaches beyond it.
  while (page % (width * lanes))
    --width;
  Type bits = k.vec(lanes, k.i16()), floats = k.vec(lanes, k.f32());
  k.loop(k.constI64(0), keys, width * lanes, [&](Value key) {
    Value column = k.at(keysAt, k.mul(key, 2));
    auto step = [&](Value d, ArrayRef<Value> sums) {
      Value line = k.at(column, k.mul(d, 2 * page));
      Value element = k.mul(d, 4);
      Values loaded, next;
      for (int64_t v = 0; v < width; ++v)
        loaded.push_back(k.halfToFloat(k.load(bits, k.at(line, 2 * lanes * v), 2 * lanes)));
      for (int64_t i = 0; i < size; ++i) {
        Value q = k.loadSplat(k.f32(), lanes, k.at(k.at(queries, offsets[i]), element));
        for (int64_t v = 0; v < width; ++v)
          next.push_back(k.mulAdd(q, loaded[v], sums[i * width + v]));
      }
      return next;
    };
    Values inits(size * width, k.zero(floats));
    Values sums = k.loop(k.constI64(0), k.constI64(dim), k.constI64(1), inits, step);
    for (int64_t i = 0; i < size; ++i)
      for (int64_t v = 0; v < width; ++v)
        k.store(k.softcap(k.mul(sums[i * width + v], k.constFloat(floats, scale)), softcap),
                k.at(k.at(scores, k.mul(key, 4)), 4 * (i * page + v * lanes)), 4 * lanes);
  });
}

// Turns scores into weights; updates m and l and leaves c in `factors`.
void Attention::emitSoftmax(Value firstIndex, int64_t size, Value keys) {
  Type floats = k.vec(lanes, k.f32()), ints = k.vec(lanes, k.i32());
  SmallVector<int32_t> ascending;
  for (int32_t i = 0; i < lanes; ++i)
    ascending.push_back(i);
  Value lane = arith::ConstantOp::create(
      k.builder, k.loc, DenseElementsAttr::get(cast<VectorType>(ints), ArrayRef(ascending)));
  Value bytes = k.mul(keys, 4);
  k.loop(k.constI64(0), k.constI64(size), 1, [&](Value i) {
    Value index = k.add(firstIndex, i);
    Value position = k.add(firstPosition, k.div(index, group));
    // Keys of the page up to this one are visible.
    Value last = k.truncate(k.min(k.sub(position, firstKey), k.constI64(page)), k.i32());
    Value row = k.at(scores, k.mul(i, 4 * page));
    Value before = k.truncate(k.sub(k.sub(position, firstKey), k.constI64(window)), k.i32());
    auto visible = [&](Value offset) {
      Value key = k.add(lane, k.splat(k.truncate(k.div(offset, 4), k.i32()), lanes));
      Value seen = k.lessEqual(key, k.splat(last, lanes));
      return window ? k.andBits(seen, k.less(k.splat(before, lanes), key)) : seen;
    };
    Value step = k.constI64(4 * lanes);
    Values highest = k.loop(k.constI64(0), bytes, step, {k.constFloat(floats, kMasked)},
                            [&](Value offset, ArrayRef<Value> carried) -> Values {
                              Value s = k.load(floats, k.at(row, offset), 4 * lanes);
                              s = k.select(visible(offset), s, k.constFloat(floats, kMasked));
                              return {k.max(carried[0], s)};
                            });
    Value maximumAt = k.at(maxima, k.mul(index, 4)), sumAt = k.at(this->sums, k.mul(index, 4));
    Value old = k.load(k.f32(), maximumAt, 4);
    Value maximum = k.max(old, k.maxLanes(highest[0]));
    Value factor = k.exp(k.sub(old, maximum));
    k.store(maximum, maximumAt, 4);
    k.store(factor, k.at(factors, k.mul(i, 4)), 4);
    Values total =
        k.loop(k.constI64(0), bytes, step, {k.zero(floats)},
               [&](Value offset, ArrayRef<Value> carried) -> Values {
                 Value at = k.at(row, offset);
                 Value p = k.exp(k.sub(k.load(floats, at, 4 * lanes), k.splat(maximum, lanes)));
                 p = k.select(visible(offset), p, k.zero(floats));
                 k.store(p, at, 4 * lanes);
                 return {k.add(carried[0], p)};
               });
    k.store(k.mulAdd(k.load(k.f32(), sumAt, 4), factor, k.sumLanes(total[0])), sumAt, 4);
  });
}

void Attention::emitValues(int64_t size, Value keys) {
  int64_t width = std::max<int64_t>(accumulators / size, 1);
  int64_t span = width * lanes, whole = valueDim / span * span;
  SmallVector<int64_t> pieces(width, lanes);
  if (whole)
    k.loop(k.constI64(0), k.constI64(whole), span,
           [&](Value column) { emitColumns(size, keys, column, pieces); });
  if (whole == valueDim)
    return;
  pieces.assign((valueDim - whole) / lanes, lanes);
  llvm::append_range(pieces, tailPieces(valueDim % lanes, lanes));
  emitColumns(size, keys, k.constI64(whole), pieces);
}

// Adds the page's values to the columns from `column` on that `pieces` cover.
void Attention::emitColumns(int64_t size, Value keys, Value column, ArrayRef<int64_t> pieces) {
  // Where each piece begins, in values behind `column`.
  SmallVector<int64_t> starts = {0};
  for (int64_t piece : pieces)
    starts.push_back(starts.back() + pieceValues(piece));
  auto result = [&](int64_t i, size_t v) {
    return k.at(k.at(k.at(out, outs[i]), k.mul(column, 4)), 4 * starts[v]);
  };
  Values inits;
  for (int64_t i = 0; i < size; ++i)
    for (auto [v, piece] : llvm::enumerate(pieces))
      inits.push_back(k.mul(k.load(k.vec(piece, k.f32()), result(i, v), 4),
                            k.loadSplat(k.f32(), piece, k.at(factors, 4 * i))));
  Value columnAt = k.at(valuesAt, k.mul(column, 2));
  auto step = [&](Value key, ArrayRef<Value> sums) {
    Value line = k.at(columnAt, k.mul(key, 2 * valueDim));
    Value weight = k.at(scores, k.mul(key, 4));
    Values loaded, next;
    for (auto [v, piece] : llvm::enumerate(pieces))
      loaded.push_back(k.halfToFloat(k.load(k.vec(piece, k.i16()), k.at(line, 2 * starts[v]), 2)));
    for (int64_t i = 0; i < size; ++i)
      for (auto [v, piece] : llvm::enumerate(pieces))
        next.push_back(k.mulAdd(k.loadSplat(k.f32(), piece, k.at(weight, 4 * i * page)), loaded[v],
                                sums[i * pieces.size() + v]));
    return next;
  };
  Values sums = k.loop(k.constI64(0), keys, k.constI64(1), inits, step);
  for (int64_t i = 0; i < size; ++i)
    for (size_t v = 0; v < pieces.size(); ++v)
      k.store(sums[i * pieces.size() + v], result(i, v), 4);
}

// The weighted sum over the sum of weights.
void Attention::emitQuotient(Value index) {
  Value row = k.at(out, rowOffset(index, valueDim));
  Value factor = k.constFloat(k.f32(), 1.0);
  Value sum = k.load(k.f32(), k.at(sums, k.mul(index, 4)), 4);
  if (sinks) {
    Value maximum = k.load(k.f32(), k.at(maxima, k.mul(index, 4)), 4);
    Value sink = k.load(k.f32(), k.at(sinks, k.mul(headNumber(index), 4)), 4);
    Value most = k.max(maximum, sink);
    factor = k.exp(k.sub(maximum, most));
    sum = k.mulAdd(sum, factor, k.exp(k.sub(sink, most)));
  }
  Value inverse = k.div(factor, sum);
  forEachPiece(k, valueDim, lanes, [&](Value offset, int64_t piece) {
    Value at = k.at(row, offset);
    k.store(k.mul(k.load(k.vec(piece, k.f32()), at, 4), k.splat(inverse, piece)), at, 4);
  });
}

} // namespace

llvm::LogicalResult emitAttention(KernelFrame &frame, pack::AttentionOp op) {
  auto kv = cast<pack::KvType>(op.getCache().getType());
  if (kv.getPage() % frame.machine.lanes != 0)
    return op.emitError("a page of ") << kv.getPage() << " tokens is not a multiple of the "
                                      << frame.machine.lanes << " lanes of a vector";
  if (op.getHeads() % kv.getHeads() != 0)
    return op.emitError() << op.getHeads() << " heads can't share " << kv.getHeads()
                          << " key heads evenly";
  Attention(frame, op).emit();
  return success();
}

} // namespace izhc
