// Blocks share a row: their threads look at every kBestThreads-th logit of a piece,
// then lanes and warps compare, and in the block that ends last what all found.

#include "targets/cuda/codegen/Best.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/schema/device_code.h"
#include "targets/cuda/codegen/Block.h"
#include <limits>

namespace izhc::cuda {

using namespace mlir;

namespace {

struct Candidate {
  Value logit, number, bad; // f32; i32; i32: 1 where a logit can't be compared

  static Candidate of(ArrayRef<Value> values) { return {values[0], values[1], values[2]}; }
  Block::Values values() const { return {logit, number, bad}; }
};

struct Search {
  Block &block;
  KernelBuilder &k;

  // The larger, of equal ones the first.
  Candidate better(const Candidate &a, const Candidate &b) {
    Value isLess = k.less(a.logit, b.logit);
    Value isBefore = k.andBits(k.equal(a.logit, b.logit), k.less(b.number, a.number));
    Value other = k.orBits(isLess, isBefore);
    return {k.select(other, b.logit, a.logit), k.select(other, b.number, a.number),
            k.orBits(a.bad, b.bad)};
  }

  // Of the logits first .. end of a row.
  Candidate ofThread(Value row, Value first, Value end) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr int64_t kTogether = 4;
    Value zero = k.zero(k.i32()), one = k.constInt(k.i32(), 1);
    Value infinity = k.constFloat(k.f32(), kInfinity);
    Candidate none = {k.constFloat(k.f32(), -kInfinity), zero, zero};
    Value step = k.constI64(kTogether * kBestThreads);
    return Candidate::of(
        k.loop(k.add(first, block.thread), end, step, none.values(), [&](Value i, auto carried) {
          Candidate best = Candidate::of(carried);
          // The last again where there are no more; it wins over nothing.
          for (int64_t j = 0; j < kTogether; ++j) {
            Value at = k.min(k.add(i, j * kBestThreads), k.add(end, -1));
            Value logit = loadFloat(k, row, at);
            Value bad = k.select(k.less(logit, infinity), zero, one);
            best = better(best, {logit, k.truncate(at, k.i32()), bad});
          }
          return best.values();
        }));
  }

  Candidate overWarp(Candidate best) {
    for (int64_t mask = kWarp / 2; mask; mask /= 2)
      best = better(best, {block.exchange(best.logit, mask), block.exchange(best.number, mask),
                           block.exchange(best.bad, mask)});
    return best;
  }

  // In every thread.
  Candidate ofBlock(Candidate best) {
    best = overWarp(best);
    Value shared = block.shared(3 * 4 * block.warps());
    auto place = [&](int64_t field, Value warp) {
      return k.at(shared, k.mul(k.add(warp, field * block.warps()), 4));
    };
    k.ifThen(k.equal(block.lane, k.constI64(0)), [&] {
      for (auto [field, value] : llvm::enumerate(best.values()))
        k.store(value, place(int64_t(field), block.warp), 4);
    });
    block.barrier();
    Value warp = k.min(block.lane, k.constI64(block.warps() - 1));
    return overWarp({k.load(k.f32(), place(0, warp), 4), k.load(k.i32(), place(1, warp), 4),
                     k.load(k.i32(), place(2, warp), 4)});
  }

  // `scratch`: of the row: how many blocks have ended, and what each found.
  void emit(Value row, Value count, Value into, Value scratch) {
    static_assert(kBlocks == kWarp && kFound + 3 * 4 * kBlocks <= izh::schema::kBestScratchBytes);
    Value number = k.rem(block.unit, kBlocks), each = k.div(k.add(count, kBlocks - 1), kBlocks);
    Value first = k.mul(number, each);
    Candidate best = ofBlock(ofThread(row, first, k.min(k.add(first, each), count)));
    auto place = [&](int64_t field, Value number) {
      return k.at(scratch, k.add(k.mul(k.add(number, field * kBlocks), 4), kFound));
    };
    Value shared = block.shared(4), isOne = k.equal(block.thread, k.constI64(0));
    k.ifThen(isOne, [&] {
      for (auto [field, value] : llvm::enumerate(best.values()))
        k.store(value, place(int64_t(field), number), 4);
      k.store(block.countUp(scratch), shared, 4);
    });
    block.barrier();
    Value isLast = k.equal(k.load(k.i32(), shared, 4), k.constInt(k.i32(), kBlocks - 1));
    k.ifThen(k.andBits(isLast, k.equal(block.warp, k.constI64(0))), [&] {
      auto word = [&](int64_t field) { return block.loadCoherent(place(field, block.lane)); };
      Candidate all = overWarp({k.bitcast(word(0), k.f32()), word(1), word(2)});
      Value isGood = k.equal(all.bad, k.zero(k.i32()));
      Value result = k.select(isGood, all.number, k.constInt(k.i32(), -1));
      k.ifThen(isOne, [&] {
        k.store(result, into, 4);
        k.store(k.zero(k.i32()), scratch, 4);
      });
    });
  }

  static constexpr int64_t kBlocks = izh::schema::kBestBlocks;
  // Where in the scratch memory the fields are, of all blocks one after the other.
  static constexpr int64_t kFound = 16;
};

} // namespace

void addBest(ModuleOp module, bool overlaps) {
  auto builder = OpBuilder::atBlockEnd(module.getBody());
  Location loc = module.getLoc();
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  auto type = builder.getFunctionType({pointer, pointer, builder.getI64Type(), pointer}, {});
  auto function = func::FuncOp::create(builder, loc, kBestKernel, type);
  mlir::Block *entry = function.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  KernelBuilder k(builder, loc, FloatAbilities{/*fma=*/true, /*convertsHalf=*/true});
  Value zero = k.constI64(0), count = entry->getArgument(2);
  Block block(KernelFrameBase{k, zero, zero, {}, {}, {}, {}}, kBestThreads, overlaps);
  block.awaitInputs();
  Value number = k.div(block.unit, izh::schema::kBestBlocks);
  Value row = k.at(entry->getArgument(0), k.mul(k.mul(number, count), 4));
  Value scratch = k.at(entry->getArgument(3), k.mul(number, izh::schema::kBestScratchBytes));
  Search{block, k}.emit(row, count, k.at(entry->getArgument(1), k.mul(number, 4)), scratch);
  builder.setInsertionPointToEnd(&function.getBody().front());
  func::ReturnOp::create(builder, loc);
}

} // namespace izhc::cuda
