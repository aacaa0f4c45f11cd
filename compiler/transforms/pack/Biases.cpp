// A fused product adds a bias to all of its matrices or to none.

#include "compiler/transforms/pack/Biases.h"
#include "dialects/lm/Lm.h"

namespace izhc {

using namespace mlir;

static Value zeros(PatternRewriter &rewriter, pack::MatmulOp product) {
  int64_t count = lm::widthOf(product.getResult());
  auto type = RankedTensorType::get({count}, rewriter.getF32Type());
  llvm::SmallVector<float> values(count, 0.0f);
  return pack::PackVectorOp::create(rewriter, product.getLoc(), type,
                                    ("zeros." + llvm::Twine(count)).str(),
                                    rewriter.getDenseF32ArrayAttr(values));
}

llvm::SmallVector<Value> joinBiases(PatternRewriter &rewriter,
                                    llvm::ArrayRef<pack::MatmulOp> products) {
  llvm::SmallVector<Value> biases;
  if (llvm::all_of(products, [](pack::MatmulOp one) { return one.getBiases().empty(); }))
    return biases;
  for (pack::MatmulOp product : products) {
    if (product.getBiases().empty())
      biases.push_back(zeros(rewriter, product));
    else
      llvm::append_range(biases, product.getBiases());
  }
  return biases;
}

} // namespace izhc
