// What attention of few rows, of many and merging share, so that all round
// alike: how the sums of spans are merged, and what the forms in float32 do
// (Attention.cpp, AttentionTile.h; those on tensor cores: AttentionCore.h).
//
// There a score is a chain of fma over ascending values of a head, times the scale. Of
// a span: its weights are added as a warp adds them for each 32 keys, then these
// sums in ascending order; its weighted values for each of valueParts() equal
// parts of the keys as a chain of fma over ascending keys, then these.

#pragma once

#include "dialects/pack/KvLayout.h"
#include "targets/cuda/codegen/Block.h"
#include "llvm/ADT/bit.h"

namespace izhc::cuda {

constexpr double kMasked = -1e30;
// Threads of the form for few rows: one for each key of a span.
constexpr int64_t kAttentionThreads = pack::KvLayout::kSpan;

// Threads that have a column of the values each, or several.
inline int64_t valueWidth(int64_t valueDim) {
  return std::min<int64_t>(kAttentionThreads, llvm::alignTo(valueDim, kWarp));
}
inline int64_t valueParts(int64_t valueDim) {
  return llvm::bit_floor(uint64_t(kAttentionThreads / valueWidth(valueDim)));
}

// The spans that keys below `key` begin.
mlir::Value spanAfter(KernelBuilder &k, mlir::Value key);
// The first key that a row sees that sees none from `end` on.
mlir::Value windowStart(KernelBuilder &k, mlir::Value end, int64_t window);

// Maximum, sum and weighted values of spans; a thread has some columns of the
// values.
struct Sums {
  mlir::Value maximum, sum;
  Block::Values columns;

  Block::Values pack() const {
    Block::Values all = {maximum, sum};
    all.append(columns.begin(), columns.end());
    return all;
  }
  static Sums unpack(llvm::ArrayRef<mlir::Value> all) {
    return {all[0], all[1], Block::Values(all.begin() + 2, all.end())};
  }
  static Sums none(KernelBuilder &k, int64_t columns) {
    return {k.constFloat(k.f32(), kMasked), k.zero(k.f32()),
            Block::Values(columns, k.zero(k.f32()))};
  }
};

// What a loop carries of several, with equally many columns.
Block::Values packAll(llvm::ArrayRef<Sums> sums);
llvm::SmallVector<Sums> unpackAll(llvm::ArrayRef<mlir::Value> all, int64_t columns);

Sums merge(KernelBuilder &k, const Sums &all, const Sums &span);
// Merges spans first..last, in ascending order, with `before`. `together` of them are read
// before the first of these is used; read(span): of one that there is.
Sums mergeSpans(KernelBuilder &k, mlir::Value first, mlir::Value last, int64_t together,
                const Sums &before, llvm::function_ref<Sums(mlir::Value span)> read);
// What the columns are multiplied by in the end. `sink`: null for none.
mlir::Value finalFactor(KernelBuilder &k, const Sums &sums, mlir::Value sink);

} // namespace izhc::cuda
