// Functions, launch bounds and the records that the runtime launches by.

#include "targets/cuda/codegen/Kernels.h"
#include "compiler/target/Emission.h"
#include "dialects/pack/RoutesLayout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/schema/device_code.h"
#include "targets/cuda/codegen/Best.h"
#include "targets/cuda/codegen/ExpertRow.h"
#include "targets/cuda/codegen/Forms.h"
#include "targets/cuda/codegen/Lowering.h"
#include "targets/cuda/codegen/OneRow.h"
#include "targets/cuda/codegen/PairProducts.h"
#include "targets/cuda/codegen/Quantizer.h"
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
      .Case([&](pack::HadamardOp op) { return emitHadamard(block, op); })
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
      .Case<pack::MatmulOp, pack::MatmulHeadsOp, pack::AttentionOp, pack::ExpertGateOp,
            pack::ExpertSumOp, pack::HeadMatmulOp, pack::RouteOp>(
          [](auto typed) { return formsOf(typed); })
      .Default([](Operation *) { return Forms(); });
}

// Ops that call Block::prepare where it suits them.
bool preparesItself(Operation *op) {
  return isa<pack::MatmulOp, pack::MatmulHeadsOp, pack::QuantizeOp, pack::AttentionOp,
             pack::MergeOp>(op);
}

// A function under construction, no kernel yet: its arguments are the bindings
// of all `kernels`, then the counts of the step and the range of units.
struct Function {
  OpBuilder builder;
  func::FuncOp function;
  SmallVector<Value> bindings;
  Value params, begin, end;

  Function(llvm::StringRef name, ArrayRef<plan::KernelOp> kernels) : builder(kernels.front()) {
    plan::KernelOp first = kernels.front();
    size_t count = 0;
    for (plan::KernelOp kernel : kernels)
      count += kernel.getBody().getNumArguments();
    SmallVector<Type> types(count + 1, LLVM::LLVMPointerType::get(builder.getContext()));
    types.append(2, builder.getI64Type());
    function =
        func::FuncOp::create(builder, first.getLoc(), name, builder.getFunctionType(types, {}));
    mlir::Block *entry = function.addEntryBlock();
    builder.setInsertionPointToStart(entry);
    for (size_t i = 0; i < count; ++i)
      bindings.push_back(entry->getArgument(i));
    params = entry->getArgument(count);
    begin = entry->getArgument(count + 1);
    end = entry->getArgument(count + 2);
  }

  // With the bindings from `first` on.
  KernelFrameBase frame(KernelBuilder &k, size_t first, plan::KernelOp kernel) {
    KernelFrameBase result{k, begin, end, {}, {}, {}, {}};
    auto mine = ArrayRef(bindings).slice(first, kernel.getBody().getNumArguments());
    result.pointers.append(mine.begin(), mine.end());
    // The counts are there before the step's first kernel.
    auto parameter = [&](int64_t i) -> Value {
      return LLVM::LoadOp::create(k.builder, k.loc, k.i64(), k.at(params, 8 * i), /*alignment=*/8,
                                  /*isVolatile=*/false, /*isNonTemporal=*/false,
                                  /*isInvariant=*/true);
    };
    result.tokens = parameter(0);
    result.outputs = parameter(1);
    result.tiles = parameter(2);
    return result;
  }

  void finish() {
    builder.setInsertionPointToEnd(&function.getBody().front());
    func::ReturnOp::create(builder, function.getLoc());
  }
};

constexpr FloatAbilities kFloats = {/*fma=*/true, /*convertsHalf=*/true};

// LLVM's attributes of a function: the only place that stays with it on all the
// way to the artifact.
constexpr llvm::StringLiteral kThreads = "nvvm.reqntid", kBlocksAtOnce = "nvvm.minctasm";
constexpr llvm::StringLiteral kGroups = "izh-groups", kRowsEach = "izh-rows-each",
                              kLeastRows = "izh-least-rows", kRows = "izh-rows",
                              kThenThreads = "izh-then-threads", kThenUnits = "izh-then-units",
                              kRowScratch = "izh-row-scratch", kShared = "izh-shared";
using Numbers = SmallVector<std::pair<llvm::StringRef, int64_t>, 8>;
using NumbersOf = llvm::StringMap<Numbers>;

// A function with the arguments of `kernel`, that is no kernel yet; `body`
// writes what its blocks of `threads` threads do. What a launch has to bring goes to
// `numbers`.
LogicalResult makeFunction(plan::KernelOp kernel, llvm::StringRef name, int64_t threads,
                           bool overlaps, Numbers &numbers,
                           llvm::function_ref<LogicalResult(Block &)> body) {
  Function function(name, kernel);
  KernelBuilder k(function.builder, kernel.getLoc(), kFloats);
  Block block(function.frame(k, 0, kernel), threads, overlaps);
  block.params = function.params;
  if (failed(body(block)))
    return failure();
  function.finish();
  if (block.launchBytes)
    numbers.emplace_back(kShared, block.launchBytes);
  return success();
}

std::string formName(llvm::StringRef kernel, size_t number) {
  return (kernel + "_rows" + llvm::Twine(number)).str();
}

std::string thenName(llvm::StringRef form) { return (form + "_then").str(); }

// Makes the functions of a kernel; their attributes go to `all`.
LogicalResult makeFunctions(plan::KernelOp kernel, bool overlaps, NumbersOf &all) {
  mlir::Block &ops = kernel.getBody().front();
  auto emitAll = [&](Block &block) {
    for (Operation &op : ops) {
      if (!preparesItself(&op))
        block.prepare();
      if (failed(emit(block, &op)))
        return failure();
    }
    return success();
  };
  std::string name = kernel.getSymName().str();
  int64_t threads = threadsOf(&ops.front());
  all[name] = {{kThreads, threads}};
  if (failed(makeFunction(kernel, name, threads, overlaps, all[name], emitAll)))
    return failure();
  if (!llvm::hasSingleElement(ops))
    return success();
  for (auto [number, form] : llvm::enumerate(formsOfKernel(&ops.front()))) {
    std::string formed = formName(name, number);
    all[formed] = {{kThreads, form.threads},         {kBlocksAtOnce, form.together},
                   {kGroups, form.groups},           {kRowsEach, form.rowsEach},
                   {kLeastRows, form.leastRows},     {kRows, form.rows},
                   {kRowScratch, form.scratchOfRow}, {kThenThreads, form.thenThreads},
                   {kThenUnits, form.thenUnits}};
    auto make = [&](llvm::StringRef name, int64_t threads, auto &body) {
      return makeFunction(kernel, name, threads, overlaps, all[name], [&](Block &block) {
        block.prepare();
        return body(block);
      });
    };
    if (failed(make(formed, form.threads, form.emit)))
      return failure();
    if (!form.then)
      continue;
    all[thenName(formed)] = {{kThreads, form.thenThreads}};
    if (failed(make(thenName(formed), form.thenThreads, form.then)))
      return failure();
  }
  return success();
}

// 0 where a kernel has none of the name.
uint32_t numberOf(LLVM::LLVMFuncOp function, llvm::StringRef name) {
  ArrayAttr all = *function.getPassthrough();
  for (Attribute one : all) {
    auto pair = cast<ArrayAttr>(one);
    if (cast<StringAttr>(pair[0]).getValue() == name)
      return std::stoul(cast<StringAttr>(pair[1]).getValue().str());
  }
  return 0;
}

// Lets the kernel of a product begin with a copy of its record to shared memory, and with
// what else it begins with while that is on its way.
void copyRecord(Block &block, plan::KernelOp kernel) {
  for (auto [pointer, argument] :
       llvm::zip(block.pointers, kernel.getBody().front().getArguments())) {
    auto type = dyn_cast<pack::ActType>(argument.getType());
    if (!type)
      continue;
    int64_t bytes = pack::ActLayout(type).stride;
    Value from = pointer, record = block.shared(bytes);
    pointer = record;
    block.prologue = [&block, from, record, bytes, meanwhile = block.prologue] {
      KernelBuilder &k = block.k;
      SmallVector<Value> pieces;
      // All are on their way before the first is stored.
      int64_t count = bytes / 16;
      for (int64_t i = 0; i < count; i += block.threads) {
        Value piece = k.min(k.add(block.thread, i), k.constI64(count - 1));
        pieces.push_back(k.load(k.vec(4, k.i32()), k.at(from, k.mul(piece, 16)), 16));
      }
      if (meanwhile)
        meanwhile();
      for (auto [turn, piece] : llvm::enumerate(pieces)) {
        Value number = k.add(block.thread, int64_t(turn) * block.threads);
        k.ifThen(k.less(number, k.constI64(count)),
                 [&, piece = piece] { k.store(piece, k.at(record, k.mul(number, 16)), 16); });
      }
      block.barrier();
    };
  }
}

// The `kernel` for one row; with `prologue` (null for none) a product makes its
// record itself, as that kernel of a `quantize` does, attention has the raw
// products of that kernel of a `matmul_heads`, and products of experts make the choice of
// that kernel of a `route`; `makes` (or null): OneRowForm::makes; `record`: of what it leaves (null
// for none). What a launch has to bring goes to `numbers`, where the threads are.
LogicalResult makeOneRow(llvm::StringRef name, plan::KernelOp kernel, plan::KernelOp prologue,
                         plan::KernelOp makes, const OneRowForm &form, pack::ActType record,
                         bool overlaps, Numbers &numbers) {
  int64_t threads = form.threads;
  SmallVector<plan::KernelOp, 2> kernels = {kernel};
  if (prologue)
    kernels.push_back(prologue);
  Function function(name, kernels);
  KernelBuilder k(function.builder, kernel.getLoc(), kFloats);
  Block block(function.frame(k, 0, kernel), threads, overlaps, form.launchesLate);
  block.oneRow = true;
  block.recordType = record;
  block.recordOffset = form.recordOffset;
  block.scratch = k.at(function.params, izh::schema::kScratchOffset);
  std::optional<Block> before;
  std::optional<Quantizer> quantizer;
  // Lets operands of `type` be at `there`.
  auto replace = [&](Type type, Value there) {
    for (auto [pointer, argument] :
         llvm::zip(block.pointers, kernel.getBody().front().getArguments()))
      if (argument.getType() == type)
        pointer = there;
  };
  std::optional<Block> making;
  if (makes) {
    auto quantize = cast<pack::QuantizeOp>(opOf(makes));
    auto sum = cast<pack::ExpertSumOp>(opOf(kernel));
    auto type = cast<pack::ActType>(quantize.getInto().getType());
    KernelFrameBase frame = function.frame(k, 0, kernel);
    Value record = block.shared(pack::ActLayout(type).stride);
    frame.pointers = {k.at(block.address(sum.getAct()), form.inputOffset), record};
    replace(type, record);
    making.emplace(frame, threads, /*overlaps=*/false);
    quantizer.emplace(*making, quantize, type);
    block.sharesRecord = true;
    block.makeRecord = [&block, &quantizer, record](Value number) {
      quantizer->write(number, record);
      block.barrier();
    };
  }
  if (prologue)
    before.emplace(function.frame(k, block.pointers.size(), prologue), threads,
                   /*overlaps=*/false);
  if (auto heads = prologue ? dyn_cast<pack::MatmulHeadsOp>(opOf(prologue)) : nullptr) {
    block.heads = heads;
    block.headsBlock = &*before;
  } else if (auto route = prologue ? dyn_cast<pack::RouteOp>(opOf(prologue)) : nullptr) {
    Value table = block.shared(pack::RoutesLayout(route.getRoutes()).bytes(1));
    replace(route.getRoutes(), table);
    before->pointers[cast<BlockArgument>(route.getInto()).getArgNumber()] = table;
    bool weighted = isa<pack::ExpertSumOp>(opOf(kernel));
    auto choose = [&before, route, weighted] { chooseExperts(*before, route, weighted); };
    (form.choosesEarly ? block.chooseEarly : block.prologue) = choose;
  } else if (prologue) {
    auto quantize = cast<pack::QuantizeOp>(opOf(prologue));
    auto full = cast<pack::ActType>(quantize.getInto().getType());
    Value record = block.shared(pack::ActLayout(full).stride);
    replace(full, record);
    quantizer.emplace(*before, quantize, full);
    block.prologue = [&block, &quantizer, record] {
      quantizer->write(block.k.constI64(0), record);
      block.barrier();
    };
  }
  if (form.readsLeft) {
    copyRecord(block, kernel);
    block.sharesRecord = true;
  }
  if (form.isRaw)
    emitRawHeads(block, cast<pack::MatmulHeadsOp>(opOf(kernel)));
  else if (failed(emit(block, opOf(kernel))))
    return failure();
  function.finish();
  if (block.launchBytes)
    numbers.emplace_back(kShared, block.launchBytes);
  return success();
}

// Of the module, for packCode: for each dispatch [rows, skipped, kernel's name,
// prologue, units, at once, extent], as OneRowForm of runtime/schema/device_code.h has
// them; and what their kernels need of scratch memory.
constexpr llvm::StringLiteral kForms = "plan.one_row_forms";
constexpr llvm::StringLiteral kScratch = "plan.one_row_scratch";
constexpr llvm::StringLiteral kOverlaps = "plan.overlaps";

// Adds the kernels of the dispatches' other forms, and says what these are.
// Their attributes go to `all`.
LogicalResult makeOneRowKernels(ModuleOp module, bool overlaps, NumbersOf &all) {
  std::vector<OneRowForm> forms = chooseOneRowForms(module, /*streams=*/overlaps);
  if (llvm::none_of(forms, [](const OneRowForm &form) { return form.isOther(); }))
    return success();
  SymbolTable symbols(module);
  auto dispatches = llvm::to_vector(module.getOps<plan::DispatchOp>());
  auto kernelOf = [&](size_t i) {
    return symbols.lookup<plan::KernelOp>(dispatches[i].getKernel());
  };
  Builder builder(module.getContext());
  SmallVector<Attribute> list;
  int64_t scratch = 0;
  for (auto [i, form] : llvm::enumerate(forms)) {
    std::string name;
    if (form.hasKernel) {
      plan::KernelOp kernel = kernelOf(i), prologue, makes;
      name = kernel.getSymName().str() + (form.isRaw ? "_raw" : "_one");
      if (form.prologue >= 0) {
        prologue = kernelOf(form.prologue);
        name += "_" + prologue.getSymName().str();
      }
      if (form.leaves >= 0)
        name += "_leaves_" + kernelOf(form.leaves).getSymName().str() + "_" +
                std::to_string(uint64_t(form.recordOffset));
      if (form.readsLeft)
        name += "_left";
      if (form.launchesLate)
        name += "_late";
      if (form.choosesEarly)
        name += "_early";
      if (form.makes >= 0) {
        makes = kernelOf(form.makes);
        name +=
            "_makes_" + makes.getSymName().str() + "_" + std::to_string(uint64_t(form.inputOffset));
      }
      auto [entry, isNew] = all.try_emplace(name, Numbers{{kThreads, form.threads}});
      if (isNew && form.together)
        entry->second.emplace_back(kBlocksAtOnce, form.together);
      pack::ActType record;
      if (form.leaves >= 0)
        record = cast<pack::ActType>(
            cast<pack::QuantizeOp>(opOf(kernelOf(form.leaves))).getInto().getType());
      if (isNew &&
          failed(makeOneRow(name, kernel, prologue, makes, form, record, overlaps, entry->second)))
        return failure();
    }
    auto extent = form.rows == pack::RowSet::Tokens ? plan::Extent::Tokens : plan::Extent::Outputs;
    list.push_back(builder.getArrayAttr(
        {builder.getI64IntegerAttr(form.isOther() ? int64_t(extent) : 0),
         builder.getI64IntegerAttr(form.skipped), builder.getStringAttr(name),
         builder.getI64IntegerAttr(form.prologue + 1), builder.getI64IntegerAttr(form.units),
         builder.getI64IntegerAttr(form.atOnce), builder.getI64IntegerAttr(int64_t(form.extent))}));
    scratch = std::max(scratch, form.scratchBytes);
  }
  module->setAttr(kForms, builder.getArrayAttr(list));
  module->setAttr(kScratch, builder.getI64IntegerAttr(scratch));
  return success();
}

} // namespace

LogicalResult replaceKernels(ModuleOp module, bool overlaps) {
  module.getContext()
      ->loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                    scf::SCFDialect, vector::VectorDialect>();
  NumbersOf numbers;
  if (failed(makeOneRowKernels(module, overlaps, numbers)))
    return failure();
  for (auto kernel : llvm::make_early_inc_range(module.getOps<plan::KernelOp>())) {
    if (failed(makeFunctions(kernel, overlaps, numbers)))
      return failure();
    kernel.erase();
  }
  addBest(module, overlaps);
  numbers[kBestKernel] = {{kThreads, kBestThreads}};
  // What remains of the plan is data for the artifact, not code.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*module.getBody())))
    if (!isa<func::FuncOp, LLVM::GlobalOp>(op))
      op.erase();
  PassManager passes(module.getContext());
  buildLlvmPasses(passes);
  if (failed(passes.run(module)))
    return failure();
  Builder builder(module.getContext());
  module->setAttr(kOverlaps, builder.getBoolAttr(overlaps));
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

namespace {

// The bytes of a code section, piece by piece.
struct Section {
  std::vector<uint8_t> bytes;

  size_t append(const void *data, size_t size) {
    auto *begin = static_cast<const uint8_t *>(data);
    size_t at = bytes.size();
    bytes.insert(bytes.end(), begin, begin + size);
    return at;
  }
  size_t text(llvm::StringRef value) { return append(value.str().c_str(), value.size() + 1); }
  template <typename Record> size_t record(const Record &value) {
    bytes.resize(llvm::alignTo(bytes.size(), alignof(Record)));
    return append(&value, sizeof(value));
  }
};

} // namespace

FailureOr<CodeBlob> packCode(ModuleOp module, llvm::StringRef text, ArrayRef<std::string> order) {
  using izh::schema::DeviceCode, izh::schema::DeviceForm, izh::schema::DeviceKernel,
      izh::schema::OneRowForm;
  Section section;
  DeviceCode code = {};
  section.record(code);
  llvm::StringMap<uint32_t> kernels;
  // The record of a kernel, with its forms behind it; 0 if there is none of that
  // name.
  auto kernelOf = [&](llvm::StringRef name) -> uint32_t {
    auto [entry, isNew] = kernels.try_emplace(name, 0);
    SmallVector<LLVM::LLVMFuncOp> functions;
    auto find = [&](llvm::StringRef one) { return module.lookupSymbol<LLVM::LLVMFuncOp>(one); };
    for (auto one = find(name); one; one = find(formName(name, functions.size() - 1)))
      functions.push_back(one);
    if (!isNew || functions.empty())
      return entry->second;
    SmallVector<uint32_t> names, thenNames;
    for (LLVM::LLVMFuncOp function : functions) {
      names.push_back(section.text(function.getSymName()));
      thenNames.push_back(section.text(thenName(function.getSymName())));
    }
    // All arguments but params, begin and end.
    DeviceKernel kernel = {names[0], numberOf(functions[0], kThreads),
                           uint32_t(functions[0].getNumArguments() - 3),
                           uint32_t(functions.size() - 1), numberOf(functions[0], kShared)};
    entry->second = section.record(kernel);
    for (size_t i = 1; i < functions.size(); ++i) {
      auto number = [&](llvm::StringRef name) { return numberOf(functions[i], name); };
      section.record(DeviceForm{names[i], number(kThreads), number(kGroups), number(kRowsEach),
                                number(kLeastRows), number(kRows), number(kShared), thenNames[i],
                                number(kThenThreads), number(kThenUnits)});
      code.row_scratch_bytes = std::max<uint64_t>(code.row_scratch_bytes, number(kRowScratch));
    }
    return entry->second;
  };
  CodeBlob blob;
  for (const std::string &name : order) {
    blob.entries.push_back(kernelOf(name));
    if (blob.entries.back() == 0)
      return module.emitError("has no kernel ") << name;
  }
  code.best_offset = kernelOf(kBestKernel);
  std::vector<OneRowForm> forms;
  if (auto list = module->getAttrOfType<ArrayAttr>(kForms))
    for (auto form : list.getAsRange<ArrayAttr>()) {
      auto number = [&](size_t i) { return uint32_t(cast<IntegerAttr>(form[i]).getInt()); };
      llvm::StringRef name = cast<StringAttr>(form[2]).getValue();
      forms.push_back({number(0), number(1), name.empty() ? 0 : kernelOf(name), number(3),
                       number(4), number(5), number(6)});
    }
  if (auto scratch = module->getAttrOfType<IntegerAttr>(kScratch))
    code.scratch_bytes = scratch.getInt();
  for (const OneRowForm &form : forms) {
    size_t at = section.record(form);
    code.one_rows_offset = code.one_rows_offset ? code.one_rows_offset : at;
  }
  auto overlaps = module->getAttrOfType<BoolAttr>(kOverlaps);
  code.overlaps = overlaps && overlaps.getValue();
  code.text_offset = section.text(text);
  code.text_size = text.size() + 1;
  std::memcpy(section.bytes.data(), &code, sizeof(code));
  blob.bytes = std::move(section.bytes);
  return blob;
}

} // namespace izhc::cuda
