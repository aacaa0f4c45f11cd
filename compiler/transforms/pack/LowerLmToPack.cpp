// Lowers what has a `pack` op of its own: inputs, weights, vectors, embedding,
// rope angles and products. Row-wise ops and attention stay for the fusions.

#include "compiler/formats/Format.h"
#include "compiler/transforms/pack/ActTypes.h"
#include "compiler/transforms/pack/Passes.h"
#include "compiler/transforms/pack/RowSets.h"
#include "llvm/ADT/TypeSwitch.h"

namespace izhc {

#define GEN_PASS_DEF_LOWERLMTOPACK
#include "compiler/transforms/pack/Passes.h.inc"

namespace {

using llvm::LogicalResult;
using mlir::Value;

struct Lowering {
  bool exact = false;
  // The encoded form of each matrix, and what became of each choice of experts.
  llvm::DenseMap<Value, Value> matrices, routes;

  LogicalResult lower(lm::WeightOp op) {
    mlir::OpBuilder builder(op);
    auto type = llvm::cast<mlir::RankedTensorType>(op.getType());
    if (type.getRank() == 1) {
      Value vector =
          pack::PackVectorOp::create(builder, op.getLoc(), type, op.getNameAttr(), nullptr);
      op.replaceAllUsesWith(vector);
      op.erase();
      return mlir::success();
    }
    const FormatSpec *format = findFormat(op.getFormat());
    if (!format)
      return op.emitError("tensor '")
             << op.getName() << "' has the unknown format '" << op.getFormat() << "'";
    int64_t count = type.getRank() == 3 ? type.getDimSize(0) : 1;
    int64_t rows = type.getShape().drop_back().back(), cols = type.getShape().back();
    if (cols % format->blockWeights != 0)
      return op.emitError("tensor '")
             << op.getName() << "' has " << cols << " columns, but its format '" << op.getFormat()
             << "' needs a multiple of " << format->blockWeights;
    auto packed = pack::WeightType::get(op.getContext(), rows, cols, op.getFormatAttr(), count);
    matrices[op] = pack::PackWeightOp::create(builder, op.getLoc(), packed, op.getNameAttr(),
                                              op.getViewAttr());
    return mlir::success();
  }

  LogicalResult lower(lm::ConstantOp op) {
    mlir::OpBuilder builder(op);
    Value vector = pack::PackVectorOp::create(builder, op.getLoc(), op.getType(), op.getNameAttr(),
                                              op.getValuesAttr());
    op.replaceAllUsesWith(vector);
    op.erase();
    return mlir::success();
  }

  LogicalResult lower(lm::InputOp op) {
    mlir::OpBuilder builder(op);
    pack::StepInput kind = pack::StepInput::Ids;
    if (op.getKind() == lm::InputKind::Positions)
      kind = pack::StepInput::Positions;
    if (op.getKind() == lm::InputKind::OutputRows)
      kind = pack::StepInput::OutputRows;
    Value input = pack::PackInputOp::create(builder, op.getLoc(), op.getType(), kind);
    op.replaceAllUsesWith(input);
    op.erase();
    return mlir::success();
  }

  LogicalResult lower(lm::EmbedOp op) {
    Value weight = matrices.lookup(op.getWeight());
    if (!weight)
      return op.emitError("looks up rows of a matrix that is no tensor of the file");
    mlir::OpBuilder builder(op);
    auto embed = pack::EmbedOp::create(builder, op.getLoc(), op.getType(), op.getIds(), weight,
                                       builder.getF32FloatAttr(1.0f), Value());
    op.replaceAllUsesWith(embed.getResult());
    op.erase();
    return mlir::success();
  }

  LogicalResult lower(lm::RopeAnglesOp op) {
    mlir::OpBuilder builder(op);
    auto table = pack::RopeTableOp::create(builder, op.getLoc(), op.getType(), op.getPositions(),
                                           op.getFrequencies(), op.getMagnitudeAttr(),
                                           op.getGrowthAttr(), op.getPeriodAttr(), Value());
    op.replaceAllUsesWith(table.getResult());
    op.erase();
    return mlir::success();
  }

  LogicalResult lower(lm::LinearOp op) {
    mlir::OpBuilder builder(op);
    llvm::SmallVector<Value> weights;
    llvm::SmallVector<llvm::StringRef> formats;
    for (Value weight : op.getWeights()) {
      Value packed = matrices.lookup(weight);
      if (!packed)
        return op.emitError("multiplies with a matrix that is no tensor of the file");
      weights.push_back(packed);
      formats.push_back(llvm::cast<pack::WeightType>(packed.getType()).getFormat().getValue());
    }
    pack::RowSet rows = rowSetOf(op.getInput());
    auto act = chooseActType(op.getContext(), lm::widthOf(op.getInput()), formats, exact);
    auto quantize = pack::QuantizeOp::create(
        builder, op.getLoc(), act, op.getInput(), Value(), Value(), builder.getF32FloatAttr(0.0f),
        pack::RowSetAttr::get(op.getContext(), rows), Value(), builder.getI64IntegerAttr(1));
    for (size_t i = 0; i < weights.size(); ++i) {
      mlir::ValueRange biases;
      if (!op.getBiases().empty())
        biases = op.getBiases().slice(i, 1);
      auto matmul = pack::MatmulOp::create(
          builder, op.getLoc(), op.getResult(i).getType(), quantize.getResult(), weights[i], biases,
          Value(), pack::EpilogueAttr::get(op.getContext(), pack::Epilogue::Store),
          builder.getF32FloatAttr(1.0f), pack::RowSetAttr::get(op.getContext(), rows), Value());
      op.getResult(i).replaceAllUsesWith(matmul.getResult());
    }
    op.erase();
    return mlir::success();
  }

  LogicalResult lower(lm::HeadLinearOp op) {
    Value weight = matrices.lookup(op.getWeight());
    if (!weight)
      return op.emitError("multiplies with matrices that are no tensors of the file");
    mlir::OpBuilder builder(op);
    auto type = llvm::cast<pack::WeightType>(weight.getType());
    auto act = chooseActType(op.getContext(), type.getCols(), type.getFormat().getValue(), exact);
    auto tokens = pack::RowSetAttr::get(op.getContext(), pack::RowSet::Tokens);
    Value rows = pack::QuantizeOp::create(builder, op.getLoc(), act, op.getInput(), Value(),
                                          Value(), builder.getF32FloatAttr(0.0f), tokens, Value(),
                                          builder.getI64IntegerAttr(type.getCount()))
                     .getResult();
    auto product =
        pack::HeadMatmulOp::create(builder, op.getLoc(), op.getType(), rows, weight, Value());
    op.replaceAllUsesWith(product.getResult());
    op.erase();
    return mlir::success();
  }

  LogicalResult lower(lm::RouteOp op) {
    mlir::OpBuilder builder(op);
    mlir::MLIRContext *context = op.getContext();
    lm::RoutesType type = op.getResult().getType();
    routes[op] =
        pack::RouteOp::create(builder, op.getLoc(),
                              pack::RoutesType::get(context, type.getExperts(), type.getChosen()),
                              op.getRatings(), op.getBias(),
                              pack::ScoreAttr::get(context, pack::Score(op.getScore())),
                              op.getNormalizeAttr(), op.getScaleAttr(), op.getGroupsAttr(),
                              op.getGroupChosenAttr(), op.getGroupBestAttr(), Value())
            .getResult();
    return mlir::success();
  }

  // Rows as records for products with `weights`, one for each pair.
  Value quantizePairs(mlir::OpBuilder &builder, lm::ExpertsOp op, Value input, Value indices,
                      llvm::ArrayRef<Value> weights) {
    llvm::SmallVector<llvm::StringRef> formats;
    for (Value weight : weights)
      formats.push_back(llvm::cast<pack::WeightType>(weight.getType()).getFormat().getValue());
    auto act = chooseActType(op.getContext(), lm::widthOf(input), formats, exact);
    return pack::QuantizeOp::create(
               builder, op.getLoc(), act, input, Value(), indices, builder.getF32FloatAttr(0.0f),
               pack::RowSetAttr::get(op.getContext(), pack::RowSet::Tokens), Value(),
               builder.getI64IntegerAttr(op.getRoutes().getType().getChosen()))
        .getResult();
  }

  LogicalResult lower(lm::ExpertsOp op) {
    mlir::OpBuilder builder(op);
    mlir::MLIRContext *context = op.getContext();
    Value table = routes.lookup(op.getRoutes());
    Value gate = matrices.lookup(op.getGate()), up = matrices.lookup(op.getUp());
    Value down = matrices.lookup(op.getDown());
    if (!table || !gate || !up || !down)
      return op.emitError("multiplies with matrices that are no tensors of the file");
    mlir::ValueRange biases = op.getBiases();
    int64_t hidden = llvm::cast<pack::WeightType>(gate.getType()).getRows();
    Value rows = quantizePairs(builder, op, op.getInput(), table, {gate, up});
    Value gated = pack::ExpertGateOp::create(
                      builder, op.getLoc(), lm::rowsType(context, hidden), rows, table,
                      mlir::ValueRange{gate, up}, biases.empty() ? biases : biases.take_front(2),
                      pack::GatingAttr::get(context, pack::Gating(op.getGating())),
                      op.getAlphaAttr(), op.getLimitAttr(), Value())
                      .getResult();
    rows = quantizePairs(builder, op, gated, Value(), {down});
    auto sum = pack::ExpertSumOp::create(builder, op.getLoc(), op.getType(), rows, table, down,
                                         biases.empty() ? Value() : biases.back(), Value(),
                                         pack::EpilogueAttr::get(context, pack::Epilogue::Store),
                                         builder.getF32FloatAttr(1.0f), Value());
    op.replaceAllUsesWith(sum.getResult());
    op.erase();
    return mlir::success();
  }
};

struct LowerLmToPack : impl::LowerLmToPackBase<LowerLmToPack> {
  using LowerLmToPackBase::LowerLmToPackBase;

  void runOnOperation() override {
    Lowering lowering;
    lowering.exact = exact;
    llvm::SmallVector<mlir::Operation *> ops;
    getOperation().walk([&](mlir::Operation *op) { ops.push_back(op); });
    for (mlir::Operation *op : ops) {
      auto lower = [&](auto typed) { return lowering.lower(typed); };
      LogicalResult result =
          llvm::TypeSwitch<mlir::Operation *, LogicalResult>(op)
              .Case<lm::WeightOp, lm::ConstantOp, lm::InputOp, lm::EmbedOp, lm::RopeAnglesOp,
                    lm::LinearOp, lm::HeadLinearOp, lm::RouteOp, lm::ExpertsOp>(lower)
              .Default([](mlir::Operation *) { return mlir::success(); });
      if (failed(result))
        return signalPassFailure();
    }
    for (auto &[route, table] : lowering.routes)
      if (route.use_empty())
        route.getDefiningOp()->erase();
    for (auto &[matrix, packed] : lowering.matrices)
      if (matrix.use_empty())
        matrix.getDefiningOp()->erase();
  }
};

} // namespace
} // namespace izhc
