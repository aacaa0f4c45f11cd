// Functions, launch bounds and the records that the runtime launches by.

#include "targets/cuda/codegen/Kernels.h"
#include "compiler/target/Emission.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/schema/device_code.h"
#include "targets/cuda/codegen/Lowering.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

namespace izhc::cuda {

using namespace mlir;

namespace {

LogicalResult emit(Block &block, Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](pack::EmbedOp op) { return emitEmbed(block, op); })
      .Case([&](pack::RopeTableOp op) { return emitRopeTable(block, op); })
      .Case([&](pack::QuantizeOp op) { return emitQuantize(block, op); })
      .Case([&](pack::MatmulOp op) { return emitMatmul(block, op); })
      .Case([&](pack::HeadMatmulOp op) { return emitHeadMatmul(block, op); })
      .Case([&](pack::MatmulHeadsOp op) { return emitMatmulHeads(block, op); })
      .Case([&](pack::AttentionOp op) { return emitAttention(block, op); })
      .Case([&](pack::MergeOp op) { return emitMerge(block, op); })
      .Case([&](pack::AppendOp op) { return emitAppend(block, op); })
      .Case([&](pack::MapOp op) { return emitMap(block, op); })
      .Case([&](pack::NormOp op) { return emitNorm(block, op); })
      .Case([&](pack::RopeOp op) { return emitRope(block, op); })
      .Case([&](pack::JoinOp op) { return emitJoin(block, op); })
      .Case([&](pack::ScaleRowsOp op) { return emitScaleRows(block, op); })
      .Case([&](pack::RouteOp op) { return emitRoute(block, op); })
      .Case([&](pack::ExpertGateOp op) { return emitExpertGate(block, op); })
      .Case([&](pack::ExpertSumOp op) { return emitExpertSum(block, op); })
      .Case([&](pack::ShortConvOp op) { return emitShortConv(block, op); })
      .Case([&](pack::DeltaRuleOp op) { return emitDeltaRule(block, op); })
      .Default([](Operation *op) {
        return op->emitError("has no GPU form; leave the cuda targets out for this model");
      });
}

// The body of `kernel` as a function that is no kernel yet.
LogicalResult makeFunction(plan::KernelOp kernel, int64_t threads) {
  OpBuilder builder(kernel);
  Location loc = kernel.getLoc();
  size_t bindings = kernel.getBody().getNumArguments();
  SmallVector<Type> types(bindings + 1, LLVM::LLVMPointerType::get(builder.getContext()));
  types.append(2, builder.getI64Type());
  auto function =
      func::FuncOp::create(builder, loc, kernel.getSymName(), builder.getFunctionType(types, {}));
  mlir::Block *entry = function.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  KernelBuilder k(builder, loc, FloatAbilities{/*fma=*/true, /*convertsHalf=*/true});
  auto argument = [&](size_t i) -> Value { return entry->getArgument(i); };
  KernelFrameBase frame{k, argument(bindings + 1), argument(bindings + 2), {}, {}, {}, {}};
  for (size_t i = 0; i < bindings; ++i)
    frame.pointers.push_back(argument(i));
  auto parameter = [&](int64_t i) { return k.load(k.i64(), k.at(argument(bindings), 8 * i), 8); };
  frame.tokens = parameter(0);
  frame.outputs = parameter(1);
  frame.tiles = parameter(2);
  Block block(frame, threads);
  for (Operation &op : kernel.getBody().front())
    if (failed(emit(block, &op)))
      return failure();
  builder.setInsertionPointToEnd(entry);
  func::ReturnOp::create(builder, loc);
  return success();
}

constexpr llvm::StringLiteral kThreads = "nvvm.reqntid";

int64_t launchThreads(LLVM::LLVMFuncOp function) {
  auto pair = cast<ArrayAttr>((*function.getPassthrough())[0]);
  return std::stoll(cast<StringAttr>(pair[1]).getValue().str());
}

} // namespace

LogicalResult replaceKernels(ModuleOp module) {
  module.getContext()
      ->loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                    scf::SCFDialect, vector::VectorDialect>();
  llvm::StringMap<int64_t> threads;
  for (auto kernel : llvm::make_early_inc_range(module.getOps<plan::KernelOp>())) {
    int64_t count = threadsOf(&kernel.getBody().front().front());
    threads[kernel.getSymName()] = count;
    if (failed(makeFunction(kernel, count)))
      return failure();
    kernel.erase();
  }
  // What remains of the plan is data for the artifact, not code.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*module.getBody())))
    if (!isa<func::FuncOp, LLVM::GlobalOp>(op))
      op.erase();
  PassManager passes(module.getContext());
  buildLlvmPasses(passes);
  if (failed(passes.run(module)))
    return failure();
  Builder builder(module.getContext());
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    function.setCConv(LLVM::cconv::CConv::PTX_Kernel);
    std::string count = std::to_string(threads.lookup(function.getSymName()));
    function.setPassthroughAttr(builder.getArrayAttr({builder.getStrArrayAttr({kThreads, count})}));
  }
  return success();
}

FailureOr<CodeBlob> packCode(ModuleOp module, llvm::StringRef text, ArrayRef<std::string> order) {
  CodeBlob blob;
  auto append = [&](const void *data, size_t size) {
    auto *bytes = static_cast<const uint8_t *>(data);
    size_t at = blob.bytes.size();
    blob.bytes.insert(blob.bytes.end(), bytes, bytes + size);
    return at;
  };
  using izh::schema::DeviceCode, izh::schema::DeviceKernel;
  size_t names = sizeof(DeviceCode) + order.size() * sizeof(DeviceKernel), size = names;
  for (const std::string &name : order)
    size += name.size() + 1;
  DeviceCode code = {size, text.size() + 1};
  append(&code, sizeof(code));
  for (const std::string &name : order) {
    auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
    if (!function)
      return module.emitError("has no kernel ") << name;
    // All arguments but params, begin and end.
    DeviceKernel kernel = {uint32_t(names), uint32_t(launchThreads(function)),
                           uint32_t(function.getNumArguments() - 3), 0};
    blob.entries.push_back(append(&kernel, sizeof(kernel)));
    names += name.size() + 1;
  }
  for (const std::string &name : order)
    append(name.c_str(), name.size() + 1);
  append(text.str().c_str(), text.size() + 1);
  return blob;
}

} // namespace izhc::cuda
