// Lowers kernels to vector code for machines with rows in lanes. One emitter a
// `pack` op, shared by all CPU targets; a target says what its vectors are and
// lowers `pack.dot` itself.

#pragma once

#include "compiler/target/KernelFrame.h"

namespace izhc {

class MatrixUnit;

// Numbers of the products of attention.
enum class PairNumber {
  Float32,  // sums of even and of odd products, joined at the end
  BFloat16, // pack.dot_pairs
  Float16,  // as Float32, with a few products at a time summed in float16
};

struct VectorMachine {
  int64_t lanes = 4; // 32-bit lanes of a vector: 4, 8 or 16
  FloatAbilities floats;
  // The dot instruction takes unsigned codes only: codes of signed formats are
  // read xor 0x80 and corrected by the activations' sums.
  bool unsignedDots = false;
  // Bytes of a register can be looked up in another.
  bool shufflesBytes = true;
  // From how many rows a pass on, weights are fetched ahead of their use (0:
  // never). Where the processor's window is short for that, from one row on;
  // else from where reading and computing would add up.
  int64_t prefetchRows = 0;
  // Passes of fewer rows fetch to where they are read, and what lies `nearBytes`
  // ahead; the others to the second-level cache.
  int64_t nearRows = 0;
  int64_t nearBytes = 0;
  // Registers that hold a vector.
  int64_t vectorRegisters = 16;
  // What attention on rounded numbers computes with: BFloat16 where the machine
  // has pack.dot_pairs, Float16 where it multiplies and adds such vectors.
  PairNumber pairs = PairNumber::Float32;
  // Products of many rows decode weights once (DecodedProduct): lanes are 8 or
  // 16, and multiplying and adding rounds once.
  bool decodesPanels = false;
  // Null: the machine has none. With one, lanes are 16.
  const MatrixUnit *matrix = nullptr;
  // Rows of activations that share one pass over a weight tile, largest first;
  // the last must be 1.
  llvm::SmallVector<int64_t, 4> tokenTiles = {1};
};

// A frame of vector code.
struct KernelFrame : KernelFrameBase {
  const VectorMachine &machine;
};

// Emitters: each writes the loop over units begin..end at the frame's builder.
llvm::LogicalResult emitEmbed(KernelFrame &frame, pack::EmbedOp op);
llvm::LogicalResult emitRopeTable(KernelFrame &frame, pack::RopeTableOp op);
llvm::LogicalResult emitHeadMatmul(KernelFrame &frame, pack::HeadMatmulOp op);
llvm::LogicalResult emitJoin(KernelFrame &frame, pack::JoinOp op);
llvm::LogicalResult emitScaleRows(KernelFrame &frame, pack::ScaleRowsOp op);
llvm::LogicalResult emitRoute(KernelFrame &frame, pack::RouteOp op);
llvm::LogicalResult emitExpertGate(KernelFrame &frame, pack::ExpertGateOp op);
llvm::LogicalResult emitExpertSum(KernelFrame &frame, pack::ExpertSumOp op);
llvm::LogicalResult emitQuantize(KernelFrame &frame, pack::QuantizeOp op);
llvm::LogicalResult emitMatmul(KernelFrame &frame, pack::MatmulOp op);
llvm::LogicalResult emitMatmulHeads(KernelFrame &frame, pack::MatmulHeadsOp op);
llvm::LogicalResult emitAttention(KernelFrame &frame, pack::AttentionOp op);
llvm::LogicalResult emitMap(KernelFrame &frame, pack::MapOp op);
llvm::LogicalResult emitNorm(KernelFrame &frame, pack::NormOp op);
llvm::LogicalResult emitRope(KernelFrame &frame, pack::RopeOp op);
llvm::LogicalResult emitHadamard(KernelFrame &frame, pack::HadamardOp op);
llvm::LogicalResult emitAppend(KernelFrame &frame, pack::AppendOp op);
llvm::LogicalResult emitMerge(KernelFrame &frame, pack::MergeOp op);
llvm::LogicalResult emitShortConv(KernelFrame &frame, pack::ShortConvOp op);
llvm::LogicalResult emitDeltaRule(KernelFrame &frame, pack::DeltaRuleOp op);

// Replaces every plan.kernel of `module` by vector code; `pack.dot` remains.
llvm::LogicalResult lowerKernelsToVectors(mlir::ModuleOp module, const VectorMachine &machine);

} // namespace izhc
