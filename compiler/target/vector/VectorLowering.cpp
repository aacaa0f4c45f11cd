// Drives the emitters: one function a kernel, with the ABI of plan.kernel.

#include "compiler/target/vector/VectorLowering.h"
#include "llvm/ADT/TypeSwitch.h"

namespace izhc {

using namespace mlir;

namespace {

LogicalResult emitBody(KernelFrame &frame, Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](pack::EmbedOp op) { return emitEmbed(frame, op); })
      .Case([&](pack::RopeTableOp op) { return emitRopeTable(frame, op); })
      .Case([&](pack::HeadMatmulOp op) { return emitHeadMatmul(frame, op); })
      .Case([&](pack::JoinOp op) { return emitJoin(frame, op); })
      .Case([&](pack::ScaleRowsOp op) { return emitScaleRows(frame, op); })
      .Case([&](pack::RouteOp op) { return emitRoute(frame, op); })
      .Case([&](pack::ExpertGateOp op) { return emitExpertGate(frame, op); })
      .Case([&](pack::ExpertSumOp op) { return emitExpertSum(frame, op); })
      .Case([&](pack::QuantizeOp op) { return emitQuantize(frame, op); })
      .Case([&](pack::MatmulOp op) { return emitMatmul(frame, op); })
      .Case([&](pack::MatmulHeadsOp op) { return emitMatmulHeads(frame, op); })
      .Case([&](pack::AttentionOp op) { return emitAttention(frame, op); })
      .Case([&](pack::MapOp op) { return emitMap(frame, op); })
      .Case([&](pack::NormOp op) { return emitNorm(frame, op); })
      .Case([&](pack::RopeOp op) { return emitRope(frame, op); })
      .Case([&](pack::HadamardOp op) { return emitHadamard(frame, op); })
      .Case([&](pack::AppendOp op) { return emitAppend(frame, op); })
      .Case([&](pack::MergeOp op) { return emitMerge(frame, op); })
      .Case([&](pack::ShortConvOp op) { return emitShortConv(frame, op); })
      .Case([&](pack::DeltaRuleOp op) { return emitDeltaRule(frame, op); })
      .Default([](Operation *op) { return op->emitError("no vector code for this operation"); });
}

} // namespace

llvm::LogicalResult lowerKernelsToVectors(ModuleOp module, const VectorMachine &machine) {
  return replaceKernels(module, machine.floats, [&](KernelFrameBase &base, Operation *op) {
    KernelFrame frame{base, machine};
    return emitBody(frame, op);
  });
}

} // namespace izhc
