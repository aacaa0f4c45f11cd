#include "targets/cuda/codegen/PairSums.h"
#include "targets/cuda/codegen/TensorCore.h"

namespace izhc::cuda {

using namespace mlir;

static constexpr int64_t kRun = 32, kRuns = Spans::kChunk / kRun;

ChunkScales loadScales(KernelBuilder &k, pack::ActType act, bool hasMinima, double unit,
                       Value record, Value chunk) {
  pack::ActLayout fields(act);
  auto both = [&](Type type, int64_t field) {
    Value at = k.at(k.at(record, field), k.mul(chunk, 4 * kRuns));
    return k.load(k.vec(kRuns, type), at, 4 * kRuns);
  };
  ChunkScales result;
  Value step, steps, sums;
  if (act.getKind() == pack::ActKind::Block32) {
    steps = both(k.f32(), fields.scales);
  } else {
    steps = both(k.i32(), fields.exponents);
    Value group = k.div(k.mul(chunk, Spans::kChunk), 256);
    step = k.load(k.f32(), k.at(k.at(record, fields.scales), k.mul(group, 4)), 4);
  }
  if (hasMinima)
    sums = both(k.f32(), fields.sums);
  for (int64_t run = 0; run < kRuns; ++run) {
    Value one = k.extract(steps, run);
    // The exponent of a power of two, where a float has it.
    if (step)
      one = k.mul(step, k.bitcast(k.add(one, int64_t(127) << 23), k.f32()));
    result.steps[run] = unit == 1 ? one : k.mul(one, k.constFloat(k.f32(), unit));
    if (!hasMinima)
      continue;
    Value sum = k.extract(sums, run);
    // There the sums are in units of the group's step.
    result.sums[run] = step ? k.mul(sum, step) : sum;
  }
  return result;
}

std::array<Value, 2> loadPieces(KernelBuilder &k, const PairDot &dot, int64_t part,
                                llvm::function_ref<Value(Value)> at) {
  auto pieces = dot.pieces(part);
  if (pieces.size() == 2)
    return {k.load(k.i32(), at(pieces[0].at), 4), k.load(k.i32(), at(pieces[1].at), 4)};
  Value both = k.load(k.vec(2, k.i32()), at(pieces[0].at), 8);
  return {k.extract(both, 0), k.extract(both, 1)};
}

PairSums::PairSums(KernelBuilder &k, SmallVector<PairDot::Bytes, 2> all)
    : k(k), weights(std::move(all)) {
  for (const PairDot::Bytes &pair : weights) {
    less.emplace_back();
    for (Value factor : pair.factors)
      less.back().push_back(k.mul(factor, k.constFloat(k.f32(), -kFloats)));
  }
}

void PairSums::add(Two codes, Two steps, Two all, int64_t j, int64_t across,
                   KernelBuilder::Values &sums) const {
  KernelBuilder::Values start(4, k.constInt(k.i32(), kFloatBits));
  for (auto [p, pair] : llvm::enumerate(weights))
    for (int64_t half = 0; half < 2; ++half) {
      KernelBuilder::Values products = multiplyBytes(k, kRun, pair.left[half], codes, start);
      for (int64_t e = 0; e < 4; ++e) {
        int64_t row = 2 * half + e / 2, column = e % 2;
        Value &sum = sums[((p * PairDot::kRows + row) * across + j) * 2 + column];
        Value weighted = k.mulAdd(k.bitcast(products[e], k.f32()), pair.factors[row], less[p][row]);
        sum = k.mulAdd(weighted, steps[column], sum);
        if (all[column])
          sum = k.mulAdd(pair.minima[row], all[column], sum);
      }
    }
}

} // namespace izhc::cuda
