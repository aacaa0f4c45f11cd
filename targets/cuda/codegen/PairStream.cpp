// A slot of the ring has a stage of both tiles as it lies in them, and a gate that
// their copies meet at.

#include "targets/cuda/codegen/PairStream.h"

namespace izhc::cuda {

using namespace mlir;

static constexpr int64_t kTile = PackedLayout::kTileRows, kChunks = RowDot::kStageChunks;
// With the record and products, what a block may have (227 KiB).
static constexpr int64_t kMostBytes = 188 << 10;
static constexpr int64_t kMostSlots = 4, kLeastSlots = 2, kLeastWarps = 4, kMostWarps = 16;

static int64_t presentOf(pack::WeightType type) {
  return std::min(kChunks, Spans(type.getCols()).chunksEach());
}

// Stages that hold a chunk of a span each, at most.
static int64_t stagesOf(pack::WeightType type) {
  Spans spans(type.getCols());
  int64_t each = spans.chunksEach(), most = llvm::divideCeil(each, kChunks);
  if (!RowDot::isWholeUnit(type))
    return most;
  for (int64_t span = 0; span < spans.count(); ++span)
    most = std::max<int64_t>(most, llvm::divideCeil(span * each % kChunks + each, kChunks));
  return most;
}

std::optional<StreamShape> StreamShape::of(ArrayRef<pack::WeightType> types, int64_t turns) {
  StreamShape shape;
  int64_t stages = 0, spans = Spans(types.front().getCols()).count();
  for (pack::WeightType type : types) {
    // What so few columns take, registers hold.
    if (presentOf(type) < kChunks)
      return std::nullopt;
    shape.slotBytes = std::max(shape.slotBytes, 2 * RowDot::stageBytes(type, presentOf(type)));
    stages = std::max(stages, stagesOf(type));
  }
  for (int64_t share : {1, 2}) {
    shape.warps = std::clamp<int64_t>(llvm::divideCeil(spans, share), kLeastWarps, kMostWarps);
    int64_t needed = turns * stages * llvm::divideCeil(spans, shape.warps);
    int64_t room = kMostBytes / shape.warps - RowDot::exchangeBytes();
    shape.slots = std::min({kMostSlots, needed, room / shape.slotBytes});
    if (shape.slots >= std::min(kLeastSlots, needed))
      return shape;
  }
  return std::nullopt;
}

int64_t PairStream::productBytes(pack::WeightType type) {
  return 4 * 2 * kTile * Spans(type.getCols()).count();
}

PairStream::PairStream(Block &block, const StreamShape &shape, pack::WeightType type,
                       pack::ActType act, Value step, Value end, int64_t together)
    : block(block), k(block.k), shape(shape), type(type), spans(type.getCols()),
      dot(block, type, act, presentOf(type)), tileBytes(RowDot::stageBytes(type, presentOf(type))),
      step(step), end(end), pairsEach(together) {
  Value memory = block.launchMemory(shape.bytes());
  ring = k.at(memory, k.mul(block.warp, shape.slots * shape.slotBytes));
  exchange = k.at(k.at(memory, shape.ringBytes()), k.mul(block.warp, RowDot::exchangeBytes()));
  gates = k.at(block.shared(8 * shape.warps * shape.slots), k.mul(block.warp, 8 * shape.slots));
  firstSpan = k.mul(block.warp, spansEach());
}

int64_t PairStream::stagesOfSpan() const { return stagesOf(type); }

bool PairStream::isEven() const {
  return spans.chunksEach() % kChunks == 0 && spans.chunkCount() % spans.chunksEach() == 0;
}

RowDot::Stage PairStream::stageOf(Value span, Value number) const {
  int64_t each = spans.chunksEach();
  Value begin = k.mul(span, each);
  Value unit = RowDot::isWholeUnit(type) ? k.mul(k.div(begin, kChunks), kChunks) : begin;
  Value first = k.add(unit, k.mul(number, kChunks));
  if (isEven())
    return {{}, first, {}, {}};
  Value stop = k.min(k.add(begin, each), k.constI64(spans.chunkCount()));
  Value room = k.constI64(std::min(kChunks, each));
  if (RowDot::isWholeUnit(type))
    room = k.constI64(kChunks);
  Value from = k.max(k.sub(begin, first), k.constI64(0));
  return {{}, first, from, k.min(k.sub(stop, first), room)};
}

// A lane for each tile. Of stages without a chunk of the span, something is copied too.
void PairStream::put(Value pair, Value number, Value slot, TileOf tileOf) const {
  Value span = k.add(firstSpan, k.div(number, stagesOfSpan()));
  span = k.min(span, k.constI64(spans.count() - 1));
  RowDot::Stage stage = stageOf(span, k.rem(number, stagesOfSpan()));
  Value bytes = k.constInt(k.i32(), tileBytes), offset;
  if (RowDot::isWholeUnit(type)) {
    Value units = k.constI64(llvm::divideCeil(spans.chunkCount(), kChunks) - 1);
    offset = k.mul(k.min(k.div(stage.first, kChunks), units), RowDot::unitBytes(type));
  } else {
    offset = k.mul(k.min(stage.first, k.constI64(spans.chunkCount() - 1)), RowDot::unitBytes(type));
    if (stage.to)
      bytes = k.truncate(k.mul(k.max(stage.to, k.constI64(1)), RowDot::unitBytes(type)), k.i32());
  }
  Value gate = gateOf(slot), half = k.rem(block.lane, 2);
  Value target = k.at(k.at(ring, k.mul(slot, shape.slotBytes)), k.mul(half, tileBytes));
  Value source = k.at(tileOf(pair, half), offset);
  k.ifThen(k.equal(block.lane, k.constI64(0)), [&] { block.expectBytes(gate, k.mul(bytes, 2)); });
  k.ifThen(k.less(block.lane, k.constI64(2)), [&] { block.copyBulk(target, source, bytes, gate); });
}

// What is reached: pair and stage of the next copy; slot and parity of the next
// stage to multiply.
enum Reached { kPair, kNumber, kSlot, kParity };

PairStream::Values PairStream::begin(TileOf tileOf) const {
  k.ifThen(k.equal(block.lane, k.constI64(0)), [&] {
    for (int64_t slot = 0; slot < shape.slots; ++slot)
      block.makeGate(gateOf(k.constI64(slot)));
    block.publishGates();
  });
  block.syncWarp();
  Values at = {k.mul(block.unit, pairsEach), k.constI64(0)};
  at = k.loop(k.constI64(0), k.constI64(shape.slots), k.constI64(1), at,
              [&](Value slot, ArrayRef<Value> reached) {
                k.ifThen(k.less(reached[kPair], end),
                         [&] { put(reached[kPair], reached[kNumber], slot, tileOf); });
                return following(reached);
              });
  at.push_back(k.constI64(0));
  at.push_back(k.zero(k.i32()));
  return at;
}

// The stage behind the one that is `reached`.
PairStream::Values PairStream::following(ArrayRef<Value> reached) const {
  Value next = k.add(reached[kNumber], 1), isLast = k.equal(next, k.constI64(stages()));
  Value pair = reached[kPair], after = k.add(pair, step);
  if (pairsEach == 2)
    after = k.select(k.equal(k.rem(pair, 2), k.constI64(0)), k.add(pair, 1),
                     k.add(k.add(pair, k.mul(step, 2)), -1));
  return {k.select(isLast, after, pair), k.select(isLast, k.constI64(0), next)};
}

PairStream::Values PairStream::compute(Value memory, Value record, TileOf tileOf,
                                       ArrayRef<Value> reached) const {
  Values carried(reached.begin(), reached.end());
  for (int64_t i = 0; i < spansEach(); ++i) {
    Value span = k.add(firstSpan, i);
    carried.push_back(k.zero(k.f32()));
    carried =
        k.loop(k.constI64(0), k.constI64(stagesOfSpan()), k.constI64(1), carried,
               [&](Value number, ArrayRef<Value> values) {
                 Value slot = values[kSlot], parity = values[kParity];
                 block.awaitGate(gateOf(slot), parity);
                 RowDot::Stage stage = stageOf(k.min(span, k.constI64(spans.count() - 1)), number);
                 stage.address =
                     k.at(k.at(ring, k.mul(slot, shape.slotBytes)), k.mul(dot.tile(), tileBytes));
                 Value sum =
                     dot.add(stage, record, spans.chunkCount() - 1, exchange, values.back());
                 k.ifThen(k.less(values[kPair], end),
                          [&] { put(values[kPair], values[kNumber], slot, tileOf); });
                 Values next = following(values);
                 Value after = k.add(slot, 1), isLast = k.equal(after, k.constI64(shape.slots));
                 next.push_back(k.select(isLast, k.constI64(0), after));
                 next.push_back(k.select(isLast, k.xorBits(parity, 1), parity));
                 next.push_back(sum);
                 return next;
               });
    auto store = [&] {
      storeFloat(k, carried.back(), memory, k.add(k.mul(span, 2 * kTile), block.lane));
    };
    if (spansEach() * shape.warps == spans.count())
      store();
    else
      k.ifThen(k.less(span, k.constI64(spans.count())), store);
    carried.pop_back();
  }
  return carried;
}

Value PairStream::product(Value memory, Value row) const {
  Value total;
  for (int64_t span = 0; span < spans.count(); ++span) {
    Value one = loadFloat(k, memory, k.add(row, 2 * kTile * span));
    total = total ? k.add(total, one) : one;
  }
  return total;
}

} // namespace izhc::cuda
