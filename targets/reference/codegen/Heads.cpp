// `head_matmul`, `join` and `scale_rows`: what is done head by head or row by row.

#include "targets/reference/codegen/Lowering.h"
#include "targets/reference/codegen/Weights.h"

namespace izhc::reference {

using namespace mlir;

LogicalResult emitHeadMatmul(KernelFrameBase &frame, pack::HeadMatmulOp op) {
  KernelBuilder &k = frame.k;
  auto type = cast<pack::WeightType>(op.getWeight().getType());
  auto act = cast<pack::ActType>(op.getAct().getType());
  auto weights = Weights::of(op, k, type);
  if (!weights)
    return failure();
  int64_t rows = type.getRows(), heads = type.getCount();
  int64_t tiles = llvm::divideCeil(rows, PackedLayout::kTileRows);
  int64_t matrixBytes =
      PackedLayout(*findFormat(type.getFormat().getValue())).matrixBytes(rows, type.getCols());
  bool ok = true;
  k.loop(frame.begin, frame.end, 1, [&](Value unit) {
    Value head = k.div(unit, tiles), first = k.mul(k.rem(unit, tiles), PackedLayout::kTileRows);
    Value base = k.at(frame.address(op.getWeight()), k.mul(head, matrixBytes));
    Value end = k.min(k.add(first, PackedLayout::kTileRows), k.constI64(rows));
    k.loop(first, end, 1, [&](Value row) {
      k.loop(k.constI64(0), frame.tokens, 1, [&](Value token) {
        Value number = k.add(k.mul(token, heads), head);
        Value record = k.at(frame.address(op.getAct()), k.mul(number, pack::ActLayout(act).stride));
        auto y = weights->dot(op, weights->row(base, row), record, act);
        ok &= succeeded(y);
        if (!ok)
          return;
        Value out = k.at(frame.address(op.getInto()), k.mul(token, rowBytes(op.getInto())));
        storeFloat(k, *y, out, k.add(k.mul(head, rows), row));
      });
    });
  });
  return success(ok);
}

LogicalResult emitJoin(KernelFrameBase &frame, pack::JoinOp op) {
  KernelBuilder &k = frame.k;
  int64_t heads = op.getHeads(), width = rowBytes(op.getInto()) / 4 / heads;
  int64_t left = rowBytes(op.getLhs()) / 4 / heads, right = width - left;
  k.loop(frame.begin, frame.end, 1, [&](Value row) {
    auto rowOf = [&](Value buffer) {
      return k.at(frame.address(buffer), k.mul(row, rowBytes(buffer)));
    };
    k.loop(k.constI64(0), k.constI64(heads), 1, [&](Value head) {
      auto copy = [&](Value from, int64_t count, int64_t offset) {
        k.loop(k.constI64(0), k.constI64(count), 1, [&](Value i) {
          Value x = loadFloat(k, rowOf(from), k.add(k.mul(head, count), i));
          storeFloat(k, x, rowOf(op.getInto()), k.add(k.add(k.mul(head, width), i), offset));
        });
      };
      copy(op.getLhs(), left, 0);
      copy(op.getRhs(), right, left);
    });
  });
  return success();
}

LogicalResult emitScaleRows(KernelFrameBase &frame, pack::ScaleRowsOp op) {
  KernelBuilder &k = frame.k;
  int64_t width = rowBytes(op.getInto()) / 4;
  k.loop(frame.begin, frame.end, 1, [&](Value row) {
    Value factor = loadFloat(k, frame.address(op.getFactors()), row);
    k.loop(k.constI64(0), k.constI64(width), 1, [&](Value i) {
      Value at = k.add(k.mul(row, width), i);
      Value x = loadFloat(k, frame.address(op.getInput()), at);
      storeFloat(k, k.mul(x, factor), frame.address(op.getInto()), at);
    });
  });
  return success();
}

} // namespace izhc::reference
