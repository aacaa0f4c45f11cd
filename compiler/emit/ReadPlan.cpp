// Walks a module's `plan` ops in order. Numbers were verified by the ops; what
// is checked here are the references between them.

#include "compiler/emit/ReadPlan.h"
#include "dialects/plan/Plan.h"
#include "dialects/plan/Window.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

namespace izhc::emit {
namespace {

class Reader {
public:
  Plan plan;

  llvm::LogicalResult read(mlir::Operation &op) {
    return llvm::TypeSwitch<mlir::Operation *, llvm::LogicalResult>(&op)
        .Case<plan::MemoryOp>([&](auto memory) { return readMemory(memory); })
        .Case<plan::WeightOp>([&](auto weight) { return readWeight(weight); })
        .Case<plan::ConstantOp>([&](auto constant) { return readConstant(constant); })
        .Case<plan::StateOp>([&](auto state) {
          if (state.getPerSequence())
            plan.sequenceStates.push_back(plan.statePageBytes.size());
          plan.statePageBytes.push_back(state.getPageBytes());
          return readWindow(state);
        })
        .Case<plan::KernelOp>([&](auto kernel) {
          kernelNumbers[kernel.getSymName()] = plan.kernels.size();
          plan.kernels.push_back(kernel.getSymName().str());
          return mlir::success();
        })
        .Case<plan::DispatchOp>([&](auto dispatch) { return readDispatch(dispatch); })
        .Default([](mlir::Operation *other) {
          return other->emitOpError("does not belong into a planned module");
        });
  }

private:
  llvm::LogicalResult readMemory(plan::MemoryOp op) {
    plan.arenaBytes = op.getArenaBytes();
    plan.weightsBytes = op.getWeightsBytes();
    plan.constantsBytes = op.getConstantsBytes();
    plan.logitsOffset = op.getLogitsOffset();
    plan.maxTokens = op.getMaxTokens();
    plan.maxOutputs = op.getMaxOutputs();
    plan.tileTokens = op.getTileTokens();
    plan.pageTokens = op.getPageTokens();
    plan.spanTokens = op.getSpanTokens();
    plan.maxPartials = op.getMaxPartials();
    return mlir::success();
  }

  llvm::LogicalResult readWindow(plan::StateOp op) {
    int64_t window = plan::windowOf(op);
    if (window == 0)
      return mlir::success();
    if (window < 0 || window > plan::kMaxWindow || op.getPerSequence())
      return op.emitOpError("has a window of ")
             << window << " tokens; expected at most 2^30, and none with one page a sequence";
    plan.stateWindows[plan.statePageBytes.size() - 1] = uint32_t(window);
    return mlir::success();
  }

  llvm::LogicalResult readWeight(plan::WeightOp op) {
    const FormatSpec *format = findFormat(op.getFormat());
    if (!format)
      return op.emitOpError("has the unknown format '") << op.getFormat() << "'";
    RowView view;
    if (auto given = op.getView())
      view = {uint64_t((*given)[0]), uint64_t((*given)[1]), uint64_t((*given)[2])};
    plan.weights.push_back({op.getName().str(), format, int64_t(op.getRows()),
                            int64_t(op.getCols()), op.getOffset(), op.getSize(), view,
                            int64_t(op.getCount())});
    return mlir::success();
  }

  llvm::LogicalResult readConstant(plan::ConstantOp op) {
    Constant constant = {op.getName().str(), op.getOffset(), op.getCount(), {}};
    if (auto values = op.getValues())
      constant.values = std::vector<float>(values->begin(), values->end());
    plan.constants.push_back(std::move(constant));
    return mlir::success();
  }

  llvm::LogicalResult readDispatch(plan::DispatchOp op) {
    auto number = kernelNumbers.find(op.getKernel());
    if (number == kernelNumbers.end())
      return op.emitOpError("runs the kernel '")
             << op.getKernel() << "', which is not defined above";
    if (op.getGrain() > UINT32_MAX)
      return op.emitOpError("has a grain that is too large");
    Dispatch dispatch = {number->second,
                         {},
                         op.getUnits(),
                         static_cast<Extent>(op.getExtent()),
                         uint32_t(op.getGrain())};
    for (auto [space, offset, size] :
         llvm::zip_equal(op.getSpaces(), op.getOffsets(), op.getSizes())) {
      if (space < 0 || !plan::symbolizeSpace(space) || offset < 0 || size < 0)
        return op.emitOpError("has a binding outside of all spaces");
      dispatch.bindings.push_back({static_cast<Space>(space), uint64_t(offset), uint64_t(size)});
    }
    plan.dispatches.push_back(std::move(dispatch));
    plan.tokenBytes += op.getTokenBytes().value_or(0);
    plan.tokenOperations += op.getTokenOperations().value_or(0);
    plan.outputOperations += op.getOutputOperations().value_or(0);
    return mlir::success();
  }

  llvm::StringMap<uint32_t> kernelNumbers;
};

} // namespace

llvm::FailureOr<Plan> readPlan(mlir::ModuleOp module) {
  if (module.getOps<plan::MemoryOp>().empty()) {
    module.emitError("the module has no plan.memory: it was not planned");
    return mlir::failure();
  }
  Reader reader;
  for (mlir::Operation &op : *module.getBody())
    if (mlir::failed(reader.read(op)))
      return mlir::failure();
  return std::move(reader.plan);
}

} // namespace izhc::emit
