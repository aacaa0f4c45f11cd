// Declarations of the `pack` dialect. See PackOps.td for meanings and
// ActLayout.h for the bytes of activation records.

#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/pack/PackDialect.h.inc"
#include "dialects/pack/PackEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/pack/PackTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/pack/PackOps.h.inc"

namespace izhc::pack {

// True for epilogues that take a gate and an up matrix.
inline bool isGated(Epilogue epilogue) {
  return epilogue == Epilogue::SiluGate || epilogue == Epilogue::GeluGate;
}

} // namespace izhc::pack
