// Threads have a key each while scores are made, and a column of some of the keys
// while values are added, as in the form for few rows (Attention.cpp). Keys come into
// registers, values through shared memory, so that a multiprocessor has room for two
// blocks: one computes while the other's are on their way. Only the step's own key is
// new: the thread that has it takes it from where it is then, and the pair of keys
// that it lies in is added to the values by itself.

#include "targets/cuda/codegen/AttentionRow.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "targets/cuda/codegen/AttentionSums.h"
#include "targets/cuda/codegen/Cache.h"
#include "targets/cuda/codegen/HeadFinish.h"
#include "targets/cuda/codegen/PairProducts.h"
#include "targets/cuda/codegen/Records.h"

namespace izhc::cuda {

using namespace mlir;
using pack::KvLayout;

namespace {

constexpr int64_t kSpan = KvLayout::kSpan;
// Values of a head: of a key, those that a thread has in registers.
constexpr int64_t kMostDim = 128;
constexpr int64_t kMostHeads = 1024;

class RowEmitter {
public:
  using Values = Block::Values;

  RowEmitter(Block &block, pack::AttentionOp op)
      : block(block), op(op), k(block.k), cache(block, cast<pack::KvType>(op.getCache().getType())),
        dim(cache.type.getDim()), valueDim(cache.type.getValueDim()), width(valueWidth(valueDim)),
        parts(valueParts(valueDim)), keysEach(kSpan / parts), column(k.rem(block.thread, width)),
        part(k.div(block.thread, width)), query(block.shared(4 * dim)),
        weights(block.shared(4 * (kSpan + 2))), reduced(block.shared(2 * 4 * block.warps())),
        partSums(block.shared(4 * parts * width)), arrivals(block.shared(4)) {
    assert(block.threads == kAttentionThreads && "a thread has a key of a span");
    values = block.launchMemory(kSpan / cache.layout.page * pageStride());
    if (!block.heads)
      return;
    newKey = block.shared(4 * dim);
    newValue = block.shared(4 * valueDim);
    newWords = block.shared(2 * dim);
    queryFinish.emplace(*block.headsBlock, block.heads);
    keyFinish.emplace(*block.headsBlock, block.heads);
    valueFinish.emplace(*block.headsBlock, block.heads);
  }

  void emit() {
    int64_t heads = op.getHeads();
    head = k.rem(block.unit, heads);
    kvHead = k.div(head, heads / cache.type.getHeads());
    readTile(k.div(block.unit, heads));
    if (block.heads) {
      queryFinish->fetchWeights(0);
      keyFinish->fetchWeights(1);
      slot =
          k.extendS(block.fetch(block.headsBlock->address(block.heads.getSlots()), 1)[0], k.i64());
    }
    Values first = load(firstSpan);
    block.prepare();
    if (block.heads)
      finishHeads();
    else
      k.ifThen(k.less(block.thread, k.constI64(dim)), [&] {
        Value from = k.at(block.address(op.getQueries()), k.mul(head, 4 * dim));
        storeFloat(k, loadFloat(k, from, block.thread), query, block.thread);
      });
    Sums sums = sumSpan(firstSpan, first);
    // A row whose spans are not divided among blocks.
    sums = Sums::unpack(k.loop(k.add(firstSpan, 1), endSpan, k.constI64(1),
                               merge(k, Sums::none(k, 1), sums).pack(),
                               [&](Value span, ArrayRef<Value> carried) {
                                 Sums one = sumSpan(span, load(span));
                                 return merge(k, Sums::unpack(carried), one).pack();
                               }));
    k.ifThenElse(
        k.less(place, k.constI64(0)), [&] { finish(sums); },
        [&] {
          leave(sums);
          mergeLast();
        });
    if (block.heads)
      storeNew();
  }

private:
  // What the step's arrays say of the block's tile; no kernel writes these.
  void readTile(Value number) {
    auto words = [&](Value array) {
      Values all = block.fetch(k.at(block.address(array), k.mul(number, 16)), 4);
      for (Value &word : all)
        word = k.extendS(word, k.i64());
      return all;
    };
    auto tile = words(op.getTiles()), part = words(op.getParts());
    position = tile[2];
    pages = k.at(block.address(op.getPages()), k.mul(tile[3], 4));
    firstSpan = part[0];
    endSpan = k.min(part[1], spanAfter(k, k.add(position, 1)));
    place = part[2];
    lastPair = k.mul(k.div(position, 2), 2);
  }

  Value pageOf(Value key) {
    Value number = block.fetch(k.at(pages, k.mul(k.div(key, cache.layout.page), 4)), 1)[0];
    return cache.page(block.address(op.getCache()), k.extendS(number, k.i64()));
  }

  // What steps before this one left of a span; kernels that write the newest key may
  // still run. Values are on their way to shared memory; gives the words, of two each, of
  // the thread's key.
  Values load(Value span) {
    Value start = k.mul(span, kSpan), j = k.add(start, block.thread);
    // Threads beyond the last key read one that there is. All pages are asked for first.
    Value last = k.max(k.add(position, -1), k.constI64(0));
    Values from = valueSources(start), key;
    for (Value address : keyWords(k.min(j, last)))
      key.push_back(block.fetch(address, 1)[0]);
    copyValues(from);
    return key;
  }

  // In shared memory a panel of values has as many bytes behind it as let the lanes of
  // a warp read two panels without waiting for each other.
  int64_t panelStride() const { return cache.layout.valuePanelBytes + 4 * KvLayout::kLanes; }
  int64_t pageStride() const { return cache.layout.valuePanels * panelStride(); }

  // A warp copies pages of values, or a part of one: where these are, page after page.
  int64_t sharers() const {
    return std::max<int64_t>(block.warps() / (kSpan / cache.layout.page), 1);
  }
  Value pageOfTurn(int64_t turn) { return k.div(k.add(block.warp, turn), sharers()); }
  Values valueSources(Value start) {
    Values all;
    for (int64_t turn = 0; turn < kSpan / cache.layout.page * sharers(); turn += block.warps()) {
      // Behind the last page that there is, this is copied again.
      Value key = k.add(start, k.mul(pageOfTurn(turn), cache.layout.page));
      Value page = pageOf(k.min(key, lastPair));
      all.push_back(cache.valueWords(page, kvHead, k.constI64(0), k.constI64(0)));
    }
    return all;
  }

  void copyValues(const Values &sources) {
    const KvLayout &layout = cache.layout;
    int64_t bytes = layout.valueHeadBytes / sharers();
    Value begin = k.mul(k.rem(block.warp, sharers()), bytes);
    for (auto [number, from] : llvm::enumerate(sources)) {
      Value page = pageOfTurn(int64_t(number) * block.warps());
      Value to = k.at(values, k.mul(page, pageStride()));
      for (int64_t i = 0; i < bytes; i += 16 * kWarp) {
        Value inPart = k.add(k.mul(block.lane, 16), i), at = k.add(begin, inPart);
        auto copy = [&, from = from] {
          Value panel = k.div(at, layout.valuePanelBytes);
          Value padded = k.add(at, k.mul(panel, panelStride() - layout.valuePanelBytes));
          block.fetchAsync(k.at(to, padded), k.at(from, at));
        };
        if (i + 16 * kWarp <= bytes)
          copy();
        else
          k.ifThen(k.less(inPart, k.constI64(bytes)), copy);
      }
    }
    block.commitCopies();
  }

  // Of two keys, the thread's column: in shared memory, those of its part from the
  // `i`-th on. A part is some pages, or lies in one.
  Value valueWord(int64_t i) {
    int64_t page = cache.layout.page, inPage = i % page;
    Value first = k.mul(part, keysEach), lane = k.rem(valueColumn(), KvLayout::kLanes);
    Value at = k.add(k.mul(k.div(first, page), pageStride()),
                     k.mul(k.div(valueColumn(), KvLayout::kLanes), panelStride()));
    at = k.add(at, k.add(k.mul(k.rem(first, page), 2 * KvLayout::kLanes), k.mul(lane, 4)));
    return k.load(k.i32(),
                  k.at(k.at(values, at), i / page * pageStride() + inPage * 2 * KvLayout::kLanes),
                  4);
  }

  Values keyWords(Value j) {
    Value page = pageOf(j), slot = k.rem(j, cache.layout.page);
    Values all;
    for (int64_t i = 0; i < dim; i += 2)
      all.push_back(cache.keyWords(page, kvHead, slot, k.constI64(i)));
    return all;
  }

  Value valueColumn() {
    return valueDim == width ? column : k.min(column, k.constI64(valueDim - 1));
  }

  // The block's query, and where the block has the newest key this and its value:
  // a warp each.
  void finishHeads() {
    Value none = k.constI64(0);
    auto inWarp = [&](int64_t number) { return k.equal(block.warp, k.constI64(number)); };
    k.ifThen(inWarp(0), [&] {
      loadHead(*queryFinish, 0, head, block.headsBlock->address(block.heads.getQueries()), query);
      queryFinish->transform(0, head, none, query);
    });
    Value keys = k.at(block.scratch, kRawHeads);
    Value values = k.at(keys, 4 * dim * cache.type.getHeads());
    hasNew = k.equal(endSpan, spanAfter(k, k.add(position, 1)));
    k.ifThen(k.andBits(hasNew, inWarp(1)), [&] {
      loadHead(*keyFinish, 1, kvHead, keys, newKey);
      keyFinish->transform(1, kvHead, none, newKey);
      // As pages have it.
      block.forLanes(dim / 2, [&](Value i) {
        auto half = [&](int64_t odd) {
          Value value = loadFloat(k, newKey, k.add(k.mul(i, 2), odd));
          return k.extendU(k.floatToHalf(value), k.i32());
        };
        k.store(k.orBits(half(0), k.shl(half(1), 16)), k.at(newWords, k.mul(i, 4)), 4);
      });
    });
    k.ifThen(k.andBits(hasNew, inWarp(2)), [&] {
      loadHead(*valueFinish, 2, kvHead, values, newValue);
      valueFinish->transform(2, kvHead, none, newValue);
    });
  }

  // Head `number` of those at `from`, to shared memory, and what finishing it needs:
  // all is on its way before any of it is used.
  void loadHead(HeadFinish &finisher, size_t matrix, Value number, Value from, Value into) {
    Value row = k.at(from, k.mul(number, 4 * dim));
    Values values;
    for (int64_t i = 0; i < dim; i += kWarp)
      values.push_back(loadFloat(k, row, k.min(k.add(block.lane, i), k.constI64(dim - 1))));
    finisher.loadRow(matrix);
    for (auto [turn, value] : llvm::enumerate(values)) {
      Value i = k.add(block.lane, int64_t(turn) * kWarp);
      k.ifThen(k.less(i, k.constI64(dim)), [&] { storeFloat(k, value, into, i); });
    }
    block.syncWarp();
  }

  // The first of the heads that share the newest key and value writes these to the
  // cache, where later steps find them.
  void storeNew() {
    Value isFirst = k.equal(k.mul(kvHead, int64_t(op.getHeads()) / cache.type.getHeads()), head);
    auto store = [&](size_t matrix, Value values) {
      Value mine = k.equal(block.warp, k.constI64(matrix));
      k.ifThen(k.andBits(k.andBits(hasNew, isFirst), mine), [&] {
        cache.store(/*isKey=*/matrix == 1, block.address(op.getCache()), kvHead, slot, values);
      });
    };
    store(1, newKey);
    store(2, newValue);
  }

  // With the newest key, in the thread that has it.
  Values withNew(Value j, const Values &key) {
    SmallVector<Type> types(key.size(), k.i32());
    Value mine = k.equal(j, position);
    auto branch = scf::IfOp::create(k.builder, k.loc, types, mine, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(k.builder);
    k.builder.setInsertionPointToStart(&branch.getThenRegion().front());
    scf::YieldOp::create(k.builder, k.loc, newKeyWords());
    k.builder.setInsertionPointToStart(&branch.getElseRegion().front());
    scf::YieldOp::create(k.builder, k.loc, key);
    return Values(branch.getResults().begin(), branch.getResults().end());
  }

  Values newKeyWords() {
    Values words;
    if (!block.heads) {
      for (Value address : keyWords(position))
        words.push_back(block.loadCoherent(address));
      return words;
    }
    for (int64_t i = 0; i < dim / 2; i += 2) {
      Value pair = k.load(k.vec(2, k.i32()), k.at(newWords, 4 * i), 8);
      words.push_back(k.extract(pair, 0));
      words.push_back(k.extract(pair, 1));
    }
    return words;
  }

  // The thread's column of the newest key and its neighbour, before the newest is
  // known.
  Value lastWord() {
    Value page = pageOf(position), slot = k.rem(lastPair, cache.layout.page);
    return block.loadCoherent(cache.valueWords(page, kvHead, slot, valueColumn()));
  }
  std::pair<Value, Value> lastValues(Value word) {
    auto [even, odd] = halves(word);
    if (!block.heads)
      return {even, odd};
    Value fresh = k.halfToFloat(k.floatToHalf(loadFloat(k, newValue, valueColumn())));
    return {k.select(k.equal(lastPair, position), fresh, even), fresh};
  }

  std::pair<Value, Value> halves(Value word) {
    return {k.halfToFloat(k.truncate(word, k.i16())),
            k.halfToFloat(k.truncate(k.shrU(word, 16), k.i16()))};
  }

  Value scoreOf(const Values &key) {
    Value sum = k.zero(k.f32());
    for (int64_t i = 0; i < dim; i += 4) {
      Value four = k.load(k.vec(4, k.f32()), k.at(query, 4 * i), 16);
      for (int64_t pair = 0; pair < 2; ++pair) {
        auto [a, b] = halves(key[i / 2 + pair]);
        sum = k.mulAdd(k.extract(four, 2 * pair), a, sum);
        sum = k.mulAdd(k.extract(four, 2 * pair + 1), b, sum);
      }
    }
    sum = k.mul(sum, k.constFloat(k.f32(), op.getScale().convertToFloat()));
    return k.softcap(sum, op.getSoftcap().convertToFloat());
  }

  // Of all threads, in every one; with a barrier. `which`: 0 and 1 use different
  // memory.
  Value overBlock(Value value, bool isMax, int64_t which) {
    Value memory = k.at(reduced, which * 4 * block.warps());
    value = isMax ? block.warpMax(value) : block.warpSum(value);
    k.ifThen(k.equal(block.lane, k.constI64(0)), [&] { storeFloat(k, value, memory, block.warp); });
    block.barrier();
    Value all;
    for (int64_t warp = 0; warp < block.warps(); ++warp) {
      Value one = k.load(k.f32(), k.at(memory, 4 * warp), 4);
      all = !all ? one : isMax ? k.max(all, one) : k.add(all, one);
    }
    return all;
  }

  Sums sumSpan(Value span, Values key) {
    Value start = k.mul(span, kSpan), j = k.add(start, block.thread);
    Value inside = k.lessEqual(j, position), isNew = k.lessEqual(lastPair, j);
    Value last = lastWord();
    if (!block.heads)
      key = withNew(j, key);
    // The query is there, and what the span before left is not needed any more.
    block.barrier();
    if (block.heads)
      key = withNew(j, key);
    Value score = k.select(inside, scoreOf(key), k.constFloat(k.f32(), kMasked));
    Value most = overBlock(score, /*isMax=*/true, 0), zero = k.zero(k.f32());
    Value weight = k.select(inside, k.exp(k.sub(score, most)), zero);
    storeFloat(k, k.select(isNew, zero, weight), weights, block.thread);
    k.ifThen(k.andBits(inside, isNew),
             [&] { storeFloat(k, weight, weights, k.add(k.sub(j, lastPair), kSpan)); });
    block.awaitCopies(0);
    // Its barrier also lets threads see what others have copied.
    Value total = overBlock(weight, /*isMax=*/false, 1);
    Value sum = zero, from = k.mul(part, keysEach);
    // The newest pair is added by itself, and there is nothing behind it.
    Value old = k.sub(lastPair, k.add(start, from));
    for (int64_t i = 0; i < keysEach; i += 4) {
      Value four = k.load(k.vec(4, k.f32()), k.at(weights, k.mul(k.add(from, i), 4)), 16);
      for (int64_t pair = 0; pair < 2; ++pair) {
        Value isOld = k.less(k.constI64(i + 2 * pair), old);
        auto [a, b] = halves(k.select(isOld, valueWord(i + 2 * pair), k.zero(k.i32())));
        sum = k.mulAdd(k.extract(four, 2 * pair), a, sum);
        sum = k.mulAdd(k.extract(four, 2 * pair + 1), b, sum);
      }
    }
    sum = addNewest(start, from, last, sum);
    storeFloat(k, sum, partSums, block.thread);
    block.barrier();
    Value all;
    for (int64_t i = 0; i < parts; ++i) {
      Value one = loadFloat(k, partSums, k.add(column, i * width));
      all = all ? k.add(all, one) : one;
    }
    return {most, total, {all}};
  }

  // The pair of keys that the newest is one of, where it is in the thread's part.
  Value addNewest(Value start, Value from, Value word, Value sum) {
    Value there = k.sub(k.sub(lastPair, start), from);
    Value mine = k.andBits(k.lessEqual(k.constI64(0), there), k.less(there, k.constI64(keysEach)));
    auto [even, odd] = lastValues(word);
    auto add = [&](Value value, int64_t which, Value wanted) {
      Value weight = k.load(k.f32(), k.at(weights, 4 * (kSpan + which)), 4);
      sum = k.select(wanted, k.mulAdd(weight, value, sum), sum);
    };
    add(even, 0, mine);
    add(odd, 1, k.andBits(mine, k.less(lastPair, position)));
    return sum;
  }

  // For threads that have a column.
  void forColumn(llvm::function_ref<void()> body) {
    k.ifThen(k.less(block.thread, k.constI64(valueDim)), body);
  }

  void finish(const Sums &sums) {
    Value sink;
    if (op.getSinks())
      sink = loadFloat(k, block.address(op.getSinks()), head);
    Value factor = finalFactor(k, sums, sink);
    Value into = k.at(block.address(op.getInto()), k.mul(head, 4 * valueDim));
    forColumn([&] {
      Value result = k.mul(sums.columns[0], factor);
      storeFloat(k, result, into, block.thread);
      if (!block.recordType)
        return;
      Value number = k.add(k.mul(head, valueDim / kWarp), block.warp);
      Value record = k.at(block.address(op.getInto()), block.recordOffset);
      RecordWriter(block, block.recordType).writeBlock(result, number, record);
    });
  }

  Value partialAt(Value number) {
    Value record = k.add(k.mul(number, int64_t(op.getHeads())), head);
    return k.at(block.address(op.getPartials()), k.mul(record, cache.layout.partialBytes()));
  }

  void leave(const Sums &sums) {
    Value to = partialAt(place);
    k.ifThen(k.equal(block.thread, k.constI64(0)), [&] {
      k.store(sums.maximum, to, 4);
      k.store(sums.sum, k.at(to, 4), 4);
    });
    forColumn(
        [&] { storeFloat(k, sums.columns[0], k.at(to, KvLayout::kPartialValues), block.thread); });
  }

  // Does nothing in blocks of the head that others are still to come after.
  void mergeLast() {
    Value counter = k.at(block.scratch, k.mul(head, 4)),
          first = k.equal(block.thread, k.constI64(0));
    block.barrier();
    k.ifThen(first, [&] { k.store(block.countUp(counter), arrivals, 4); });
    block.barrier();
    Value before = k.extendU(k.load(k.i32(), arrivals, 4), k.i64());
    k.ifThen(k.equal(k.add(before, 1), block.tiles), [&] {
      k.ifThen(first, [&] { k.store(k.zero(k.i32()), counter, 4); });
      mergeAll();
    });
  }

  void mergeAll() {
    Value spans = spanAfter(k, k.add(position, 1)), start = k.sub(place, firstSpan);
    Value at = k.mul(k.min(block.thread, k.constI64(valueDim - 1)), 4);
    auto number = [&](Value address) { return k.bitcast(block.loadCoherent(address), k.f32()); };
    auto read = [&](Value span) {
      Value from = partialAt(k.add(start, span));
      Value values = k.at(from, KvLayout::kPartialValues);
      return Sums{number(from), number(k.at(from, 4)), {number(k.at(values, at))}};
    };
    // Spans from `first` on, several at a time: these are all on their way before the
    // first is used.
    auto mergeFrom = [&](Value first, Value end, int64_t together, const Values &before) {
      return k.loop(first, end, k.constI64(together), before,
                    [&](Value span, ArrayRef<Value> carried) {
                      SmallVector<Sums> some;
                      for (int64_t i = 0; i < together; ++i)
                        some.push_back(read(k.min(k.add(span, i), k.add(spans, -1))));
                      Values sums(carried.begin(), carried.end());
                      for (auto [i, one] : llvm::enumerate(some)) {
                        Value there = k.less(k.add(span, int64_t(i)), spans);
                        Values next = merge(k, Sums::unpack(sums), one).pack();
                        for (auto [old, changed] : llvm::zip(sums, next))
                          old = k.select(there, changed, old);
                      }
                      return sums;
                    });
    };
    constexpr int64_t kMany = 16, kFew = 4;
    Value many = k.mul(k.div(spans, kMany), kMany);
    Values all = mergeFrom(k.constI64(0), many, kMany, Sums::none(k, 1).pack());
    finish(Sums::unpack(mergeFrom(many, spans, kFew, all)));
  }

  Block &block;
  pack::AttentionOp op;
  KernelBuilder &k;
  Cache cache;
  int64_t dim, valueDim;
  // Threads are divided into parts of the keys, which have a column each.
  int64_t width, parts, keysEach;
  Value column, part;
  Value query, weights, reduced, partSums, arrivals, values; // in shared memory
  // With Block::heads: of the newest key, and where it goes.
  Value newKey, newValue, newWords, slot, hasNew;
  std::optional<HeadFinish> queryFinish, keyFinish, valueFinish;
  Value head, kvHead;
  Value position, pages, firstSpan, endSpan, place;
  Value lastPair; // the even one of the newest key and its neighbour
};

} // namespace

namespace attention_row {

bool takes(pack::AttentionOp op) {
  auto type = cast<pack::KvType>(op.getCache().getType());
  int64_t dim = type.getDim(), valueDim = type.getValueDim();
  return pack::KvLayout(type).bits == 16 && !type.isTurned() && op.getParts() &&
         op.getWindow() == 0 && op.getHeads() <= kMostHeads && dim % 4 == 0 && dim <= kMostDim &&
         valueDim <= kMostDim && valueWidth(valueDim) * valueParts(valueDim) == kAttentionThreads;
}

bool canLeaveRecord(pack::AttentionOp op) {
  return cast<pack::KvType>(op.getCache().getType()).getValueDim() % kWarp == 0;
}

int64_t units(pack::AttentionOp op) { return op.getHeads(); }
int64_t scratchBytes(pack::AttentionOp op) { return 4 * op.getHeads(); }

void emit(Block &block, pack::AttentionOp op) { RowEmitter(block, op).emit(); }

} // namespace attention_row

} // namespace izhc::cuda
