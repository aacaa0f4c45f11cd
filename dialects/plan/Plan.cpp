// Registration, syntax and verifiers of the `plan` dialect.

#include "dialects/plan/Plan.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

#include "dialects/plan/PlanDialect.cpp.inc"
#include "dialects/plan/PlanEnums.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.cpp.inc"

namespace izhc::plan {

void PlanDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/plan/PlanOps.cpp.inc"
      >();
}

void KernelOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, llvm::StringRef name,
                     mlir::TypeRange arguments) {
  state.addAttribute(getSymNameAttrName(state.name), builder.getStringAttr(name));
  mlir::Block &block = state.addRegion()->emplaceBlock();
  for (mlir::Type type : arguments)
    block.addArgument(type, state.location);
}

// plan.kernel @name(%a: type, ...) { ops }
mlir::ParseResult KernelOp::parse(mlir::OpAsmParser &parser, mlir::OperationState &state) {
  mlir::StringAttr name;
  llvm::SmallVector<mlir::OpAsmParser::Argument> arguments;
  if (parser.parseSymbolName(name, getSymNameAttrName(state.name), state.attributes) ||
      parser.parseArgumentList(arguments, mlir::OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true) ||
      parser.parseOptionalAttrDictWithKeyword(state.attributes))
    return mlir::failure();
  mlir::Region *body = state.addRegion();
  if (parser.parseRegion(*body, arguments))
    return mlir::failure();
  if (body->empty())
    body->emplaceBlock();
  return mlir::success();
}

void KernelOp::print(mlir::OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  llvm::interleaveComma(getBody().getArguments(), printer, [&](mlir::BlockArgument argument) {
    printer.printRegionArgument(argument);
  });
  printer << ") ";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getSymNameAttrName()});
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

llvm::LogicalResult DispatchOp::verify() {
  size_t bindings = getSpaces().size();
  if (getOffsets().size() != bindings || getSizes().size() != bindings)
    return emitOpError("needs one offset and one size for each of its ") << bindings << " bindings";
  if (getUnits() < 1 || getGrain() < 1)
    return emitOpError("needs at least one unit and a grain of at least one");
  return mlir::success();
}

// Attributes are read as unsigned; a negative one is above this.
static bool positive(std::initializer_list<uint64_t> numbers) {
  return llvm::all_of(numbers, [](uint64_t n) { return n >= 1 && n <= INT64_MAX; });
}

static bool placed(uint64_t offset) { return offset <= INT64_MAX && offset % kAlignment == 0; }

llvm::LogicalResult MemoryOp::verify() {
  if (!positive({getMaxTokens(), getMaxOutputs(), getTileTokens(), getPageTokens()}))
    return emitOpError("needs limits of at least one");
  if (int64_t(getSpanTokens()) < 0 || int64_t(getMaxPartials()) < 0 ||
      bool(getSpanTokens()) != bool(getMaxPartials()))
    return emitOpError("needs a span and room for partials, or neither");
  if (!placed(getLogitsOffset()) || !positive({getArenaBytes(), getVocabulary()}) ||
      getLogitsOffset() > getArenaBytes() ||
      getVocabulary() > (getArenaBytes() - getLogitsOffset()) / 4 / getMaxOutputs())
    return emitOpError("has its logits outside of the arena");
  return mlir::success();
}

llvm::LogicalResult WeightOp::verify() {
  if (!positive({getRows(), getCols(), getSize(), getCount()}))
    return emitOpError("needs at least one row, column and byte");
  if (!placed(getOffset()))
    return emitOpError("needs an offset that is a multiple of ") << kAlignment;
  auto view = getView();
  if (view && (view->size() != 3 || (*view)[0] < 0 || (*view)[1] < 1 || (*view)[2] < (*view)[1]))
    return emitOpError("needs a view of three numbers: first row, rows of a run, and from one run "
                       "to the next");
  return mlir::success();
}

llvm::LogicalResult ConstantOp::verify() {
  if (!positive({getCount(), getSize()}) || getCount() > getSize() / 4)
    return emitOpError("needs four bytes for each of its ") << getCount() << " floats";
  if (!placed(getOffset()))
    return emitOpError("needs an offset that is a multiple of ") << kAlignment;
  if (auto values = getValues(); values && values->size() != getCount())
    return emitOpError("has ") << values->size() << " values for " << getCount() << " floats";
  return mlir::success();
}

llvm::LogicalResult StateOp::verify() {
  if (!positive({getPageBytes()}) || !placed(getPageBytes()))
    return emitOpError("needs pages of a positive multiple of ") << kAlignment << " bytes";
  return mlir::success();
}

} // namespace izhc::plan
