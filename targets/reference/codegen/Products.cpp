// Products of activations with encoded matrices: `matmul` and `matmul_heads`.

#include "targets/reference/codegen/KvCells.h"
#include "targets/reference/codegen/Lowering.h"
#include "targets/reference/codegen/Weights.h"
#include <numeric>

namespace izhc::reference {

using namespace mlir;

namespace {

constexpr int64_t kTile = PackedLayout::kTileRows;

// The matrices of an op with their biases, all read with the same activations.
struct Products {
  KernelFrameBase &frame;
  Operation *op;
  Value act;
  pack::ActType actType;
  llvm::SmallVector<Weights> weights;
  llvm::SmallVector<Value> bases, biases;
  llvm::SmallVector<int64_t> rows;

  Products(KernelFrameBase &frame, Operation *op, Value act)
      : frame(frame), op(op), act(act), actType(cast<pack::ActType>(act.getType())) {}

  LogicalResult init(ValueRange weightOperands, ValueRange biasOperands) {
    for (Value operand : weightOperands) {
      auto reader = Weights::of(op, frame.k, operand.getType());
      if (!reader)
        return failure();
      weights.push_back(*reader);
      bases.push_back(frame.address(operand));
      rows.push_back(cast<pack::WeightType>(operand.getType()).getRows());
    }
    for (Value operand : biasOperands)
      biases.push_back(frame.address(operand));
    return success();
  }

  // y[token, row] of one matrix.
  FailureOr<Value> at(size_t matrix, Value row, Value token) {
    KernelBuilder &k = frame.k;
    Value record = k.at(frame.address(act), k.mul(token, pack::ActLayout(actType).stride));
    Weights::Row place = weights[matrix].row(bases[matrix], row);
    auto y = weights[matrix].dot(op, place, record, actType);
    if (failed(y) || biases.empty())
      return y;
    return k.add(*y, loadFloat(k, biases[matrix], row));
  }
};

// Loops over those of the units [first, first + count) that the frame asks for,
// numbered from 0.
void forUnits(KernelFrameBase &frame, int64_t first, int64_t count,
              llvm::function_ref<void(Value unit)> body) {
  KernelBuilder &k = frame.k;
  Value lo = k.max(frame.begin, k.constI64(first));
  Value hi = k.min(frame.end, k.constI64(first + count));
  k.loop(lo, hi, 1, [&](Value unit) { body(k.add(unit, -first)); });
}

} // namespace

// What goes to `place` for the sum `y`, and `up` where the epilogue is gated.
static Value epilogue(KernelBuilder &k, pack::MatmulOp op, Value y, Value up, Value place) {
  Value scale = k.constFloat(k.f32(), op.getScale().convertToFloat());
  switch (op.getEpilogue()) {
  case pack::Epilogue::Store:
    return k.mul(y, scale);
  case pack::Epilogue::Add:
    return k.add(k.load(k.f32(), place, 4), k.mul(y, scale));
  case pack::Epilogue::SiluGate:
    return k.mul(k.silu(y), up);
  case pack::Epilogue::GeluGate:
    return k.mul(k.gelu(y), up);
  case pack::Epilogue::SoftCap:
    return k.mul(scale, k.tanh(k.div(y, scale)));
  }
  return y;
}

LogicalResult emitMatmul(KernelFrameBase &frame, pack::MatmulOp op) {
  KernelBuilder &k = frame.k;
  Products products(frame, op, op.getAct());
  if (failed(products.init(op.getWeights(), op.getBiases())))
    return failure();
  bool gated = pack::isGated(op.getEpilogue());
  Value into = frame.address(op.getInto());
  int64_t stride = rowBytes(op.getInto());
  bool ok = true;

  int64_t firstTile = 0, firstRow = 0;
  for (size_t matrix = 0; matrix < (gated ? 1 : products.rows.size()); ++matrix) {
    int64_t rows = products.rows[matrix];
    int64_t tiles = llvm::divideCeil(rows, kTile);
    auto store = [&](Value row, Value token) {
      Value at = k.add(k.mul(token, stride), k.mul(k.add(row, firstRow), 4));
      Value place = k.at(into, at);
      auto y = products.at(matrix, row, token);
      auto up = gated ? products.at(1, row, token) : y;
      ok &= succeeded(y) && succeeded(up);
      if (!ok)
        return;
      k.store(epilogue(k, op, *y, *up, place), place, 4);
    };
    forUnits(frame, firstTile, tiles, [&](Value tile) {
      Value row = k.mul(tile, kTile);
      Value end = k.min(k.add(row, kTile), k.constI64(rows));
      k.loop(row, end, 1, [&](Value row) {
        k.loop(k.constI64(0), frame.rows(op.getRowSet()), 1,
               [&](Value token) { store(row, token); });
      });
    });
    firstTile += tiles;
    firstRow += rows;
  }
  return success(ok);
}

namespace {

// One head of one token of `matmul_heads`, in stack memory.
struct HeadEmitter {
  KernelFrameBase &frame;
  KernelBuilder &k;
  pack::MatmulHeadsOp op;
  int64_t dim;
  KvCells cells;
  Value head; // dim floats

  HeadEmitter(KernelFrameBase &frame, pack::MatmulHeadsOp op)
      : frame(frame), k(frame.k), op(op), dim(op.getHeadDim()),
        cells(k, cast<pack::KvType>(op.getCache().getType())), head(frame.k.stack(4 * dim)) {}

  void normalize(Value weight) {
    Value count = k.constI64(dim);
    Value squares = sum(k, k.f32(), count, [&](Value i) {
      Value x = loadFloat(k, head, i);
      return k.mul(x, x);
    });
    Value mean = k.div(squares, k.constFloat(k.f32(), double(dim)));
    Value root = k.sqrt(k.add(mean, k.constFloat(k.f32(), op.getEps().convertToFloat())));
    Value factor = k.div(k.constFloat(k.f32(), 1), root);
    k.loop(k.constI64(0), count, 1, [&](Value i) {
      Value x = k.mul(loadFloat(k, head, i), factor);
      storeFloat(k, k.mul(x, loadFloat(k, weight, i)), head, i);
    });
  }

  void rotate(Value token) {
    int64_t pairs = op.getRotary() / 2;
    Value table = k.at(frame.address(op.getTable()), k.mul(token, rowBytes(op.getTable())));
    bool halves = op.getRope() == pack::RopeStyle::Halves;
    k.loop(k.constI64(0), k.constI64(pairs), 1, [&](Value i) {
      Value first = halves ? i : k.mul(i, 2);
      Value second = k.add(first, halves ? pairs : 1);
      Value a = loadFloat(k, head, first), b = loadFloat(k, head, second);
      Value cos = loadFloat(k, table, i), sin = loadFloat(k, table, k.add(i, pairs));
      storeFloat(k, k.sub(k.mul(a, cos), k.mul(b, sin)), head, first);
      storeFloat(k, k.add(k.mul(b, cos), k.mul(a, sin)), head, second);
    });
  }

  void storeQuery(Value token, Value number) {
    Value row = k.at(frame.address(op.getQueries()), k.mul(token, rowBytes(op.getQueries())));
    Value to = k.at(row, k.mul(number, 4 * dim));
    cells.turn(head, dim);
    k.loop(k.constI64(0), k.constI64(dim), 1,
           [&](Value i) { storeFloat(k, loadFloat(k, head, i), to, i); });
  }

  void storeToCache(Value token, Value number, bool isKey) {
    Value slot = loadIndex(k, frame.address(op.getSlots()), token);
    Value page = k.at(frame.address(op.getCache()),
                      k.mul(k.div(slot, cells.layout.page), cells.layout.pageBytes));
    slot = k.rem(slot, cells.layout.page);
    if (isKey)
      cells.storeKey(page, number, slot, head);
    else
      cells.storeValue(page, number, slot, head);
  }
};

} // namespace

LogicalResult emitMatmulHeads(KernelFrameBase &frame, pack::MatmulHeadsOp op) {
  KernelBuilder &k = frame.k;
  Products products(frame, op, op.getAct());
  if (failed(products.init(op.getWeights(), op.getBiases())))
    return failure();
  HeadEmitter head(frame, op);
  int64_t dim = op.getHeadDim();
  int64_t headsPerGroup = std::lcm(dim, kTile) / dim;
  bool ok = true;

  int64_t firstGroup = 0;
  for (size_t matrix = 0; matrix < products.rows.size(); ++matrix) {
    int64_t heads = products.rows[matrix] / dim;
    Value norm = matrix == 0 ? op.getQNorm() : matrix == 1 ? op.getKNorm() : Value();
    auto emit = [&](Value number, Value token) {
      k.loop(k.constI64(0), k.constI64(dim), 1, [&](Value i) {
        auto y = products.at(matrix, k.add(k.mul(number, dim), i), token);
        ok &= succeeded(y);
        if (ok)
          storeFloat(k, *y, head.head, i);
      });
      if (norm)
        head.normalize(frame.address(norm));
      if (matrix < 2 && op.getRope() != pack::RopeStyle::None)
        head.rotate(token);
      if (matrix == 0)
        head.storeQuery(token, number);
      else
        head.storeToCache(token, number, /*isKey=*/matrix == 1);
    };
    int64_t groups = llvm::divideCeil(heads, headsPerGroup);
    forUnits(frame, firstGroup, groups, [&](Value group) {
      Value number = k.mul(group, headsPerGroup);
      Value end = k.min(k.add(number, headsPerGroup), k.constI64(heads));
      k.loop(number, end, 1, [&](Value number) {
        k.loop(k.constI64(0), frame.tokens, 1, [&](Value token) { emit(number, token); });
      });
    });
    firstGroup += groups;
  }
  return success(ok);
}

} // namespace izhc::reference
