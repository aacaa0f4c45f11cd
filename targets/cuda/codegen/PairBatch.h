// Products of pairs of tiles with a few records (PairDot.h): warps share a pair
// by spans of its columns, and what they found meets in shared memory.

#pragma once

#include "targets/cuda/codegen/PairDot.h"

namespace izhc::cuda {

class PairBatch {
public:
  using Value = mlir::Value;
  using Values = KernelBuilder::Values;
  // The address of tile number i (i64) of those that are computed together.
  using TileAt = llvm::function_ref<Value(Value i)>;

  // For up to `tiles` tiles at a time, and one record or up to PairDot::kRecords.
  // `memory`: sharedBytes that the block shares, which batches can take in turn.
  // `fewRegisters`: loads are less far ahead of their use.
  PairBatch(Block &block, int64_t tiles, bool oneRecord, pack::WeightType type, pack::ActType act,
            Value memory, bool fewRegisters);
  static int64_t sharedBytes(const Block &block, int64_t tiles, bool oneRecord, int64_t columns);

  // Begins to load the first weights of products that a later compute is to make;
  // `words` of that. May be called before Block::prepare. Empty where weights are
  // better loaded later.
  Values fetch(TileAt tileAt, Value count);
  // Leaves the products of `count` tiles with the records at `record(i)`, for any
  // i below PairDot::kRecords. All threads call it; a barrier is still needed.
  // `beforeLast` is called once, outside of branches, where it is best to begin
  // with loads for later.
  void compute(TileAt tileAt, Value count, llvm::function_ref<Value(Value i)> record,
               const Values &words = {}, llvm::function_ref<void()> beforeLast = {});
  // Other memory for the products from here on.
  void setMemory(Value memory) { sums = memory; }
  // Of row `row` of the tiles and record number `record`, after compute and a
  // barrier.
  Value product(Value record, Value row);

private:
  int64_t pairs() const { return llvm::divideCeil(tiles, 2); }
  int64_t together() const { return std::max<int64_t>(1, block.warps() / parts); }
  Value part() const { return k.rem(block.warp, parts); }
  // The warp's first pair; one behind the last where it has none.
  Value firstPair() const;
  Value tileOf(Value pair, Value count) const;
  // Chunks that are loaded together, and how often that happens for a span.
  int64_t ahead() const;
  int64_t groups() const { return llvm::divideCeil(spans.chunksEach(), ahead()); }
  // Spans of a warp whose weights registers hold together.
  int64_t spansAtOnce() const;
  // Of span `span`, chunk `i` of group `group`; `valid`: null where there are no
  // others than those of the span.
  Value chunkOf(Value span, Value group, int64_t i, Value *valid) const;
  Values load(Value tile, Value span, Value group) const;
  void add(llvm::ArrayRef<Value> words, Value span, Value group,
           llvm::function_ref<Value(Value)> record, Values &totals) const;
  Values sumSpan(Value tile, Value span, Values words, llvm::function_ref<Value(Value)> record,
                 llvm::function_ref<void()> beforeLast = {}) const;
  void keep(const Values &totals, Value slot, Value pair);
  void computePair(TileAt tileAt, Value pair, Value count, llvm::function_ref<Value(Value)> record,
                   const Values &fetched, llvm::function_ref<void()> beforeLast);
  // Whether each warp has one span of one pair.
  bool isEven() const { return pairs() == 1 && parts == block.warps() && parts == spans.count(); }

  Block &block;
  KernelBuilder &k;
  PairDot dot;
  Spans spans;
  int64_t tiles, records;
  bool fewRegisters;
  // Warps that share a pair; where there are several, sums of spans have slots.
  int64_t parts, slots;
  Value sums; // [record][slot][row]
};

} // namespace izhc::cuda
