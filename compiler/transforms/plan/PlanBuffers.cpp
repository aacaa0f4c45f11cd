// Places the buffers of the arena by their lifetimes. Leaves weights,
// constants, states and inputs alone.

#include "compiler/transforms/plan/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace izhc {

#define GEN_PASS_DEF_PLANBUFFERS
#include "compiler/transforms/plan/Passes.h.inc"

namespace {

struct Buffer {
  int64_t size = 0;
  // Numbers of the dispatches between which it is alive, both included.
  int64_t first = 0, last = 0;
  int64_t original = 0, offset = 0;
};

// By the offset that tells them apart, in the order of first use.
using Buffers = llvm::MapVector<int64_t, Buffer>;

template <typename Visit> void visitArena(plan::DispatchOp op, Visit visit) {
  for (auto [i, space] : llvm::enumerate(op.getSpaces()))
    if (plan::Space(space) == plan::Space::Arena)
      visit(i);
}

Buffers collect(llvm::ArrayRef<plan::DispatchOp> dispatches) {
  Buffers buffers;
  for (size_t number = 0; number < dispatches.size(); ++number) {
    plan::DispatchOp dispatch = dispatches[number];
    visitArena(dispatch, [&](size_t i) {
      auto [entry, isNew] = buffers.insert({dispatch.getOffsets()[i], Buffer()});
      Buffer &buffer = entry->second;
      if (isNew) {
        buffer.first = number;
        buffer.original = entry->first;
      }
      buffer.last = number;
      buffer.size = std::max(buffer.size, dispatch.getSizes()[i]);
    });
  }
  return buffers;
}

// The lowest offset at which `buffer` overlaps none of `placed` in place and time.
int64_t lowestFree(const Buffer &buffer, llvm::ArrayRef<const Buffer *> placed) {
  llvm::SmallVector<const Buffer *> rivals;
  for (const Buffer *other : placed)
    if (other->first <= buffer.last && buffer.first <= other->last)
      rivals.push_back(other);
  llvm::sort(rivals, [](auto *a, auto *b) { return a->offset < b->offset; });
  int64_t at = 0;
  for (const Buffer *other : rivals) {
    if (at + buffer.size <= other->offset)
      break;
    at = std::max(at, int64_t(llvm::alignTo(other->offset + other->size, plan::kAlignment)));
  }
  return at;
}

// Returns the end of the last buffer.
int64_t place(Buffers &buffers) {
  llvm::SmallVector<Buffer *> order;
  for (auto &entry : buffers)
    order.push_back(&entry.second);
  llvm::sort(order, [](Buffer *a, Buffer *b) {
    return std::tie(b->size, a->first, a->original) < std::tie(a->size, b->first, b->original);
  });
  llvm::SmallVector<const Buffer *> placed;
  int64_t end = 0;
  for (Buffer *buffer : order) {
    buffer->offset = lowestFree(*buffer, placed);
    placed.push_back(buffer);
    end = std::max(end, buffer->offset + buffer->size);
  }
  return llvm::alignTo(end, plan::kAlignment);
}

struct PlanBuffers : impl::PlanBuffersBase<PlanBuffers> {
  void runOnOperation() override {
    auto memories = llvm::to_vector(getOperation().getOps<plan::MemoryOp>());
    if (memories.size() != 1) {
      getOperation().emitError("needs one plan.memory, run --izh-lower-pack-to-plan first");
      return signalPassFailure();
    }
    plan::MemoryOp memory = memories.front();
    auto dispatches = llvm::to_vector(getOperation().getOps<plan::DispatchOp>());
    Buffers buffers = collect(dispatches);
    auto logits = buffers.find(memory.getLogitsOffset());
    if (logits == buffers.end()) {
      memory.emitError("has no dispatch that writes the logits");
      return signalPassFailure();
    }
    logits->second.last = dispatches.size();
    int64_t end = place(buffers);
    for (plan::DispatchOp dispatch : dispatches) {
      llvm::SmallVector<int64_t> offsets(dispatch.getOffsets());
      visitArena(dispatch, [&](size_t i) { offsets[i] = buffers[offsets[i]].offset; });
      dispatch.setOffsets(offsets);
    }
    memory.setLogitsOffset(logits->second.offset);
    memory.setArenaBytes(end);
  }
};

} // namespace
} // namespace izhc
