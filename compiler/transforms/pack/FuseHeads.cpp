// Makes pack.matmul_heads and pack.attention of the products, head norms,
// rotations, cache write and attention of one layer.

#include "compiler/transforms/pack/Attention.h"
#include "compiler/transforms/pack/Biases.h"
#include "compiler/transforms/pack/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace izhc {

#define GEN_PASS_DEF_FUSEHEADS
#include "compiler/transforms/pack/Passes.h.inc"

namespace {

using mlir::Value;

// product → (norm of heads) → (rotation), each read by the next op only.
struct HeadChain {
  pack::MatmulOp matmul;
  lm::RmsNormOp norm;
  lm::RopeOp rope;
};

HeadChain chainOf(Value value) {
  HeadChain chain;
  auto step = [&](auto &op) {
    using Op = std::decay_t<decltype(op)>;
    auto found = value.getDefiningOp<Op>();
    if (!found || !found->hasOneUse())
      return;
    op = found;
    if constexpr (!std::is_same_v<Op, pack::MatmulOp>)
      value = found.getInput();
  };
  step(chain.rope);
  step(chain.norm);
  step(chain.matmul);
  if (chain.matmul &&
      (chain.matmul.getEpilogue() != pack::Epilogue::Store ||
       chain.matmul.getWeights().size() != 1 || chain.matmul.getRowSet() != pack::RowSet::Tokens))
    chain.matmul = {};
  return chain;
}

// Why the chains of queries, keys and values can't be one op; null if they can.
const char *obstacle(HeadChain q, HeadChain k, HeadChain v, int64_t dim) {
  if (!q.matmul || !k.matmul || !v.matmul)
    return "queries, keys and values are not plain products of their own";
  if (v.norm || v.rope)
    return "values are normed or turned";
  if (q.matmul.getAct() != k.matmul.getAct() || q.matmul.getAct() != v.matmul.getAct())
    return "queries, keys and values read different activations";
  if (bool(q.rope) != bool(k.rope))
    return "only one of queries and keys is turned";
  if (q.rope &&
      (q.rope.getAngles() != k.rope.getAngles() || q.rope.getStyle() != k.rope.getStyle() ||
       int64_t(q.rope.getHeadDim()) != dim || int64_t(k.rope.getHeadDim()) != dim))
    return "queries and keys are turned differently";
  for (lm::RmsNormOp norm : {q.norm, k.norm})
    if (norm && (int64_t(norm.getOver()) != dim || !norm.getScale()))
      return "a norm is not over one head or has no scale";
  if (q.norm && k.norm && q.norm.getEps() != k.norm.getEps())
    return "queries and keys have norms with different eps";
  return nullptr;
}

struct Fuse : mlir::OpRewritePattern<lm::AttentionOp> {
  Fuse(mlir::MLIRContext *context, bool exact, int64_t bits)
      : OpRewritePattern(context), exact(exact), bits(bits) {}

  bool exact;
  int64_t bits;

  llvm::LogicalResult matchAndRewrite(lm::AttentionOp op,
                                      mlir::PatternRewriter &rewriter) const override {
    auto append = op.getCache().getDefiningOp<lm::AppendOp>();
    auto state = append ? append.getCache().getDefiningOp<lm::StateOp>() : lm::StateOp();
    if (!append || !state || !state->hasOneUse())
      return rewriter.notifyMatchFailure(op, "the cache is not written just before");
    for (mlir::Operation *user : append.getResult().getUsers())
      if (!llvm::isa<lm::AttentionOp>(user) || user->isBeforeInBlock(op))
        return rewriter.notifyMatchFailure(op, "another op reads the cache before");
    lm::KvCacheType type = append.getCache().getType();
    int64_t dim = type.getDim();
    if (type.getValueDim() != dim)
      return rewriter.notifyMatchFailure(op, "keys and values differ in size");
    if (!fits(type, bits))
      return rewriter.notifyMatchFailure(op, "the heads can't be cut into blocks");
    HeadChain q = chainOf(op.getQueries()), k = chainOf(append.getKeys()),
              v = chainOf(append.getValues());
    if (const char *reason = obstacle(q, k, v, dim))
      return rewriter.notifyMatchFailure(op, reason);

    bool windowed = windowOf(state) != 0;
    Value queries, cache;
    std::tie(queries, cache) = makeProducts(rewriter, op, state, q, k, v);
    auto act = llvm::cast<pack::ActType>(q.matmul.getAct().getType());
    bool exact = this->exact || act.getKind() == pack::ActKind::F32;
    // Other layers may read the cache too.
    for (mlir::Operation *user : llvm::make_early_inc_range(append.getResult().getUsers()))
      if (auto reader = llvm::dyn_cast<lm::AttentionOp>(user); reader && reader != op)
        replaceAttention(rewriter, reader, reader.getQueries(), /*turned=*/false, cache, windowed,
                         exact);
    replaceAttention(rewriter, op, queries, /*turned=*/true, cache, windowed, exact);
    // From the last reader to the first.
    rewriter.eraseOp(append);
    rewriter.eraseOp(state);
    for (HeadChain chain : {q, k, v})
      for (mlir::Operation *dead :
           {chain.rope.getOperation(), chain.norm.getOperation(), chain.matmul.getOperation()})
        if (dead)
          rewriter.eraseOp(dead);
    return mlir::success();
  }

  std::pair<Value, Value> makeProducts(mlir::PatternRewriter &rewriter, lm::AttentionOp op,
                                       lm::StateOp state, HeadChain q, HeadChain k,
                                       HeadChain v) const {
    mlir::Location loc = q.matmul.getLoc();
    auto [cache, slots] = makeCache(rewriter, loc, state, bits);
    auto kv = llvm::cast<pack::KvType>(cache.getType());
    llvm::SmallVector<pack::MatmulOp> products = {q.matmul, k.matmul, v.matmul};
    llvm::SmallVector<Value> weights, biases = joinBiases(rewriter, products);
    for (pack::MatmulOp matmul : products)
      llvm::append_range(weights, matmul.getWeights());
    auto rope = pack::RopeStyle::None;
    Value table;
    if (q.rope) {
      rope = q.rope.getStyle() == lm::RopeStyle::Halves ? pack::RopeStyle::Halves
                                                        : pack::RopeStyle::Pairs;
      table = q.rope.getAngles();
    }
    lm::RmsNormOp qNorm = q.norm, kNorm = k.norm;
    auto eps = qNorm   ? qNorm.getEpsAttr()
               : kNorm ? kNorm.getEpsAttr()
                       : rewriter.getF32FloatAttr(0.0f);
    auto heads = pack::MatmulHeadsOp::create(
        rewriter, loc, mlir::TypeRange{op.getQueries().getType(), kv}, q.matmul.getAct(), weights,
        biases, qNorm ? qNorm.getScale() : Value(), kNorm ? kNorm.getScale() : Value(), table,
        slots, cache, Value(), uint64_t(kv.getDim()), uint64_t(table ? lm::widthOf(table) : 0),
        rope, eps.getValue());
    return {heads.getResult(0), heads.getResult(1)};
  }
};

struct FuseHeads : impl::FuseHeadsBase<FuseHeads> {
  using FuseHeadsBase::FuseHeadsBase;

  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<Fuse>(&getContext(), exact, cacheBits);
    if (failed(mlir::applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace izhc
