// pack.matmul: the loops over tiles and rows around TileProduct, and the
// epilogues.

#include "compiler/target/vector/SegmentProducts.h"

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
        gated(pack::isGated(op.getEpilogue())), products(frame, act, gated ? 2 : 1) {}

  LogicalResult emit();

private:
  using Rows = SegmentProducts::Rows;

  void tiles(llvm::ArrayRef<Segment> segments, int64_t firstColumn);
  void finish(llvm::ArrayRef<Segment> segments, const Rows &rows, int64_t column);
  void columns(llvm::ArrayRef<Segment> segments, const Rows &rows, Value outColumn, Value row,
               Value outRow, int64_t lanes, int64_t count);
  Value sumAt(const Segment &segment, const Rows &rows, Value row, Value column, int64_t lanes,
              int64_t which);

  KernelFrame &frame;
  KernelBuilder &k;
  pack::MatmulOp op;
  pack::ActType act;
  bool gated;
  SegmentProducts products;
  int64_t outStride = 0;
  Value records, out, count;
};

LogicalResult MatmulEmitter::emit() {
  auto outType = llvm::cast<MemRefType>(op.getInto().getType());
  outStride = 4 * outType.getDimSize(1);
  records = frame.address(op.getAct());
  out = frame.address(op.getInto());
  count = frame.rows(op.getRowSet());

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
Value MatmulEmitter::sumAt(const Segment &segment, const Rows &rows, Value row, Value column,
                           int64_t lanes, int64_t which) {
  Type type = k.vec(lanes, k.f32());
  Value offset = k.mul(column, 4);
  Value at = k.add(k.mul(row, 4 * PackedLayout::kTileRows), offset);
  Value sum = k.load(type, k.at(rows.sums[which], at), lanes == 1 ? 4 : unsigned(4 * lanes));
  if (!segment.bias)
    return sum;
  Value bias = k.at(segment.bias, k.mul(rows.tile, 4 * PackedLayout::kTileRows));
  return k.add(sum, k.load(type, k.at(bias, offset), 4));
}

// Tiles begin..end of one matrix, or of gate and up.
void MatmulEmitter::tiles(llvm::ArrayRef<Segment> segments, int64_t firstColumn) {
  products.emit(segments, records, count,
                [&](const Rows &rows) { finish(segments, rows, firstColumn); });
}

void MatmulEmitter::finish(llvm::ArrayRef<Segment> segments, const Rows &rows, int64_t column) {
  const Segment &segment = segments[0];
  int64_t lanes = frame.machine.lanes, surplus = segment.rows % PackedLayout::kTileRows;
  Value firstOut = k.add(k.mul(rows.tile, PackedLayout::kTileRows), column);
  k.loop(k.constI64(0), rows.count, 1, [&](Value row) {
    Value outRow = k.at(out, k.mul(k.add(rows.first, row), outStride));
    auto whole = [&] {
      columns(segments, rows, firstOut, row, outRow, lanes, PackedLayout::kTileRows);
    };
    if (surplus == 0)
      return whole();
    Value last = k.equal(rows.tile, k.constI64(segment.tiles() - 1));
    k.ifThenElse(last, [&] { columns(segments, rows, firstOut, row, outRow, 1, surplus); }, whole);
  });
}

void MatmulEmitter::columns(llvm::ArrayRef<Segment> segments, const Rows &rows, Value outColumn,
                            Value row, Value outRow, int64_t lanes, int64_t count) {
  Type type = k.vec(lanes, k.f32());
  Value base = k.at(outRow, k.mul(outColumn, 4));
  k.loop(k.constI64(0), k.constI64(count), lanes, [&](Value column) {
    Value offset = k.mul(column, 4);
    Value result = sumAt(segments[0], rows, row, column, lanes, 0);
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
      result = k.mul(k.silu(result), sumAt(segments[1], rows, row, column, lanes, 1));
      break;
    case pack::Epilogue::GeluGate:
      result = k.mul(k.gelu(result), sumAt(segments[1], rows, row, column, lanes, 1));
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
