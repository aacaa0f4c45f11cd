// Types and ops of attention on encoded caches.

#include "compiler/transforms/pack/Attention.h"
#include "compiler/transforms/Limits.h"
#include "dialects/pack/KvLayout.h"

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

Value stepInput(mlir::OpBuilder &builder, mlir::Location loc, pack::StepInput kind) {
  auto type = mlir::RankedTensorType::get({mlir::ShapedType::kDynamic}, builder.getI32Type());
  return pack::PackInputOp::create(builder, loc, type, kind);
}

void replaceAttention(mlir::RewriterBase &rewriter, lm::AttentionOp op, Value queries, Value cache,
                      bool exact) {
  mlir::OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  auto kv = llvm::cast<pack::KvType>(cache.getType());
  int64_t heads = op.getHeads();
  auto partials = lm::rowsType(op.getContext(), heads * KvLayout(kv).partialBytes() / 4);
  auto input = [&](pack::StepInput kind) { return stepInput(rewriter, op.getLoc(), kind); };
  Value tiles = input(pack::StepInput::Tiles), pages = input(pack::StepInput::Pages);
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
