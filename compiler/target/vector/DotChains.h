// Chains of pack.dot: sums handed from one dot to the next. Targets lower a
// chain as a whole, because some keep narrower partial sums along it.

#pragma once

#include "compiler/target/KernelBuilder.h"
#include "dialects/pack/Pack.h"
#include "mlir/IR/BuiltinOps.h"

namespace izhc {

using DotChain = llvm::SmallVector<pack::DotOp>;

// The chains of `module`, in the order of their first dots.
llvm::SmallVector<DotChain> dotChains(mlir::ModuleOp module);
// Erases a chain that `sum` takes the place of.
void replaceChain(DotChain &chain, mlir::Value sum);

// Replaces every pack.dot of `module`. `lower` gets the dots of one chain, in
// order, and returns the chain's sum; it should put each instruction where its
// dot is, so that loads keep their order. The chain is erased afterwards.
void replaceDotChains(
    mlir::ModuleOp module,
    llvm::function_ref<mlir::Value(KernelBuilder &k, llvm::MutableArrayRef<pack::DotOp> chain)>
        lower);

} // namespace izhc
