// Outlines the ops of @step into kernels and dispatches. Places come from
// Placement, units from Work, the kernel's op from BufferForm; here results
// get their buffers and equal kernels are found.

#include "compiler/transforms/Limits.h"
#include "compiler/transforms/plan/BufferForm.h"
#include "compiler/transforms/plan/Passes.h"
#include "compiler/transforms/plan/Placement.h"
#include "compiler/transforms/plan/Work.h"
#include "dialects/pack/KvLayout.h"
#include "llvm/Support/raw_ostream.h"

namespace izhc {

#define GEN_PASS_DEF_LOWERPACKTOPLAN
#include "compiler/transforms/plan/Passes.h.inc"

namespace {

using llvm::FailureOr;
using llvm::LogicalResult;
using mlir::Value;

// Ops that only name things; they are placed when they are read.
bool isName(mlir::Operation *op) {
  return llvm::isa<pack::PackWeightOp, pack::PackVectorOp, pack::PackInputOp, pack::PackStateOp>(
      op);
}

pack::RowSet rowSetOf(mlir::Operation *op) {
  auto set = op->getAttrOfType<pack::RowSetAttr>("row_set");
  return set ? set.getValue() : pack::RowSet::Tokens;
}

// Rows of the result for each row of its set.
int64_t rowsPerToken(mlir::Operation *op) {
  if (auto quantize = llvm::dyn_cast<pack::QuantizeOp>(op))
    return quantize.getPerToken();
  if (auto gate = llvm::dyn_cast<pack::ExpertGateOp>(op))
    return llvm::cast<pack::RoutesType>(gate.getRoutes().getType()).getChosen();
  return 1;
}

// The rows that the op changes in place, or null.
Value residualOf(mlir::Operation *op) {
  if (auto matmul = llvm::dyn_cast<pack::MatmulOp>(op))
    return matmul.getResidual();
  if (auto sum = llvm::dyn_cast<pack::ExpertSumOp>(op))
    return sum.getResidual();
  if (auto merge = llvm::dyn_cast<pack::MergeOp>(op))
    return merge.getRows();
  return {};
}

class Outliner {
public:
  Outliner(mlir::ModuleOp module, int64_t maxOutputs)
      : builder(mlir::OpBuilder::atBlockEnd(module.getBody())), placement(maxOutputs),
        maxOutputs(maxOutputs) {}

  // Appends a dispatch of `op`, and its kernel if it is the first of its kind.
  LogicalResult outline(mlir::Operation *op);
  // Appends the tables and puts everything in order. `logits` is what the
  // function returns at `terminator`.
  LogicalResult finish(mlir::Operation *terminator, Value logits);

private:
  FailureOr<Place> placeResult(mlir::Operation *op);
  plan::KernelOp findKernel(mlir::Operation *op, llvm::ArrayRef<mlir::Type> types);

  mlir::OpBuilder builder;
  Placement placement;
  int64_t maxOutputs;
  // The least of all attentions.
  int64_t tile = kMostTileTokens;
  // By the kernel's text.
  llvm::StringMap<plan::KernelOp> known;
  llvm::SmallVector<plan::KernelOp> kernels;
  llvm::SmallVector<plan::DispatchOp> dispatches;
};

// A new buffer, or that of the rows or the cache that the op changes in place.
FailureOr<Place> Outliner::placeResult(mlir::Operation *op) {
  if (auto append = llvm::dyn_cast<pack::AppendOp>(op))
    return placement.find(append.getCache(), op);
  Value residual = residualOf(op);
  if (!residual)
    return placement.addBuffer(op->getResult(0).getType(), rowSetOf(op), rowsPerToken(op));
  for (mlir::Operation *user : residual.getUsers())
    if (user != op && op->isBeforeInBlock(user))
      return op->emitError("overwrites rows that are read later");
  FailureOr<Place> place = placement.find(residual, op);
  if (succeeded(place) && place->space != plan::Space::Arena)
    return op->emitError("adds to something that is not rows of the step");
  return place;
}

plan::KernelOp Outliner::findKernel(mlir::Operation *op, llvm::ArrayRef<mlir::Type> types) {
  auto kernel = plan::KernelOp::create(builder, op->getLoc(), "candidate", types);
  mlir::OpBuilder body(kernel.getBody());
  createBufferForm(body, op, kernel.getBody().getArguments());
  std::string text;
  llvm::raw_string_ostream stream(text);
  kernel->print(stream);
  auto [entry, isNew] = known.try_emplace(text, kernel);
  if (!isNew) {
    kernel->erase();
    return entry->second;
  }
  std::string name = (op->getName().stripDialect() + "_" + llvm::Twine(kernels.size())).str();
  kernel.setSymName(name);
  kernels.push_back(kernel);
  return kernel;
}

LogicalResult Outliner::outline(mlir::Operation *op) {
  if (op->getNumResults() == 0)
    return op->emitError("is in buffer form already");
  llvm::SmallVector<Place> bindings;
  for (Value operand : boundOperands(op)) {
    FailureOr<Place> place = placement.find(operand, op);
    if (failed(place))
      return mlir::failure();
    bindings.push_back(*place);
  }
  Work work = divideWork(op);
  FailureOr<Place> result = placeResult(op);
  if (failed(result))
    return mlir::failure();
  placement.set(op->getResult(0), *result);
  bindings.push_back(*result);
  // The cache that comes out is the one that went in, written in place.
  if (auto heads = llvm::dyn_cast<pack::MatmulHeadsOp>(op))
    placement.set(op->getResult(1), *placement.find(heads.getCache(), op));
  if (auto attention = llvm::dyn_cast<pack::AttentionOp>(op)) {
    tile = std::min<int64_t>(tile, attention.getTile());
    if (attention.getParts()) {
      bindings.push_back(placement.addBuffer(op->getResult(1).getType(), kMaxPartials));
      placement.set(op->getResult(1), bindings.back());
    }
  }
  if (llvm::isa<pack::ShortConvOp, pack::DeltaRuleOp>(op))
    for (Value operand : op->getOperands())
      if (llvm::isa<pack::SlotsType>(operand.getType()))
        placement.set(op->getResult(1), *placement.find(operand, op));

  llvm::SmallVector<mlir::Type> types;
  llvm::SmallVector<int32_t> spaces;
  llvm::SmallVector<int64_t> offsets, sizes;
  for (const Place &binding : bindings) {
    types.push_back(binding.type);
    spaces.push_back(int32_t(binding.space));
    offsets.push_back(binding.offset);
    sizes.push_back(binding.size);
  }
  plan::KernelOp kernel = findKernel(op, types);
  // Where there is none, nothing is said.
  auto amount = [&](int64_t value) {
    return value ? builder.getI64IntegerAttr(value) : mlir::IntegerAttr();
  };
  dispatches.push_back(
      plan::DispatchOp::create(builder, op->getLoc(), kernel.getSymName(), spaces, offsets, sizes,
                               work.units, work.extent, work.grain, amount(work.tokenBytes),
                               amount(work.tokenOperations), amount(work.outputOperations)));
  return mlir::success();
}

LogicalResult Outliner::finish(mlir::Operation *terminator, Value logits) {
  mlir::Operation *source = logits.getDefiningOp();
  if (!source || rowSetOf(source) != pack::RowSet::Outputs)
    return terminator->emitError("must return a product of the selected output rows");
  FailureOr<Place> place = placement.find(logits, terminator);
  if (failed(place))
    return mlir::failure();
  int64_t vocabulary = llvm::cast<mlir::ShapedType>(logits.getType()).getShape().back();
  plan::MemoryOp::create(builder, terminator->getLoc(), placement.arenaBytes(),
                         placement.weightBytes(), placement.constantBytes(), place->offset,
                         vocabulary, kMaxTokens, maxOutputs, tile, kPageTokens,
                         pack::KvLayout::kSpan, kMaxPartials);
  placement.writeTables(builder);
  mlir::Block *body = builder.getInsertionBlock();
  for (plan::KernelOp kernel : kernels)
    kernel->moveBefore(body, body->end());
  for (plan::DispatchOp dispatch : dispatches)
    dispatch->moveBefore(body, body->end());
  return mlir::success();
}

struct LowerPackToPlan : impl::LowerPackToPlanBase<LowerPackToPlan> {
  void runOnOperation() override {
    if (failed(lower()))
      signalPassFailure();
  }

  LogicalResult lower() {
    mlir::ModuleOp module = getOperation();
    auto functions = llvm::to_vector(module.getOps<mlir::func::FuncOp>());
    if (functions.size() != 1 || !functions[0].getBody().hasOneBlock())
      return module.emitError("needs one function of one block, the step");
    mlir::Block &step = functions[0].getBody().front();
    mlir::Operation *terminator = step.getTerminator();
    auto rows = terminator->getNumOperands() != 1
                    ? mlir::RankedTensorType()
                    : llvm::dyn_cast<mlir::RankedTensorType>(terminator->getOperand(0).getType());
    if (!rows || rows.getRank() != 2 || rows.isDynamicDim(1) || rows.getDimSize(1) < 1)
      return terminator->emitError("must return the rows of logits and nothing else");
    int64_t fitting = kMaxLogitsBytes / 4 / rows.getDimSize(1);
    Outliner outliner(module, std::clamp<int64_t>(fitting, 1, kMaxOutputs));
    for (mlir::Operation &op : step.without_terminator()) {
      if (isName(&op))
        continue;
      if (!hasKernel(&op))
        return op.emitOpError("has no kernel of its own, and no pass could make it a part of one: "
                              "a model of this make can't be compiled yet");
      if (failed(outliner.outline(&op)))
        return mlir::failure();
    }
    if (failed(outliner.finish(terminator, terminator->getOperand(0))))
      return mlir::failure();
    functions[0].erase();
    return mlir::success();
  }
};

} // namespace
} // namespace izhc
