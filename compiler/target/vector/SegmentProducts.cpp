// Few rows: a tile, as it streams in, meets all rows. Many rows: the records of
// a pass stay in the second-level cache while all tiles go by.

#include "compiler/target/vector/SegmentProducts.h"

namespace izhc {

using namespace mlir;

namespace {

constexpr int64_t kSumBytes = 4 * PackedLayout::kTileRows;

} // namespace

bool panelsServe(const KernelFrame &frame, pack::ActType act, llvm::ArrayRef<Segment> segments) {
  return llvm::all_of(segments, [&](const Segment &segment) {
    return PanelProduct::serves(frame.machine, *segment.format, act);
  });
}

void PanelPass::forGroups(KernelBuilder &k,
                          llvm::function_ref<void(Value, Value, Value)> body) const {
  constexpr int64_t kRows = PanelProduct::kGroupRows;
  k.loop(k.constI64(0), PanelProduct::groups(k, rows), 1, [&](Value group) {
    Value from = k.add(begin, k.mul(group, kRows));
    Value computed = k.add(first, PanelProduct::firstRow(k, group, rows));
    Value before = k.add(k.mul(group, kRows), k.sub(from, computed));
    body(from, k.min(k.sub(count, from), k.constI64(kRows)), before);
  });
}

void forPanelPasses(KernelBuilder &k, Value count, int64_t most,
                    llvm::function_ref<void(const PanelPass &)> body) {
  k.loop(k.constI64(0), count, most, [&](Value begin) {
    // The last pass, too, has a whole group: its first rows were done before.
    Value first = k.min(begin, k.add(count, -PanelProduct::kGroupRows));
    body({first, k.min(k.sub(count, first), k.constI64(most)), begin, count});
  });
}

SegmentProducts::SegmentProducts(KernelFrame &frame, pack::ActType act, int64_t matrices)
    : frame(frame), k(frame.k), act(act), stride(pack::ActLayout(act).stride),
      unpacking(k.stack(TileProduct::kScratchBytes)) {
  int64_t most = frame.machine.tokenTiles.front();
  if (frame.machine.matrix) {
    panel = k.stack(PanelProduct::kScratchBytes);
    most = std::max(most, PanelProduct::kMostRows);
  }
  for (int64_t i = 0; i < matrices; ++i)
    sums.push_back(k.stack(most * kSumBytes));
}

void SegmentProducts::emit(llvm::ArrayRef<Segment> segments, Value records, Value count,
                           Finish finish) {
  auto few = [&] { emitFew(segments, records, count, finish); };
  if (!panelsServe(frame, act, segments))
    return few();
  k.ifThenElse(k.less(count, k.constI64(PanelProduct::kGroupRows)), few,
               [&] { emitMany(segments, records, count, finish); });
}

void SegmentProducts::emitFew(llvm::ArrayRef<Segment> segments, Value records, Value count,
                              Finish finish) {
  llvm::SmallVector<TileProduct, 2> products;
  for (const Segment &segment : segments)
    products.emplace_back(frame, *segment.format, act, segment.cols, unpacking);
  k.loop(frame.begin, frame.end, 1, [&](Value tile) {
    forRowGroups(k, rowTiles(frame, act, segments), count, [&](Value first, int64_t rows) {
      Value record = k.at(records, k.mul(first, stride));
      for (size_t i = 0; i < segments.size(); ++i) {
        Value weights = k.at(segments[i].weights, k.mul(tile, products[i].tileBytes()));
        products[i].emit(weights, record, rows, sums[i], kSumBytes);
      }
      finish({tile, first, k.constI64(rows), sums});
    });
  });
}

void SegmentProducts::emitMany(llvm::ArrayRef<Segment> segments, Value records, Value count,
                               Finish finish) {
  llvm::SmallVector<PanelProduct, 2> products;
  for (const Segment &segment : segments)
    products.emplace_back(frame, *segment.format, act, segment.cols, unpacking, panel);
  forPanelPasses(k, count, PanelProduct::kMostRows, [&](const PanelPass &pass) {
    Value record = k.at(records, k.mul(pass.first, stride));
    k.loop(frame.begin, frame.end, 1, [&](Value tile) {
      for (size_t i = 0; i < segments.size(); ++i) {
        Value weights = k.at(segments[i].weights, k.mul(tile, products[i].tileBytes()));
        products[i].emit(weights, record, pass.rows, sums[i], kSumBytes);
      }
      pass.forGroups(k, [&](Value first, Value rows, Value sumsBefore) {
        Rows group{tile, first, rows, {}};
        for (Value all : sums)
          group.sums.push_back(k.at(all, k.mul(sumsBefore, kSumBytes)));
        finish(group);
      });
    });
  });
}

} // namespace izhc
