// pack.head_matmul, pack.join and pack.scale_rows.

#include "compiler/target/vector/Pieces.h"
#include "compiler/target/vector/Products.h"

namespace izhc {

using namespace mlir;

static int64_t widthOf(Value buffer) { return cast<MemRefType>(buffer.getType()).getDimSize(1); }

// Tiles of all heads lie one behind the other, so a unit's number is its place.
llvm::LogicalResult emitHeadMatmul(KernelFrame &frame, pack::HeadMatmulOp op) {
  KernelBuilder &k = frame.k;
  auto act = cast<pack::ActType>(op.getAct().getType());
  int64_t heads = cast<pack::WeightType>(op.getWeight().getType()).getCount();
  int64_t stride = pack::ActLayout(act).stride, lanes = frame.machine.lanes;
  auto segment = segmentOf(frame, op, act, op.getWeight(), Value());
  if (failed(segment))
    return failure();
  TileProduct product(frame, *segment->format, act, segment->cols,
                      k.stack(TileProduct::kScratchBytes), heads * stride);
  Value sums = k.stack(frame.machine.tokenTiles.front() * 4 * PackedLayout::kTileRows);
  Value out = frame.address(op.getInto());
  int64_t tiles = segment->tiles(), surplus = segment->rows % PackedLayout::kTileRows;
  k.loop(frame.begin, frame.end, 1, [&](Value unit) {
    Value head = k.div(unit, tiles), tile = k.rem(unit, tiles);
    Value weights = k.at(segment->weights, k.mul(unit, product.tileBytes()));
    Value column = k.add(k.mul(head, segment->rows), k.mul(tile, PackedLayout::kTileRows));
    forRowGroups(k, rowTiles(frame, act, *segment), frame.tokens, [&](Value first, int64_t rows) {
      Value record =
          k.at(frame.address(op.getAct()), k.mul(k.add(k.mul(first, heads), head), stride));
      product.emit(weights, record, rows, sums, 4 * PackedLayout::kTileRows);
      k.loop(k.constI64(0), k.constI64(rows), 1, [&](Value row) {
        Value from = k.at(sums, k.mul(row, 4 * PackedLayout::kTileRows));
        Value to =
            k.at(k.at(out, k.mul(k.add(first, row), 4 * widthOf(op.getInto()))), k.mul(column, 4));
        auto copy = [&](int64_t count) {
          forEachPiece(k, count, lanes, [&](Value offset, int64_t piece) {
            k.store(k.load(k.vec(piece, k.f32()), k.at(from, offset), 4), k.at(to, offset), 4);
          });
        };
        if (surplus == 0)
          return copy(PackedLayout::kTileRows);
        k.ifThenElse(
            k.equal(tile, k.constI64(tiles - 1)), [&] { copy(surplus); },
            [&] { copy(PackedLayout::kTileRows); });
      });
    });
  });
  return success();
}

llvm::LogicalResult emitJoin(KernelFrame &frame, pack::JoinOp op) {
  KernelBuilder &k = frame.k;
  int64_t heads = op.getHeads();
  k.loop(frame.begin, frame.end, 1, [&](Value row) {
    k.loop(k.constI64(0), k.constI64(heads), 1, [&](Value head) {
      Value out = k.at(frame.address(op.getInto()), k.mul(row, 4 * widthOf(op.getInto())));
      out = k.at(out, k.mul(head, 4 * widthOf(op.getInto()) / heads));
      int64_t done = 0;
      for (Value part : {op.getLhs(), op.getRhs()}) {
        int64_t run = widthOf(part) / heads;
        Value from = k.at(frame.address(part), k.mul(row, 4 * widthOf(part)));
        from = k.at(from, k.mul(head, 4 * run));
        forEachPiece(k, run, frame.machine.lanes, [&](Value offset, int64_t piece) {
          k.store(k.load(k.vec(piece, k.f32()), k.at(from, offset), 4),
                  k.at(k.at(out, offset), 4 * done), 4);
        });
        done += run;
      }
    });
  });
  return success();
}

llvm::LogicalResult emitScaleRows(KernelFrame &frame, pack::ScaleRowsOp op) {
  KernelBuilder &k = frame.k;
  int64_t width = widthOf(op.getInto());
  k.loop(frame.begin, frame.end, 1, [&](Value row) {
    Value factor = k.load(k.f32(), k.at(frame.address(op.getFactors()), k.mul(row, 4)), 4);
    Value offset = k.mul(row, 4 * width);
    Value from = k.at(frame.address(op.getInput()), offset);
    Value to = k.at(frame.address(op.getInto()), offset);
    forEachPiece(k, width, frame.machine.lanes, [&](Value at, int64_t piece) {
      Value x = k.load(k.vec(piece, k.f32()), k.at(from, at), 4);
      k.store(k.mul(x, k.splat(factor, piece)), k.at(to, at), 4);
    });
  });
  return success();
}

} // namespace izhc
