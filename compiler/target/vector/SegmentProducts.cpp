// Few rows: a tile, as it streams in, meets all rows. Many rows: the records of
// a pass stay in the second-level cache while all tiles go by.

#include "compiler/target/vector/SegmentProducts.h"
#include <utility>

namespace izhc {

using namespace mlir;

namespace {

constexpr int64_t kSumBytes = 4 * PackedLayout::kTileRows;

} // namespace

ManyRows manyRows(const KernelFrame &frame, pack::ActType act, llvm::ArrayRef<Segment> segments) {
  auto all = [&](auto serves) {
    return llvm::all_of(segments, [&](const Segment &segment) {
      return serves(frame.machine, *segment.format, act);
    });
  };
  if (all(PanelProduct::serves))
    return {ManyRows::Panels, PanelProduct::kGroupRows, PanelProduct::kGroupRows};
  // Tiles that are multiplied together have to be of one encoding.
  bool same = llvm::all_of(segments, [&](const Segment &segment) {
    return segment.format == segments[0].format && segment.cols == segments[0].cols;
  });
  if (same && all(DecodedProduct::serves))
    return {ManyRows::Decoded, DecodedProduct::groupRows(frame.machine),
            DecodedProduct::kFewestRows};
  return {};
}

Value manyRowsScratch(const KernelFrame &frame) {
  int64_t bytes = 0;
  if (frame.machine.matrix)
    bytes = PanelProduct::kScratchBytes;
  if (frame.machine.decodesPanels)
    bytes = std::max(bytes, DecodedProduct::kScratchBytes);
  return bytes ? frame.k.stack(bytes) : Value();
}

void PanelPass::forGroups(KernelBuilder &k,
                          llvm::function_ref<void(Value, Value, Value)> body) const {
  RowGroups groups{groupRows, rows};
  k.loop(k.constI64(0), groups.count(k), 1, [&](Value group) {
    Value from = k.add(begin, k.mul(group, groupRows));
    Value computed = k.add(first, groups.firstRow(k, group));
    Value before = k.add(k.mul(group, groupRows), k.sub(from, computed));
    body(from, k.min(k.sub(count, from), k.constI64(groupRows)), before);
  });
}

void forPanelPasses(KernelBuilder &k, Value count, int64_t groupRows, int64_t most,
                    llvm::function_ref<void(const PanelPass &)> body) {
  k.loop(k.constI64(0), count, most, [&](Value begin) {
    // The last pass, too, has a whole group: its first rows were done before.
    Value first = k.min(begin, k.add(count, -groupRows));
    body({groupRows, first, k.min(k.sub(count, first), k.constI64(most)), begin, count});
  });
}

SegmentProducts::SegmentProducts(KernelFrame &frame, pack::ActType act, int64_t matrices)
    : frame(frame), k(frame.k), act(act), stride(pack::ActLayout(act).stride),
      unpacking(k.stack(TileProduct::kScratchBytes)), panel(manyRowsScratch(frame)) {
  int64_t most = frame.machine.tokenTiles.front();
  if (panel)
    most = std::max({most, PanelProduct::kMostRows, DecodedProduct::kMostRows});
  if (frame.machine.decodesPanels)
    matrices = std::max(matrices, DecodedProduct::tilesAtOnce(frame.machine));
  for (int64_t i = 0; i < matrices; ++i)
    sums.push_back(k.stack(most * kSumBytes));
}

void SegmentProducts::emit(llvm::ArrayRef<Segment> segments, Value records, Value count,
                           Finish finish) {
  auto few = [&] { emitFew(segments, records, count, finish); };
  ManyRows many = manyRows(frame, act, segments);
  if (many.kind == ManyRows::None)
    return few();
  Value isFew = k.less(count, k.constI64(many.fewest));
  if (many.kind == ManyRows::Panels)
    return k.ifThenElse(isFew, few, [&] { emitPanels(segments, records, count, finish); });
  Value end = endOfDecoded(segments);
  k.ifThen(k.lessEqual(k.constI64(many.fewest), count),
           [&] { emitDecoded(segments, records, count, end, finish); });
  Value begin = std::exchange(frame.begin, k.select(isFew, frame.begin, end));
  few();
  frame.begin = begin;
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

void SegmentProducts::emitPanels(llvm::ArrayRef<Segment> segments, Value records, Value count,
                                 Finish finish) {
  llvm::SmallVector<PanelProduct, 2> products;
  for (const Segment &segment : segments)
    products.emplace_back(frame, *segment.format, act, segment.cols, unpacking, panel);
  forPanelPasses(
      k, count, PanelProduct::kGroupRows, PanelProduct::kMostRows, [&](const PanelPass &pass) {
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

// Tiles that are multiplied together are those of all matrices, or neighbours
// of one.
static int64_t neighbours(const VectorMachine &machine, llvm::ArrayRef<Segment> segments) {
  return std::max<int64_t>(1, DecodedProduct::tilesAtOnce(machine) / int64_t(segments.size()));
}

// A last tile without a neighbour goes the way of few rows.
Value SegmentProducts::endOfDecoded(llvm::ArrayRef<Segment> segments) {
  int64_t step = neighbours(frame.machine, segments);
  return k.add(frame.begin, k.mul(k.div(k.sub(frame.end, frame.begin), step), step));
}

void SegmentProducts::emitDecoded(llvm::ArrayRef<Segment> segments, Value records, Value count,
                                  Value end, Finish finish) {
  int64_t together = DecodedProduct::tilesAtOnce(frame.machine), each = segments.size();
  int64_t step = neighbours(frame.machine, segments);
  DecodedProduct product(frame, *segments[0].format, act, segments[0].cols, unpacking, panel);
  auto tiles = [&](Value tile, const PanelPass &pass) {
    llvm::SmallVector<Value, 2> weights;
    for (int64_t j = 0; j < step; ++j)
      for (const Segment &segment : segments)
        weights.push_back(k.at(segment.weights, k.mul(k.add(tile, j), product.tileBytes())));
    Value record = k.at(records, k.mul(pass.first, stride));
    llvm::ArrayRef<Value> from(weights), to(sums);
    for (size_t i = 0; i < weights.size(); i += together)
      product.emit(from.slice(i, together), record, pass.rows, to.slice(i, together), kSumBytes);
    for (int64_t j = 0; j < step; ++j)
      pass.forGroups(k, [&](Value first, Value rows, Value sumsBefore) {
        Rows group{k.add(tile, j), first, rows, {}};
        for (Value all : to.slice(j * each, each))
          group.sums.push_back(k.at(all, k.mul(sumsBefore, kSumBytes)));
        finish(group);
      });
  };
  forPanelPasses(k, count, DecodedProduct::groupRows(frame.machine), DecodedProduct::kMostRows,
                 [&](const PanelPass &pass) {
                   k.loop(frame.begin, end, step, [&](Value tile) { tiles(tile, pass); });
                 });
}

} // namespace izhc
