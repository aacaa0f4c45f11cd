// Matrix instructions of a warp. Lane l has of an 8 x 16 matrix of bytes (row
// l / 4, bytes 4 * (l % 4) and following) a word.

#pragma once

#include "targets/cuda/codegen/Block.h"

namespace izhc::cuda {

// Four matrices of 8 rows of 16 bytes each; lane l gives the address, in shared
// memory, of row l % 8 of matrix l / 8.
KernelBuilder::Values loadMatrices(KernelBuilder &k, mlir::Value address);

// c + a * b of signed bytes: a 16 x `depth`, b `depth` x 8; depth 16 or 32.
// a: the matrices of rows 0..7 and 8..15 and columns 0..15, then those of
// columns 16..31. b: those of its columns as rows, likewise. The result's and
// c's elements of lane l: row l / 4, columns 2 * (l % 4) and the next, then the
// same of row l / 4 + 8.
KernelBuilder::Values multiplyBytes(KernelBuilder &k, int64_t depth, llvm::ArrayRef<mlir::Value> a,
                                    llvm::ArrayRef<mlir::Value> b, llvm::ArrayRef<mlir::Value> c);

// c + a * b of float16, in float32: a 16 x 16, b 16 x 8. A word has two neighbours
// of a row of a, or of a column of b. a: of lane l, columns 2 * (l % 4) of row l / 4,
// then of row l / 4 + 8, then both of columns 8 further. b: rows 2 * (l % 4) of column
// l / 4, then rows 8 further. c and the result: as of multiplyBytes.
KernelBuilder::Values multiplyHalves(KernelBuilder &k, llvm::ArrayRef<mlir::Value> a,
                                     llvm::ArrayRef<mlir::Value> b, llvm::ArrayRef<mlir::Value> c);
// Two floats rounded to float16, `low` in the lower half of the word; and back.
mlir::Value packHalves(KernelBuilder &k, mlir::Value low, mlir::Value high);
std::pair<mlir::Value, mlir::Value> unpackHalves(KernelBuilder &k, mlir::Value word);

// 2^x, with an error of two units in the last place.
mlir::Value exp2Fast(KernelBuilder &k, mlir::Value x);

// kFloats + n for an integer |n| < 2^22 is the float whose bits are those of
// kFloats plus n: sums of products that begin with kFloatBits need no conversion.
// A weight's factor w has at most 19 significant bits (a float16's times those
// of a sub-scale), so kFloats * w is exact, and fma(kFloats + n, w, -kFloats * w)
// rounds as the product w * n does.
constexpr double kFloats = 0x1.8p23;
constexpr int64_t kFloatBits = 0x4B400000;

} // namespace izhc::cuda
