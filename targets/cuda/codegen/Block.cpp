// Threads, shuffles and shared memory as calls of NVVM intrinsics.

#include "targets/cuda/codegen/Block.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "runtime/schema/device_code.h"

namespace izhc::cuda {

using namespace mlir;

static constexpr int64_t kGlobalSpace = 1, kSharedSpace = 3;
static constexpr llvm::StringLiteral kLaunchMemory = "izh_launch_memory";

// An instruction that nothing is moved across. `results` words, from `operands`.
static Value assembly(KernelBuilder &k, Type result, llvm::StringRef text,
                      llvm::StringRef constraints, llvm::ArrayRef<Value> operands) {
  auto op = LLVM::InlineAsmOp::create(k.builder, k.loc, result, operands, text, constraints,
                                      /*has_side_effects=*/true, /*is_align_stack=*/false,
                                      LLVM::tailcallkind::TailCallKind::None,
                                      /*asm_dialect=*/LLVM::AsmDialectAttr(),
                                      /*operand_attrs=*/ArrayAttr());
  return op->getNumResults() ? op->getResult(0) : Value();
}

Block::Block(KernelFrameBase frame, int64_t threads, bool overlaps, bool launchesLate)
    : KernelFrameBase(std::move(frame)), threads(threads), overlaps(overlaps),
      launchesLate(overlaps && launchesLate) {
  thread = number("llvm.nvvm.read.ptx.sreg.tid.x");
  lane = k.rem(thread, kWarp);
  warp = k.div(thread, kWarp);
  unit = k.add(begin, number("llvm.nvvm.read.ptx.sreg.ctaid.x"));
  // Kernels that come later wait for this one's end before they read anything
  // of it, so they may begin to load weights as soon as there is room.
  if (overlaps && !launchesLate)
    launchDependents();
}

void Block::launchDependents() {
  assembly(k, {}, "griddepcontrol.launch_dependents;", "~{memory}", {});
}

Value Block::call(Type type, llvm::StringRef name, llvm::ArrayRef<Value> operands) {
  return LLVM::CallIntrinsicOp::create(k.builder, k.loc, type, k.builder.getStringAttr(name),
                                       operands)
      .getResult(0);
}

void Block::call(llvm::StringRef name, llvm::ArrayRef<Value> operands) {
  LLVM::CallIntrinsicOp::create(k.builder, k.loc, k.builder.getStringAttr(name), operands);
}

Value Block::number(llvm::StringRef specialRegister) {
  return k.extendU(call(k.i32(), specialRegister, {}), k.i64());
}

Value Block::rowScratch() {
  Value bits = k.load(k.i64(), k.at(params, 8 * izh::schema::kRowScratchCount), 8);
  return LLVM::IntToPtrOp::create(k.builder, k.loc, k.ptr(), bits);
}

Value Block::shared(int64_t bytes) {
  auto module = k.builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  int64_t count =
      std::distance(module.getOps<LLVM::GlobalOp>().begin(), module.getOps<LLVM::GlobalOp>().end());
  std::string name = "izh_shared_" + std::to_string(count);
  auto space = LLVM::LLVMPointerType::get(k.builder.getContext(), kSharedSpace);
  Value there = LLVM::AddressOfOp::create(k.builder, k.loc, space, name);
  {
    OpBuilder::InsertionGuard guard(k.builder);
    k.builder.setInsertionPointToStart(module.getBody());
    LLVM::GlobalOp::create(k.builder, k.loc, LLVM::LLVMArrayType::get(k.i8(), bytes),
                           /*isConstant=*/false, LLVM::Linkage::Internal, name, Attribute(),
                           /*alignment=*/16, kSharedSpace);
  }
  return LLVM::AddrSpaceCastOp::create(k.builder, k.loc, k.ptr(), there);
}

static Value inSpace(KernelBuilder &k, Value pointer, unsigned space) {
  auto type = LLVM::LLVMPointerType::get(k.builder.getContext(), space);
  return LLVM::AddrSpaceCastOp::create(k.builder, k.loc, type, pointer);
}

void Block::copyAsync(Value to, Value from) {
  call("llvm.nvvm.cp.async.cg.shared.global.16",
       {inSpace(k, to, kSharedSpace), inSpace(k, from, kGlobalSpace)});
}

void Block::fetchAsync(Value to, Value from) {
  call("llvm.nvvm.cp.async.ca.shared.global.16",
       {inSpace(k, to, kSharedSpace), inSpace(k, from, kGlobalSpace)});
}

void Block::commitCopies() { call("llvm.nvvm.cp.async.commit.group", {}); }
void Block::awaitCopies(int64_t but) {
  call("llvm.nvvm.cp.async.wait.group", {k.constInt(k.i32(), but)});
}

Value Block::launchMemory(int64_t bytes) {
  launchBytes = std::max(launchBytes, bytes);
  auto module = k.builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  auto space = LLVM::LLVMPointerType::get(k.builder.getContext(), kSharedSpace);
  if (!module.lookupSymbol(kLaunchMemory)) {
    OpBuilder::InsertionGuard guard(k.builder);
    k.builder.setInsertionPointToStart(module.getBody());
    LLVM::GlobalOp::create(k.builder, k.loc, LLVM::LLVMArrayType::get(k.i8(), 0),
                           /*isConstant=*/false, LLVM::Linkage::External, kLaunchMemory,
                           Attribute(), /*alignment=*/16, kSharedSpace);
  }
  Value there = LLVM::AddressOfOp::create(k.builder, k.loc, space, kLaunchMemory);
  return LLVM::AddrSpaceCastOp::create(k.builder, k.loc, k.ptr(), there);
}

void Block::makeGate(Value gate) {
  assembly(k, {}, "mbarrier.init.shared.b64 [$0], 1;", "l,~{memory}",
           {inSpace(k, gate, kSharedSpace)});
}

void Block::publishGates() {
  assembly(k, {}, "fence.mbarrier_init.release.cluster;", "~{memory}", {});
}

void Block::expectBytes(Value gate, Value bytes) {
  assembly(k, {}, "mbarrier.arrive.expect_tx.shared.b64 _, [$0], $1;", "l,r,~{memory}",
           {inSpace(k, gate, kSharedSpace), bytes});
}

void Block::copyBulk(Value to, Value from, Value bytes, Value gate) {
  assembly(
      k, {},
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];",
      "l,l,r,l,~{memory}",
      {inSpace(k, to, kSharedSpace), inSpace(k, from, kGlobalSpace), bytes,
       inSpace(k, gate, kSharedSpace)});
}

void Block::awaitGate(Value gate, Value parity) {
  assembly(k, {},
           "{\n\t.reg .pred %izh_passed;\nIZH_GATE_${:uid}:\n\t"
           "mbarrier.try_wait.parity.shared.b64 %izh_passed, [$0], $1;\n\t"
           "@!%izh_passed bra IZH_GATE_${:uid};\n\t}",
           "l,r,~{memory}", {inSpace(k, gate, kSharedSpace), parity});
}

void Block::awaitInputs() {
  if (overlaps)
    assembly(k, {}, "griddepcontrol.wait;", "~{memory}", {});
}

Block::Values Block::fetch(Value pointer, int64_t words) {
  SmallVector<Type> types(words, k.i32());
  std::string list, constraints;
  for (int64_t i = 0; i < words; ++i) {
    list += (i ? ", $" : "$") + std::to_string(i);
    constraints += "=r,";
  }
  if (words > 1)
    list = "{" + list + "}";
  std::string vector = words > 1 ? ".v" + std::to_string(words) : "";
  std::string text =
      "ld.global.nc" + vector + ".b32 " + list + ", [$" + std::to_string(words) + "];";
  Type result =
      words > 1 ? Type(LLVM::LLVMStructType::getLiteral(k.builder.getContext(), types)) : k.i32();
  Value found = assembly(k, result, text, constraints + "l", {pointer});
  if (words == 1)
    return {found};
  Values all;
  for (int64_t i = 0; i < words; ++i)
    all.push_back(LLVM::ExtractValueOp::create(k.builder, k.loc, found, i));
  return all;
}

Value Block::loadCoherent(Value pointer) {
  return assembly(k, k.i32(), "ld.relaxed.gpu.global.b32 $0, [$1];", "=r,l,~{memory}", {pointer});
}

// Such loads have no vectors: one after the other, all on their way at once.
Block::Values Block::loadCoherent(Value pointer, int64_t words) {
  Values all;
  for (int64_t i = 0; i < words; ++i)
    all.push_back(loadCoherent(k.at(pointer, 4 * i)));
  return all;
}

Value Block::countUp(Value pointer) {
  return assembly(k, k.i32(), "atom.add.acq_rel.gpu.global.u32 $0, [$1], 1;", "=r,l,~{memory}",
                  {pointer});
}

Block::Values Block::ifElse(Value condition, llvm::ArrayRef<Value> otherwise,
                            llvm::function_ref<Values()> compute) {
  auto branch = scf::IfOp::create(k.builder, k.loc, TypeRange(ValueRange(otherwise)), condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(k.builder);
  k.builder.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(k.builder, k.loc, compute());
  k.builder.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(k.builder, k.loc, otherwise);
  return Values(branch.getResults().begin(), branch.getResults().end());
}

void Block::barrier() { call("llvm.nvvm.barrier.cta.sync.aligned.all", {k.constInt(k.i32(), 0)}); }
void Block::syncWarp() { call("llvm.nvvm.bar.warp.sync", {k.constInt(k.i32(), -1)}); }

void Block::forThreads(Value count, llvm::function_ref<void(Value)> body) {
  k.loop(thread, count, k.constI64(threads), {}, [&](Value i, llvm::ArrayRef<Value>) {
    body(i);
    return Values();
  });
}
void Block::forThreads(int64_t count, llvm::function_ref<void(Value)> body) {
  forThreads(k.constI64(count), body);
}
void Block::forLanes(int64_t count, llvm::function_ref<void(Value)> body) {
  k.loop(lane, k.constI64(count), k.constI64(kWarp), {}, [&](Value i, llvm::ArrayRef<Value>) {
    body(i);
    return Values();
  });
}

Value Block::exchange(Value value, int64_t mask) {
  Value all = k.constInt(k.i32(), -1), last = k.constInt(k.i32(), 31);
  bool isFloat = isa<FloatType>(value.getType());
  return call(value.getType(),
              isFloat ? "llvm.nvvm.shfl.sync.bfly.f32" : "llvm.nvvm.shfl.sync.bfly.i32",
              {all, value, k.constInt(k.i32(), mask), last});
}

Value Block::warpSum(Value value) {
  for (int64_t mask = kWarp / 2; mask; mask /= 2)
    value = k.add(value, exchange(value, mask));
  return value;
}

Value Block::warpMax(Value value) {
  for (int64_t mask = kWarp / 2; mask; mask /= 2)
    value = k.max(value, exchange(value, mask));
  return value;
}

Value Block::warpMaxUnsigned(Value value) {
  return call(k.i32(), "llvm.nvvm.redux.sync.umax", {value, k.constInt(k.i32(), -1)});
}
Value Block::warpMinUnsigned(Value value) {
  return call(k.i32(), "llvm.nvvm.redux.sync.umin", {value, k.constInt(k.i32(), -1)});
}

Value Block::blockSum(Value value) {
  value = warpSum(value);
  if (warps() == 1)
    return value;
  Value sums = shared(4 * warps());
  k.ifThen(k.equal(lane, k.constI64(0)), [&] { storeFloat(k, value, sums, warp); });
  barrier();
  Value total;
  for (int64_t i = 0; i < warps(); ++i) {
    Value one = k.load(k.f32(), k.at(sums, 4 * i), 4);
    total = total ? k.add(total, one) : one;
  }
  // The sums may be written again by the next call.
  barrier();
  return total;
}

Value Block::dot4(Value acc, Value codes, Value values, bool signedCodes) {
  Type i32 = k.i32();
  return call(i32, signedCodes ? "llvm.nvvm.idp4a.s.s" : "llvm.nvvm.idp4a.u.s",
              {codes, values, acc});
}

Value Block::permute(Value low, Value high, Value selector) {
  return call(k.i32(), "llvm.nvvm.prmt", {low, high, selector});
}

// A permutation chooses among eight bytes.
Value Block::lookUp(llvm::ArrayRef<int8_t> codebook, Value numbers) {
  Value table[4];
  for (int64_t i = 0; i < 4; ++i) {
    uint32_t word = 0;
    for (int64_t j = 0; j < 4; ++j)
      word |= uint32_t(uint8_t(codebook[4 * i + j])) << 8 * j;
    table[i] = k.constInt(k.i32(), int32_t(word));
  }
  Value nibbles = k.orBits(numbers, k.shrU(numbers, 4));
  Value selector = k.orBits(k.andBits(nibbles, 0xff), k.andBits(k.shrU(nibbles, 8), 0xff00));
  selector = k.andBits(selector, 0x7777);
  Value low = permute(table[0], table[1], selector);
  Value high = permute(table[2], table[3], selector);
  Value isHigh = k.mul(k.andBits(k.shrU(numbers, 3), 0x01010101), 255);
  return k.orBits(k.andBits(high, isHigh), k.andBits(low, k.xorBits(isHigh, -1)));
}

Value Block::roundToInt(Value value) { return call(k.i32(), "llvm.nvvm.f2i.rn", {value}); }

Value Block::rowOf(Value buffer, Value row) {
  return k.at(address(buffer), k.mul(row, 4 * widthOf(buffer)));
}

Value normFactor(KernelBuilder &k, Value squares, int64_t count, double eps, double factor) {
  Value mean = k.div(squares, k.constFloat(k.f32(), double(count)));
  Value root = k.sqrt(k.add(mean, k.constFloat(k.f32(), eps)));
  return k.div(k.constFloat(k.f32(), factor), root);
}

} // namespace izhc::cuda
