// Scalar code for each kernel op: one value at a time, as the op's
// documentation says, without regard to speed. All other targets are tested
// against it, so it shares none of their emitters.
//
// Each emitter writes the loop over the frame's units at its builder, or emits
// a diagnostic and fails.

#pragma once

#include "compiler/target/KernelFrame.h"
#include "dialects/pack/RoutesLayout.h"

namespace izhc::reference {

llvm::LogicalResult emitEmbed(KernelFrameBase &frame, pack::EmbedOp op);
llvm::LogicalResult emitRopeTable(KernelFrameBase &frame, pack::RopeTableOp op);
llvm::LogicalResult emitHeadMatmul(KernelFrameBase &frame, pack::HeadMatmulOp op);
llvm::LogicalResult emitJoin(KernelFrameBase &frame, pack::JoinOp op);
llvm::LogicalResult emitScaleRows(KernelFrameBase &frame, pack::ScaleRowsOp op);
llvm::LogicalResult emitRoute(KernelFrameBase &frame, pack::RouteOp op);
llvm::LogicalResult emitExpertGate(KernelFrameBase &frame, pack::ExpertGateOp op);
llvm::LogicalResult emitExpertSum(KernelFrameBase &frame, pack::ExpertSumOp op);
llvm::LogicalResult emitQuantize(KernelFrameBase &frame, pack::QuantizeOp op);
llvm::LogicalResult emitMatmul(KernelFrameBase &frame, pack::MatmulOp op);
llvm::LogicalResult emitMatmulHeads(KernelFrameBase &frame, pack::MatmulHeadsOp op);
llvm::LogicalResult emitAttention(KernelFrameBase &frame, pack::AttentionOp op);
llvm::LogicalResult emitMap(KernelFrameBase &frame, pack::MapOp op);
llvm::LogicalResult emitNorm(KernelFrameBase &frame, pack::NormOp op);
llvm::LogicalResult emitRope(KernelFrameBase &frame, pack::RopeOp op);
llvm::LogicalResult emitHadamard(KernelFrameBase &frame, pack::HadamardOp op);
llvm::LogicalResult emitAppend(KernelFrameBase &frame, pack::AppendOp op);
llvm::LogicalResult emitMerge(KernelFrameBase &frame, pack::MergeOp op);
llvm::LogicalResult emitShortConv(KernelFrameBase &frame, pack::ShortConvOp op);
llvm::LogicalResult emitDeltaRule(KernelFrameBase &frame, pack::DeltaRuleOp op);

// Bytes of one row of a `memref<?xWxf32>`.
inline int64_t rowBytes(mlir::Value buffer) {
  return 4 * llvm::cast<mlir::MemRefType>(buffer.getType()).getDimSize(1);
}

// Element `i` of an array of floats.
inline mlir::Value loadFloat(KernelBuilder &k, mlir::Value array, mlir::Value i) {
  return k.load(k.f32(), k.at(array, k.mul(i, 4)), 4);
}
inline void storeFloat(KernelBuilder &k, mlir::Value value, mlir::Value array, mlir::Value i) {
  k.store(value, k.at(array, k.mul(i, 4)), 4);
}

// Element `i` of an array of 32-bit integers, as i64.
inline mlir::Value loadIndex(KernelBuilder &k, mlir::Value array, mlir::Value i) {
  return k.extendS(k.load(k.i32(), k.at(array, k.mul(i, 4)), 4), k.i64());
}

// The row that a pair of a table of routes belongs to.
inline mlir::Value pairRow(KernelBuilder &k, mlir::Value table, pack::RoutesType type,
                           mlir::Value pair) {
  pack::RoutesLayout layout(type);
  mlir::Value at = k.at(k.at(table, layout.pairs()), k.mul(pair, layout.kPairBytes));
  return k.extendS(k.load(k.i32(), at, 4), k.i64());
}

// for (i = 0; i < count; ++i) sum += term(i), starting from zero, in this order.
inline mlir::Value sum(KernelBuilder &k, mlir::Type type, mlir::Value count,
                       llvm::function_ref<mlir::Value(mlir::Value i)> term) {
  return k.loop(k.constI64(0), count, k.constI64(1), {k.zero(type)},
                [&](mlir::Value i, llvm::ArrayRef<mlir::Value> carried) {
                  return KernelBuilder::Values{k.add(carried[0], term(i))};
                })[0];
}

} // namespace izhc::reference
