// Types and ops of attention on encoded caches.

#include "compiler/transforms/pack/Attention.h"
#include "compiler/transforms/Limits.h"
#include "dialects/pack/KvLayout.h"
#include "dialects/plan/Window.h"

namespace izhc {

using mlir::Value;
using pack::KvLayout;

bool fits(lm::KvCacheType type, int64_t bits) {
  return bits == 16 ||
         (type.getDim() % KvLayout::kBlock == 0 && type.getValueDim() % KvLayout::kBlock == 0);
}

pack::KvType cacheType(lm::KvCacheType type, int64_t bits) {
  // With bits the size of values is always told: the type's text needs it.
  return pack::KvType::get(type.getContext(), type.getHeads(), type.getDim(), kPageTokens,
                           bits < 16 ? type.getValueDim() : type.getValues(), bits);
}

int64_t windowOf(lm::StateOp cache) {
  int64_t most = 0;
  for (mlir::Operation *writer : cache->getUsers())
    for (mlir::Operation *reader : writer->getUsers()) {
      auto attention = llvm::dyn_cast<lm::AttentionOp>(reader);
      if (!attention || attention.getWindow() == 0)
        return 0;
      most = std::max(most, int64_t(attention.getWindow()));
    }
  return most;
}

CacheValues makeCache(mlir::OpBuilder &builder, mlir::Location loc, lm::StateOp state,
                      int64_t bits) {
  auto type = cacheType(llvm::cast<lm::KvCacheType>(state.getType()), bits);
  int64_t window = windowOf(state);
  auto op = pack::PackStateOp::create(builder, state.getLoc(), type, state.getNameAttr());
  plan::setWindow(op, window);
  return {op, stepInput(builder, loc, pack::StepInput::Slots, window != 0)};
}

Value stepInput(mlir::OpBuilder &builder, mlir::Location loc, pack::StepInput kind, bool windowed) {
  auto type = mlir::RankedTensorType::get({mlir::ShapedType::kDynamic}, builder.getI32Type());
  auto op = pack::PackInputOp::create(builder, loc, type, kind);
  if (windowed)
    op->setAttr(plan::kWindowed, builder.getUnitAttr());
  return op;
}

void replaceAttention(mlir::RewriterBase &rewriter, lm::AttentionOp op, Value queries, bool turned,
                      Value cache, bool windowed, bool exact) {
  mlir::OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  auto kv = llvm::cast<pack::KvType>(cache.getType());
  if (kv.isTurned() && !turned)
    queries = pack::HadamardOp::create(rewriter, op.getLoc(), queries.getType(), queries,
                                       uint64_t(kv.getDim()), Value())
                  .getResult();
  int64_t heads = op.getHeads();
  auto partials = lm::rowsType(op.getContext(), heads * KvLayout(kv).partialBytes() / 4);
  auto input = [&](pack::StepInput kind) { return stepInput(rewriter, op.getLoc(), kind); };
  Value tiles = input(pack::StepInput::Tiles);
  Value pages = stepInput(rewriter, op.getLoc(), pack::StepInput::Pages, windowed);
  Value parts = input(pack::StepInput::Parts), merges = input(pack::StepInput::Merges);
  auto attention = pack::AttentionOp::create(
      rewriter, op.getLoc(), mlir::TypeRange{op.getType(), partials}, queries, cache, tiles, pages,
      parts, op.getSinks(), op.getScaleAttr(), op.getHeadsAttr(),
      rewriter.getI64IntegerAttr(tileTokens(heads / kv.getHeads())), op.getWindowAttr(),
      op.getSoftcapAttr(), exact ? rewriter.getUnitAttr() : mlir::UnitAttr(), Value(), Value());
  rewriter.replaceOpWithNewOp<pack::MergeOp>(op, op.getType(), attention.getResult(0),
                                             attention.getResult(1), merges, op.getSinks(), cache,
                                             op.getHeadsAttr(), op.getWindowAttr(), Value());
}

} // namespace izhc
