// Making records of activations (dialects/pack/ActLayout.h) from rows of floats:
// the threads of a block share a row, lanes take runs of four or eight values.

#pragma once

#include "dialects/pack/ActLayout.h"
#include "targets/cuda/codegen/Block.h"

namespace izhc::cuda {

class RecordWriter {
public:
  using Value = mlir::Value;
  using Values = KernelBuilder::Values;

  RecordWriter(Block &block, pack::ActType type)
      : block(block), k(block.k), type(type), fields(type) {}

  // `norm`: of root-mean-square normalization, null for none. What is known
  // before the row is there: may be called before Block::awaitInputs.
  void setNorm(Value norm, double eps);
  // All threads of the block call it; without a barrier at the end.
  void write(Value input, Value record);
  // Block number `number` of 32 values of a block32 record that has no norm, a value a
  // lane. All lanes of a warp call it.
  void writeBlock(Value value, Value number, Value record);

private:
  bool isWhole(int64_t count) const;
  Value within(Value i, int64_t count, int64_t size);
  // `count` values from `i` on, or others where there are none.
  Values load(Value array, Value i, int64_t count);
  // Of the (normalized) row, what was loaded so; zero beyond its width.
  Values values(Value i, int64_t turn, Values loaded);
  void measure();
  int64_t turns(int64_t each) const;
  Value runOf(Value turn, int64_t each);
  // For all runs of `each` values a lane: body(first value, turn, values).
  void forRuns(int64_t each, llvm::function_ref<void(Value, int64_t, Values)> body);
  // For values whose run is within the record.
  void inside(Value i, llvm::function_ref<void()> body);
  Value magnitude(llvm::ArrayRef<Value> values);
  Value over(Value value, int64_t lanes, bool isMax);
  Value power(Value n);
  Value unlessTiny(Value amax, Value value);
  Value stepOf(Value amax);
  Value perStep(Value amax);
  Value shiftOf(Value amax, Value most);
  void storeWord(Value value, int64_t field, Value i);
  void writeFloats();
  void writeBlocks32(Value i, int64_t turn, Values four);
  void writeBlocks256(Value i, int64_t turn, Values eight);
  void writeCodes(Value i, llvm::ArrayRef<Value> values, Value factor, Value sumScale);

  Block &block;
  KernelBuilder &k;
  pack::ActType type;
  pack::ActLayout fields;
  Value input, record;
  Value norm, factor; // null without a norm
  double eps = 0;
  Values normAhead; // of all turns, or empty
  // Of all turns, where lanes measure the values that they write; or empty.
  llvm::SmallVector<Values, 4> measured;
};

} // namespace izhc::cuda
