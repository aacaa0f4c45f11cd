#include "targets/cuda/codegen/TensorCore.h"

namespace izhc::cuda {

using namespace mlir;

static constexpr int64_t kSharedSpace = 3;

// Results of an intrinsic that gives `count` values of one type.
static KernelBuilder::Values callMany(KernelBuilder &k, llvm::StringRef name, Type element,
                                      int64_t count, ArrayRef<Value> operands) {
  auto type =
      LLVM::LLVMStructType::getLiteral(k.builder.getContext(), SmallVector<Type>(count, element));
  Value all =
      LLVM::CallIntrinsicOp::create(k.builder, k.loc, type, k.builder.getStringAttr(name), operands)
          .getResult(0);
  KernelBuilder::Values values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(LLVM::ExtractValueOp::create(k.builder, k.loc, all, i));
  return values;
}

KernelBuilder::Values loadMatrices(KernelBuilder &k, Value address) {
  auto space = LLVM::LLVMPointerType::get(k.builder.getContext(), kSharedSpace);
  Value there = LLVM::AddrSpaceCastOp::create(k.builder, k.loc, space, address);
  return callMany(k, "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16", k.i32(), 4, {there});
}

KernelBuilder::Values multiplyBytes(KernelBuilder &k, int64_t depth, ArrayRef<Value> a,
                                    ArrayRef<Value> b, ArrayRef<Value> c) {
  SmallVector<Value> operands(a);
  operands.append(b.begin(), b.end());
  operands.append(c.begin(), c.end());
  return callMany(
      k, depth == 32 ? "llvm.nvvm.mma.m16n8k32.row.col.s8" : "llvm.nvvm.mma.m16n8k16.row.col.s8",
      k.i32(), 4, operands);
}

KernelBuilder::Values multiplyHalves(KernelBuilder &k, ArrayRef<Value> a, ArrayRef<Value> b,
                                     ArrayRef<Value> c) {
  Type pair = k.vec(2, k.builder.getF16Type());
  SmallVector<Value> operands;
  for (ArrayRef<Value> words : {a, b})
    for (Value word : words)
      operands.push_back(LLVM::BitcastOp::create(k.builder, k.loc, pair, word));
  operands.append(c.begin(), c.end());
  return callMany(k, "llvm.nvvm.mma.m16n8k16.row.col.f32.f32", k.f32(), 4, operands);
}

Value packHalves(KernelBuilder &k, Value low, Value high) {
  Type pair = k.vec(2, k.builder.getF16Type());
  Value halves = LLVM::CallIntrinsicOp::create(k.builder, k.loc, pair,
                                               k.builder.getStringAttr("llvm.nvvm.ff2f16x2.rn"),
                                               ValueRange{high, low})
                     .getResult(0);
  return LLVM::BitcastOp::create(k.builder, k.loc, k.i32(), halves);
}

std::pair<Value, Value> unpackHalves(KernelBuilder &k, Value word) {
  return {k.halfToFloat(k.truncate(word, k.i16())),
          k.halfToFloat(k.truncate(k.shrU(word, 16), k.i16()))};
}

Value exp2Fast(KernelBuilder &k, Value x) {
  return LLVM::CallIntrinsicOp::create(k.builder, k.loc, k.f32(),
                                       k.builder.getStringAttr("llvm.nvvm.ex2.approx.ftz.f"),
                                       ValueRange{x})
      .getResult(0);
}

} // namespace izhc::cuda
