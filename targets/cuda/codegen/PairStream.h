// Products of one record with pairs of tiles whose weights come through shared
// memory (RowDot.h): bulk copies of later stages are on their way while one is
// multiplied, over the ends of pairs and before the record is there, and take
// neither registers nor the threads' time. Every warp has spans of the columns, and a
// ring of stages of its own, so only the products meet, once a pair.

#pragma once

#include "targets/cuda/codegen/RowDot.h"
#include <optional>

namespace izhc::cuda {

// How a block divides its memory; the same for all of its matrices.
class StreamShape {
public:
  // For units of `types`, of which a block takes about `turns`. None if there is no
  // room for two stages of each warp, or too few columns.
  static std::optional<StreamShape> of(llvm::ArrayRef<pack::WeightType> types, int64_t turns);

  int64_t threads() const { return kWarp * warps; }
  // Of Block::launchMemory, which one stream at a time may use.
  int64_t bytes() const { return ringBytes() + warps * RowDot::exchangeBytes(); }

private:
  friend class PairStream;
  int64_t ringBytes() const { return warps * slots * slotBytes; }

  int64_t warps = 0, slots = 0, slotBytes = 0;
};

class PairStream {
public:
  using Value = mlir::Value;
  using Values = KernelBuilder::Values;
  // The address of a pair's tile number `which` (i64, 0 or 1).
  using TileOf = llvm::function_ref<Value(Value pair, Value which)>;

  // Of the products of a pair.
  static int64_t productBytes(pack::WeightType type);

  // Units block.unit, block.unit + step, ... of `together` neighbouring pairs (1 or 2)
  // each; `end`: of pairs.
  PairStream(Block &block, const StreamShape &shape, pack::WeightType type, pack::ActType act,
             Value step, Value end, int64_t together = 1);

  // Begins with the first weights: before Block::prepare. What it gives is how far
  // it came, for compute, which gives the same.
  Values begin(TileOf tileOf) const;
  // Leaves the next pair's products with the record at `record` in `memory`
  // (productBytes). All threads call it; a barrier is still needed.
  Values compute(Value memory, Value record, TileOf tileOf, llvm::ArrayRef<Value> reached) const;
  // Of row `row` of the pair, after compute and a barrier.
  Value product(Value memory, Value row) const;

private:
  int64_t spansEach() const { return llvm::divideCeil(spans.count(), shape.warps); }
  int64_t stagesOfSpan() const;
  int64_t stages() const { return spansEach() * stagesOfSpan(); }
  // Whether all stages are full.
  bool isEven() const;
  // The first chunk of a stage of a span, and those that are the span's.
  RowDot::Stage stageOf(Value span, Value number) const;
  // Copies stage `number` of the warp's in `pair` to `slot`; all i64.
  void put(Value pair, Value number, Value slot, TileOf tileOf) const;
  Values following(llvm::ArrayRef<Value> reached) const;
  Value gateOf(Value slot) const { return k.at(gates, k.mul(slot, 8)); }

  Block &block;
  KernelBuilder &k;
  StreamShape shape;
  pack::WeightType type;
  Spans spans;
  RowDot dot;
  int64_t tileBytes; // of a slot, for a tile
  Value step, end;
  int64_t pairsEach;
  Value ring, gates, exchange; // the warp's
  Value firstSpan;
};

} // namespace izhc::cuda
