// A block of threads under construction: each kernel is launched with one block
// for every unit of work, and the threads of the block share that unit.
// Writes NVVM intrinsics through LLVM's dialect.

#pragma once

#include "compiler/target/KernelFrame.h"
#include <functional>

namespace izhc::cuda {

constexpr int64_t kWarp = 32;

struct Block : KernelFrameBase {
  using Value = mlir::Value;
  using Values = KernelBuilder::Values;

  // `frame` has all but begin and end, which are the unit of this block.
  // `overlaps`: launched so that it may begin while kernels before it still run
  // (on GPUs from Hopper on). `launchesLate`: kernels after it may begin only when those
  // before it have ended.
  Block(KernelFrameBase frame, int64_t threads, bool overlaps, bool launchesLate = false);

  int64_t threads;
  bool overlaps, launchesLate;
  // The step has one row of activations, and no code for others is wanted.
  bool oneRow = false;
  // Address of the counts of the step.
  Value params;
  int64_t warps() const { return threads / kWarp; }
  // All i64; of the thread in the block, the lane in its warp, the warp.
  Value thread, lane, warp;
  Value unit; // the same for all threads
  // Of kernels for steps of one row: memory that no other kernel is using, and that
  // was zero before the first.
  Value scratch;

  // Before this, what earlier kernels write must not be read, and nothing be
  // written. All threads have to call it; more than once is allowed.
  void awaitInputs();
  // Makes what the kernel's op reads: emitters call it once on every path, after
  // what they can do before their inputs are there.
  void prepare() {
    awaitInputs();
    if (launchesLate)
      launchDependents();
    if (prologue)
      prologue();
  }
  // Leaves the only record of activations where the op finds it; null: it is
  // there.
  std::function<void()> prologue;
  // Of kernels for one row that also leave a record of what they store (block32), or of
  // the float row that they read: its type (null: they leave none), and where it is from
  // what they store.
  pack::ActType recordType;
  int64_t recordOffset = 0;
  // Of experts in a step of one row: the record is where the operand is, whichever the pair.
  bool sharesRecord = false;
  // Of these: leaves the record of pair `number` there, with a barrier; null: it is there.
  std::function<void(Value number)> makeRecord;
  // Of experts' sum: makes the choice before Block::prepare; null: that does, or it is there.
  std::function<void()> chooseEarly;
  // Of attention in a step of one row: the `matmul_heads` before it, whose products
  // are as they are multiplied (PairProducts.h), and what finds its operands; null:
  // it is done.
  pack::MatmulHeadsOp heads;
  Block *headsBlock = nullptr;

  // Rows of activations that an op with this row set has.
  Value rowCount(pack::RowSet set) { return oneRow ? k.constI64(1) : rows(set); }

  // 1, 2 or 4 words of 32 bits of what no kernel writes, loaded where this
  // stands in the program: assemblers move other loads to where they are used.
  Values fetch(Value pointer, int64_t words);

  // 32 bits of what blocks that run beside this one may have written, seen by this
  // thread or by one that it has met since.
  Value loadCoherent(Value pointer);
  Values loadCoherent(Value pointer, int64_t words);
  // Adds 1 to the i32 at `pointer` and gives what was there. What the threads that
  // this one has met had written is then seen by whoever counts later, and by those
  // that it meets.
  Value countUp(Value pointer);

  // Memory of the step that no other op knows of.
  Value rowScratch();

  // Memory that all threads of the block share, aligned to 16 bytes.
  Value shared(int64_t bytes);
  // Begins to copy 16 bytes to shared memory; both addresses are multiples of 16.
  void copyAsync(Value to, Value from);
  // The same of what no kernel writes, as `fetch` loads it.
  void fetchAsync(Value to, Value from);
  // What the thread has begun to copy since the last time is a group.
  void commitCopies();
  // Waits until all groups but the last `but` are there, for this thread to see.
  void awaitCopies(int64_t but);
  // More of it than functions may have by themselves: the launch has to bring the
  // most that is asked for (launchBytes). There is one place, the same each time.
  Value launchMemory(int64_t bytes);
  int64_t launchBytes = 0;

  // Bulk copies (on GPUs from Hopper on), of what no kernel writes, to shared memory;
  // bytes (i32) and addresses are multiples of 16. `gate`: 8 bytes of shared memory that
  // they meet at, made by one thread before any other use. Each round of a gate
  // begins with the bytes that it waits for.
  void makeGate(Value gate);
  // Lets copies see the gates that this thread has made.
  void publishGates();
  void expectBytes(Value gate, Value bytes);
  void copyBulk(Value to, Value from, Value bytes, Value gate);
  // Waits for the end of a round, whose number is odd or even as `parity` (i32).
  void awaitGate(Value gate, Value parity);

  // What `compute` gives where `condition` holds, else `otherwise`, of the same types.
  Values ifElse(Value condition, llvm::ArrayRef<Value> otherwise,
                llvm::function_ref<Values()> compute);

  // Waits for all threads of the block (or warp); what they wrote is then seen.
  void barrier();
  void syncWarp();

  // for (i = start; i < count; i += step), for the threads of the block or the
  // lanes of the warp.
  void forThreads(Value count, llvm::function_ref<void(Value i)> body);
  void forThreads(int64_t count, llvm::function_ref<void(Value i)> body);
  void forLanes(int64_t count, llvm::function_ref<void(Value i)> body);

  // What the lane whose number differs in the bits `mask` has; i32 or f32.
  Value exchange(Value value, int64_t mask);
  // Of all lanes, in every lane and in an order that depends on nothing.
  Value warpSum(Value value);
  Value warpMax(Value value);
  // The same of i32 without signs, by one instruction.
  Value warpMaxUnsigned(Value value);
  Value warpMinUnsigned(Value value);
  // Of all threads; with barriers, so all threads have to call it.
  Value blockSum(Value value);

  // acc + four products of bytes; `values` are signed.
  Value dot4(Value acc, Value codes, Value values, bool signedCodes);
  // Four bytes out of the eight of low and high, chosen by `selector`'s nibbles.
  Value permute(Value low, Value high, Value selector);

  // Bytes 0..15 to the entries of a codebook of 16.
  Value lookUp(llvm::ArrayRef<int8_t> codebook, Value numbers);

  // f32 -> i32, half to even. Not by KernelBuilder's addition of a large number:
  // ptxas takes a byte stored of its sum for one that is still to be converted.
  Value roundToInt(Value value);

  // Row `row` of a `memref<?xWxf32>`, and its width.
  Value rowOf(Value buffer, Value row);
  static int64_t widthOf(Value buffer) {
    return llvm::cast<mlir::MemRefType>(buffer.getType()).getDimSize(1);
  }

private:
  void launchDependents();
  Value call(mlir::Type type, llvm::StringRef name, llvm::ArrayRef<Value> operands);
  void call(llvm::StringRef name, llvm::ArrayRef<Value> operands);
  Value number(llvm::StringRef specialRegister);
};

// Element `i` of an array of floats, or of 32-bit integers as i64.
inline mlir::Value loadFloat(KernelBuilder &k, mlir::Value array, mlir::Value i) {
  return k.load(k.f32(), k.at(array, k.mul(i, 4)), 4);
}
inline void storeFloat(KernelBuilder &k, mlir::Value value, mlir::Value array, mlir::Value i) {
  k.store(value, k.at(array, k.mul(i, 4)), 4);
}
inline mlir::Value loadIndex(KernelBuilder &k, mlir::Value array, mlir::Value i) {
  return k.extendS(k.load(k.i32(), k.at(array, k.mul(i, 4)), 4), k.i64());
}

// factor / sqrt(squares / count + eps)
mlir::Value normFactor(KernelBuilder &k, mlir::Value squares, int64_t count, double eps,
                       double factor);

} // namespace izhc::cuda
