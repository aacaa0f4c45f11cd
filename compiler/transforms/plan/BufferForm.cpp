// One function an op: the same op on the kernel's arguments.

#include "compiler/transforms/plan/BufferForm.h"
#include "llvm/ADT/TypeSwitch.h"

namespace izhc {

using mlir::OpBuilder;
using mlir::Value;
using mlir::ValueRange;

namespace {

// Hands out arguments in the order of operands.
class Arguments {
public:
  explicit Arguments(ValueRange values) : rest(values) {}
  Value one() { return many(1).front(); }
  // The next argument if `operand` is there.
  Value where(Value operand) { return operand ? one() : Value(); }
  ValueRange many(size_t count) {
    ValueRange taken = rest.take_front(count);
    rest = rest.drop_front(count);
    return taken;
  }

private:
  ValueRange rest;
};

void create(OpBuilder &builder, pack::EmbedOp op, Arguments from) {
  Value ids = from.one(), weight = from.one();
  pack::EmbedOp::create(builder, op.getLoc(), mlir::Type(), ids, weight, op.getScaleAttr(),
                        from.one());
}

void create(OpBuilder &builder, pack::RopeTableOp op, Arguments from) {
  Value positions = from.one(), frequencies = from.one();
  pack::RopeTableOp::create(builder, op.getLoc(), mlir::Type(), positions, frequencies,
                            op.getMagnitudeAttr(), from.one());
}

void create(OpBuilder &builder, pack::QuantizeOp op, Arguments from) {
  Value input = from.one(), norm = from.where(op.getNorm());
  Value indices = from.where(op.getIndices());
  pack::QuantizeOp::create(builder, op.getLoc(), mlir::Type(), input, norm, indices,
                           op.getEpsAttr(), op.getRowSetAttr(), from.one());
}

void create(OpBuilder &builder, pack::MatmulOp op, Arguments from) {
  Value act = from.one();
  ValueRange weights = from.many(op.getWeights().size());
  ValueRange biases = from.many(op.getBiases().size());
  pack::MatmulOp::create(builder, op.getLoc(), mlir::Type(), act, weights, biases, Value(),
                         op.getEpilogueAttr(), op.getScaleAttr(), op.getRowSetAttr(), from.one());
}

void create(OpBuilder &builder, pack::MatmulHeadsOp op, Arguments from) {
  Value act = from.one();
  ValueRange weights = from.many(op.getWeights().size());
  ValueRange biases = from.many(op.getBiases().size());
  Value qNorm = from.where(op.getQNorm()), kNorm = from.where(op.getKNorm());
  Value table = from.where(op.getTable());
  Value slots = from.one(), cache = from.one(), queries = from.one();
  pack::MatmulHeadsOp::create(builder, op.getLoc(), mlir::TypeRange(), act, weights, biases, qNorm,
                              kNorm, table, slots, cache, queries, op.getHeadDimAttr(),
                              op.getRotaryAttr(), op.getRopeAttr(), op.getEpsAttr());
}

void create(OpBuilder &builder, pack::AttentionOp op, Arguments from) {
  Value queries = from.one(), cache = from.one(), tiles = from.one(), pages = from.one();
  pack::AttentionOp::create(builder, op.getLoc(), mlir::Type(), queries, cache, tiles, pages,
                            op.getScaleAttr(), op.getHeadsAttr(), op.getTileAttr(), from.one());
}

} // namespace

bool hasKernel(mlir::Operation *op) {
  return llvm::isa<pack::EmbedOp, pack::RopeTableOp, pack::QuantizeOp, pack::MatmulOp,
                   pack::MatmulHeadsOp, pack::AttentionOp>(op);
}

llvm::SmallVector<Value> boundOperands(mlir::Operation *op) {
  auto matmul = llvm::dyn_cast<pack::MatmulOp>(op);
  if (!matmul)
    return llvm::to_vector(op->getOperands());
  llvm::SmallVector<Value> operands{matmul.getAct()};
  llvm::append_range(operands, matmul.getWeights());
  llvm::append_range(operands, matmul.getBiases());
  return operands;
}

void createBufferForm(OpBuilder &builder, mlir::Operation *op, ValueRange arguments) {
  llvm::TypeSwitch<mlir::Operation *>(op)
      .Case<pack::EmbedOp, pack::RopeTableOp, pack::QuantizeOp, pack::MatmulOp, pack::MatmulHeadsOp,
            pack::AttentionOp>([&](auto typed) { create(builder, typed, Arguments(arguments)); });
}

} // namespace izhc
