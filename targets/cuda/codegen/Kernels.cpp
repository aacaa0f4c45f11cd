// Functions, launch bounds and the records that the runtime launches by.

#include "targets/cuda/codegen/Kernels.h"
#include "compiler/target/Emission.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/schema/device_code.h"
#include "targets/cuda/codegen/Forms.h"
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

Forms formsOfKernel(Operation *op) {
  return llvm::TypeSwitch<Operation *, Forms>(op)
      .Case<pack::MatmulOp, pack::MatmulHeadsOp>([](auto product) { return formsOf(product); })
      .Default([](Operation *) { return Forms(); });
}

// A function with the arguments of `kernel`, that is no kernel yet; `body`
// writes what its blocks of `threads` threads do.
LogicalResult makeFunction(plan::KernelOp kernel, llvm::StringRef name, int64_t threads,
                           llvm::function_ref<LogicalResult(Block &)> body) {
  OpBuilder builder(kernel);
  Location loc = kernel.getLoc();
  size_t bindings = kernel.getBody().getNumArguments();
  SmallVector<Type> types(bindings + 1, LLVM::LLVMPointerType::get(builder.getContext()));
  types.append(2, builder.getI64Type());
  auto function = func::FuncOp::create(builder, loc, name, builder.getFunctionType(types, {}));
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
  if (failed(body(block)))
    return failure();
  builder.setInsertionPointToEnd(entry);
  func::ReturnOp::create(builder, loc);
  return success();
}

std::string formName(llvm::StringRef kernel, size_t number) {
  return (kernel + "_rows" + llvm::Twine(number)).str();
}

// LLVM's attributes of a function: the only place that stays with it on all the
// way to the artifact.
constexpr llvm::StringLiteral kThreads = "nvvm.reqntid";
constexpr llvm::StringLiteral kGroups = "izh-groups", kRowsEach = "izh-rows-each",
                              kLeastRows = "izh-least-rows", kOutputs = "izh-outputs";
using Numbers = SmallVector<std::pair<llvm::StringRef, int64_t>, 5>;

// Makes the functions of a kernel; their attributes go to `all`.
LogicalResult makeFunctions(plan::KernelOp kernel, llvm::StringMap<Numbers> &all) {
  mlir::Block &ops = kernel.getBody().front();
  auto emitAll = [&](Block &block) {
    for (Operation &op : ops)
      if (failed(emit(block, &op)))
        return failure();
    return success();
  };
  std::string name = kernel.getSymName().str();
  int64_t threads = threadsOf(&ops.front());
  all[name] = {{kThreads, threads}};
  if (failed(makeFunction(kernel, name, threads, emitAll)))
    return failure();
  if (!llvm::hasSingleElement(ops))
    return success();
  for (auto [number, form] : llvm::enumerate(formsOfKernel(&ops.front()))) {
    std::string formed = formName(name, number);
    all[formed] = {{kThreads, form.threads},
                   {kGroups, form.groups},
                   {kRowsEach, form.rowsEach},
                   {kLeastRows, form.leastRows},
                   {kOutputs, form.outputs}};
    if (failed(makeFunction(kernel, formed, form.threads, form.emit)))
      return failure();
  }
  return success();
}

uint32_t numberOf(LLVM::LLVMFuncOp function, llvm::StringRef name) {
  ArrayAttr all = *function.getPassthrough();
  for (Attribute one : all) {
    auto pair = cast<ArrayAttr>(one);
    if (cast<StringAttr>(pair[0]).getValue() == name)
      return std::stoul(cast<StringAttr>(pair[1]).getValue().str());
  }
  llvm_unreachable("an attribute that every kernel has");
}

} // namespace

LogicalResult replaceKernels(ModuleOp module) {
  module.getContext()
      ->loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                    scf::SCFDialect, vector::VectorDialect>();
  llvm::StringMap<Numbers> numbers;
  for (auto kernel : llvm::make_early_inc_range(module.getOps<plan::KernelOp>())) {
    if (failed(makeFunctions(kernel, numbers)))
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
    // Branches through tables are PTX of a newer version than ours.
    SmallVector<Attribute> pairs = {builder.getStrArrayAttr({"no-jump-tables", "true"})};
    for (auto [name, number] : numbers.lookup(function.getSymName()))
      pairs.push_back(builder.getStrArrayAttr({name, std::to_string(number)}));
    function.setPassthroughAttr(builder.getArrayAttr(pairs));
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
  using izh::schema::DeviceCode, izh::schema::DeviceForm, izh::schema::DeviceKernel;
  // The functions of each kernel: its own, then its forms.
  SmallVector<SmallVector<LLVM::LLVMFuncOp>> kernels;
  size_t names = sizeof(DeviceCode), nameBytes = 0;
  for (const std::string &name : order) {
    auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
    if (!function)
      return module.emitError("has no kernel ") << name;
    kernels.push_back({});
    for (names += sizeof(DeviceKernel); function; names += sizeof(DeviceForm)) {
      nameBytes += function.getSymName().size() + 1;
      kernels.back().push_back(function);
      function = module.lookupSymbol<LLVM::LLVMFuncOp>(formName(name, kernels.back().size() - 1));
    }
    names -= sizeof(DeviceForm);
  }
  DeviceCode code = {names + nameBytes, text.size() + 1};
  append(&code, sizeof(code));
  auto nextName = [&](LLVM::LLVMFuncOp function) {
    size_t at = names;
    names += function.getSymName().size() + 1;
    return uint32_t(at);
  };
  for (auto &functions : kernels) {
    LLVM::LLVMFuncOp first = functions.front();
    // All arguments but params, begin and end.
    DeviceKernel kernel = {nextName(first), numberOf(first, kThreads),
                           uint32_t(first.getNumArguments() - 3), uint32_t(functions.size() - 1)};
    blob.entries.push_back(append(&kernel, sizeof(kernel)));
    for (LLVM::LLVMFuncOp function : llvm::drop_begin(functions)) {
      auto number = [&](llvm::StringRef name) { return numberOf(function, name); };
      DeviceForm form = {nextName(function), number(kThreads),   number(kGroups),
                         number(kRowsEach),  number(kLeastRows), number(kOutputs)};
      append(&form, sizeof(form));
    }
  }
  for (auto &functions : kernels)
    for (LLVM::LLVMFuncOp function : functions)
      append(function.getSymName().str().c_str(), function.getSymName().size() + 1);
  append(text.str().c_str(), text.size() + 1);
  return blob;
}

} // namespace izhc::cuda
