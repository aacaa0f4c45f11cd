// pack.matmul: the loops over tiles and rows around TileProduct, and the
// epilogues.

#include "compiler/target/vector/Products.h"

namespace izhc {

using namespace mlir;

llvm::FailureOr<Segment> segmentOf(KernelFrame &frame, Operation *op, pack::ActType act,
                                   Value weight, Value bias) {
  auto type = llvm::cast<pack::WeightType>(weight.getType());
  const FormatSpec *format = findFormat(type.getFormat().getValue());
  if (!format)
    return op->emitError("unknown weight format '") << type.getFormat().getValue() << "'";
  bool needsBlock32 = format->kind == ElementKind::Quantized && format->blockWeights != 256;
  if (act.getKind() == pack::ActKind::Block256 && needsBlock32)
    return op->emitError("weights in blocks of 32 or 64 can't take block256 activations");
  if (act.getKind() != pack::ActKind::F32 && format->kind != ElementKind::Quantized)
    return op->emitError("float weights need f32 activations");
  return Segment{format, frame.address(weight), bias ? frame.address(bias) : Value(),
                 type.getRows(), type.getCols()};
}

namespace {

class MatmulEmitter {
public:
  MatmulEmitter(KernelFrame &frame, pack::MatmulOp op)
      : frame(frame), k(frame.k), op(op), act(llvm::cast<pack::ActType>(op.getAct().getType())),
        layout(act), gated(pack::isGated(op.getEpilogue())) {}

  LogicalResult emit();

private:
  void tiles(llvm::ArrayRef<Segment> segments, int64_t firstColumn);
  void finish(llvm::ArrayRef<Segment> segments, Value tile, Value firstRow, int64_t rows,
              int64_t column);
  void columns(llvm::ArrayRef<Segment> segments, Value tile, Value outColumn, Value row,
               Value outRow, int64_t lanes, int64_t count);
  Value sumAt(const Segment &segment, Value tile, Value row, Value column, int64_t lanes,
              int64_t which);

  KernelFrame &frame;
  KernelBuilder &k;
  pack::MatmulOp op;
  pack::ActType act;
  pack::ActLayout layout;
  bool gated;
  int64_t outStride = 0;
  Value scratch, sums[2], records, out, count;
};

LogicalResult MatmulEmitter::emit() {
  auto outType = llvm::cast<MemRefType>(op.getInto().getType());
  outStride = 4 * outType.getDimSize(1);
  records = frame.address(op.getAct());
  out = frame.address(op.getInto());
  count = frame.rows(op.getRowSet());
  scratch = k.stack(TileProduct::kScratchBytes);
  int64_t most = frame.machine.tokenTiles.front();
  for (int64_t i = 0; i < (gated ? 2 : 1); ++i)
    sums[i] = k.stack(most * 4 * PackedLayout::kTileRows);

  llvm::SmallVector<Segment> segments;
  for (auto [i, weight] : llvm::enumerate(op.getWeights())) {
    auto segment =
        segmentOf(frame, op, act, weight, op.getBiases().empty() ? Value() : op.getBiases()[i]);
    if (failed(segment))
      return failure();
    segments.push_back(*segment);
  }
  if (gated) {
    tiles(segments, 0);
    return success();
  }
  int64_t unit = 0, column = 0;
  for (const Segment &segment : segments) {
    // Units are numbered through; each matrix takes its share of begin..end.
    forSegmentUnits(frame, unit, segment.tiles(), [&](Value begin, Value end) {
      Value savedBegin = frame.begin, savedEnd = frame.end;
      frame.begin = begin;
      frame.end = end;
      tiles(segment, column);
      frame.begin = savedBegin;
      frame.end = savedEnd;
    });
    unit += segment.tiles();
    column += segment.rows;
  }
  return success();
}

// The sums (+ bias) of `which` product (0, or 1 for up) at a column of the tile.
Value MatmulEmitter::sumAt(const Segment &segment, Value tile, Value row, Value column,
                           int64_t lanes, int64_t which) {
  Type type = k.vec(lanes, k.f32());
  Value offset = k.mul(column, 4);
  Value at = k.add(k.mul(row, 4 * PackedLayout::kTileRows), offset);
  Value sum = k.load(type, k.at(sums[which], at), lanes == 1 ? 4 : unsigned(4 * lanes));
  if (!segment.bias)
    return sum;
  Value bias = k.at(segment.bias, k.mul(tile, 4 * PackedLayout::kTileRows));
  return k.add(sum, k.load(type, k.at(bias, offset), 4));
}

// Tiles begin..end of one matrix, or of gate and up.
void MatmulEmitter::tiles(llvm::ArrayRef<Segment> segments, int64_t firstColumn) {
  llvm::SmallVector<TileProduct, 2> products;
  for (const Segment &segment : segments)
    products.emplace_back(frame, *segment.format, act, segment.cols, scratch);
  k.loop(frame.begin, frame.end, 1, [&](Value tile) {
    forRowGroups(k, rowTiles(frame, act, segments), count, [&](Value first, int64_t rows) {
      Value record = k.at(records, k.mul(first, layout.stride));
      for (size_t i = 0; i < segments.size(); ++i) {
        Value weights = k.at(segments[i].weights, k.mul(tile, products[i].tileBytes()));
        products[i].emit(weights, record, rows, sums[i], 4 * PackedLayout::kTileRows);
      }
      finish(segments, tile, first, rows, firstColumn);
    });
  });
}

void MatmulEmitter::finish(llvm::ArrayRef<Segment> segments, Value tile, Value firstRow,
                           int64_t rows, int64_t column) {
  const Segment &segment = segments[0];
  int64_t lanes = frame.machine.lanes, surplus = segment.rows % PackedLayout::kTileRows;
  Value firstOut = k.add(k.mul(tile, PackedLayout::kTileRows), column);
  k.loop(k.constI64(0), k.constI64(rows), 1, [&](Value row) {
    Value outRow = k.at(out, k.mul(k.add(firstRow, row), outStride));
    auto whole = [&] {
      columns(segments, tile, firstOut, row, outRow, lanes, PackedLayout::kTileRows);
    };
    if (surplus == 0)
      return whole();
    Value last = k.equal(tile, k.constI64(segment.tiles() - 1));
    k.ifThenElse(last, [&] { columns(segments, tile, firstOut, row, outRow, 1, surplus); }, whole);
  });
}

void MatmulEmitter::columns(llvm::ArrayRef<Segment> segments, Value tile, Value outColumn,
                            Value row, Value outRow, int64_t lanes, int64_t count) {
  Type type = k.vec(lanes, k.f32());
  Value base = k.at(outRow, k.mul(outColumn, 4));
  k.loop(k.constI64(0), k.constI64(count), lanes, [&](Value column) {
    Value offset = k.mul(column, 4);
    Value result = sumAt(segments[0], tile, row, column, lanes, 0);
    Value to = k.at(base, offset);
    float scale = op.getScale().convertToFloat();
    auto scaled = [&] { return scale == 1.0f ? result : k.mul(result, k.constFloat(type, scale)); };
    switch (op.getEpilogue()) {
    case pack::Epilogue::Store:
      result = scaled();
      break;
    case pack::Epilogue::Add:
      result = k.add(k.load(type, to, 4), scaled());
      break;
    case pack::Epilogue::SiluGate:
      result = k.mul(k.silu(result), sumAt(segments[1], tile, row, column, lanes, 1));
      break;
    case pack::Epilogue::GeluGate:
      result = k.mul(k.gelu(result), sumAt(segments[1], tile, row, column, lanes, 1));
      break;
    case pack::Epilogue::SoftCap: {
      Value cap = k.constFloat(type, scale), inverse = k.constFloat(type, 1.0 / scale);
      result = k.mul(cap, k.tanh(k.mul(result, inverse)));
      break;
    }
    }
    k.store(result, to, 4);
  });
}

} // namespace

llvm::LogicalResult emitMatmul(KernelFrame &frame, pack::MatmulOp op) {
  return MatmulEmitter(frame, op).emit();
}

llvm::ArrayRef<int64_t> rowTiles(const KernelFrame &frame, pack::ActType act,
                                 llvm::ArrayRef<Segment> segments) {
  llvm::ArrayRef<int64_t> tiles = frame.machine.tokenTiles;
  bool expands =
      act.getKind() == pack::ActKind::F32 && llvm::any_of(segments, [](const Segment &segment) {
        return segment.format->kind == ElementKind::Quantized;
      });
  return expands ? tiles.take_back(2) : tiles;
}

void forSegmentUnits(KernelFrame &frame, int64_t firstUnit, int64_t units,
                     llvm::function_ref<void(Value begin, Value end)> body) {
  KernelBuilder &k = frame.k;
  auto clamp = [&](Value unit) {
    Value own = k.add(unit, -firstUnit);
    return k.min(k.max(own, k.constI64(0)), k.constI64(units));
  };
  body(clamp(frame.begin), clamp(frame.end));
}

} // namespace izhc
