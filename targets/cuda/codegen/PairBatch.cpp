// Loads are ahead of their use: the first before the records are there, and in
// long spans the next while one group of chunks is multiplied.

#include "targets/cuda/codegen/PairBatch.h"

namespace izhc::cuda {

using namespace mlir;

static constexpr int64_t kTile = PackedLayout::kTileRows;
// Registers for weights on their way.
static constexpr int64_t kWordsAhead = 48, kFewWordsAhead = 24;
// Of the memory that a block may share.
static constexpr int64_t kMostSlotBytes = 32 << 10;

namespace {

// How a block divides its pairs and their columns.
struct Shares {
  int64_t rows, records, parts, slots;

  Shares(const Block &block, int64_t tiles, bool oneRecord, int64_t columns) {
    int64_t pairs = llvm::divideCeil(tiles, 2), spans = Spans(columns).count();
    rows = 2 * kTile * pairs;
    records = oneRecord ? 1 : PairDot::kRecords;
    parts = std::max<int64_t>(1, block.warps() / pairs);
    if (4 * spans * records * rows > kMostSlotBytes)
      parts = 1;
    slots = parts == 1 ? 1 : spans;
  }
};

} // namespace

int64_t PairBatch::sharedBytes(const Block &block, int64_t tiles, bool oneRecord, int64_t columns) {
  Shares shares(block, tiles, oneRecord, columns);
  return 4 * shares.slots * shares.records * shares.rows;
}

PairBatch::PairBatch(Block &block, int64_t tiles, bool oneRecord, pack::WeightType type,
                     pack::ActType act, Value memory, bool fewRegisters)
    : block(block), k(block.k), dot(block, type, act, oneRecord), spans(type.getCols()),
      tiles(tiles), fewRegisters(fewRegisters), sums(memory) {
  Shares shares(block, tiles, oneRecord, type.getCols());
  records = shares.records;
  parts = shares.parts;
  slots = shares.slots;
}

int64_t PairBatch::ahead() const {
  auto fitting = [&](int64_t words) {
    return std::clamp<int64_t>(words / dot.words(), 1, spans.chunksEach());
  };
  int64_t chunks = fitting(fewRegisters ? kFewWordsAhead : kWordsAhead);
  // Where they are not all, as many are on their way while these are used.
  return chunks == spans.chunksEach() ? chunks
                                      : fitting((fewRegisters ? kFewWordsAhead : kWordsAhead) / 2);
}

int64_t PairBatch::spansAtOnce() const {
  int64_t each = llvm::divideCeil(spans.count(), parts);
  bool fits = each * spans.chunksEach() * dot.words() <= kWordsAhead;
  return records == 1 && !fewRegisters && parts > 1 && fits ? each : 1;
}

Value PairBatch::firstPair() const {
  Value pair = k.div(block.warp, parts);
  if (parts * together() == block.warps())
    return pair;
  return k.select(k.less(pair, k.constI64(together())), pair, k.constI64(pairs()));
}

Value PairBatch::tileOf(Value pair, Value count) const {
  return k.min(k.add(k.mul(pair, 2), dot.tile()), k.add(count, -1));
}

Value PairBatch::chunkOf(Value span, Value group, int64_t i, Value *valid) const {
  int64_t each = spans.chunksEach(), chunks = spans.chunkCount();
  Value inSpan = k.add(k.mul(group, ahead()), i), chunk = k.add(k.mul(span, each), inSpan);
  if (each % ahead() == 0 && chunks % each == 0) {
    *valid = {};
    return chunk;
  }
  Value inside = k.andBits(k.less(inSpan, k.constI64(each)), k.less(chunk, k.constI64(chunks)));
  *valid = k.select(inside, k.constFloat(k.f32(), 1), k.zero(k.f32()));
  return k.min(chunk, k.constI64(chunks - 1));
}

PairBatch::Values PairBatch::load(Value tile, Value span, Value group) const {
  Values words;
  for (int64_t i = 0; i < ahead(); ++i) {
    Value valid, chunk = chunkOf(span, group, i, &valid);
    Values one = dot.fetch(tile, chunk);
    words.append(one.begin(), one.end());
  }
  // Assemblers move loads to where they are used, but not across this, which costs
  // nothing after the first time.
  block.awaitInputs();
  return words;
}

void PairBatch::add(ArrayRef<Value> words, Value span, Value group,
                    llvm::function_ref<Value(Value)> record, Values &totals) const {
  int64_t each = words.size() / ahead();
  for (int64_t i = 0; i < ahead(); ++i) {
    Value valid, chunk = chunkOf(span, group, i, &valid);
    dot.add(words.slice(i * each, each), chunk, valid, record, totals);
  }
}

PairBatch::Values PairBatch::sumSpan(Value tile, Value span, Values words,
                                     llvm::function_ref<Value(Value)> record,
                                     llvm::function_ref<void()> beforeLast) const {
  Values totals(PairDot::kRows * dot.columns(), k.zero(k.f32()));
  Value last = k.constI64(groups() - 1);
  if (groups() > 1) {
    Values carried = words;
    carried.append(totals.begin(), totals.end());
    carried = k.loop(k.constI64(0), last, k.constI64(1), carried,
                     [&](Value group, ArrayRef<Value> values) {
                       Values next = load(tile, span, k.add(group, 1));
                       Values sums(values.begin() + words.size(), values.end());
                       add(values.take_front(words.size()), span, group, record, sums);
                       next.append(sums.begin(), sums.end());
                       return next;
                     });
    totals.assign(carried.begin() + words.size(), carried.end());
    std::copy_n(carried.begin(), words.size(), words.begin());
  }
  if (beforeLast)
    beforeLast();
  add(words, span, last, record, totals);
  return totals;
}

void PairBatch::keep(const Values &totals, Value slot, Value pair) {
  Value row = k.add(k.add(k.mul(pair, 2 * kTile), k.mul(dot.tile(), kTile)), dot.firstRow());
  auto store = [&] {
    for (int64_t column = 0; column < dot.columns(); ++column) {
      Value record = records == 1 ? k.constI64(0) : k.add(dot.firstRecord(), column);
      Value line = k.mul(k.add(k.mul(record, slots), slot), 2 * kTile * pairs());
      for (int64_t i = 0; i < PairDot::kRows; ++i)
        storeFloat(k, totals[i * dot.columns() + column], sums, k.add(k.add(line, row), i));
    }
  };
  // With one record, four lanes have the same.
  if (records == 1)
    k.ifThen(k.equal(dot.firstRecord(), k.constI64(0)), store);
  else
    store();
}

void PairBatch::computePair(TileAt tileAt, Value pair, Value count,
                            llvm::function_ref<Value(Value)> record, const Values &fetched,
                            llvm::function_ref<void()> beforeLast) {
  Value tile = tileAt(tileOf(pair, count)), zero = k.constI64(0), end = k.constI64(spans.count());
  Value first = parts == 1 ? zero : part();
  Values words = fetched;
  if (words.empty())
    words = load(tile, k.min(first, k.add(end, -1)), zero);
  if (isEven())
    return keep(sumSpan(tile, first, words, record, beforeLast), first, pair);
  if (int64_t each = spansAtOnce(); each > 1) {
    // Those of all spans are on their way before the first is used.
    SmallVector<Values> all = {words};
    auto spanOf = [&](int64_t i) { return k.add(first, i * parts); };
    for (int64_t i = 1; i < each; ++i)
      all.push_back(load(tile, k.min(spanOf(i), k.add(end, -1)), zero));
    for (int64_t i = 0; i < each; ++i)
      k.ifThen(k.less(spanOf(i), end),
               [&] { keep(sumSpan(tile, spanOf(i), all[i], record), spanOf(i), pair); });
    return;
  }
  if (parts > 1) {
    k.ifThen(k.less(first, end), [&] { keep(sumSpan(tile, first, words, record), first, pair); });
    if (parts < spans.count())
      k.loop(k.add(first, parts), end, parts, [&](Value span) {
        keep(sumSpan(tile, span, load(tile, span, zero), record), span, pair);
      });
    return;
  }
  // The sum of spans in their order; the first adds to nothing.
  Values totals = sumSpan(tile, first, words, record);
  totals = k.loop(k.constI64(1), end, k.constI64(1), totals, [&](Value span, auto carried) {
    Values next = sumSpan(tile, span, load(tile, span, zero), record);
    for (auto [one, before] : llvm::zip(next, carried))
      one = k.add(before, one);
    return next;
  });
  keep(totals, zero, pair);
}

PairBatch::Values PairBatch::fetch(TileAt tileAt, Value count) {
  if (pairs() > together())
    return {};
  Value pair = k.min(firstPair(), k.constI64(pairs() - 1));
  Value span = parts == 1 ? k.constI64(0) : k.min(part(), k.constI64(spans.count() - 1));
  return load(tileAt(tileOf(pair, count)), span, k.constI64(0));
}

void PairBatch::compute(TileAt tileAt, Value count, llvm::function_ref<Value(Value)> record,
                        const Values &words, llvm::function_ref<void()> beforeLast) {
  if (isEven())
    return computePair(tileAt, k.constI64(0), count, record, words, beforeLast);
  Value present = k.div(k.add(count, 1), 2);
  auto computeOne = [&](Value pair) { computePair(tileAt, pair, count, record, words, {}); };
  if (beforeLast)
    beforeLast();
  if (pairs() <= together()) {
    Value pair = firstPair();
    k.ifThen(k.less(pair, present), [&] { computeOne(pair); });
  } else {
    k.loop(firstPair(), present, together(), computeOne);
  }
}

Value PairBatch::product(Value record, Value row) {
  Value total;
  for (int64_t slot = 0; slot < slots; ++slot) {
    Value line = k.mul(k.add(k.mul(record, slots), slot), 2 * kTile * pairs());
    Value one = loadFloat(k, sums, k.add(line, row));
    total = total ? k.add(total, one) : one;
  }
  return total;
}

} // namespace izhc::cuda
