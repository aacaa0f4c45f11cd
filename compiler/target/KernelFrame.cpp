// Makes one function of every plan.kernel, with the ABI that PlanOps.td gives.

#include "compiler/target/KernelFrame.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace izhc {

using namespace mlir;

llvm::LogicalResult
replaceKernels(ModuleOp module, FloatAbilities floats,
               llvm::function_ref<LogicalResult(KernelFrameBase &, Operation *)> emit) {
  module.getContext()
      ->loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                    scf::SCFDialect, vector::VectorDialect>();
  for (auto kernel : llvm::make_early_inc_range(module.getOps<plan::KernelOp>())) {
    OpBuilder builder(kernel);
    Location loc = kernel.getLoc();
    auto pointer = LLVM::LLVMPointerType::get(module.getContext());
    auto type =
        builder.getFunctionType({pointer, pointer, builder.getI64Type(), builder.getI64Type()}, {});
    auto function = func::FuncOp::create(builder, loc, kernel.getSymName(), type);
    Block *entry = function.addEntryBlock();
    builder.setInsertionPointToStart(entry);
    KernelBuilder k(builder, loc, floats);
    KernelFrameBase frame{k, entry->getArgument(2), entry->getArgument(3), {}, {}, {}, {}};
    for (size_t i = 0; i < kernel.getBody().getNumArguments(); ++i)
      frame.pointers.push_back(k.load(pointer, k.at(entry->getArgument(0), int64_t(8 * i)), 8));
    auto parameter = [&](int64_t i) {
      return k.load(k.i64(), k.at(entry->getArgument(1), 8 * i), 8);
    };
    frame.tokens = parameter(0);
    frame.outputs = parameter(1);
    frame.tiles = parameter(2);
    for (Operation &op : kernel.getBody().front())
      if (failed(emit(frame, &op)))
        return failure();
    builder.setInsertionPointToEnd(entry);
    func::ReturnOp::create(builder, loc);
    kernel.erase();
  }
  // What remains of the plan is data for the artifact, not code.
  llvm::SmallVector<Operation *> rest;
  for (Operation &op : module.getOps())
    if (!isa<func::FuncOp, LLVM::GlobalOp>(op))
      rest.push_back(&op);
  for (Operation *op : llvm::reverse(rest))
    op->erase();
  return success();
}

} // namespace izhc
