// Merges products of the same rows into one lm.linear. The merged op stands
// where the first one stood; the operands of the others are moved up to it,
// which is possible where they name weights.

#include "compiler/formats/Format.h"
#include "compiler/transforms/lm/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace izhc {

#define GEN_PASS_DEF_MERGEPROJECTIONS
#include "compiler/transforms/lm/Passes.h.inc"

namespace {

// True if `value` is, or can be made to be, defined before `op`.
bool moveBefore(mlir::Value value, mlir::Operation *op) {
  mlir::Operation *source = value.getDefiningOp();
  if (!source || (source->getBlock() == op->getBlock() && source->isBeforeInBlock(op)))
    return true;
  if (source->getBlock() != op->getBlock() || source->getNumOperands() != 0)
    return false;
  source->moveBefore(op);
  return true;
}

// Products with float weights read other activations than those with encoded
// ones; together they would all read floats.
bool isFloat(mlir::Value weight) {
  auto source = weight.getDefiningOp<lm::WeightOp>();
  const FormatSpec *format = source ? findFormat(source.getFormat()) : nullptr;
  return format && format->kind != ElementKind::Quantized;
}

bool canMerge(lm::LinearOp first, lm::LinearOp op) {
  if (first->getBlock() != op->getBlock() || first.getBiases().empty() != op.getBiases().empty() ||
      isFloat(first.getWeights().front()) != isFloat(op.getWeights().front()))
    return false;
  return llvm::all_of(llvm::drop_begin(op->getOperands()),
                      [&](mlir::Value operand) { return moveBefore(operand, first); });
}

void merge(llvm::ArrayRef<lm::LinearOp> group) {
  llvm::SmallVector<mlir::Value> weights, biases;
  llvm::SmallVector<mlir::Type> types;
  llvm::SmallVector<mlir::Location> places;
  for (lm::LinearOp op : group) {
    llvm::append_range(weights, op.getWeights());
    llvm::append_range(biases, op.getBiases());
    llvm::append_range(types, op.getResultTypes());
    places.push_back(op.getLoc());
  }
  lm::LinearOp first = group.front();
  mlir::OpBuilder builder(first);
  auto merged = lm::LinearOp::create(builder, builder.getFusedLoc(places), types, first.getInput(),
                                     weights, biases);
  size_t next = 0;
  for (lm::LinearOp op : group) {
    for (mlir::Value result : op.getResults())
      result.replaceAllUsesWith(merged.getResult(next++));
    op.erase();
  }
}

struct MergeProjections : impl::MergeProjectionsBase<MergeProjections> {
  void runOnOperation() override {
    llvm::MapVector<mlir::Value, llvm::SmallVector<llvm::SmallVector<lm::LinearOp, 3>, 1>> groups;
    getOperation().walk([&](lm::LinearOp op) {
      auto &candidates = groups[op.getInput()];
      for (auto &group : candidates)
        if (canMerge(group.front(), op)) {
          group.push_back(op);
          return;
        }
      candidates.push_back({op});
    });
    for (auto &[input, candidates] : groups)
      for (auto &group : candidates)
        if (group.size() > 1)
          merge(group);
  }
};

} // namespace
} // namespace izhc
