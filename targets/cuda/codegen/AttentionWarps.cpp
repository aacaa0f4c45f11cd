#include "targets/cuda/codegen/AttentionWarps.h"
#include "targets/cuda/codegen/AttentionCore.h"
#include "targets/cuda/codegen/AttentionSums.h"

namespace izhc::cuda {

using namespace mlir;
using pack::KvLayout;

namespace {

constexpr int64_t kSpan = KvLayout::kSpan, kGroup = AttentionCore::kGroup;
constexpr int64_t kThreads = attention_warps::kThreads, kBlocks = kGroup / AttentionCore::kKeys;
constexpr int64_t kRows = 2; // queries of a lane

using Values = Block::Values;

class WarpEmitter {
public:
  WarpEmitter(Block &block, pack::AttentionOp op)
      : block(block), op(op), k(block.k), core(block, op), tiles(2 * core.panels),
        perKeyHead(op.getHeads() / core.cache.type.getHeads()) {
    keysAt = block.launchMemory(attention_warps::launchBytes(op));
    valuesAt = k.at(keysAt, 2 * keyBytes());
    totalsAt = k.at(k.at(valuesAt, 2 * valueBytes()), k.mul(block.thread, 16));
  }

  void emit() {
    int64_t kvHeads = core.cache.type.getHeads(), count = attention_warps::batches(op);
    // The last tiles have the most keys: they come first.
    Value fromLast = k.div(block.unit, kvHeads * count);
    Value number = k.mul(k.sub(k.add(block.tiles, -1), fromLast), 16);
    tile = k.at(block.address(op.getTiles()), number);
    spanPart = op.getParts() ? k.at(block.address(op.getParts()), number) : Value();
    kvHead = k.rem(k.div(block.unit, count), kvHeads);
    pages = k.at(block.address(op.getPages()), k.mul(field(tile, 3), 4));
    pairs = k.mul(field(tile, 1), perKeyHead);
    Value batch = k.mul(k.rem(block.unit, count), attention_warps::kQueries);
    k.loop(batch, pairs, count * attention_warps::kQueries, [&](Value first) {
      firstPair = first;
      emitBatch();
    });
  }

  int64_t keyBytes() const { return 2 * kGroup * core.dim; }
  int64_t valueBytes() const { return 2 * kGroup * core.valueDim; }

private:
  Value field(Value words, int64_t word) { return loadIndex(k, words, k.constI64(word)); }
  Value narrow(Value i) { return k.truncate(i, k.i32()); }
  // The row and head of pair `pair` of the batch, or of the last one.
  std::pair<Value, Value> placeOf(Value query) {
    Value pair = k.min(k.add(firstPair, query), k.add(pairs, -1));
    return {k.div(pair, perKeyHead), k.add(k.mul(kvHead, perKeyHead), k.rem(pair, perKeyHead))};
  }
  Value firstOfWarp() { return k.mul(block.warp, AttentionCore::kQueries); }
  Value queryOf(int64_t lower) { return k.add(k.add(firstOfWarp(), core.row), 8 * lower); }
  Value endOf(Value row) { return k.add(k.add(field(tile, 2), row), 1); }
  Value beginOf(Value row) { return windowStart(k, endOf(row), op.getWindow()); }

  // ---- Queries

  // Of the lane's queries, for each term and chunk.
  void loadQueries() {
    words.assign(core.terms * core.chunks, Values(4));
    inverses.clear();
    for (int64_t lower = 0; lower < kRows; ++lower) {
      auto [row, head] = placeOf(queryOf(lower));
      Value index = k.add(k.mul(k.add(field(tile, 0), row), op.getHeads()), head);
      Value from = k.at(block.address(op.getQueries()), k.mul(index, 4 * core.dim));
      from = k.at(from, k.mul(core.fourth, 8));
      Values pairs;
      Value most = k.zero(k.f32());
      for (int64_t i = 0; i < core.dim; i += 8) {
        Value pair = k.load(k.vec(2, k.f32()), k.at(from, 4 * i), 8);
        for (int64_t lane = 0; lane < 2; ++lane) {
          pairs.push_back(k.extract(pair, lane));
          most = k.max(most, k.abs(pairs.back()));
        }
      }
      auto [factor, inverse] = core.factorsOf(core.overQuery(most));
      inverses.push_back(inverse);
      for (Value &value : pairs)
        value = k.mul(value, factor);
      for (int64_t chunk = 0; chunk < core.chunks; ++chunk)
        for (int64_t half = 0; half < 2; ++half) {
          int64_t at = 4 * chunk + 2 * half;
          for (auto [term, word] : llvm::enumerate(core.split(pairs[at], pairs[at + 1])))
            words[term * core.chunks + chunk][2 * half + lower] = word;
        }
    }
  }

  // ---- Keys and values of a group, in shared memory

  // Begins to copy group `group` of keys; `stage`: 0 or 1.
  void copyGroup(Value group, Value stage) {
    const KvLayout &layout = core.cache.layout;
    Value key = k.min(k.mul(group, kGroup), k.add(end, -1));
    key = k.mul(k.div(key, kGroup), kGroup);
    Value number = loadIndex(k, pages, k.div(key, layout.page)), slot = k.rem(key, layout.page);
    Value page = core.cache.page(block.address(op.getCache()), number), none = k.constI64(0);
    Value keys = core.cache.keyWords(page, kvHead, slot, none);
    int64_t units = core.keyPanelBytes() / 16;
    Value to = k.at(keysAt, k.mul(stage, keyBytes()));
    for (int64_t first = 0; first < keyBytes() / 16; first += kThreads) {
      Value unit = k.add(block.thread, first);
      Value place = core.keyPlace(k.rem(unit, units), k.div(unit, units));
      auto copy = [&] { block.copyAsync(k.at(to, place), k.at(keys, k.mul(unit, 16))); };
      if (first + kThreads <= keyBytes() / 16)
        copy();
      else
        k.ifThen(k.less(unit, k.constI64(keyBytes() / 16)), copy);
    }
    Value values = k.at(core.cache.valueWords(page, kvHead, slot, none), k.mul(block.thread, 16));
    for (int64_t panel = 0; panel < core.panels; ++panel)
      block.copyAsync(valuePlace(stage, panel), k.at(values, panel * layout.valuePanelBytes));
    block.commitCopies();
  }

  // Where a thread's 16 bytes of a panel of a group's values are: a warp has a step.
  Value valuePlace(Value stage, int64_t panel) {
    static_assert(kThreads / kWarp == kGroup / AttentionCore::kStep);
    static_assert(kWarp * 16 == AttentionCore::kStepPanelBytes);
    Value at =
        k.add(k.mul(k.add(k.mul(block.warp, core.panels), panel), kWarp), core.placeOf(block.lane));
    return k.at(k.at(valuesAt, k.mul(stage, valueBytes())), k.mul(at, 16));
  }

  // What no query sees may be no number: zeroes instead, of what this thread has copied.
  void clearUnseen(Value group, Value stage) {
    Value start = k.mul(group, kGroup), after = k.add(start, kGroup);
    Value partly = k.orBits(k.less(start, first), k.less(end, after));
    k.ifThen(partly, [&] {
      Value even = k.add(start, k.mul(k.div(block.thread, 4), 2));
      auto seen = [&](int64_t odd) {
        Value j = k.add(even, odd);
        return k.andBits(k.lessEqual(first, j), k.less(j, end));
      };
      Value masks = k.splat(core.maskOf(seen(0), seen(1)), 4);
      for (int64_t panel = 0; panel < core.panels; ++panel) {
        Value at = valuePlace(stage, panel);
        k.store(k.andBits(k.load(k.vec(4, k.i32()), at, 16), masks), at, 16);
      }
    });
  }

  // ---- Groups

  // What a warp carries from group to group: of the span so far the largest scores and
  // the sums, of the spans before these maxima and totals of weights (their columns are
  // in shared memory).
  struct State {
    Values most, sums, totalMost, totalSum;

    Values pack() const {
      Values all = most;
      for (const Values *some : {&sums, &totalMost, &totalSum})
        all.append(some->begin(), some->end());
      return all;
    }
    static State unpack(ArrayRef<Value> all) {
      State state;
      auto take = [&](size_t count, Values &to) {
        to.assign(all.begin(), all.begin() + count);
        all = all.drop_front(count);
      };
      take(kRows, state.most);
      take(all.size() - 2 * kRows, state.sums);
      take(kRows, state.totalMost);
      take(kRows, state.totalSum);
      return state;
    }
  };

  // Scores of the lane's queries with a group, for each 32 keys; masked where these
  // don't see a key.
  Values scoresOf(Value group, Value stage) {
    Value keys = k.at(keysAt, k.mul(stage, keyBytes()));
    Values all;
    for (int64_t number = 0; number < kBlocks; ++number)
      all.append(core.scores(
          [&](int64_t term, int64_t chunk) { return words[term * core.chunks + chunk]; },
          [&](int64_t chunk, int64_t half) { return core.sharedKeys(keys, number, chunk, half); },
          inverses));
    Value start = k.mul(group, kGroup), after = k.add(start, kGroup);
    Value whole = k.andBits(k.lessEqual(warpLastBegin, start), k.lessEqual(after, warpFirstEnd));
    return block.ifElse(k.xorBits(whole, 1), all, [&] {
      Values masked = all;
      for (auto [number, score] : llvm::enumerate(masked))
        score = k.select(seen(narrow(start), number), score, k.constFloat(k.f32(), kMasked));
      return masked;
    });
  }

  // Whether a query sees the key of score `number`.
  Value seen(Value start, int64_t number) {
    int64_t per = AttentionCore::kKeys / 2, i = number % per / 4, c = number % 4;
    Value j = k.add(start, k.add(core.keyOf(i, c % 2), number / per * AttentionCore::kKeys));
    return k.andBits(k.lessEqual(begins[c / 2], j), k.less(j, ends[c / 2]));
  }

  State addGroup(Value group, Value stage, State state) {
    Values scores = scoresOf(group, stage), factors;
    for (int64_t lower = 0; lower < kRows; ++lower) {
      Value most;
      for (size_t i = 0; i < scores.size(); ++i)
        if (int64_t(i) % 4 / 2 == lower)
          most = most ? k.max(most, scores[i]) : scores[i];
      most = k.max(state.most[lower], core.overQuery(most));
      factors.push_back(core.exp(k.sub(state.most[lower], most)));
      state.most[lower] = most;
    }
    Value masked = k.constFloat(k.f32(), kMasked);
    for (auto [number, score] : llvm::enumerate(scores)) {
      Value hidden = k.equal(score, masked);
      score = core.weightOf(score, state.most[number % 4 / 2], k.xorBits(hidden, 1));
    }
    core.scaleSums(factors, state.sums);
    Value values = k.at(valuesAt, k.mul(stage, valueBytes()));
    for (int64_t step = 0; step < kGroup / AttentionCore::kStep; ++step) {
      int64_t per = AttentionCore::kKeys / 2;
      auto weights = core.weightWords(ArrayRef(scores).slice(step / 2 * per, per), step % 2);
      std::pair<Values, Values> both;
      core.addStep(
          weights,
          [&](int64_t tile) {
            if (tile % 2 == 0)
              both = core.sharedValues(values, k.constI64(step), k.constI64(tile / 2));
            return tile % 2 ? both.second : both.first;
          },
          state.sums);
    }
    return state;
  }

  // ---- Spans

  Value totalAt(int64_t tile) { return k.at(totalsAt, tile * 16 * kThreads); }
  Values totals(int64_t tile) {
    Value four = k.load(k.vec(4, k.f32()), totalAt(tile), 16);
    return {k.extract(four, 0), k.extract(four, 1), k.extract(four, 2), k.extract(four, 3)};
  }

  // Adds a span's sums to those of the spans before.
  State endSpan(State state) {
    Value unit = k.constFloat(k.f32(), core.weightUnit()), masked = k.constFloat(k.f32(), kMasked);
    for (Value &sum : state.sums)
      sum = k.mul(sum, unit);
    SmallVector<Sums> before, after;
    for (int64_t lower = 0; lower < kRows; ++lower) {
      Sums all = {state.totalMost[lower], state.totalSum[lower], {}};
      Sums span = {state.most[lower], state.sums[4 * tiles + 2 * lower], {}};
      for (int64_t tile = 0; tile < tiles; ++tile)
        for (int64_t odd = 0; odd < 2; ++odd)
          span.columns.push_back(state.sums[4 * tile + 2 * lower + odd]);
      before.push_back(all);
      after.push_back(span);
    }
    for (int64_t tile = 0; tile < tiles; ++tile) {
      Values old = totals(tile);
      for (int64_t i = 0; i < 4; ++i)
        before[i / 2].columns.push_back(old[i]);
    }
    for (int64_t lower = 0; lower < kRows; ++lower)
      after[lower] = merge(k, before[lower], after[lower]);
    for (int64_t tile = 0; tile < tiles; ++tile) {
      Value four = k.zero(k.vec(4, k.f32()));
      for (int64_t i = 0; i < 4; ++i)
        four = k.insert(after[i / 2].columns[2 * tile + i % 2], four, i);
      k.store(four, totalAt(tile), 16);
    }
    state.sums.assign(core.sumsOf(tiles), k.zero(k.f32()));
    state.most.assign(kRows, masked);
    for (int64_t lower = 0; lower < kRows; ++lower) {
      state.totalMost[lower] = after[lower].maximum;
      state.totalSum[lower] = after[lower].sum;
    }
    return state;
  }

  State sumGroups(Value from, Value to) {
    Value zero = k.zero(k.f32()), masked = k.constFloat(k.f32(), kMasked);
    for (int64_t tile = 0; tile < tiles; ++tile)
      k.store(k.zero(k.vec(4, k.f32())), totalAt(tile), 16);
    State none = {Values(kRows, masked), Values(core.sumsOf(tiles), zero), Values(kRows, masked),
                  Values(kRows, zero)};
    auto stageOf = [&](Value group) { return k.andBits(group, 1); };
    copyGroup(from, stageOf(from));
    return State::unpack(
        k.loop(from, to, k.constI64(1), none.pack(), [&](Value group, ArrayRef<Value> carried) {
          Value stage = stageOf(group), next = k.add(group, 1);
          block.awaitCopies(0);
          clearUnseen(group, stage);
          // All have copied this group, and none reads the one before any more.
          block.barrier();
          k.ifThen(k.less(next, to), [&] { copyGroup(next, stageOf(next)); });
          Value start = k.mul(group, kGroup);
          Value any = k.andBits(k.less(start, warpEnd), k.less(warpBegin, k.add(start, kGroup)));
          Values added = block.ifElse(
              any, carried, [&] { return addGroup(group, stage, State::unpack(carried)).pack(); });
          Value ends =
              k.orBits(k.equal(k.rem(next, kSpan / kGroup), k.constI64(0)), k.equal(next, to));
          return block.ifElse(ends, added, [&] { return endSpan(State::unpack(added)).pack(); });
        }));
  }

  // ---- Results

  // Calls body(column, two floats) for the lane's columns of one of its queries, where
  // the batch has that.
  void forColumns(int64_t lower, llvm::function_ref<void(Value column, Value sum)> body) {
    k.ifThen(k.less(k.add(firstPair, queryOf(lower)), pairs), [&] {
      for (int64_t tile = 0; tile < tiles; ++tile) {
        Values four = totals(tile);
        for (int64_t odd = 0; odd < 2; ++odd)
          body(core.columnOf(k.constI64(tile / 2), tile, odd), four[2 * lower + odd]);
      }
    });
  }

  void finish(const State &state) {
    for (int64_t lower = 0; lower < kRows; ++lower) {
      auto [row, head] = placeOf(queryOf(lower));
      Value sink = op.getSinks() ? loadFloat(k, block.address(op.getSinks()), head) : Value();
      Value factor = finalFactor(k, {state.totalMost[lower], state.totalSum[lower], {}}, sink);
      Value index = k.add(k.mul(k.add(field(tile, 0), row), op.getHeads()), head);
      Value into = k.at(block.address(op.getInto()), k.mul(index, 4 * core.valueDim));
      forColumns(lower,
                 [&](Value column, Value sum) { storeFloat(k, k.mul(sum, factor), into, column); });
    }
  }

  // For pack.merge.
  void leave(const State &state, Value place) {
    for (int64_t lower = 0; lower < kRows; ++lower) {
      auto [row, head] = placeOf(queryOf(lower));
      Value record = k.add(k.mul(k.add(place, row), op.getHeads()), head);
      Value to =
          k.at(block.address(op.getPartials()), k.mul(record, core.cache.layout.partialBytes()));
      Value isFirst = k.equal(core.fourth, k.constI64(0));
      Value isThere = k.less(k.add(firstPair, queryOf(lower)), pairs);
      k.ifThen(k.andBits(isFirst, isThere), [&] {
        k.store(state.totalMost[lower], to, 4);
        k.store(state.totalSum[lower], k.at(to, 4), 4);
      });
      forColumns(lower, [&](Value column, Value sum) {
        storeFloat(k, sum, k.at(to, KvLayout::kPartialValues), column);
      });
    }
  }

  void emitBatch() {
    begins.clear();
    ends.clear();
    for (int64_t lower = 0; lower < kRows; ++lower) {
      Value row = placeOf(queryOf(lower)).first;
      begins.push_back(narrow(beginOf(row)));
      ends.push_back(narrow(endOf(row)));
    }
    Value firstRow = placeOf(firstOfWarp()).first;
    Value lastRow = placeOf(k.add(firstOfWarp(), AttentionCore::kQueries - 1)).first;
    warpBegin = beginOf(firstRow);
    warpFirstEnd = endOf(firstRow);
    warpEnd = endOf(lastRow);
    // What all of the warp's queries see begins where the last one's window does.
    warpLastBegin = beginOf(lastRow);
    first = beginOf(placeOf(k.constI64(0)).first);
    end = endOf(placeOf(k.constI64(attention_warps::kQueries - 1)).first);
    Value from = k.div(first, kGroup), to = k.div(k.add(end, kGroup - 1), kGroup);
    if (spanPart) {
      from = k.max(from, k.mul(field(spanPart, 0), kSpan / kGroup));
      to = k.min(to, k.mul(field(spanPart, 1), kSpan / kGroup));
    }
    loadQueries();
    // Of the batch before, its last group may still be read.
    block.barrier();
    State state = sumGroups(from, to);
    if (!spanPart)
      return finish(state);
    Value place = field(spanPart, 2);
    k.ifThenElse(
        k.less(place, k.constI64(0)), [&] { finish(state); }, [&] { leave(state, place); });
  }

  Block &block;
  pack::AttentionOp op;
  KernelBuilder &k;
  AttentionCore core;
  int64_t tiles;                    // of 8 columns of values
  int64_t perKeyHead;               // query heads
  Value keysAt, valuesAt, totalsAt; // shared memory
  Value tile, spanPart, kvHead, pages, firstPair, pairs;
  // Keys that some query of the block, or of the warp, sees; that its first sees.
  Value first, end, warpBegin, warpEnd, warpFirstEnd, warpLastBegin;
  Values begins, ends; // i32, of the lane's queries
  SmallVector<Values> words;
  Values inverses;
};

} // namespace

namespace attention_warps {

int64_t batches(pack::AttentionOp op) {
  auto cache = cast<pack::KvType>(op.getCache().getType());
  return llvm::divideCeil(op.getTile() * (op.getHeads() / cache.getHeads()), kQueries);
}

// Two groups of keys and of values, and 64 queries' sums.
int64_t launchBytes(pack::AttentionOp op) {
  auto cache = cast<pack::KvType>(op.getCache().getType());
  return 2 * 2 * kGroup * (cache.getDim() + cache.getValueDim()) +
         4 * kQueries * cache.getValueDim();
}

LogicalResult emit(Block &block, pack::AttentionOp op) {
  WarpEmitter(block, op).emit();
  return success();
}

} // namespace attention_warps

} // namespace izhc::cuda
