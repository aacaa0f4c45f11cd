// pack.matmul_heads: query, key and value products by groups of whole heads,
// with norm, rotation and the write to the cache while the sums are in the
// first-level cache.

#include "compiler/target/vector/Hadamard.h"
#include "compiler/target/vector/KvWriter.h"
#include "compiler/target/vector/SegmentProducts.h"
#include <numeric>

namespace izhc {

using namespace mlir;

namespace {

class HeadsEmitter {
public:
  HeadsEmitter(KernelFrame &frame, pack::MatmulHeadsOp op)
      : frame(frame), k(frame.k), op(op), act(llvm::cast<pack::ActType>(op.getAct().getType())),
        layout(act), kv(llvm::cast<pack::KvType>(op.getCache().getType())),
        writer(k, kv, frame.machine.lanes), headDim(op.getHeadDim()),
        groupRows(std::lcm(op.getHeadDim(), PackedLayout::kTileRows)) {}

  LogicalResult emit();

private:
  // A group of whole heads that lie side by side in whole tiles.
  struct Group {
    Value number, firstTile, tiles;
  };
  void group(const Segment &segment, int64_t role, Value number);
  void few(const Segment &segment, int64_t role, const Group &group);
  // `step` tiles are multiplied together by `product`.
  // Passes of `most` rows at most.
  template <typename Body>
  void many(const Segment &segment, int64_t role, const Group &group, int64_t groupRows,
            int64_t most, int64_t step, Body product);
  void panels(const Segment &segment, int64_t role, const Group &group);
  void decoded(const Segment &segment, int64_t role, const Group &group);
  int64_t passRows(int64_t group, int64_t most) const;
  void finishRows(const Segment &segment, int64_t role, const Group &group, Value first, Value rows,
                  Value values);
  void finishHead(const Segment &segment, int64_t role, Value head, Value values, Value row);
  void addBias(const Segment &segment, Value head, Value values);
  void normalise(Value norm, Value values);
  void rotate(Value values, Value row);
  void rotatePairs(Value values, Value cosines, Value sines);
  void storeQuery(Value head, Value values, Value row);
  Value slotOf(Value row) {
    return k.extendU(k.load(k.i32(), k.at(frame.address(op.getSlots()), k.mul(row, 4)), 4),
                     k.i64());
  }
  // Widest vectors that tile `count` values.
  int64_t widthFor(int64_t count) { return std::gcd(count, frame.machine.lanes); }
  void overVectors(int64_t count, int64_t width, llvm::function_ref<void(Value offset)> body) {
    k.loop(k.constI64(0), k.constI64(4 * count), 4 * width, body);
  }
  Value loadFloats(Value base, Value offset, int64_t width) {
    return k.load(k.vec(width, k.f32()), k.at(base, offset), 4);
  }

  KernelFrame &frame;
  KernelBuilder &k;
  pack::MatmulHeadsOp op;
  pack::ActType act;
  pack::ActLayout layout;
  pack::KvType kv;
  KvWriter writer;
  int64_t headDim, groupRows;
  Value scratch, panel, sums;
};

// Bytes of sums that such a pass has at most: groups that cover 128 rows of
// heads of 128 values, half a step. Two rows too many would take a pass of their
// own.
constexpr int64_t kPassBytes = 66 * 1024;

// The most rows of activations in a pass of groups of `group` rows, of which a
// panel serves `most`.
int64_t HeadsEmitter::passRows(int64_t group, int64_t most) const {
  return std::clamp(kPassBytes / (4 * groupRows), group, most) / group * group;
}

LogicalResult HeadsEmitter::emit() {
  scratch = k.stack(TileProduct::kScratchBytes);
  int64_t most = frame.machine.tokenTiles.front();
  panel = manyRowsScratch(frame);
  if (panel)
    most = std::max({most, passRows(PanelProduct::kGroupRows, PanelProduct::kMostRows),
                     passRows(DecodedProduct::groupRows(frame.machine), DecodedProduct::kMostRows)});
  sums = k.stack(most * 4 * groupRows);
  int64_t unit = 0;
  for (auto [role, weight] : llvm::enumerate(op.getWeights())) {
    auto segment =
        segmentOf(frame, op, act, weight, op.getBiases().empty() ? Value() : op.getBiases()[role]);
    if (failed(segment))
      return failure();
    if (segment->rows % headDim)
      return op.emitError("a matrix has ")
             << segment->rows << " rows, which are no whole heads of " << headDim;
    int64_t groups = (segment->rows + groupRows - 1) / groupRows;
    forSegmentUnits(frame, unit, groups, [&](Value begin, Value end) {
      k.loop(begin, end, 1, [&](Value number) { group(*segment, int64_t(role), number); });
    });
    unit += groups;
  }
  return success();
}

// All rows of activations times the heads of one group.
void HeadsEmitter::group(const Segment &segment, int64_t role, Value number) {
  int64_t groupTiles = groupRows / PackedLayout::kTileRows;
  Value firstTile = k.mul(number, groupTiles);
  // A last group may have fewer tiles than the others.
  Value tiles = k.min(k.sub(k.constI64(segment.tiles()), firstTile), k.constI64(groupTiles));
  Group group{number, firstTile, tiles};
  ManyRows many = manyRows(frame, act, segment);
  // Heads of an odd number of tiles have some without a neighbour.
  int64_t together =
      many.kind == ManyRows::Decoded ? DecodedProduct::tilesAtOnce(frame.machine) : 1;
  if (many.kind == ManyRows::None || groupTiles % together || segment.tiles() % together)
    return few(segment, role, group);
  k.ifThenElse(
      k.less(frame.tokens, k.constI64(many.fewest)), [&] { few(segment, role, group); },
      [&] {
        many.kind == ManyRows::Panels ? panels(segment, role, group)
                                      : decoded(segment, role, group);
      });
}

void HeadsEmitter::few(const Segment &segment, int64_t role, const Group &group) {
  TileProduct product(frame, *segment.format, act, segment.cols, scratch);
  Value records = frame.address(op.getAct());
  forRowGroups(k, rowTiles(frame, act, segment), frame.tokens, [&](Value first, int64_t rows) {
    Value record = k.at(records, k.mul(first, layout.stride));
    k.loop(k.constI64(0), group.tiles, 1, [&](Value tile) {
      Value number = k.add(group.firstTile, tile);
      Value weights = k.at(segment.weights, k.mul(number, product.tileBytes()));
      Value to = k.at(sums, k.mul(tile, 4 * PackedLayout::kTileRows));
      product.emit(weights, record, rows, to, 4 * groupRows);
    });
    finishRows(segment, role, group, first, k.constI64(rows), sums);
  });
}

template <typename Body>
void HeadsEmitter::many(const Segment &segment, int64_t role, const Group &group,
                        int64_t groupOfRows, int64_t most, int64_t step, Body product) {
  Value records = frame.address(op.getAct());
  int64_t passed = passRows(groupOfRows, most);
  forPanelPasses(k, frame.tokens, groupOfRows, passed, [&](const PanelPass &pass) {
    Value record = k.at(records, k.mul(pass.first, layout.stride));
    k.loop(k.constI64(0), group.tiles, step, [&](Value tile) {
      llvm::SmallVector<Value, 2> weights, out;
      for (int64_t i = 0; i < step; ++i) {
        Value number = k.add(k.add(group.firstTile, tile), i);
        int64_t tileBytes = PackedLayout(*segment.format).tileBytes(segment.cols);
        weights.push_back(k.at(segment.weights, k.mul(number, tileBytes)));
        out.push_back(k.at(sums, k.mul(k.add(tile, i), 4 * PackedLayout::kTileRows)));
      }
      product(weights, record, pass.rows, out);
    });
    pass.forGroups(k, [&](Value first, Value rows, Value sumsBefore) {
      finishRows(segment, role, group, first, rows, k.at(sums, k.mul(sumsBefore, 4 * groupRows)));
    });
  });
}

void HeadsEmitter::panels(const Segment &segment, int64_t role, const Group &group) {
  PanelProduct product(frame, *segment.format, act, segment.cols, scratch, panel);
  many(segment, role, group, PanelProduct::kGroupRows, PanelProduct::kMostRows, 1,
       [&](auto &weights, Value record, Value rows, auto &out) {
         product.emit(weights[0], record, rows, out[0], 4 * groupRows);
       });
}

void HeadsEmitter::decoded(const Segment &segment, int64_t role, const Group &group) {
  DecodedProduct product(frame, *segment.format, act, segment.cols, scratch, panel);
  many(segment, role, group, DecodedProduct::groupRows(frame.machine), DecodedProduct::kMostRows,
       DecodedProduct::tilesAtOnce(frame.machine),
       [&](auto &weights, Value record, Value rows, auto &out) {
         product.emit(weights, record, rows, out, 4 * groupRows);
       });
}

// `values`: the sums of the group's heads, those of row `first` first.
void HeadsEmitter::finishRows(const Segment &segment, int64_t role, const Group &group, Value first,
                              Value rows, Value values) {
  int64_t heads = groupRows / headDim;
  k.loop(k.constI64(0), rows, 1, [&](Value row) {
    k.loop(k.constI64(0), k.constI64(heads), 1, [&](Value inGroup) {
      Value head = k.add(k.mul(group.number, heads), inGroup);
      Value offset = k.add(k.mul(row, 4 * groupRows), k.mul(inGroup, 4 * headDim));
      auto finish = [&] {
        finishHead(segment, role, head, k.at(values, offset), k.add(first, row));
      };
      if (heads == 1)
        return finish();
      k.ifThen(k.less(head, k.constI64(segment.rows / headDim)), finish);
    });
  });
}

void HeadsEmitter::finishHead(const Segment &segment, int64_t role, Value head, Value values,
                              Value row) {
  if (segment.bias)
    addBias(segment, head, values);
  if (Value norm = role == 0 ? op.getQNorm() : role == 1 ? op.getKNorm() : Value())
    normalise(frame.address(norm), values);
  if (role < 2 && op.getRope() != pack::RopeStyle::None)
    rotate(values, row);
  if (role == 0)
    storeQuery(head, values, row);
  else if (role == 1)
    writer.storeKey(frame.address(op.getCache()), slotOf(row), head, values);
  else
    writer.storeValue(frame.address(op.getCache()), slotOf(row), head, values);
}

void HeadsEmitter::addBias(const Segment &segment, Value head, Value values) {
  Value bias = k.at(segment.bias, k.mul(head, 4 * headDim));
  int64_t width = widthFor(headDim);
  overVectors(headDim, width, [&](Value offset) {
    k.store(k.add(loadFloats(values, offset, width), loadFloats(bias, offset, width)),
            k.at(values, offset), 4);
  });
}

void HeadsEmitter::normalise(Value norm, Value values) {
  int64_t width = widthFor(headDim);
  Value start = k.zero(k.vec(width, k.f32()));
  Value squares = k.loop(k.constI64(0), k.constI64(4 * headDim), k.constI64(4 * width), start,
                         [&](Value offset, llvm::ArrayRef<Value> carried) {
                           Value v = loadFloats(values, offset, width);
                           return KernelBuilder::Values{k.mulAdd(v, v, carried[0])};
                         })[0];
  Value mean = k.mul(k.sumLanes(squares), k.constFloat(k.f32(), 1.0 / double(headDim)));
  Value eps = k.constFloat(k.f32(), op.getEps().convertToFloat());
  Value factor = k.div(k.constFloat(k.f32(), 1.0), k.sqrt(k.add(mean, eps)));
  Value factors = k.splat(factor, width);
  overVectors(headDim, width, [&](Value offset) {
    Value v = k.mul(loadFloats(values, offset, width), factors);
    k.store(k.mul(v, loadFloats(norm, offset, width)), k.at(values, offset), 4);
  });
}

void HeadsEmitter::rotate(Value values, Value row) {
  int64_t half = op.getRotary() / 2;
  Value cosines = k.at(frame.address(op.getTable()), k.mul(row, 4 * op.getRotary()));
  Value sines = k.at(cosines, 4 * half);
  if (op.getRope() == pack::RopeStyle::Pairs)
    return rotatePairs(values, cosines, sines);
  int64_t width = widthFor(half);
  Value upper = k.at(values, 4 * half);
  overVectors(half, width, [&](Value offset) {
    Value a = loadFloats(values, offset, width), b = loadFloats(upper, offset, width);
    Value c = loadFloats(cosines, offset, width), s = loadFloats(sines, offset, width);
    k.store(k.sub(k.mul(a, c), k.mul(b, s)), k.at(values, offset), 4);
    k.store(k.add(k.mul(b, c), k.mul(a, s)), k.at(upper, offset), 4);
  });
}

// Values 2i and 2i + 1: taken apart, turned and put together again.
void HeadsEmitter::rotatePairs(Value values, Value cosines, Value sines) {
  int64_t half = op.getRotary() / 2, width = widthFor(half);
  llvm::SmallVector<int64_t> even, odd, joined;
  for (int64_t i = 0; i < width; ++i) {
    even.push_back(2 * i);
    odd.push_back(2 * i + 1);
    joined.push_back(i);
    joined.push_back(width + i);
  }
  overVectors(half, width, [&](Value offset) {
    Value place = k.mul(offset, 2);
    Value both = loadFloats(values, place, 2 * width);
    Value a = k.shuffle(both, both, even), b = k.shuffle(both, both, odd);
    Value c = loadFloats(cosines, offset, width), s = loadFloats(sines, offset, width);
    Value turnedA = k.sub(k.mul(a, c), k.mul(b, s));
    Value turnedB = k.add(k.mul(b, c), k.mul(a, s));
    k.store(k.shuffle(turnedA, turnedB, joined), k.at(values, place), 4);
  });
}

void HeadsEmitter::storeQuery(Value head, Value values, Value row) {
  if (kv.isTurned())
    emitHadamard(k, values, headDim, frame.machine.lanes);
  auto type = llvm::cast<MemRefType>(op.getQueries().getType());
  Value to = k.at(frame.address(op.getQueries()),
                  k.add(k.mul(row, 4 * type.getDimSize(1)), k.mul(head, 4 * headDim)));
  int64_t width = widthFor(headDim);
  overVectors(headDim, width, [&](Value offset) {
    k.store(loadFloats(values, offset, width), k.at(to, offset), 4);
  });
}

} // namespace

llvm::LogicalResult emitMatmulHeads(KernelFrame &frame, pack::MatmulHeadsOp op) {
  return HeadsEmitter(frame, op).emit();
}

} // namespace izhc
