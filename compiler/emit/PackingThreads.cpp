// Each thread takes the next piece when it has none, so that none waits for
// another until too much is held.

#include "compiler/emit/PackingThreads.h"
#include <algorithm>

using namespace izhc;
using namespace izhc::emit;

// Small beside what a core's share of all weights is, large beside what taking
// one costs.
static constexpr uint64_t kPieceBytes = 1 << 20;

PackingThreads::PackingThreads(llvm::ArrayRef<Weight> weights, llvm::ArrayRef<SourceTensor> sources,
                               unsigned threads)
    : weights(weights), sources(sources),
      mostBytes(2 * (uint64_t(std::max(threads, 1u)) + 1) * kPieceBytes) {
  for (unsigned i = 1; i < threads; ++i)
    others.emplace_back([this] { work(); });
}

PackingThreads::~PackingThreads() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopped = true;
  }
  changed.notify_all();
  for (std::thread &other : others)
    other.join();
}

// The next piece to be packed; null if there is none, or no room for it. A
// piece larger than all room is packed alone.
PackedPiece *PackingThreads::take() {
  if (weight == weights.size())
    return nullptr;
  WeightTiles tiles(weights[weight], sources[weight]);
  uint64_t count = std::max<uint64_t>(kPieceBytes / tiles.bytes(), 1);
  count = std::min(count, tiles.count() - tile);
  uint64_t bytes = count * tiles.bytes();
  if (!pieces.empty() && heldBytes + bytes > mostBytes)
    return nullptr;
  pieces.push_back(std::make_unique<PackedPiece>(PackedPiece{weight, tile, count, {}}));
  heldBytes += bytes;
  tile += count;
  if (tile == tiles.count()) {
    ++weight;
    tile = 0;
  }
  return pieces.back().get();
}

void PackingThreads::pack(PackedPiece &piece, std::unique_lock<std::mutex> &lock) {
  lock.unlock();
  WeightTiles tiles(weights[piece.weight], sources[piece.weight]);
  piece.bytes.resize(piece.count * tiles.bytes());
  piece.finite = tiles.pack(piece.firstTile, piece.count, piece.bytes.data());
  lock.lock();
  piece.done = true;
  changed.notify_all();
}

void PackingThreads::work() {
  std::unique_lock<std::mutex> lock(mutex);
  while (!stopped && weight != weights.size()) {
    if (PackedPiece *piece = take())
      pack(*piece, lock);
    else
      changed.wait(lock);
  }
}

std::unique_ptr<PackedPiece> PackingThreads::next() {
  std::unique_lock<std::mutex> lock(mutex);
  while (pieces.empty() || !pieces.front()->done) {
    if (PackedPiece *piece = take())
      pack(*piece, lock);
    else if (pieces.empty())
      return nullptr;
    else
      changed.wait(lock);
  }
  std::unique_ptr<PackedPiece> piece = std::move(pieces.front());
  pieces.pop_front();
  heldBytes -= piece->bytes.size();
  changed.notify_all();
  return piece;
}
