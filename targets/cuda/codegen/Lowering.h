// Code of each kernel op for a block of threads that shares one unit of work.
// Each emitter writes it at the block's builder, or emits a diagnostic and fails.

#pragma once

#include "targets/cuda/codegen/Block.h"

namespace izhc::cuda {

llvm::LogicalResult emitEmbed(Block &block, pack::EmbedOp op);
llvm::LogicalResult emitRopeTable(Block &block, pack::RopeTableOp op);
llvm::LogicalResult emitQuantize(Block &block, pack::QuantizeOp op);
llvm::LogicalResult emitMatmul(Block &block, pack::MatmulOp op);
llvm::LogicalResult emitHeadMatmul(Block &block, pack::HeadMatmulOp op);
llvm::LogicalResult emitMatmulHeads(Block &block, pack::MatmulHeadsOp op);
llvm::LogicalResult emitAttention(Block &block, pack::AttentionOp op);
llvm::LogicalResult emitMerge(Block &block, pack::MergeOp op);
llvm::LogicalResult emitAppend(Block &block, pack::AppendOp op);
llvm::LogicalResult emitMap(Block &block, pack::MapOp op);
llvm::LogicalResult emitNorm(Block &block, pack::NormOp op);
llvm::LogicalResult emitRope(Block &block, pack::RopeOp op);
llvm::LogicalResult emitHadamard(Block &block, pack::HadamardOp op);
llvm::LogicalResult emitJoin(Block &block, pack::JoinOp op);
llvm::LogicalResult emitScaleRows(Block &block, pack::ScaleRowsOp op);
llvm::LogicalResult emitRoute(Block &block, pack::RouteOp op);
llvm::LogicalResult emitExpertGate(Block &block, pack::ExpertGateOp op);
llvm::LogicalResult emitExpertSum(Block &block, pack::ExpertSumOp op);
llvm::LogicalResult emitShortConv(Block &block, pack::ShortConvOp op);
llvm::LogicalResult emitDeltaRule(Block &block, pack::DeltaRuleOp op);

// Threads of a block of the kernel that has this op.
int64_t threadsOf(mlir::Operation *op);

} // namespace izhc::cuda
