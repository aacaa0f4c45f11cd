// Lowers pack.dot to the dot instructions of one x86 instruction set.

#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace izhc::x86 {

enum class DotUnit {
  Sse2, // pmaddwd on bytes widened to 16 bits
  Avx2, // vpmaddubsw, sums kept in 16 bits as far as they fit, then vpmaddwd
  Vnni, // vpdpbusd (256 bits: also the VEX form of AVX-VNNI; 512 bits)
};

void lowerDots(mlir::ModuleOp module, DotUnit unit);

// Replaces every pack.dot_pairs, of 16 lanes.
void lowerPairDots(mlir::ModuleOp module);

} // namespace izhc::x86
