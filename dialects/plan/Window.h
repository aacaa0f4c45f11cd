// What tells caches of which only a window is read. Such a state has, in `pack`
// as in `plan`, the attribute `window`: no token reads further back than so many,
// itself among them. Inputs of `pack` that find places in such caches have the
// attribute `windowed`: there are arrays of their own for them.
//
// The attributes are no part of the ops' definitions, as all ops do without.

#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include <cstdint>

namespace izhc::plan {

constexpr llvm::StringLiteral kWindow("window"), kWindowed("windowed");
constexpr int64_t kMaxWindow = int64_t(1) << 30;
// Behind the inputs that plan::Input names.
constexpr int64_t kWindowSlots = 9, kWindowPages = 10;

// 0: there is none.
inline int64_t windowOf(mlir::Operation *state) {
  auto window = state->getAttrOfType<mlir::IntegerAttr>(kWindow);
  return window ? window.getInt() : 0;
}

inline void setWindow(mlir::Operation *state, int64_t window) {
  auto type = mlir::IntegerType::get(state->getContext(), 64);
  if (window != 0)
    state->setAttr(kWindow, mlir::IntegerAttr::get(type, window));
}

} // namespace izhc::plan
