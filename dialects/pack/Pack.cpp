// Registration, printing helpers and verifiers of the `pack` dialect.

#include "dialects/pack/Pack.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "dialects/pack/PackDialect.cpp.inc"
#include "dialects/pack/PackEnums.cpp.inc"

namespace {

mlir::ParseResult parseActKindName(mlir::AsmParser &parser, izhc::pack::ActKind &kind) {
  llvm::StringRef word;
  auto at = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return mlir::failure();
  auto found = izhc::pack::symbolizeActKind(word);
  if (!found)
    return parser.emitError(at, "expected f32, block32 or block256, found '") << word << "'";
  kind = *found;
  return mlir::success();
}

void printActKindName(mlir::AsmPrinter &printer, izhc::pack::ActKind kind) {
  printer << izhc::pack::stringifyActKind(kind);
}

} // namespace

#define GET_TYPEDEF_CLASSES
#include "dialects/pack/PackTypes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/pack/PackOps.cpp.inc"

namespace izhc::pack {

void PackDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/pack/PackTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/pack/PackOps.cpp.inc"
      >();
}

llvm::LogicalResult DotOp::verify() {
  int64_t lanes = llvm::cast<mlir::VectorType>(getAcc().getType()).getDimSize(0);
  int64_t bytes = llvm::cast<mlir::VectorType>(getCodes().getType()).getDimSize(0);
  if (bytes != 4 * lanes)
    return emitOpError("needs four codes for each of the ") << lanes << " lanes, but has " << bytes;
  return mlir::success();
}

llvm::LogicalResult LookupOp::verify() {
  if (getTable().size() != 16)
    return emitOpError("needs a table of 16 bytes, but has ") << getTable().size();
  return mlir::success();
}

llvm::LogicalResult DotPairsOp::verify() {
  int64_t lanes = llvm::cast<mlir::VectorType>(getAcc().getType()).getDimSize(0);
  int64_t numbers = llvm::cast<mlir::VectorType>(getLhs().getType()).getDimSize(0);
  if (numbers != 2 * lanes)
    return emitOpError("needs two numbers for each of the ")
           << lanes << " lanes, but has " << numbers;
  return mlir::success();
}

} // namespace izhc::pack
