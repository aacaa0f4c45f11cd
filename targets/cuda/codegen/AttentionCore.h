// Attention on tensor cores: what a warp does for 16 queries, some keys at a time,
// so that all forms round alike.
//
// A query is multiplied by a power of two, so that float16 has its values, and is one
// such number, or with `exact` two of which the second has what the first lacks. A
// score is what a matrix instruction makes of each 16 of a head's values in turn
// (with the first number, then the second), divided by that power, times the scale.
// Keys of a span come in groups of 64. A group's weights are relative to the largest
// score of the span so far, by which what has been added is multiplied when it grows,
// and are one or two numbers as queries are. Their values are added by a matrix
// instruction for each 16 keys in turn; the weights' sum is another column of values,
// all ones. Which 16 keys or values those are, and in which places, is the same in
// all forms.

#pragma once

#include "targets/cuda/codegen/Cache.h"

namespace izhc::cuda {

// `count` neighbouring words, aligned as all of them together.
KernelBuilder::Values loadWords(KernelBuilder &k, mlir::Value address, int64_t count);

class AttentionCore {
public:
  using Value = mlir::Value;
  using Values = KernelBuilder::Values;

  static constexpr int64_t kQueries = 16;
  static constexpr int64_t kKeys = 32;  // whose scores are made together
  static constexpr int64_t kGroup = 64; // keys
  static constexpr int64_t kStep = 16;  // keys whose values are added together
  static constexpr int64_t kMostDim = 128;

  // Caches of 16 bits that are not turned, with heads of whole sixteens of values.
  static bool takes(pack::AttentionOp op);

  AttentionCore(Block &block, pack::AttentionOp op);

  Block &block;
  KernelBuilder &k;
  pack::AttentionOp op;
  Cache cache;
  int64_t dim, valueDim;
  int64_t chunks; // of 16 values of a head
  int64_t panels; // of 16 columns of a value
  int64_t terms;  // numbers of a query's value, or of a weight
  // A lane's rows of a result are queries `row` and `row` + 8, its columns `fourth`'s.
  Value row, fourth;

  // ---- Queries

  // Of a query whose largest magnitude is `most`: what it is multiplied by, and its
  // inverse.
  std::pair<Value, Value> factorsOf(Value most);
  // A word for each term.
  Values split(Value low, Value high);
  // Words of a matrix instruction for a term and a chunk.
  using QueryWords = llvm::function_ref<Values(int64_t term, int64_t chunk)>;

  // For 16 queries in shared memory; without what they are divided by.
  int64_t stageBytes() const { return terms * chunks * 16 * kWarp; }
  // A warp writes query `number`; read(i): its values 2i and 2i + 1. Gives what scores
  // are multiplied by.
  Value stageQuery(Value stage, Value number,
                   llvm::function_ref<std::pair<Value, Value>(Value i)> read);
  Values stagedWords(Value stage, int64_t term, int64_t chunk);

  // ---- Keys

  // Four words, of neighbouring keys, of values 16 * chunk + 8 * half + 2 * fourth and
  // the next; the keys are keyOfLane() and the following of the 32.
  using KeyWords = llvm::function_ref<Values(int64_t chunk, int64_t half)>;
  Value keyOfLane(); // i64

  // Of the lane's queries with its keys; number 4 * i + c: of query row + 8 * (c / 2)
  // with key keyOf(i, c % 2) of the 32. inverses: of both queries.
  Values scores(QueryWords queries, KeyWords keys, llvm::ArrayRef<Value> inverses);
  Value keyOf(int64_t i, int64_t odd); // i32
  // The largest of the lanes that share a query.
  Value overQuery(Value value);

  // Bytes from one to another in shared memory, where 16 of them (of four neighbouring
  // keys or columns) lie so that lanes read them without waiting for each other.
  // `unit`: number of the 16 bytes in a panel of 16 keys, or among those of 16 keys'
  // values in a panel of columns.
  Value placeOf(Value unit);
  int64_t keyPanelBytes() const { return 2 * AttentionCore::kStep * dim; }
  Value keyPlace(Value unit, Value panel);
  // The lane's words of the keys at `keys`.
  Values sharedKeys(Value keys, int64_t block, int64_t chunk, int64_t half);

  // ---- Values

  static constexpr int64_t kStepPanelBytes = 2 * kStep * 16;
  // The lane's words of a panel of step `step`: two, of columns 2 * row and the next, of
  // keys 4 * fourth and the next, then of the two behind.
  std::pair<Values, Values> sharedValues(Value values, Value step, Value panel);

  // Ones where the first or the second value of a word is one that is seen.
  Value maskOf(Value isFirst, Value isSecond);

  // e^x for x <= 0.
  Value exp(Value x);
  // The weight of a score; `most`: the largest.
  Value weightOf(Value score, Value most, Value seen);
  // What sums are multiplied by in the end.
  double weightUnit() const;
  // For each term of weights (numbered as scores), the words of a matrix instruction for
  // the first or second 16 of the 32 keys.
  llvm::SmallVector<Values> weightWords(llvm::ArrayRef<Value> weights, int64_t step);

  // Sums of the lane's queries: four for each 8 columns, then four of the weights.
  // Result c of columns `tile`: of query row + 8 * (c / 2), column columnOf(tile, c % 2).
  int64_t sumsOf(int64_t tiles) const { return 4 * (tiles + 1); }
  Value columnOf(Value panel, int64_t tile, int64_t odd);
  // values(tile): two words.
  void addStep(llvm::ArrayRef<Values> weights, llvm::function_ref<Values(int64_t tile)> values,
               Values &sums);
  // factors: of both queries.
  void scaleSums(llvm::ArrayRef<Value> factors, Values &sums);
};

} // namespace izhc::cuda
