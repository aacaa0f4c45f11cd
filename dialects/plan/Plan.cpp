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

void KernelOp::build(mlir::OpBuilder &builder, mlir::OperationState &state,
                     llvm::StringRef name, mlir::TypeRange arguments) {
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
  llvm::interleaveComma(getBody().getArguments(), printer,
                        [&](mlir::BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ") ";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getSymNameAttrName()});
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

llvm::LogicalResult DispatchOp::verify() {
  size_t bindings = getSpaces().size();
  if (getOffsets().size() != bindings || getSizes().size() != bindings)
    return emitOpError("needs one offset and one size for each of its ")
           << bindings << " bindings";
  if (getUnits() < 1 || getGrain() < 1)
    return emitOpError("needs at least one unit and a grain of at least one");
  return mlir::success();
}

} // namespace izhc::plan
