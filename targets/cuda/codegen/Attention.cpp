// Causal attention over the paged cache, in float32 where AttentionCore doesn't take
// it: a block for the heads of a row that share a key head, span by span. Threads
// have a key each while scores are made, and a column of some of the keys while
// values are added.

#include "targets/cuda/codegen/AttentionCore.h"
#include "targets/cuda/codegen/AttentionRow.h"
#include "targets/cuda/codegen/AttentionSums.h"
#include "targets/cuda/codegen/Cache.h"
#include "targets/cuda/codegen/Lowering.h"

namespace izhc::cuda {

using namespace mlir;
using pack::KvLayout;

namespace {

constexpr int64_t kSpan = KvLayout::kSpan;

struct AttentionEmitter {
  // Heads of a row that are computed together, as they share keys and values.
  static constexpr int64_t kHeads = 4;
  // Values of a key, and keys of a column, that a thread loads before it uses the
  // first.
  static constexpr int64_t kTogether = 128, kKeys = 64;

  using Values = Block::Values;

  Block &block;
  pack::AttentionOp op;
  KernelBuilder &k;
  Cache cache;
  int64_t dim, valueDim;
  // Threads are divided into parts of the keys, which have a column each; where
  // there are more columns, a thread has several.
  int64_t width, parts, columns;
  Value column, part;
  // As the tile's words are known: before what earlier kernels write.
  Value firstRow, rows, position, pages, kvHead;
  Value firstSpan, endSpan, place; // null without parts
  // The page of the thread's key in the first span of the first row.
  Value firstPage;
  Value queries, weights, numbers, reduced, partSums; // in shared memory

  AttentionEmitter(Block &block, pack::AttentionOp op)
      : block(block), op(op), k(block.k), cache(block, cast<pack::KvType>(op.getCache().getType())),
        dim(cache.type.getDim()), valueDim(cache.type.getValueDim()), width(valueWidth(valueDim)),
        parts(valueParts(valueDim)), columns(llvm::divideCeil(valueDim, width)),
        column(k.rem(block.thread, width)), part(k.div(block.thread, width)),
        queries(block.shared(4 * kHeads * queryStride())),
        weights(block.shared(4 * kHeads * kSpan)), numbers(block.shared(4 * kSpan)),
        reduced(block.shared(2 * 4 * kHeads * block.warps())),
        partSums(block.shared(4 * parts * kHeads * columns * width)) {
    assert(block.threads == kAttentionThreads && "a thread has a key of a span");
  }

  // What the step's arrays say of the block's tile; no kernel writes these.
  void readTile(Value number) {
    auto words = [&](Value array) {
      Block::Values all = block.fetch(k.at(block.address(array), k.mul(number, 16)), 4);
      for (Value &word : all)
        word = k.extendS(word, k.i64());
      return all;
    };
    auto tile = words(op.getTiles());
    firstRow = tile[0];
    rows = tile[1];
    position = tile[2];
    pages = k.at(block.address(op.getPages()), k.mul(tile[3], 4));
    if (op.getParts()) {
      auto part = words(op.getParts());
      firstSpan = part[0];
      endSpan = part[1];
      place = part[2];
    }
    RowSpans spans = spansOf(k.constI64(0));
    Value j = keyOf(k.mul(spans.first, kSpan), spans.begin, spans.end);
    Value at = k.at(pages, k.mul(k.div(j, cache.layout.page), 4));
    firstPage = k.extendS(block.fetch(at, 1)[0], k.i64());
  }

  // The keys begin..end that row `row` of the tile sees, and the spans of the tile
  // among them.
  struct RowSpans {
    Value begin, end, first, last;
  };
  RowSpans spansOf(Value row) {
    Value end = k.add(k.add(position, row), 1), begin = windowStart(k, end, op.getWindow());
    Value first = k.div(begin, kSpan), last = spanAfter(k, end);
    if (firstSpan) {
      first = k.max(first, firstSpan);
      last = k.min(last, endSpan);
    }
    return {begin, end, first, last};
  }

  // The thread's key of the span that begins at `start`, or one that there is.
  Value keyOf(Value start, Value begin, Value end) {
    return k.max(begin, k.min(k.add(start, block.thread), k.add(end, -1)));
  }

  Value pageAt(Value number) { return cache.page(block.address(op.getCache()), number); }

  // `count` values of a key from `first` on.
  Values readKey(Value keys, Value slot, Value first, int64_t count) {
    Values key;
    for (int64_t i = 0; i + 1 < count; i += 2) {
      auto [a, b] = cache.keyPair(keys, kvHead, slot, k.add(first, i));
      key.push_back(a);
      key.push_back(b);
    }
    if (count % 2)
      key.push_back(cache.key(keys, kvHead, slot, k.add(first, count - 1)));
    return key;
  }

  // Adds the products of these values and the queries.
  void addProducts(ArrayRef<Value> key, Value first, Values &sums) {
    for (auto [head, sum] : llvm::enumerate(sums)) {
      Value query = k.at(k.at(queries, int64_t(4 * head) * queryStride()), k.mul(first, 4));
      Values factors = fourByFour(query, key.size());
      for (auto [factor, value] : llvm::zip(factors, key))
        sum = k.mulAdd(factor, value, sum);
    }
  }

  // From one query to the next in shared memory.
  int64_t queryStride() const { return llvm::alignTo(dim, 4); }

  // `count` floats, rounded up to fours, of shared memory that is aligned for such.
  Values fourByFour(Value address, int64_t count) {
    Values result;
    for (int64_t i = 0; i < count; i += 4) {
      Value four = k.load(k.vec(4, k.f32()), k.at(address, 4 * i), 16);
      for (int64_t lane = 0; lane < 4; ++lane)
        result.push_back(k.extract(four, lane));
    }
    return result;
  }

  // Of key `j`, which is in page `number`, with each of `heads` queries; with a
  // barrier, after which these are there.
  Values scores(Value j, Value number, int64_t heads) {
    Value slot = k.rem(j, cache.layout.page), keys = pageAt(number);
    int64_t whole = llvm::alignDown(dim, kTogether), rest = dim - whole;
    Values sums(heads, k.zero(k.f32())), last;
    if (rest)
      last = readKey(keys, slot, k.constI64(whole), rest);
    else if (whole == kTogether)
      last = readKey(keys, slot, k.constI64(0), whole);
    block.barrier();
    if (rest == 0 && whole == kTogether) {
      addProducts(last, k.constI64(0), sums);
    } else if (whole) {
      sums = k.loop(k.constI64(0), k.constI64(whole), k.constI64(kTogether), sums,
                    [&](Value i, ArrayRef<Value> carried) {
                      Values next(carried.begin(), carried.end());
                      addProducts(readKey(keys, slot, i, kTogether), i, next);
                      return next;
                    });
    }
    if (rest)
      addProducts(last, k.constI64(whole), sums);
    for (Value &sum : sums) {
      sum = k.mul(sum, k.constFloat(k.f32(), op.getScale().convertToFloat()));
      sum = k.softcap(sum, op.getSoftcap().convertToFloat());
    }
    return sums;
  }

  // Of all threads' values, for each head, in every thread; with a barrier.
  // `which`: 0 and 1 use different memory.
  Values overBlock(ArrayRef<Value> values, bool isMax, int64_t which) {
    Value memory = k.at(reduced, which * 4 * kHeads * block.warps());
    Values found;
    for (Value value : values)
      found.push_back(isMax ? block.warpMax(value) : block.warpSum(value));
    k.ifThen(k.equal(block.lane, k.constI64(0)), [&] {
      for (auto [head, value] : llvm::enumerate(found))
        storeFloat(k, value, memory, k.add(block.warp, int64_t(head) * block.warps()));
    });
    block.barrier();
    for (auto [head, value] : llvm::enumerate(found)) {
      Value all;
      for (int64_t warp = 0; warp < block.warps(); ++warp) {
        Value one = k.load(k.f32(), k.at(memory, 4 * (int64_t(head) * block.warps() + warp)), 4);
        all = !all ? one : isMax ? k.max(all, one) : k.add(all, one);
      }
      value = all;
    }
    return found;
  }

  // Values of `count` keys from `at` of the span on, which lie in one page, of
  // each of the thread's columns.
  Values readValues(Value j, Value at, int64_t count) {
    Value slot = k.rem(j, cache.layout.page), values = pageAt(loadIndex(k, numbers, at));
    Values read;
    for (int64_t i = 0; i < columns; ++i) {
      Value where = k.add(column, i * width);
      if ((i + 1) * width > valueDim)
        where = k.min(where, k.constI64(valueDim - 1));
      for (int64_t key = 0; key < count; key += 2) {
        auto [a, b] = cache.valuePair(values, kvHead, k.add(slot, key), where);
        read.push_back(a);
        read.push_back(b);
      }
    }
    return read;
  }

  // Adds these with their weights. What no key has written may be no number.
  void addValues(Values read, Value j, Value at, int64_t count,
                 llvm::function_ref<Value(Value)> seen, Values &sums, int64_t heads) {
    for (int64_t key = 0; key < count; ++key) {
      Value inside = seen(k.add(j, key));
      for (int64_t i = 0; i < columns; ++i)
        read[i * count + key] = k.select(inside, read[i * count + key], k.zero(k.f32()));
    }
    for (int64_t head = 0; head < heads; ++head) {
      Value from = k.at(weights, k.mul(k.add(at, head * kSpan), 4));
      for (auto [key, weight] : llvm::enumerate(fourByFour(from, count)))
        for (int64_t i = 0; i < columns; ++i) {
          Value &sum = sums[head * columns + i];
          sum = k.mulAdd(weight, read[i * count + int64_t(key)], sum);
        }
    }
  }

  // The keys of a span whose values the thread adds: from..last, some at a time.
  struct Share {
    int64_t step;
    Value start, from, last;
  };
  Share shareOf(Value start, Value begin, Value end) {
    int64_t keys = kSpan / parts, step = std::min<int64_t>(cache.layout.page, kKeys / columns);
    step = std::min(int64_t(llvm::bit_floor(uint64_t(step))), keys);
    Value first = k.add(start, k.mul(part, keys)), last = k.min(k.add(first, keys), end);
    // Threads beyond the last part have no keys.
    if (parts * width < block.threads)
      last = k.select(k.less(part, k.constI64(parts)), last, first);
    return {step, start, k.max(first, k.mul(k.div(begin, step), step)), last};
  }

  // The first of them, or others of the span where there are none.
  Values readFirst(const Share &share) {
    Value at = k.min(k.sub(share.from, share.start), k.constI64(kSpan - share.step));
    return readValues(k.add(share.start, at), at, share.step);
  }

  // The weighted values of a span, for each head and column of the thread; with a
  // barrier.
  Values addSpan(const Share &share, const Values &first, Value begin, Value end, int64_t heads) {
    auto seen = [&](Value j) { return k.andBits(k.lessEqual(begin, j), k.less(j, end)); };
    int64_t step = share.step;
    Value any = k.less(share.from, share.last);
    Value at = k.min(k.sub(share.from, share.start), k.constI64(kSpan - step));
    Values sums(heads * columns, k.zero(k.f32()));
    addValues(
        first, share.from, at, step, [&](Value j) { return k.andBits(any, seen(j)); }, sums, heads);
    sums = k.loop(k.add(share.from, step), share.last, k.constI64(step), sums,
                  [&](Value j, ArrayRef<Value> carried) {
                    Values next(carried.begin(), carried.end());
                    Value at = k.sub(j, share.start);
                    addValues(readValues(j, at, step), j, at, step, seen, next, heads);
                    return next;
                  });
    if (parts == 1) {
      // The next span's pages take the place of these.
      block.barrier();
      return sums;
    }
    auto place = [&](Value part, size_t i) {
      return k.add(k.mul(k.add(k.mul(part, int64_t(sums.size())), int64_t(i)), width), column);
    };
    k.ifThen(k.less(part, k.constI64(parts)), [&] {
      for (auto [i, sum] : llvm::enumerate(sums))
        storeFloat(k, sum, partSums, place(part, i));
    });
    block.barrier();
    for (auto [i, sum] : llvm::enumerate(sums)) {
      sum = loadFloat(k, partSums, place(k.constI64(0), i));
      for (int64_t other = 1; other < parts; ++other)
        sum = k.add(sum, loadFloat(k, partSums, place(k.constI64(other), i)));
    }
    return sums;
  }

  // The keys begin..end of span number `span`, for each head; the thread's key is
  // in page `number`.
  SmallVector<Sums> sumSpan(Value span, Value number, Value begin, Value end, int64_t heads) {
    Value start = k.mul(span, kSpan), j = k.add(start, block.thread);
    Value inside = k.andBits(k.lessEqual(begin, j), k.less(j, end));
    Value masked = k.constFloat(k.f32(), kMasked), zero = k.zero(k.f32());
    k.store(k.truncate(number, k.i32()), k.at(numbers, k.mul(block.thread, 4)), 4);
    Values all = scores(keyOf(start, begin, end), number, heads);
    // These are on their way while weights are made.
    Share share = shareOf(start, begin, end);
    Values first = readFirst(share);
    for (Value &score : all)
      score = k.select(inside, score, masked);
    Values most = overBlock(all, /*isMax=*/true, 0);
    for (int64_t head = 0; head < heads; ++head) {
      all[head] = k.select(inside, k.exp(k.sub(all[head], most[head])), zero);
      storeFloat(k, all[head], weights, k.add(block.thread, head * kSpan));
    }
    Values totals = overBlock(all, /*isMax=*/false, 1);
    Values values = addSpan(share, first, begin, end, heads);
    SmallVector<Sums> result;
    for (int64_t head = 0; head < heads; ++head) {
      auto mine = ArrayRef(values).slice(head * columns, columns);
      result.push_back({most[head], totals[head], Values(mine.begin(), mine.end())});
    }
    return result;
  }

  // The spans of a row; `page`: of the thread's key in the first.
  SmallVector<Sums> sumSpans(const RowSpans &row, Value page, int64_t heads) {
    auto pack = [](Value page, ArrayRef<Sums> sums) {
      Values all = {page};
      all.append(packAll(sums));
      return all;
    };
    auto unpack = [&](ArrayRef<Value> all) { return unpackAll(all.drop_front(), columns); };
    SmallVector<Sums> none(heads, Sums::none(k, columns));
    auto body = [&](Value number, ArrayRef<Value> carried) {
      Value start = k.mul(number, kSpan), after = k.add(start, kSpan);
      auto all = unpack(carried);
      auto span =
          sumSpan(number, carried[0], k.max(row.begin, start), k.min(row.end, after), heads);
      for (int64_t head = 0; head < heads; ++head)
        all[head] = merge(k, all[head], span[head]);
      // Of the next span, or the last page again.
      Value next = pageNumber(keyOf(after, row.begin, row.end));
      return pack(next, all);
    };
    return unpack(k.loop(row.first, row.last, k.constI64(1), pack(page, none), body));
  }

  Value pageNumber(Value j) { return loadIndex(k, pages, k.div(j, cache.layout.page)); }

  // Columns of the first part's threads, which have all sums.
  void forColumns(llvm::function_ref<void(int64_t i, Value at)> body) {
    for (int64_t i = 0; i < columns; ++i) {
      Value at = k.add(column, i * width);
      Value mine = k.andBits(k.less(at, k.constI64(valueDim)), k.equal(part, k.constI64(0)));
      k.ifThen(mine, [&] { body(i, at); });
    }
  }

  // Leaves a span of a head for pack.merge.
  void leave(const Sums &sums, Value record) {
    Value to = k.at(block.address(op.getPartials()), k.mul(record, cache.layout.partialBytes()));
    k.ifThen(k.equal(block.thread, k.constI64(0)), [&] {
      k.store(sums.maximum, to, 4);
      k.store(sums.sum, k.at(to, 4), 4);
    });
    forColumns([&](int64_t i, Value at) {
      storeFloat(k, sums.columns[i], k.at(to, KvLayout::kPartialValues), at);
    });
  }

  void finish(const Sums &sums, Value sink, Value into) {
    Value factor = finalFactor(k, sums, sink);
    if (!cache.type.isTurned())
      return forColumns(
          [&](int64_t i, Value at) { storeFloat(k, k.mul(sums.columns[i], factor), into, at); });
    Value scratch = partSums;
    block.barrier();
    forColumns([&](int64_t i, Value at) { storeFloat(k, sums.columns[i], scratch, at); });
    block.barrier();
    forColumns([&](int64_t, Value at) {
      storeFloat(k, k.mul(cache.turned(scratch, valueDim, at), factor), into, at);
    });
  }

  // `heads` heads from `head` on, of row `i` of the tile.
  void emitHeads(Value i, Value head, int64_t heads) {
    int64_t count = op.getHeads();
    Value index = k.add(k.mul(k.add(firstRow, i), count), head);
    RowSpans row = spansOf(i);
    Value from = k.at(block.address(op.getQueries()), k.mul(index, 4 * dim));
    Value start = k.mul(row.first, kSpan);
    // A thread's word of shared memory, so that rows but the first wait for a load.
    Value mine = k.at(numbers, k.mul(block.thread, 4));
    k.ifThenElse(
        k.equal(i, k.constI64(0)), [&] { k.store(k.truncate(firstPage, k.i32()), mine, 4); },
        [&] {
          Value number = pageNumber(keyOf(start, row.begin, row.end));
          k.store(k.truncate(number, k.i32()), mine, 4);
        });
    Value page = k.extendS(k.load(k.i32(), mine, 4), k.i64());
    block.barrier();
    block.forThreads(heads * dim, [&](Value at) {
      Value place = at;
      if (dim != queryStride())
        place = k.add(k.mul(k.div(at, dim), queryStride()), k.rem(at, dim));
      storeFloat(k, loadFloat(k, from, at), queries, place);
    });
    auto sums = sumSpans(row, page, heads);
    auto finishAll = [&] {
      for (int64_t h = 0; h < heads; ++h) {
        Value sink, at = k.add(head, h);
        if (op.getSinks())
          sink = loadFloat(k, block.address(op.getSinks()), at);
        finish(sums[h], sink,
               k.at(block.address(op.getInto()), k.mul(k.add(index, h), 4 * valueDim)));
      }
    };
    if (!place)
      return finishAll();
    k.ifThenElse(k.less(place, k.constI64(0)), finishAll, [&] {
      for (int64_t h = 0; h < heads; ++h)
        leave(sums[h], k.add(k.mul(k.add(place, i), count), k.add(head, h)));
    });
  }
};

} // namespace

LogicalResult emitAttention(Block &block, pack::AttentionOp op) {
  if (AttentionCore::takes(op)) {
    attention_row::emit(block, op);
    return success();
  }
  KernelBuilder &k = block.k;
  AttentionEmitter emitter(block, op);
  int64_t kvHeads = emitter.cache.type.getHeads(), group = op.getHeads() / kvHeads;
  emitter.kvHead = k.rem(block.unit, kvHeads);
  emitter.readTile(k.div(block.unit, kvHeads));
  block.prepare();
  Value firstHead = k.mul(emitter.kvHead, group);
  constexpr int64_t kHeads = AttentionEmitter::kHeads;
  k.loop(k.constI64(0), emitter.rows, 1, [&](Value row) {
    int64_t whole = llvm::alignDown(group, kHeads);
    if (whole)
      k.loop(k.constI64(0), k.constI64(whole), kHeads,
             [&](Value head) { emitter.emitHeads(row, k.add(firstHead, head), kHeads); });
    if (group != whole)
      emitter.emitHeads(row, k.add(firstHead, whole), group - whole);
  });
  return success();
}

namespace {

// A head of a merge, of a warp; a lane has columns lane, lane + 32, ...
struct HeadSums {
  Block &block;
  KernelBuilder &k;
  Cache cache;
  int64_t dim, columns; // values of a head, of a lane
  Value scratch;        // as many floats a warp

  HeadSums(Block &block, pack::KvType kv)
      : block(block), k(block.k), cache(block, kv), dim(kv.getValueDim()),
        columns(llvm::divideCeil(dim, kWarp)),
        scratch(k.at(block.shared(4 * dim * block.warps()), k.mul(block.warp, 4 * dim))) {}

  Value column(int64_t number) { return k.add(block.lane, number * kWarp); }
  // The column, or the last one where there is none.
  Value within(int64_t number) { return k.min(column(number), k.constI64(dim - 1)); }
  void forColumns(llvm::function_ref<void(int64_t number, Value column)> body) {
    for (int64_t i = 0; i < columns; ++i) {
      if ((i + 1) * kWarp <= dim)
        body(i, column(i));
      else
        k.ifThen(k.less(column(i), k.constI64(dim)), [&] { body(i, column(i)); });
    }
  }

  // `sink`: null for none.
  void finish(const Sums &sums, Value sink, Value into) {
    Value factor = finalFactor(k, sums, sink);
    if (!cache.type.isTurned())
      return forColumns(
          [&](int64_t i, Value at) { storeFloat(k, k.mul(sums.columns[i], factor), into, at); });
    block.syncWarp();
    forColumns([&](int64_t i, Value at) { storeFloat(k, sums.columns[i], scratch, at); });
    block.syncWarp();
    forColumns([&](int64_t, Value at) {
      storeFloat(k, k.mul(cache.turned(scratch, dim, at), factor), into, at);
    });
  }
};

} // namespace

LogicalResult emitMerge(Block &block, pack::MergeOp op) {
  KernelBuilder &k = block.k;
  HeadSums heads(block, cast<pack::KvType>(op.getCache().getType()));
  int64_t count = op.getHeads();
  Value head = k.rem(block.unit, count);
  Value entry = k.at(block.address(op.getMerges()), k.mul(k.div(block.unit, count), 16));
  Block::Values words = block.fetch(entry, 4);
  auto field = [&](int64_t word) { return k.extendS(words[word], k.i64()); };
  Value row = field(0), end = k.add(field(1), 1), place = field(2), step = field(3);
  Value first = k.div(windowStart(k, end, op.getWindow()), kSpan), last = spanAfter(k, end);
  block.prepare();
  auto read = [&](Value span) {
    Value record = k.add(k.mul(k.add(place, k.mul(span, step)), count), head);
    Value from =
        k.at(block.address(op.getPartials()), k.mul(record, heads.cache.layout.partialBytes()));
    Sums one = {k.load(k.f32(), from, 4), k.load(k.f32(), k.at(from, 4), 4), {}};
    for (int64_t i = 0; i < heads.columns; ++i)
      one.columns.push_back(loadFloat(k, k.at(from, KvLayout::kPartialValues), heads.within(i)));
    return one;
  };
  Sums all = mergeSpans(k, first, last, /*together=*/4, Sums::none(k, heads.columns), read);
  Value sink = op.getSinks() ? loadFloat(k, block.address(op.getSinks()), head) : Value();
  Value into = k.mul(k.add(k.mul(row, count), head), 4 * heads.dim);
  heads.finish(all, sink, k.at(block.address(op.getInto()), into));
  return success();
}

} // namespace izhc::cuda
