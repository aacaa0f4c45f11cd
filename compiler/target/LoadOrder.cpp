// Loads are compared where their addresses differ by a constant only: the same
// registers, not written in between.

#include "compiler/target/LoadOrder.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/CodeGen/MachineDominators.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineLoopInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/Metadata.h"
#include "llvm/Support/FormatVariadic.h"
#include <optional>

namespace izhc {

using namespace llvm;

namespace {

// Selection of instructions moves single loads by a line or two, which is
// fetched with its neighbours anyway; what schedulers move goes further.
constexpr int64_t kFar = 256;
// Alias scopes of this domain mark the loads; the name of a scope, this with a
// number behind it, tells streams apart.
constexpr StringLiteral kDomain = "izh.stream";

// The scope that marks `instruction`, if it is a load of a stream.
const Metadata *streamOf(const MachineInstr &instruction) {
  for (const MachineMemOperand *access : instruction.memoperands()) {
    const MDNode *scopes = access->getAAInfo().Scope;
    if (!access->isLoad() || !scopes)
      continue;
    for (const MDOperand &scope : scopes->operands()) {
      auto *node = dyn_cast<MDNode>(scope);
      auto *name =
          node && node->getNumOperands() ? dyn_cast<MDString>(node->getOperand(0)) : nullptr;
      if (name && name->getString().starts_with(kDomain))
        return name;
    }
  }
  return nullptr;
}

struct Address {
  SmallVector<Register, 2> registers;
  int64_t factor = 1, offset = 0;
};

// Addresses of five operands: base, factor, index, offset and segment.
std::optional<Address> longAddress(const MachineInstr &instruction) {
  ArrayRef<MCOperandInfo> operands = instruction.getDesc().operands();
  for (unsigned i = 0; i + 5 <= operands.size(); ++i) {
    if (operands[i].OperandType != MCOI::OPERAND_MEMORY)
      continue;
    auto at = [&](unsigned j) -> const MachineOperand & { return instruction.getOperand(i + j); };
    if (!at(0).isReg() || !at(1).isImm() || !at(2).isReg() || !at(3).isImm())
      return std::nullopt;
    return Address{{at(0).getReg(), at(2).getReg()}, at(1).getImm(), at(3).getImm()};
  }
  return std::nullopt;
}

std::optional<Address> addressOf(const MachineInstr &instruction, const TargetInstrInfo &info,
                                 const TargetRegisterInfo *registers) {
  if (auto address = longAddress(instruction))
    return address;
  SmallVector<const MachineOperand *> bases;
  Address address;
  bool scalable = false;
  LocationSize width = LocationSize::beforeOrAfterPointer();
  if (!info.getMemOperandsWithOffsetWidth(instruction, bases, address.offset, scalable, width,
                                          registers) ||
      scalable)
    return std::nullopt;
  for (const MachineOperand *base : bases) {
    if (!base->isReg())
      return std::nullopt;
    address.registers.push_back(base->getReg());
  }
  return address;
}

class CheckLoadOrder final : public MachineFunctionPass {
public:
  static char ID;
  explicit CheckLoadOrder(LoadOrder &result) : MachineFunctionPass(ID), result(result) {}

  StringRef getPassName() const override { return "check the order of loads"; }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }

  bool runOnMachineFunction(MachineFunction &function) override {
    MachineDominatorTree dominators(function);
    MachineLoopInfo loops(dominators);
    for (const MachineBasicBlock &block : function) {
      const MachineLoop *loop = loops.getLoopFor(&block);
      if (loop && loop->isInnermost())
        checkBlock(block);
    }
    return false;
  }

private:
  // The furthest load so far with this stream and these registers, and all
  // offsets that were loaded.
  struct Front {
    const Metadata *stream;
    Address address;
    SmallSet<int64_t, 16> loaded;
  };

  void checkBlock(const MachineBasicBlock &block) {
    const MachineFunction &function = *block.getParent();
    const TargetInstrInfo &info = *function.getSubtarget().getInstrInfo();
    const TargetRegisterInfo *registers = function.getSubtarget().getRegisterInfo();
    SmallVector<Front> fronts;
    for (const MachineInstr &instruction : block) {
      if (const Metadata *stream = streamOf(instruction))
        if (auto address = addressOf(instruction, info, registers))
          checkLoad(fronts, {stream, *address, {}}, function.getName());
      llvm::erase_if(fronts, [&](const Front &front) {
        return llvm::any_of(front.address.registers, [&](Register used) {
          return used.isValid() && instruction.modifiesRegister(used, registers);
        });
      });
    }
  }

  void checkLoad(SmallVectorImpl<Front> &fronts, const Front &load, StringRef function) {
    auto found = llvm::find_if(fronts, [&](const Front &front) {
      return front.stream == load.stream && front.address.registers == load.address.registers &&
             front.address.factor == load.address.factor;
    });
    if (found == fronts.end()) {
      fronts.push_back(load);
      fronts.back().loaded.insert(load.address.offset);
      return;
    }
    ++result.compared;
    int64_t &furthest = found->address.offset;
    // What is loaded once more begins another pass over the stream: short loops
    // are unrolled, and several may stand behind each other. Schedulers move
    // loads, but repeat none.
    if (!found->loaded.insert(load.address.offset).second) {
      furthest = load.address.offset;
      found->loaded.clear();
      found->loaded.insert(furthest);
      return;
    }
    if (load.address.offset <= furthest - kFar && result.complaint.empty())
      result.complaint = formatv("an inner loop of kernel '{0}' loads from offset {1} of a stream "
                                 "after offset {2}: loads have to be in the order of addresses",
                                 function, load.address.offset, furthest);
    furthest = std::max(furthest, load.address.offset);
  }

  LoadOrder &result;
};

char CheckLoadOrder::ID = 0;

} // namespace

mlir::Value loadStream(KernelBuilder &k, mlir::Type type, mlir::Value pointer, unsigned align,
                       int64_t stream) {
  using namespace mlir::LLVM;
  mlir::Builder &builder = k.builder;
  mlir::StringAttr name = builder.getStringAttr(Twine(kDomain) + Twine(stream));
  auto domain = AliasScopeDomainAttr::get(builder.getContext(), builder.getStringAttr(kDomain),
                                          mlir::StringAttr());
  auto scope = AliasScopeAttr::get(builder.getContext(), name, domain, mlir::StringAttr());
  auto load = mlir::LLVM::LoadOp::create(k.builder, k.loc, type, pointer, align);
  load.setAliasScopesAttr(builder.getArrayAttr({scope}));
  return load;
}

MachineFunctionPass *createLoadOrderCheck(LoadOrder &result) { return new CheckLoadOrder(result); }

} // namespace izhc
