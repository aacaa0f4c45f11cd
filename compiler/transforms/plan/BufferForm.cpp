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
                            op.getMagnitudeAttr(), op.getGrowthAttr(), op.getPeriodAttr(),
                            from.one());
}

void create(OpBuilder &builder, pack::HeadMatmulOp op, Arguments from) {
  Value act = from.one(), weight = from.one();
  pack::HeadMatmulOp::create(builder, op.getLoc(), mlir::Type(), act, weight, from.one());
}

void create(OpBuilder &builder, pack::JoinOp op, Arguments from) {
  Value lhs = from.one(), rhs = from.one();
  pack::JoinOp::create(builder, op.getLoc(), mlir::Type(), lhs, rhs, op.getHeadsAttr(), from.one());
}

void create(OpBuilder &builder, pack::ScaleRowsOp op, Arguments from) {
  Value input = from.one(), factors = from.one();
  pack::ScaleRowsOp::create(builder, op.getLoc(), mlir::Type(), input, factors, from.one());
}

void create(OpBuilder &builder, pack::RouteOp op, Arguments from) {
  Value ratings = from.one(), bias = from.where(op.getBias());
  pack::RouteOp::create(builder, op.getLoc(), mlir::Type(), ratings, bias, op.getScoreAttr(),
                        op.getNormalizeAttr(), op.getScaleAttr(), op.getGroupsAttr(),
                        op.getGroupChosenAttr(), op.getGroupBestAttr(), from.one());
}

void create(OpBuilder &builder, pack::ExpertGateOp op, Arguments from) {
  Value act = from.one(), routes = from.one();
  ValueRange weights = from.many(op.getWeights().size());
  ValueRange biases = from.many(op.getBiases().size());
  pack::ExpertGateOp::create(builder, op.getLoc(), mlir::Type(), act, routes, weights, biases,
                             op.getGatingAttr(), op.getAlphaAttr(), op.getLimitAttr(), from.one());
}

void create(OpBuilder &builder, pack::ExpertSumOp op, Arguments from) {
  Value act = from.one(), routes = from.one(), weight = from.one();
  Value bias = from.where(op.getBias());
  pack::ExpertSumOp::create(builder, op.getLoc(), mlir::Type(), act, routes, weight, bias, Value(),
                            op.getEpilogueAttr(), op.getScaleAttr(), from.one());
}

void create(OpBuilder &builder, pack::QuantizeOp op, Arguments from) {
  Value input = from.one(), norm = from.where(op.getNorm());
  Value indices = from.where(op.getIndices());
  pack::QuantizeOp::create(builder, op.getLoc(), mlir::Type(), input, norm, indices,
                           op.getEpsAttr(), op.getRowSetAttr(), from.one(), op.getPerTokenAttr());
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
  Value parts = from.where(op.getParts()), sinks = from.where(op.getSinks()), into = from.one();
  pack::AttentionOp::create(builder, op.getLoc(), mlir::TypeRange(), queries, cache, tiles, pages,
                            parts, sinks, op.getScaleAttr(), op.getHeadsAttr(), op.getTileAttr(),
                            op.getWindowAttr(), op.getSoftcapAttr(), op.getExactAttr(), into,
                            from.where(op.getParts()));
}

void create(OpBuilder &builder, pack::MergeOp op, Arguments from) {
  Value partials = from.one(), merges = from.one(), sinks = from.where(op.getSinks());
  Value cache = from.one();
  pack::MergeOp::create(builder, op.getLoc(), mlir::Type(), Value(), partials, merges, sinks, cache,
                        op.getHeadsAttr(), op.getWindowAttr(), from.one());
}

void create(OpBuilder &builder, pack::MapOp op, Arguments from) {
  Value lhs = from.one(), rhs = from.where(op.getRhs());
  pack::MapOp::create(builder, op.getLoc(), mlir::Type(), lhs, rhs, op.getKindAttr(),
                      op.getFactorAttr(), op.getLhsFirstAttr(), op.getRowSetAttr(), from.one());
}

void create(OpBuilder &builder, pack::NormOp op, Arguments from) {
  Value input = from.one(), scale = from.where(op.getScale());
  Value residual = from.where(op.getResidual());
  pack::NormOp::create(builder, op.getLoc(), mlir::Type(), input, scale, residual, op.getOverAttr(),
                       op.getEpsAttr(), op.getFactorAttr(), op.getRowSetAttr(), from.one());
}

void create(OpBuilder &builder, pack::RopeOp op, Arguments from) {
  Value input = from.one(), table = from.one();
  pack::RopeOp::create(builder, op.getLoc(), mlir::Type(), input, table, op.getHeadDimAttr(),
                       op.getStyleAttr(), from.one());
}

void create(OpBuilder &builder, pack::HadamardOp op, Arguments from) {
  Value input = from.one();
  pack::HadamardOp::create(builder, op.getLoc(), mlir::Type(), input, op.getHeadDimAttr(),
                           from.one());
}

void create(OpBuilder &builder, pack::AppendOp op, Arguments from) {
  Value keys = from.one(), values = from.one(), slots = from.one();
  pack::AppendOp::create(builder, op.getLoc(), mlir::Type(), keys, values, slots, Value(),
                         from.one());
}

void create(OpBuilder &builder, pack::ShortConvOp op, Arguments from) {
  Value input = from.one(), weight = from.one(), sequences = from.one(), state = from.one();
  pack::ShortConvOp::create(builder, op.getLoc(), mlir::TypeRange(), input, weight, sequences,
                            state, from.one(), op.getSiluAttr());
}

void create(OpBuilder &builder, pack::DeltaRuleOp op, Arguments from) {
  Value mixed = from.one(), decay = from.one(), beta = from.one(), rate = from.one();
  Value bias = from.one(), sequences = from.one(), state = from.one();
  pack::DeltaRuleOp::create(builder, op.getLoc(), mlir::TypeRange(), mixed, decay, beta, rate, bias,
                            sequences, state, from.one(), op.getKeyHeadsAttr(), op.getKeyDimAttr(),
                            op.getValueDimAttr(), op.getEpsAttr(), op.getTiledAttr());
}

} // namespace

bool hasKernel(mlir::Operation *op) {
  if (llvm::isa<pack::ScaleRowsOp, pack::HeadMatmulOp, pack::JoinOp, pack::RouteOp,
                pack::ExpertGateOp, pack::ExpertSumOp, pack::HadamardOp>(op))
    return true;
  return llvm::isa<pack::EmbedOp, pack::RopeTableOp, pack::QuantizeOp, pack::MatmulOp,
                   pack::MatmulHeadsOp, pack::AttentionOp, pack::MergeOp, pack::MapOp, pack::NormOp,
                   pack::RopeOp, pack::AppendOp, pack::ShortConvOp, pack::DeltaRuleOp>(op);
}

llvm::SmallVector<Value> boundOperands(mlir::Operation *op) {
  if (auto sum = llvm::dyn_cast<pack::ExpertSumOp>(op)) {
    llvm::SmallVector<Value> operands{sum.getAct(), sum.getRoutes(), sum.getWeight()};
    if (sum.getBias())
      operands.push_back(sum.getBias());
    return operands;
  }
  if (auto append = llvm::dyn_cast<pack::AppendOp>(op))
    return {append.getKeys(), append.getValues(), append.getSlots()};
  // What is written in place is no operand of the kernel.
  if (auto merge = llvm::dyn_cast<pack::MergeOp>(op))
    return llvm::to_vector(llvm::drop_begin(op->getOperands()));
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
      .Case<pack::ScaleRowsOp, pack::HeadMatmulOp, pack::JoinOp, pack::RouteOp, pack::ExpertGateOp,
            pack::ExpertSumOp, pack::HadamardOp>(
          [&](auto typed) { create(builder, typed, Arguments(arguments)); })
      .Case<pack::EmbedOp, pack::RopeTableOp, pack::QuantizeOp, pack::MatmulOp, pack::MatmulHeadsOp,
            pack::AttentionOp, pack::MergeOp, pack::MapOp, pack::NormOp, pack::RopeOp,
            pack::AppendOp, pack::ShortConvOp, pack::DeltaRuleOp>(
          [&](auto typed) { create(builder, typed, Arguments(arguments)); });
}

} // namespace izhc
