// Threads stand in 8 rows of 16: a row has four queries, a column four keys of
// each 64 while scores are made, and four columns of each 64 of the values while
// these are added. Half a warp shares its queries.

#include "targets/cuda/codegen/AttentionTile.h"
#include "targets/cuda/codegen/AttentionSums.h"
#include "targets/cuda/codegen/Cache.h"
#include "targets/cuda/codegen/TensorCore.h"

namespace izhc::cuda {

using namespace mlir;
using pack::KvLayout;

namespace {

constexpr int64_t kSpan = KvLayout::kSpan, kLanes = KvLayout::kLanes;
constexpr int64_t kQueries = AttentionTile::kQueries, kThreads = AttentionTile::kThreads;
constexpr int64_t kKeys = 64;              // of a block of keys
constexpr int64_t kBlocks = kSpan / kKeys; // of a span
constexpr int64_t kEach = 4, kAcross = 16; // of a thread; threads of a row
constexpr int64_t kDims = 32;              // of queries and keys that are there at a time
constexpr int64_t kTogether = 8;           // of these, in one turn of a loop
// Floats from one row to the next in shared memory: so that lanes that write
// four each fall into different banks.
constexpr int64_t kStride = kKeys + 8;

using Values = Block::Values;

struct Emitter {
  Block &block;
  pack::AttentionOp op;
  KernelBuilder &k;
  Cache cache;
  int64_t dim, valueDim, parts, group;
  int64_t wide;                                 // runs of 64 columns of a value
  int64_t valueKeys;                            // keys whose values are there at a time
  int64_t valueStride;                          // floats of a key's values
  Value queriesAt, keysAt, weightsAt, valuesAt; // shared memory
  Value across, down;                           // the thread's place
  Value tile, spanPart, kvHead, pages;
  Value firstPair, pairs;
  Value first, end;                // keys that some query of the block sees
  SmallVector<Value> begins, ends; // i32, of the thread's queries

  Emitter(Block &block, pack::AttentionOp op)
      : block(block), op(op), k(block.k), cache(block, cast<pack::KvType>(op.getCache().getType())),
        dim(cache.type.getDim()), valueDim(cache.type.getValueDim()), parts(valueParts(valueDim)),
        group(op.getHeads() / cache.type.getHeads()), wide(llvm::divideCeil(valueDim, kKeys)),
        valueKeys(valueDim > 128 ? 16 : 32), valueStride(wide * kKeys + kEach),
        across(k.rem(block.thread, kAcross)), down(k.div(block.thread, kAcross)) {
    static_assert(2 * kDims <= kKeys, "weights take the place of queries and keys");
    Value shared = block.shared(4 * (kKeys * kStride + valueKeys * valueStride));
    queriesAt = weightsAt = shared;
    keysAt = k.at(shared, 4 * kDims * kStride);
    valuesAt = k.at(shared, 4 * kKeys * kStride);
  }

  Value field(Value words, int64_t word) { return loadIndex(k, words, k.constI64(word)); }
  Value pairOf(Value query) { return k.add(firstPair, query); }
  // The row and head of query `query` of the block, or of the last one.
  std::pair<Value, Value> placeOf(Value query) {
    Value pair = k.min(pairOf(query), k.add(pairs, -1));
    return {k.div(pair, group), k.add(k.mul(kvHead, group), k.rem(pair, group))};
  }
  Value myQuery(int64_t e) { return k.add(k.mul(down, kEach), e); }
  Value endOf(Value row) { return k.add(k.add(field(tile, 2), row), 1); }
  Value narrow(Value i) { return k.truncate(i, k.i32()); }

  // ---- Shared memory

  // The page of key `j`, or of the last one, and its place there.
  Value page(Value j, Value &slot) {
    slot = k.rem(j, cache.layout.page);
    Value index = k.div(k.min(j, k.add(end, -1)), cache.layout.page);
    return cache.page(block.address(op.getCache()), loadIndex(k, pages, index));
  }
  void storeFour(ArrayRef<Value> four, Value table, Value i) {
    Value vector = k.zero(k.vec(kEach, k.f32()));
    for (int64_t e = 0; e < kEach; ++e)
      vector = k.insert(four[e], vector, e);
    k.store(vector, k.at(table, k.mul(i, 4)), 16);
  }
  Values loadFour(Value table, Value i) {
    Value vector = k.load(k.vec(kEach, k.f32()), k.at(table, k.mul(i, 4)), 16);
    Values four;
    for (int64_t e = 0; e < kEach; ++e)
      four.push_back(k.extract(vector, e));
    return four;
  }
  Value orZero(Value inside, Value value) { return k.select(inside, value, k.zero(k.f32())); }

  // Values chunk .. chunk + kDims - 1 of queries and of the keys from `start` on,
  // value by value; zero beyond the last.
  void fillProducts(Value start, Value chunk) {
    static_assert(kDims * kQueries == 8 * kThreads);
    Value number = k.rem(block.thread, kQueries), eighth = k.mul(k.div(block.thread, kQueries), 8);
    auto [row, head] = placeOf(number);
    Value index = k.add(k.mul(k.add(field(tile, 0), row), op.getHeads()), head);
    Value query = k.at(block.address(op.getQueries()), k.mul(index, 4 * dim));
    auto within = [&](Value d, llvm::function_ref<Value(Value)> read) {
      if (dim % kDims == 0)
        return read(d);
      return orZero(k.less(d, k.constI64(dim)), read(k.min(d, k.constI64(dim - 1))));
    };
    Values read;
    if (dim % kDims == 0) {
      for (int64_t i = 0; i < 8; i += kEach)
        read.append(loadFour(query, k.add(k.add(chunk, eighth), i)));
      if (cache.layout.bits == 16)
        return fillHalves(start, chunk, number, eighth, read);
    } else {
      for (int64_t i = 0; i < 8; ++i)
        read.push_back(within(k.add(k.add(chunk, eighth), i),
                              [&](Value d) { return loadFloat(k, query, d); }));
    }
    constexpr int64_t each = kDims * kKeys / kThreads; // of a key
    Value inKeys = k.rem(block.thread, kKeys), first = k.mul(k.div(block.thread, kKeys), each);
    Value slot, keys = page(k.add(start, inKeys), slot);
    Values mine;
    for (int64_t i = 0; i < each; ++i)
      mine.push_back(within(k.add(k.add(chunk, first), i),
                            [&](Value d) { return cache.key(keys, kvHead, slot, d); }));
    block.barrier();
    storeQuery(number, eighth, read);
    for (int64_t i = 0; i < each; ++i)
      storeFloat(k, mine[i], keysAt, k.add(k.mul(k.add(first, i), kStride), inKeys));
  }

  // Eight values of a query, from value `first` of those that are there on.
  void storeQuery(Value query, Value first, ArrayRef<Value> eight) {
    for (int64_t i = 0; i < 8; ++i)
      storeFloat(k, eight[i], queriesAt, k.add(k.mul(k.add(first, i), kStride), query));
  }

  // The same for keys of 16 bits, two values of four keys at a time: as they lie
  // in the page.
  void fillHalves(Value start, Value chunk, Value number, Value eighth, ArrayRef<Value> query) {
    constexpr int64_t items = kDims / 2 * kKeys / kEach;
    static_assert(items % kThreads == 0);
    Values words, places;
    for (int64_t from = 0; from < items; from += kThreads) {
      Value item = k.add(block.thread, from), inPanel = k.rem(item, kKeys);
      Value pair = k.div(inPanel, kEach), four = k.mul(k.rem(inPanel, kEach), kEach);
      Value key = k.add(k.mul(k.div(item, kKeys), kLanes), four);
      Value slot, keys = page(k.add(start, key), slot);
      Value at = cache.keyWords(keys, kvHead, slot, k.add(chunk, k.mul(pair, 2)));
      words.push_back(k.load(k.vec(kEach, k.i32()), at, 16));
      places.push_back(k.add(k.mul(pair, 2 * kStride), key));
    }
    block.barrier();
    storeQuery(number, eighth, query);
    for (auto [word, to] : llvm::zip(words, places)) {
      Values even, odd;
      for (int64_t e = 0; e < kEach; ++e) {
        auto [a, b] = unpackHalves(k, k.extract(word, e));
        even.push_back(a);
        odd.push_back(b);
      }
      storeFour(even, keysAt, to);
      storeFour(odd, keysAt, k.add(to, kStride));
    }
  }

  // The values of `valueKeys` keys from `start` on; zero where no query sees
  // them: what no key has written may be no number.
  void fillValues(Value start) {
    int64_t fours = llvm::divideCeil(valueDim, kEach), items = fours * valueKeys / 2;
    bool words = cache.layout.bits == 16;
    auto seen = [&](Value j) { return k.andBits(k.lessEqual(first, j), k.less(j, end)); };
    for (int64_t from = 0; from < items; from += kThreads) {
      Value item = k.add(block.thread, from);
      auto copy = [&] {
        Value column = k.mul(k.rem(item, fours), kEach), pair = k.mul(k.div(item, fours), 2);
        Value j = k.add(start, pair), slot, values = page(j, slot);
        Values even, odd;
        if (words) {
          Value both =
              k.load(k.vec(kEach, k.i32()), cache.valueWords(values, kvHead, slot, column), 16);
          for (int64_t e = 0; e < kEach; ++e) {
            auto [a, b] = unpackHalves(k, k.extract(both, e));
            even.push_back(a);
            odd.push_back(b);
          }
        } else {
          for (int64_t e = 0; e < kEach; ++e) {
            Value at = k.min(k.add(column, e), k.constI64(valueDim - 1));
            even.push_back(cache.value(values, kvHead, slot, at));
            odd.push_back(cache.value(values, kvHead, k.add(slot, 1), at));
          }
        }
        Value isFirst = seen(j), isSecond = seen(k.add(j, 1));
        for (int64_t e = 0; e < kEach; ++e) {
          even[e] = orZero(isFirst, even[e]);
          odd[e] = orZero(isSecond, odd[e]);
        }
        Value to = k.add(k.mul(pair, valueStride), column);
        storeFour(even, valuesAt, to);
        storeFour(odd, valuesAt, k.add(to, valueStride));
      };
      if (from + kThreads <= items)
        copy();
      else
        k.ifThen(k.less(item, k.constI64(items)), copy);
    }
  }

  // ---- Scores

  // `otherwise` where no query sees one of the `count` keys from `start` on.
  Values ifSeen(Value start, int64_t count, ArrayRef<Value> otherwise,
                llvm::function_ref<Values()> compute) {
    Value any = k.andBits(k.less(start, end), k.less(first, k.add(start, count)));
    return block.ifElse(any, otherwise, compute);
  }

  // Whether the thread's query `e` sees its key `i` of those from `start` on.
  Value seen(Value start, int64_t e, int64_t i) {
    Value j = narrow(k.add(k.add(start, k.mul(across, kEach)), i));
    return k.andBits(k.lessEqual(begins[e], j), k.less(j, ends[e]));
  }

  // Of the thread's queries with its keys of those from `start` on.
  Values scores(Value start) {
    Values zeros(kEach * kEach, k.zero(k.f32()));
    int64_t padded = llvm::alignTo(dim, kDims);
    Values dots = k.loop(k.constI64(0), k.constI64(padded), k.constI64(kDims), zeros,
                         [&](Value chunk, ArrayRef<Value> carried) {
                           fillProducts(start, chunk);
                           block.barrier();
                           return k.loop(k.constI64(0), k.constI64(kDims), k.constI64(kTogether),
                                         carried, [&](Value d, ArrayRef<Value> sums) {
                                           Values next(sums.begin(), sums.end());
                                           for (int64_t i = 0; i < kTogether; ++i)
                                             addProducts(k.mul(k.add(d, i), kStride), next);
                                           return next;
                                         });
                         });
    for (int64_t e = 0; e < kEach; ++e)
      for (int64_t i = 0; i < kEach; ++i) {
        Value &score = dots[e * kEach + i];
        score = k.mul(score, k.constFloat(k.f32(), op.getScale().convertToFloat()));
        score = k.softcap(score, op.getSoftcap().convertToFloat());
        score = k.select(seen(start, e, i), score, k.constFloat(k.f32(), kMasked));
      }
    return dots;
  }

  void addProducts(Value row, Values &sums) {
    Values queries = loadFour(queriesAt, k.add(row, k.mul(down, kEach)));
    Values keys = loadFour(keysAt, k.add(row, k.mul(across, kEach)));
    for (int64_t e = 0; e < kEach; ++e)
      for (int64_t i = 0; i < kEach; ++i)
        sums[e * kEach + i] = k.mulAdd(queries[e], keys[i], sums[e * kEach + i]);
  }

  // Over the threads of a row.
  Value rowMax(Value value) {
    for (int64_t mask : {8, 4, 2, 1})
      value = k.max(value, block.exchange(value, mask));
    return value;
  }

  // The sum of a query's weights in all blocks of the span: each 32 keys in the
  // order of a warp's sum, then these in ascending order.
  Value total(ArrayRef<Values> weights, int64_t e) {
    Value sum, isLow = k.less(across, k.constI64(8));
    for (const Values &all : weights) {
      Values four(all.begin() + e * kEach, all.begin() + (e + 1) * kEach);
      for (Value &value : four)
        for (int64_t mask : {4, 2, 1})
          value = k.add(value, block.exchange(value, mask));
      Value mine = k.add(k.add(four[0], four[2]), k.add(four[1], four[3]));
      Value other = block.exchange(mine, 8);
      Value low = k.select(isLow, mine, other);
      sum = sum ? k.add(sum, low) : low;
      sum = k.add(sum, k.select(isLow, other, mine));
    }
    return sum;
  }

  // ---- Values

  int64_t columns() const { return wide * kEach; } // of a thread

  // Adds the weighted values of the keys from `start` on, `weights` being the
  // thread's of these, to `sums`: [query][column] of the part of the span that
  // is being added, and where there are several parts, of the span.
  Values addBlock(Value start, int64_t number, const Values &weights, Values sums) {
    block.barrier();
    for (int64_t i = 0; i < kEach; ++i) {
      Values four;
      for (int64_t e = 0; e < kEach; ++e)
        four.push_back(weights[e * kEach + i]);
      Value at = k.add(k.mul(k.add(k.mul(across, kEach), i), kStride), k.mul(down, kEach));
      storeFour(four, weightsAt, at);
    }
    int64_t each = kEach * columns();
    bool whole = parts == 1;
    for (int64_t from = 0; from < kKeys; from += valueKeys) {
      if (from)
        block.barrier();
      fillValues(k.add(start, from));
      block.barrier();
      Values part(sums.begin(), sums.begin() + each);
      part = k.loop(k.constI64(0), k.constI64(valueKeys), k.constI64(kEach), part,
                    [&](Value key, ArrayRef<Value> carried) {
                      Values next(carried.begin(), carried.end());
                      for (int64_t i = 0; i < kEach; ++i)
                        addKey(k.add(key, i), k.add(key, from + i), next);
                      return next;
                    });
      bool ends = !whole && (number * kKeys + from + valueKeys) % (kSpan / parts) == 0;
      for (int64_t i = 0; i < each; ++i) {
        sums[i] = ends ? k.zero(k.f32()) : part[i];
        if (ends)
          sums[each + i] = k.add(sums[each + i], part[i]);
      }
    }
    return sums;
  }

  // Where no query sees a block, a part may end all the same.
  Values passBlock(int64_t number, Values sums) {
    int64_t each = kEach * columns();
    bool ends = false;
    for (int64_t key = 1; key <= kKeys; ++key)
      ends |= parts > 1 && (number * kKeys + key) % (kSpan / parts) == 0;
    for (int64_t i = 0; ends && i < each; ++i) {
      sums[each + i] = k.add(sums[each + i], sums[i]);
      sums[i] = k.zero(k.f32());
    }
    return sums;
  }

  void addKey(Value inValues, Value inBlock, Values &sums) {
    Values weights = loadFour(weightsAt, k.add(k.mul(inBlock, kStride), k.mul(down, kEach)));
    for (int64_t run = 0; run < wide; ++run) {
      Value at = k.add(k.mul(across, kEach), run * kKeys);
      Values values = loadFour(valuesAt, k.add(k.mul(inValues, valueStride), at));
      for (int64_t e = 0; e < kEach; ++e)
        for (int64_t c = 0; c < kEach; ++c) {
          Value &sum = sums[e * columns() + run * kEach + c];
          sum = k.mulAdd(weights[e], values[c], sum);
        }
    }
  }

  // ---- Spans

  // The thread's queries over span number `span`.
  SmallVector<Sums> sumSpan(Value span) {
    Value start = k.mul(span, kSpan);
    Value masked = k.constFloat(k.f32(), kMasked);
    Values none(kEach * kEach, masked);
    SmallVector<Values> weights;
    auto startOf = [&](int64_t number) { return k.add(start, number * kKeys); };
    for (int64_t b = 0; b < kBlocks; ++b)
      weights.push_back(ifSeen(startOf(b), kKeys, none, [&] { return scores(startOf(b)); }));
    SmallVector<Sums> result;
    for (int64_t e = 0; e < kEach; ++e) {
      Value most = masked;
      for (const Values &all : weights)
        for (int64_t i = 0; i < kEach; ++i)
          most = k.max(most, all[e * kEach + i]);
      most = rowMax(most);
      for (int64_t b = 0; b < kBlocks; ++b)
        for (int64_t i = 0; i < kEach; ++i) {
          Value &weight = weights[b][e * kEach + i];
          weight = orZero(seen(startOf(b), e, i), k.exp(k.sub(weight, most)));
        }
      result.push_back({most, total(weights, e), {}});
    }
    Values sums((parts == 1 ? 1 : 2) * kEach * columns(), k.zero(k.f32()));
    for (int64_t b = 0; b < kBlocks; ++b) {
      Values passed = passBlock(b, sums);
      sums = ifSeen(startOf(b), kKeys, passed,
                    [&] { return addBlock(startOf(b), b, weights[b], sums); });
    }
    auto all = ArrayRef(sums).take_back(kEach * columns());
    for (int64_t e = 0; e < kEach; ++e)
      llvm::append_range(result[e].columns, all.slice(e * columns(), columns()));
    return result;
  }

  SmallVector<Sums> sumSpans(Value from, Value to) {
    SmallVector<Sums> none(kEach, Sums::none(k, columns()));
    return unpackAll(k.loop(from, to, k.constI64(1), packAll(none),
                            [&](Value span, ArrayRef<Value> carried) {
                              auto sums = unpackAll(carried, columns()), added = sumSpan(span);
                              Value start = narrow(k.mul(span, kSpan));
                              for (int64_t e = 0; e < kEach; ++e) {
                                Values before = sums[e].pack(),
                                       after = merge(k, sums[e], added[e]).pack();
                                // Other rows of the block may see keys of spans that this one
                                // doesn't.
                                Value any = k.andBits(k.less(start, ends[e]),
                                                      k.less(begins[e], k.add(start, kSpan)));
                                for (auto [value, old] : llvm::zip(after, before))
                                  value = k.select(any, value, old);
                                sums[e] = Sums::unpack(after);
                              }
                              return packAll(sums);
                            }),
                     columns());
  }

  // ---- Results

  // Calls body(column, sum) for the thread's columns of query `e`.
  void forColumns(const Sums &sums, llvm::function_ref<void(Value, Value)> body) {
    for (int64_t i = 0; i < columns(); ++i) {
      int64_t first = i / kEach * kKeys + i % kEach;
      Value column = k.add(k.mul(across, kEach), first);
      if (first + (kAcross - 1) * kEach < valueDim)
        body(column, sums.columns[i]);
      else
        k.ifThen(k.less(column, k.constI64(valueDim)), [&] { body(column, sums.columns[i]); });
    }
  }

  // For pack.merge.
  void leave(const Sums &sums, Value record) {
    Value to = k.at(block.address(op.getPartials()), k.mul(record, cache.layout.partialBytes()));
    k.ifThen(k.equal(across, k.constI64(0)), [&] {
      k.store(sums.maximum, to, 4);
      k.store(sums.sum, k.at(to, 4), 4);
    });
    forColumns(sums, [&](Value column, Value sum) {
      storeFloat(k, sum, k.at(to, KvLayout::kPartialValues), column);
    });
  }

  void finish(ArrayRef<Sums> all) {
    for (int64_t e = 0; e < kEach; ++e) {
      auto [row, head] = placeOf(myQuery(e));
      Value sink = op.getSinks() ? loadFloat(k, block.address(op.getSinks()), head) : Value();
      Value factor = finalFactor(k, all[e], sink);
      Value into = rowInto(row, head);
      if (cache.type.isTurned()) {
        finishTurned(all[e], factor, e);
        continue;
      }
      k.ifThen(k.less(pairOf(myQuery(e)), pairs), [&] {
        forColumns(all[e], [&](Value column, Value sum) {
          storeFloat(k, k.mul(sum, factor), into, column);
        });
      });
    }
  }

  Value rowInto(Value row, Value head) {
    Value index = k.add(k.mul(k.add(field(tile, 0), row), op.getHeads()), head);
    return k.at(block.address(op.getInto()), k.mul(index, 4 * valueDim));
  }

  // Queries e, 4 + e, ... of the block: the Hadamard matrix needs whole heads.
  void finishTurned(const Sums &sums, Value factor, int64_t e) {
    assert(kAcross * valueDim <= kKeys * kStride + valueKeys * valueStride);
    Value mine = k.at(weightsAt, k.mul(down, 4 * valueDim));
    block.barrier();
    forColumns(sums, [&](Value column, Value sum) { storeFloat(k, sum, mine, column); });
    block.barrier();
    k.ifThen(k.less(pairOf(myQuery(e)), pairs), [&] {
      auto [row, head] = placeOf(myQuery(e));
      Value into = rowInto(row, head);
      k.loop(across, k.constI64(valueDim), kAcross, [&](Value column) {
        storeFloat(k, k.mul(cache.turned(mine, valueDim, column), factor), into, column);
      });
    });
  }

  void emitBatch() {
    for (int64_t e = 0; e < kEach; ++e) {
      Value last = endOf(placeOf(myQuery(e)).first);
      begins.push_back(narrow(windowStart(k, last, op.getWindow())));
      ends.push_back(narrow(last));
    }
    first = windowStart(k, endOf(placeOf(k.constI64(0)).first), op.getWindow());
    end = endOf(placeOf(k.constI64(kQueries - 1)).first);
    Value from = k.div(first, kSpan), to = spanAfter(k, end);
    if (spanPart) {
      from = k.max(from, field(spanPart, 0));
      to = k.min(to, field(spanPart, 1));
    }
    auto sums = sumSpans(from, to);
    if (!spanPart)
      return finish(sums);
    Value place = field(spanPart, 2);
    k.ifThenElse(
        k.less(place, k.constI64(0)), [&] { finish(sums); },
        [&] {
          for (int64_t e = 0; e < kEach; ++e) {
            auto [row, head] = placeOf(myQuery(e));
            Value record = k.add(k.mul(k.add(place, row), op.getHeads()), head);
            k.ifThen(k.less(pairOf(myQuery(e)), pairs), [&] { leave(sums[e], record); });
          }
        });
  }
};

} // namespace

bool AttentionTile::takes(pack::AttentionOp op) {
  return cast<pack::KvType>(op.getCache().getType()).getValueDim() <= kMostColumns;
}

int64_t AttentionTile::batches(pack::AttentionOp op) {
  auto cache = cast<pack::KvType>(op.getCache().getType());
  return llvm::divideCeil(op.getTile() * (op.getHeads() / cache.getHeads()), kQueries);
}

LogicalResult AttentionTile::emit(Block &block, pack::AttentionOp op) {
  KernelBuilder &k = block.k;
  Emitter emitter(block, op);
  int64_t kvHeads = emitter.cache.type.getHeads(), count = batches(op);
  // The last tiles have the most keys: they come first.
  Value fromLast = k.div(block.unit, kvHeads * count);
  Value number = k.mul(k.sub(k.add(block.tiles, -1), fromLast), 16);
  emitter.tile = k.at(block.address(op.getTiles()), number);
  emitter.spanPart = op.getParts() ? k.at(block.address(op.getParts()), number) : Value();
  emitter.kvHead = k.rem(k.div(block.unit, count), kvHeads);
  emitter.pages = k.at(block.address(op.getPages()), k.mul(emitter.field(emitter.tile, 3), 4));
  emitter.pairs = k.mul(emitter.field(emitter.tile, 1), emitter.group);
  Value batch = k.mul(k.rem(block.unit, count), kQueries);
  k.loop(batch, emitter.pairs, count * kQueries, [&](Value first) {
    emitter.firstPair = first;
    emitter.emitBatch();
  });
  return success();
}

} // namespace izhc::cuda
