// Causal attention over the paged cache: a warp for each head of a row, span by
// span. Lanes have keys while scores are made and columns while values are added.

#include "targets/cuda/codegen/Cache.h"
#include "targets/cuda/codegen/Lowering.h"

namespace izhc::cuda {

using namespace mlir;
using pack::KvLayout;

namespace {

constexpr double kMasked = -1e30;
constexpr int64_t kSpan = KvLayout::kSpan;
// Values of a key, and keys of a column, that are read together; a page has
// whole groups of keys.
constexpr int64_t kTogether = 16, kKeys = 8;
static_assert(KvLayout::kLanes % kKeys == 0);

Value spanAfter(KernelBuilder &k, Value key) { return k.div(k.add(key, kSpan - 1), kSpan); }

Value windowStart(KernelBuilder &k, Value end, int64_t window) {
  return window ? k.max(k.add(end, -window), k.constI64(0)) : k.constI64(0);
}

// Maximum, sum and weighted values of spans; a lane has columns lane,
// lane + 32, ... of the values.
struct Sums {
  Value maximum, sum;
  Block::Values columns;

  Block::Values pack() const {
    Block::Values all = {maximum, sum};
    all.append(columns.begin(), columns.end());
    return all;
  }
  static Sums unpack(ArrayRef<Value> all) {
    return {all[0], all[1], Block::Values(all.begin() + 2, all.end())};
  }
};

// What attention and merging share, so that both round alike.
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

  Sums none() {
    Sums sums = {k.constFloat(k.f32(), kMasked), k.zero(k.f32()), {}};
    sums.columns.assign(columns, k.zero(k.f32()));
    return sums;
  }

  Sums merge(const Sums &all, const Sums &span) {
    Value most = k.max(all.maximum, span.maximum);
    Value c = k.exp(k.sub(all.maximum, most)), f = k.exp(k.sub(span.maximum, most));
    auto fold = [&](Value old, Value added) { return k.mulAdd(old, c, k.mul(added, f)); };
    Sums result = {most, fold(all.sum, span.sum), {}};
    for (auto [old, added] : llvm::zip(all.columns, span.columns))
      result.columns.push_back(fold(old, added));
    return result;
  }

  // `sink`: null for none.
  void finish(const Sums &sums, Value sink, Value into) {
    Value total = sums.sum, factor = k.constFloat(k.f32(), 1.0);
    if (sink) {
      Value most = k.max(sums.maximum, sink);
      factor = k.exp(k.sub(sums.maximum, most));
      total = k.add(k.mul(total, factor), k.exp(k.sub(sink, most)));
    }
    factor = k.div(factor, total);
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

struct AttentionEmitter {
  Block &block;
  pack::AttentionOp op;
  KernelBuilder &k;
  HeadSums heads;
  Value scores; // of a span, for the warp
  Value pages;  // from the sequence's first entry
  Value kvHead;

  AttentionEmitter(Block &block, pack::AttentionOp op)
      : block(block), op(op), k(block.k), heads(block, cast<pack::KvType>(op.getCache().getType())),
        scores(k.at(block.shared(4 * kSpan * block.warps()), k.mul(block.warp, 4 * kSpan))) {}

  // The page that holds key `j`, and its place there.
  Value page(Value j, Value &slot) {
    slot = k.rem(j, heads.cache.layout.page);
    Value number = loadIndex(k, pages, k.div(j, heads.cache.layout.page));
    return heads.cache.page(block.address(op.getCache()), number);
  }

  // query . key, `count` values from `first` on added to `sum`. All are read
  // before the first is used.
  Value addProducts(Value query, Value keys, Value slot, Value first, int64_t count, Value sum) {
    SmallVector<std::pair<Value, Value>> factors;
    for (int64_t i = 0; i + 1 < count; i += 2) {
      Value at = k.add(first, i);
      auto [a, b] = heads.cache.keyPair(keys, kvHead, slot, at);
      factors.push_back({loadFloat(k, query, at), a});
      factors.push_back({loadFloat(k, query, k.add(at, 1)), b});
    }
    if (count % 2) {
      Value at = k.add(first, count - 1);
      factors.push_back({loadFloat(k, query, at), heads.cache.key(keys, kvHead, slot, at)});
    }
    for (auto [q, key] : factors)
      sum = k.mulAdd(q, key, sum);
    return sum;
  }

  Value score(Value query, Value j) {
    Value slot, keys = page(j, slot);
    int64_t dim = heads.cache.type.getDim(), whole = dim / kTogether * kTogether;
    Value dot =
        k.loop(k.constI64(0), k.constI64(whole), k.constI64(kTogether), {k.zero(k.f32())},
               [&](Value i, ArrayRef<Value> carried) {
                 return Block::Values{addProducts(query, keys, slot, i, kTogether, carried[0])};
               })[0];
    if (dim != whole)
      dot = addProducts(query, keys, slot, k.constI64(whole), dim - whole, dot);
    Value scaled = k.mul(dot, k.constFloat(k.f32(), op.getScale().convertToFloat()));
    return k.softcap(scaled, op.getSoftcap().convertToFloat());
  }

  // for the warp's lanes: body(place in the span, number of the key), with one
  // value carried.
  Value forKeys(Value span, Value init,
                llvm::function_ref<Value(Value at, Value j, Value carried)> body) {
    return k.loop(k.constI64(0), k.constI64(kSpan), k.constI64(kWarp), {init},
                  [&](Value first, ArrayRef<Value> carried) {
                    Value at = k.add(first, block.lane);
                    return Block::Values{body(at, k.add(k.mul(span, kSpan), at), carried[0])};
                  })[0];
  }

  // Adds the values of kKeys keys from `j` on, which lie in one page and at
  // `at` in the span; all are read before the first is used. What no key has
  // written may be no number.
  Block::Values addValues(Value j, Value at, llvm::function_ref<Value(Value)> seen,
                          ArrayRef<Value> carried) {
    Value slot, values = page(j, slot);
    Block::Values weights, read, sums(carried.begin(), carried.end());
    for (int64_t i = 0; i < kKeys; ++i)
      weights.push_back(loadFloat(k, scores, k.add(at, i)));
    for (int64_t i = 0; i < heads.columns; ++i)
      for (int64_t key = 0; key < kKeys; key += 2) {
        auto [a, b] = heads.cache.valuePair(values, kvHead, k.add(slot, key), heads.within(i));
        read.push_back(a);
        read.push_back(b);
      }
    for (int64_t key = 0; key < kKeys; ++key) {
      Value inside = seen(k.add(j, key));
      for (int64_t i = 0; i < heads.columns; ++i) {
        Value value = k.select(inside, read[i * kKeys + key], k.zero(k.f32()));
        sums[i] = k.mulAdd(weights[key], value, sums[i]);
      }
    }
    return sums;
  }

  // The keys `begin` to `end` - 1, all of span `span`.
  Sums span(Value query, Value span, Value begin, Value end) {
    Value masked = k.constFloat(k.f32(), kMasked);
    auto seen = [&](Value j) { return k.andBits(k.lessEqual(begin, j), k.less(j, end)); };
    block.syncWarp();
    Value most = forKeys(span, masked, [&](Value at, Value j, Value carried) {
      k.ifThenElse(
          seen(j), [&] { storeFloat(k, score(query, j), scores, at); },
          [&] { storeFloat(k, masked, scores, at); });
      return k.max(carried, loadFloat(k, scores, at));
    });
    most = block.warpMax(most);
    Value total = forKeys(span, k.zero(k.f32()), [&](Value at, Value j, Value carried) {
      Value weight = k.exp(k.sub(loadFloat(k, scores, at), most));
      weight = k.select(seen(j), weight, k.zero(k.f32()));
      storeFloat(k, weight, scores, at);
      return k.add(carried, weight);
    });
    block.syncWarp();
    Block::Values zeros(heads.columns, k.zero(k.f32()));
    Value offset = k.mul(span, kSpan), first = k.mul(k.div(begin, kKeys), kKeys);
    auto columns =
        k.loop(first, end, k.constI64(kKeys), zeros, [&](Value j, ArrayRef<Value> carried) {
          return addValues(j, k.sub(j, offset), seen, carried);
        });
    return {most, block.warpSum(total), columns};
  }

  // The spans first..last of a row that sees the keys begin..end.
  Sums spans(Value query, Value begin, Value end, Value first, Value last) {
    return Sums::unpack(k.loop(first, last, k.constI64(1), heads.none().pack(),
                               [&](Value number, ArrayRef<Value> carried) {
                                 Value start = k.mul(number, kSpan);
                                 Sums one = span(query, number, k.max(begin, start),
                                                 k.min(end, k.add(start, kSpan)));
                                 return heads.merge(Sums::unpack(carried), one).pack();
                               }));
  }

  // Leaves a span for pack.merge.
  void leave(const Sums &sums, Value record) {
    Value to =
        k.at(block.address(op.getPartials()), k.mul(record, heads.cache.layout.partialBytes()));
    k.ifThen(k.equal(block.lane, k.constI64(0)), [&] {
      k.store(sums.maximum, to, 4);
      k.store(sums.sum, k.at(to, 4), 4);
    });
    heads.forColumns([&](int64_t i, Value column) {
      storeFloat(k, sums.columns[i], k.at(to, KvLayout::kPartialValues), column);
    });
  }

  // Head `head` of row `i` of the tile whose words are at `tile` and `part`.
  void emitHead(Value tile, Value part, Value i, Value head) {
    auto field = [&](Value words, int64_t word) { return loadIndex(k, words, k.constI64(word)); };
    int64_t count = op.getHeads();
    Value index = k.add(k.mul(k.add(field(tile, 0), i), count), head);
    auto headOf = [&](Value buffer, int64_t size) {
      return k.at(block.address(buffer), k.mul(index, 4 * size));
    };
    Value end = k.add(k.add(field(tile, 2), i), 1), begin = windowStart(k, end, op.getWindow());
    Value first = k.div(begin, kSpan), last = spanAfter(k, end);
    if (part) {
      first = k.max(first, field(part, 0));
      last = k.min(last, field(part, 1));
    }
    Value query = headOf(op.getQueries(), heads.cache.type.getDim());
    Sums sums = spans(query, begin, end, first, last);
    auto finish = [&] {
      Value sink = op.getSinks() ? loadFloat(k, block.address(op.getSinks()), head) : Value();
      heads.finish(sums, sink, headOf(op.getInto(), heads.dim));
    };
    if (!part)
      return finish();
    Value place = field(part, 2);
    k.ifThenElse(k.less(place, k.constI64(0)), finish,
                 [&] { leave(sums, k.add(k.mul(k.add(place, i), count), head)); });
  }
};

} // namespace

LogicalResult emitAttention(Block &block, pack::AttentionOp op) {
  KernelBuilder &k = block.k;
  AttentionEmitter emitter(block, op);
  int64_t kvHeads = emitter.heads.cache.type.getHeads(), group = op.getHeads() / kvHeads;
  Value number = k.mul(k.div(block.unit, kvHeads), 16);
  Value tile = k.at(block.address(op.getTiles()), number);
  Value part = op.getParts() ? k.at(block.address(op.getParts()), number) : Value();
  emitter.kvHead = k.rem(block.unit, kvHeads);
  emitter.pages = k.at(block.address(op.getPages()), k.mul(loadIndex(k, tile, k.constI64(3)), 4));
  Value pairs = k.mul(loadIndex(k, tile, k.constI64(1)), group);
  k.loop(block.warp, pairs, block.warps(), [&](Value pair) {
    Value head = k.add(k.mul(emitter.kvHead, group), k.rem(pair, group));
    emitter.emitHead(tile, part, k.div(pair, group), head);
  });
  return success();
}

LogicalResult emitMerge(Block &block, pack::MergeOp op) {
  KernelBuilder &k = block.k;
  HeadSums heads(block, cast<pack::KvType>(op.getCache().getType()));
  int64_t count = op.getHeads();
  Value head = k.rem(block.unit, count);
  Value entry = k.at(block.address(op.getMerges()), k.mul(k.div(block.unit, count), 16));
  auto field = [&](int64_t word) { return loadIndex(k, entry, k.constI64(word)); };
  Value row = field(0), end = k.add(field(1), 1), place = field(2), step = field(3);
  Value first = k.div(windowStart(k, end, op.getWindow()), kSpan);
  auto all = k.loop(first, spanAfter(k, end), k.constI64(1), heads.none().pack(),
                    [&](Value span, ArrayRef<Value> carried) {
                      Value record = k.add(k.mul(k.add(place, k.mul(span, step)), count), head);
                      Value from = k.at(block.address(op.getPartials()),
                                        k.mul(record, heads.cache.layout.partialBytes()));
                      Sums one = {k.load(k.f32(), from, 4), k.load(k.f32(), k.at(from, 4), 4), {}};
                      for (int64_t i = 0; i < heads.columns; ++i)
                        one.columns.push_back(
                            loadFloat(k, k.at(from, KvLayout::kPartialValues), heads.within(i)));
                      return heads.merge(Sums::unpack(carried), one).pack();
                    });
  Value sink = op.getSinks() ? loadFloat(k, block.address(op.getSinks()), head) : Value();
  Value into = k.mul(k.add(k.mul(row, count), head), 4 * heads.dim);
  heads.finish(Sums::unpack(all), sink, k.at(block.address(op.getInto()), into));
  return success();
}

} // namespace izhc::cuda
