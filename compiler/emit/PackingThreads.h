// Packs weights on several threads and hands the pieces out in order. Internal
// to compiler/emit.

#pragma once

#include "compiler/emit/WeightTiles.h"
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace izhc::emit {

// Tiles of one weight.
struct PackedPiece {
  size_t weight;
  uint64_t firstTile, count;
  std::vector<uint8_t> bytes;
  bool finite = false; // all scales are numbers
  bool done = false;
};

class PackingThreads {
public:
  // `sources` are those of the weights; both must outlive this object. Packs
  // with the thread that asks for pieces and `threads` - 1 others.
  PackingThreads(llvm::ArrayRef<Weight> weights, llvm::ArrayRef<SourceTensor> sources,
                 unsigned threads);
  // Waits for what is under way.
  ~PackingThreads();

  // The next piece, in the order of the weights; null after the last.
  std::unique_ptr<PackedPiece> next();

private:
  PackedPiece *take();
  void pack(PackedPiece &piece, std::unique_lock<std::mutex> &lock);
  void work();

  llvm::ArrayRef<Weight> weights;
  llvm::ArrayRef<SourceTensor> sources;
  uint64_t mostBytes;

  std::mutex mutex;
  std::condition_variable changed;
  // Taken by a thread and not handed out yet, in order, and their bytes.
  std::deque<std::unique_ptr<PackedPiece>> pieces;
  uint64_t heldBytes = 0;
  // What comes behind them.
  size_t weight = 0;
  uint64_t tile = 0;
  bool stopped = false;

  std::vector<std::thread> others;
};

} // namespace izhc::emit
