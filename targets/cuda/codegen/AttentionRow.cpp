// Keys come into registers, values by asynchronous copies into shared memory, so that a
// multiprocessor has room for two blocks: one computes while the other's are on their
// way. Of a step's only row, only its own key is new: what was loaded in its place is
// replaced when it is there.

#include "targets/cuda/codegen/AttentionRow.h"
#include "targets/cuda/codegen/AttentionCore.h"
#include "targets/cuda/codegen/AttentionSums.h"
#include "targets/cuda/codegen/RowHeads.h"
#include <optional>

namespace izhc::cuda {

using namespace mlir;
using pack::KvLayout;

namespace {

constexpr int64_t kSpan = KvLayout::kSpan, kGroup = AttentionCore::kGroup;
constexpr int64_t kQueries = AttentionCore::kQueries;
constexpr int64_t kSteps = kSpan / AttentionCore::kStep, kGroups = kSpan / kGroup;
constexpr int64_t kMostHeads = 1024;

class RowEmitter {
public:
  using Values = Block::Values;

  RowEmitter(Block &block, pack::AttentionOp op)
      : block(block), op(op), k(block.k), core(block, op), cache(core.cache), dim(core.dim),
        valueDim(core.valueDim), perKeyHead(op.getHeads() / cache.type.getHeads()),
        tilesEach(core.panels > kAttentionThreads / kWarp / 2 ? 2 : 1),
        perQuery(valueDim / kColumns), together(kAttentionThreads / perQuery),
        most(block.oneRow ? std::min(perKeyHead, kQueries) : kQueries),
        rows(most > kQueries / 2 ? 2 : 1), turns(llvm::divideCeil(most, together)),
        stage(block.shared(core.stageBytes())), inverses(block.shared(4 * kQueries)),
        maxima(block.shared(4 * kQueries * kWarps)), factors(block.shared(4 * kQueries * kGroups)),
        lasts(block.shared(2 * 4 * kQueries)), arrivals(block.shared(4)) {
    assert(block.threads == kAttentionThreads && kAttentionThreads / kWarp * 32 == kSpan);
    weights = block.shared(kSteps * core.terms * 16 * kWarp);
    sums = block.shared(4 * most * valueDim);
    values = block.launchMemory(2 * kSpan * valueDim);
    if (!block.heads)
      return;
    // Queries take the place of sums, which come after them.
    Value raw = dim <= valueDim ? sums : block.shared(4 * most * dim);
    heads.emplace(block, block.heads, most, raw);
  }

  void emit() {
    int64_t kvHeads = cache.type.getHeads();
    kvHead = k.rem(block.unit, kvHeads);
    readTile(k.div(block.unit, kvHeads));
    if (block.oneRow)
      return emitOnly();
    block.prepare();
    k.loop(k.constI64(0), pairs, kQueries, [&](Value first) {
      firstPair = first;
      setKeys();
      // Of the batch before, its sums may still be read.
      block.barrier();
      stageQueries();
      SmallVector<Sums> all = sumSpans();
      auto finishAll = [&] { finish(all); };
      if (!place)
        return finishAll();
      k.ifThenElse(k.less(place, k.constI64(0)), finishAll, [&] { leave(all); });
    });
  }

private:
  static constexpr int64_t kWarps = kAttentionThreads / kWarp;

  // A step's only row.
  void emitOnly() {
    setKeys();
    if (heads)
      heads->fetch();
    // More than 16 heads are several batches, of which the first has its keys early.
    Loaded early = load(firstSpan);
    block.prepare();
    auto batch = [&](const Loaded *loaded) {
      stageQueries();
      if (heads && loaded)
        heads->finishNew(kvHead, k.equal(endSpan, spanAfter(k, k.add(position, 1))));
      SmallVector<Sums> all = sumSpans(loaded);
      k.ifThenElse(k.less(place, k.constI64(0)), [&] { finish(all); }, [&] { leave(all); });
    };
    batch(&early);
    for (int64_t first = kQueries; first < perKeyHead; first += kQueries) {
      firstPair = k.constI64(first);
      block.barrier();
      batch(nullptr);
    }
    k.ifThen(k.lessEqual(k.constI64(0), place), [&] { mergeLast(); });
    if (heads)
      heads->storeNew();
  }

  // ---- Tiles

  // What the step's arrays say of the block's tile; no kernel writes these.
  void readTile(Value number) {
    auto words = [&](Value array) {
      Values all = block.fetch(k.at(block.address(array), k.mul(number, 16)), 4);
      for (Value &word : all)
        word = k.extendS(word, k.i64());
      return all;
    };
    auto tile = words(op.getTiles());
    firstRow = tile[0];
    pairs = block.oneRow ? k.constI64(perKeyHead) : k.mul(tile[1], perKeyHead);
    position = tile[2];
    pages = k.at(block.address(op.getPages()), k.mul(tile[3], 4));
    firstPair = k.constI64(0);
    if (op.getParts()) {
      auto part = words(op.getParts());
      partFirst = part[0];
      partEnd = part[1];
      place = part[2];
    }
  }

  // The row of the tile and the head of query `query` of the batch, or of the last one.
  std::pair<Value, Value> placeOf(Value query) {
    Value pair = k.min(k.add(firstPair, query), k.add(pairs, -1));
    return {k.div(pair, perKeyHead), k.add(k.mul(kvHead, perKeyHead), k.rem(pair, perKeyHead))};
  }
  Value isThere(Value query) { return k.less(k.add(firstPair, query), pairs); }
  Value endOf(Value row) { return k.add(k.add(position, row), 1); }
  Value beginOf(Value row) { return windowStart(k, endOf(row), op.getWindow()); }
  Value queryOf(int64_t lower) { return k.add(core.row, 8 * lower); }

  // Which keys the batch sees, and the lane's queries.
  void setKeys() {
    begins.clear();
    ends.clear();
    for (int64_t lower = 0; lower < rows; ++lower) {
      Value row = placeOf(queryOf(lower)).first;
      begins.push_back(k.truncate(beginOf(row), k.i32()));
      ends.push_back(k.truncate(endOf(row), k.i32()));
    }
    begin = beginOf(placeOf(k.constI64(0)).first);
    last = k.add(endOf(placeOf(k.constI64(kQueries - 1)).first), -1);
    firstSpan = k.div(begin, kSpan);
    endSpan = k.add(k.div(last, kSpan), 1);
    if (partFirst) {
      firstSpan = k.max(firstSpan, partFirst);
      endSpan = k.min(endSpan, partEnd);
    }
  }

  // ---- Queries

  // A warp each, from where they are.
  void stageQueries() {
    if (heads)
      return heads->finishQueries([&](Value number) { return placeOf(number).second; },
                                  [&](Value number, Value values) { stageOne(number, values); });
    for (int64_t query = 0; query < most; query += kWarps) {
      Value number = k.add(block.warp, query);
      auto [row, head] = placeOf(number);
      Value index = k.add(k.mul(k.add(firstRow, row), op.getHeads()), head);
      Value from = k.at(block.address(op.getQueries()), k.mul(index, 4 * dim));
      if (query + kWarps <= most)
        stageOne(number, from);
      else
        k.ifThen(k.less(number, k.constI64(most)), [&] { stageOne(number, from); });
    }
  }

  void stageOne(Value number, Value from) {
    Value inverse = core.stageQuery(stage, number, [&](Value i) {
      Value pair = k.load(k.vec(2, k.f32()), k.at(from, k.mul(i, 8)), 8);
      return std::pair(k.extract(pair, 0), k.extract(pair, 1));
    });
    k.ifThen(k.equal(block.lane, k.constI64(0)), [&] { storeFloat(k, inverse, inverses, number); });
  }

  // ---- Keys and values

  Value pageOf(Value key) {
    Value at = k.at(pages, k.mul(k.div(k.min(key, last), cache.layout.page), 4));
    return cache.page(block.address(op.getCache()), k.extendS(block.fetch(at, 1)[0], k.i64()));
  }

  // The lane's words of its warp's keys, of each chunk's halves. Their values are on
  // their way to shared memory.
  using Loaded = SmallVector<Values>;
  Loaded load(Value span) {
    Value start = k.mul(span, kSpan);
    Loaded loaded;
    Value key = k.add(start, k.mul(block.warp, AttentionCore::kKeys));
    // All pages are asked for first.
    Value page = pageOf(key);
    Values from = valueSources(start);
    Value first = cache.keyWords(
        page, kvHead, k.rem(k.add(key, core.keyOfLane()), cache.layout.page), k.constI64(0));
    first = k.at(first, k.mul(core.fourth, 4 * KvLayout::kLanes));
    for (int64_t row = 0; row < dim / 2; row += 4) {
      Value at = k.at(first, row * 4 * KvLayout::kLanes);
      // Of one row, what earlier kernels leave comes later.
      if (block.oneRow) {
        loaded.push_back(block.fetch(at, 4));
        continue;
      }
      loaded.push_back(loadWords(k, at, 4));
    }
    copyValues(from);
    return loaded;
  }

  // Half of the block copies a panel of a group's values, of which a thread has 16 bytes.
  static constexpr int64_t kUnits = kGroup / 2 * KvLayout::kLanes / 4;
  static constexpr int64_t kPanelsAtOnce = kAttentionThreads / kUnits;
  Value inPanel() { return k.rem(block.thread, kUnits); }

  // Where the groups' values are.
  Values valueSources(Value start) {
    Values all;
    for (int64_t group = 0; group < kGroups; ++group) {
      // Behind the last page that there is, this is copied again.
      Value key = k.add(start, group * kGroup), in = k.rem(key, cache.layout.page);
      all.push_back(cache.valueWords(pageOf(key), kvHead, in, k.constI64(0)));
    }
    return all;
  }

  // Calls body(panel) for the thread's panels of a group.
  void forPanels(llvm::function_ref<void(Value panel)> body) {
    for (int64_t first = 0; first < core.panels; first += kPanelsAtOnce) {
      Value panel = k.add(k.div(block.thread, kUnits), first);
      if (first + kPanelsAtOnce <= core.panels)
        body(panel);
      else
        k.ifThen(k.less(panel, k.constI64(core.panels)), [&] { body(panel); });
    }
  }

  Value valuePlace(Value group, Value panel) {
    Value unit = inPanel();
    Value step = k.add(k.mul(group, kGroup / AttentionCore::kStep), k.div(unit, kWarp));
    Value at = k.mul(k.add(k.mul(step, core.panels), panel), AttentionCore::kStepPanelBytes);
    return k.at(values, k.add(at, k.mul(core.placeOf(k.rem(unit, kWarp)), 16)));
  }

  void copyValues(const Values &sources) {
    for (auto [group, source] : llvm::enumerate(sources)) {
      Value from = k.at(source, k.mul(inPanel(), 16)), number = k.constI64(int64_t(group));
      forPanels([&](Value panel) {
        Value there = k.at(from, k.mul(panel, cache.layout.valuePanelBytes));
        if (block.oneRow)
          block.fetchAsync(valuePlace(number, panel), there);
        else
          block.copyAsync(valuePlace(number, panel), there);
      });
    }
    block.commitCopies();
  }

  // With the newest key, in the lanes that have it.
  void putNewKey(Value span, Loaded &loaded) {
    Value key = k.add(k.mul(span, kSpan), k.mul(block.warp, AttentionCore::kKeys));
    Value number = k.sub(position, k.add(key, core.keyOfLane()));
    Value mine = k.andBits(k.lessEqual(k.constI64(0), number), k.less(number, k.constI64(4)));
    Values all;
    for (const Values &four : loaded)
      all.append(four.begin(), four.end());
    Values changed = block.ifElse(mine, all, [&] {
      Values some = all;
      for (size_t i = 0; i < loaded.size(); ++i) {
        Value word = newKeyWord(int64_t(4 * i));
        for (int64_t key = 0; key < 4; ++key) {
          Value &old = some[4 * i + key];
          old = k.select(k.equal(number, k.constI64(key)), word, old);
        }
      }
      return some;
    });
    for (auto [i, word] : llvm::enumerate(changed))
      loaded[i / 4][i % 4] = word;
  }

  // The lane's word of the newest key, of those from `row` on.
  Value newKeyWord(int64_t row) {
    Value number = k.add(core.fourth, row);
    if (heads)
      return heads->keyWord(number);
    Value in = k.rem(position, cache.layout.page);
    return block.loadCoherent(cache.keyWords(pageOf(position), kvHead, in, k.mul(number, 2)));
  }

  // In place of values that no query sees, which may be no numbers, zeroes; and the
  // newest value: in the groups that the first and the last key lie in, as the rest of
  // those is seen.
  void mendValues(Value start) {
    auto mendGroupOf = [&](Value key) {
      Value group = k.div(k.sub(key, start), kGroup);
      Value even = k.add(start, k.mul(group, kGroup));
      even = k.add(even, k.mul(k.div(inPanel(), KvLayout::kLanes / 4), 2));
      Value odd = k.add(even, 1);
      Value inside = k.andBits(k.lessEqual(begin, even), k.less(odd, last));
      k.ifThen(k.xorBits(inside, 1),
               [&] { forPanels([&](Value panel) { mend(group, panel, even, odd); }); });
    };
    k.ifThen(k.less(last, k.add(start, kSpan)), [&] { mendGroupOf(last); });
    if (!op.getWindow())
      return;
    Value elsewhere = k.less(k.div(begin, kGroup), k.div(last, kGroup));
    k.ifThen(k.andBits(k.lessEqual(start, begin), elsewhere), [&] { mendGroupOf(begin); });
  }

  void mend(Value group, Value panel, Value even, Value odd) {
    Value at = valuePlace(group, panel), words = k.load(k.vec(4, k.i32()), at, 16);
    auto seen = [&](Value key) {
      return k.andBits(k.lessEqual(begin, key), k.lessEqual(key, last));
    };
    Value mask = core.maskOf(seen(even), seen(odd));
    Value column =
        k.add(k.mul(panel, KvLayout::kLanes), k.mul(k.rem(inPanel(), KvLayout::kLanes / 4), 4));
    if (block.oneRow) {
      Value isNew = k.equal(k.div(even, 2), k.div(position, 2));
      words = block.ifElse(isNew, {words},
                           [&] { return Values{newValueWords(words, column, even)}; })[0];
    }
    k.store(k.andBits(words, k.splat(mask, 4)), at, 16);
  }

  // The words of four columns of the newest key, which is `even` or behind it.
  Value newValueWords(Value words, Value column, Value even) {
    Value isLow = k.equal(even, position);
    for (int64_t i = 0; i < 4; ++i) {
      if (!heads) {
        Value in = k.rem(even, cache.layout.page);
        Value from = cache.valueWords(pageOf(position), kvHead, in, k.add(column, i));
        words = k.insert(block.loadCoherent(from), words, i);
        continue;
      }
      Value fresh = heads->valueHalf(k.add(column, i));
      Value old = k.extract(words, i);
      Value second = k.orBits(k.andBits(old, 0xFFFF), k.shl(fresh, 16));
      words = k.insert(k.select(isLow, fresh, second), words, i);
    }
    return words;
  }

  // ---- Spans

  // A span's sums go to shared memory; with barriers. The queries are there after the
  // first of these.
  void sumSpan(Value span, Loaded loaded) {
    Value start = k.mul(span, kSpan);
    if (block.oneRow && !heads)
      putNewKey(span, loaded);
    block.barrier();
    if (heads)
      putNewKey(span, loaded);
    Values scores = scoresOf(start, loaded);
    leaveMaxima(scores);
    block.awaitCopies(0);
    block.barrier();
    mendValues(start);
    writeWeights(scores);
    block.barrier();
    writeSums(addValues(start));
    block.barrier();
  }

  Values scoresOf(Value start, const Loaded &loaded) {
    Values mine;
    for (int64_t lower = 0; lower < 2; ++lower)
      mine.push_back(lower < rows ? loadFloat(k, inverses, queryOf(lower)) : k.zero(k.f32()));
    Values scores = core.scores(
        [&](int64_t term, int64_t chunk) { return core.stagedWords(stage, term, chunk); },
        [&](int64_t chunk, int64_t half) { return loaded[2 * chunk + half]; }, mine);
    Value first = k.add(start, k.mul(block.warp, AttentionCore::kKeys));
    first = k.truncate(first, k.i32());
    for (auto [number, score] : llvm::enumerate(scores)) {
      int64_t lower = int64_t(number) % 4 / 2;
      if (lower >= rows)
        continue;
      Value j = k.add(first, core.keyOf(number / 4, number % 2));
      Value seen = k.andBits(k.lessEqual(begins[lower], j), k.less(j, ends[lower]));
      score = k.select(seen, score, k.constFloat(k.f32(), kMasked));
    }
    return scores;
  }

  // The largest of the warp's scores go to shared memory.
  void leaveMaxima(const Values &scores) {
    for (int64_t lower = 0; lower < rows; ++lower) {
      Value top;
      for (auto [number, score] : llvm::enumerate(scores))
        if (int64_t(number) % 4 / 2 == lower)
          top = top ? k.max(top, score) : score;
      top = core.overQuery(top);
      k.ifThen(k.equal(core.fourth, k.constI64(0)), [&] {
        storeFloat(k, top, maxima, k.add(k.mul(queryOf(lower), kWarps), block.warp));
      });
    }
  }

  // Those of the lane's keys; what sums are multiplied by before each group, and the
  // span's maxima.
  void writeWeights(Values scores) {
    Value group = k.div(block.warp, kGroup / AttentionCore::kKeys);
    Values mine;
    for (int64_t lower = 0; lower < rows; ++lower) {
      Value from = k.at(maxima, k.mul(queryOf(lower), 4 * kWarps)), top, last;
      Value before = k.constFloat(k.f32(), kMasked), factor = k.zero(k.f32());
      for (int64_t number = 0; number < kGroups; ++number) {
        constexpr int64_t each = kWarps / kGroups;
        last = before;
        for (int64_t warp = 0; warp < each; ++warp)
          last = k.max(last, k.load(k.f32(), k.at(from, 4 * (number * each + warp)), 4));
        Value isMine = k.equal(group, k.constI64(number));
        factor = k.select(isMine, core.exp(k.sub(before, last)), factor);
        top = top ? k.select(isMine, last, top) : last;
        before = last;
      }
      mine.push_back(top);
      // One warp of each group, one lane of each query.
      Value writes = k.andBits(k.equal(core.fourth, k.constI64(0)),
                               k.equal(k.rem(block.warp, kWarps / kGroups), k.constI64(0)));
      k.ifThen(writes, [&] {
        storeFloat(k, factor, factors, k.add(k.mul(group, kQueries), queryOf(lower)));
        storeFloat(k, last, lasts, queryOf(lower));
      });
    }
    Value masked = k.constFloat(k.f32(), kMasked);
    for (auto [number, score] : llvm::enumerate(scores)) {
      int64_t lower = int64_t(number) % 4 / 2;
      Value isSeen = k.xorBits(k.equal(score, masked), 1);
      score = lower < rows ? core.weightOf(score, mine[lower], isSeen) : k.zero(k.f32());
    }
    for (int64_t step = 0; step < 2; ++step) {
      Value number = k.add(k.mul(block.warp, 2), step);
      for (auto [term, words] : llvm::enumerate(core.weightWords(scores, step))) {
        Value four = k.zero(k.vec(4, k.i32()));
        for (int64_t i = 0; i < 4; ++i)
          four = k.insert(words[i], four, i);
        k.store(four, weightsAt(number, int64_t(term)), 16);
      }
    }
  }

  Value weightsAt(Value step, int64_t term) {
    Value number = k.add(k.mul(k.add(k.mul(step, core.terms), term), kWarp), block.lane);
    return k.at(weights, k.mul(number, 16));
  }

  // The panel of columns that the warp has, whole or half of it.
  Value panelOfWarp() { return tilesEach == 2 ? block.warp : k.div(block.warp, 2); }

  // The sums of the lane's queries and columns. Groups that no query sees may have values
  // that are no numbers.
  Values addValues(Value start) {
    Value zero = k.zero(k.f32()), panel = k.min(panelOfWarp(), k.constI64(core.panels - 1));
    Values sums(core.sumsOf(tilesEach), zero);
    auto addGroup = [&](int64_t group, Values all) {
      Values mine;
      for (int64_t lower = 0; lower < 2; ++lower)
        mine.push_back(lower < rows ? loadFloat(k, factors, k.add(queryOf(lower), group * kQueries))
                                    : zero);
      core.scaleSums(mine, all);
      for (int64_t i = 0; i < kGroup / AttentionCore::kStep; ++i) {
        Value step = k.constI64(group * kGroup / AttentionCore::kStep + i);
        SmallVector<Values> words;
        for (int64_t term = 0; term < core.terms; ++term) {
          words.push_back(loadWords(k, weightsAt(step, term), 4));
        }
        auto [even, odd] = core.sharedValues(values, step, panel);
        if (tilesEach == 1)
          for (auto [one, other] : llvm::zip(even, odd))
            one = k.select(isOddHalf(), other, one);
        core.addStep(words, [&](int64_t tile) { return tile ? odd : even; }, all);
      }
      return all;
    };
    for (int64_t group = 0; group < kGroups; ++group) {
      Value first = k.add(start, group * kGroup), isSeen = k.lessEqual(first, last);
      if (op.getWindow())
        isSeen = k.andBits(isSeen, k.less(begin, k.add(first, kGroup)));
      if (group || op.getWindow())
        sums = block.ifElse(isSeen, sums, [&] { return addGroup(group, sums); });
      else
        sums = addGroup(group, sums);
    }
    return sums;
  }

  Value isOddHalf() { return k.equal(k.rem(block.warp, 2), k.constI64(1)); }

  void writeSums(const Values &added) {
    Value unit = k.constFloat(k.f32(), core.weightUnit());
    for (int64_t lower = 0; lower < rows; ++lower) {
      Value query = queryOf(lower);
      auto mine = [&](int64_t tile, int64_t odd) {
        return k.mul(added[4 * tile + 2 * lower + odd], unit);
      };
      Value writes = k.less(panelOfWarp(), k.constI64(core.panels));
      if (most % (kQueries / 2))
        writes = k.andBits(writes, k.less(query, k.constI64(most)));
      k.ifThen(writes, [&] {
        for (int64_t tile = 0; tile < tilesEach; ++tile)
          for (int64_t odd = 0; odd < 2; ++odd) {
            Value column = core.columnOf(panelOfWarp(), tile, odd);
            if (tilesEach == 1)
              column = k.add(column, k.rem(block.warp, 2));
            storeFloat(k, mine(tile, odd), sums, k.add(k.mul(query, valueDim), column));
          }
      });
      k.ifThen(k.equal(k.add(core.fourth, block.warp), k.constI64(0)),
               [&] { storeFloat(k, mine(tilesEach, 0), lasts, k.add(query, kQueries)); });
    }
  }

  // From here on a thread has some columns of a query at a time.
  static constexpr int64_t kColumns = 4;
  Value queryOfThread(int64_t turn) {
    return k.add(k.div(block.thread, perQuery), turn * together);
  }
  Value columnOfThread() { return k.mul(k.rem(block.thread, perQuery), kColumns); }
  // Whether it has one in a turn.
  Value hasQuery() { return k.less(block.thread, k.constI64(together * perQuery)); }

  // Sums of the spans, for each turn.
  SmallVector<Sums> sumSpans(const Loaded *early = nullptr) {
    auto add = [&](ArrayRef<Sums> before) {
      SmallVector<Sums> after;
      for (auto [turn, old] : llvm::enumerate(before))
        after.push_back(merge(k, old, spanSums(int64_t(turn))));
      return after;
    };
    SmallVector<Sums> all(turns, Sums::none(k, kColumns));
    Value first = firstSpan;
    if (early) {
      sumSpan(firstSpan, *early);
      // Merged with none, a span's sums stay what they are.
      for (int64_t turn = 0; turn < turns; ++turn)
        all[turn] = spanSums(turn);
      first = k.add(first, 1);
    }
    auto body = [&](Value span, ArrayRef<Value> carried) {
      sumSpan(span, load(span));
      return packAll(add(unpackAll(carried, kColumns)));
    };
    return unpackAll(k.loop(first, endSpan, k.constI64(1), packAll(all), body), kColumns);
  }

  Sums spanSums(int64_t turn) {
    // Threads beyond the last query read another's.
    Value query = k.min(queryOfThread(turn), k.constI64(most - 1));
    Value at = k.mul(k.add(k.mul(query, valueDim), columnOfThread()), 4);
    return {loadFloat(k, lasts, query), loadFloat(k, lasts, k.add(query, kQueries)),
            loadColumns(k.at(sums, at))};
  }
  Values loadColumns(Value address) {
    Value all = k.load(k.vec(kColumns, k.f32()), address, 4 * kColumns);
    Values columns;
    for (int64_t i = 0; i < kColumns; ++i)
      columns.push_back(k.extract(all, i));
    return columns;
  }
  void storeColumns(const Values &columns, Value address) {
    Value all = k.zero(k.vec(kColumns, k.f32()));
    for (int64_t i = 0; i < kColumns; ++i)
      all = k.insert(columns[i], all, i);
    k.store(all, address, 4 * kColumns);
  }

  // ---- Results

  // Calls body(sums, row of the tile, head) where the thread has columns of a query.
  void forQueries(ArrayRef<Sums> all, llvm::function_ref<void(const Sums &, Value, Value)> body) {
    for (auto [turn, one] : llvm::enumerate(all)) {
      Value query = queryOfThread(int64_t(turn));
      Value there = k.andBits(isThere(query), k.less(query, k.constI64(most)));
      k.ifThen(k.andBits(there, hasQuery()), [&, one = one] {
        auto [row, head] = placeOf(query);
        body(one, row, head);
      });
    }
  }

  void finish(ArrayRef<Sums> all) {
    forQueries(all, [&](const Sums &one, Value row, Value head) { store(one, row, head); });
  }

  // The thread's columns of a head.
  void store(const Sums &one, Value row, Value head) {
    Value sink;
    if (op.getSinks())
      sink = loadFloat(k, block.address(op.getSinks()), head);
    Value factor = finalFactor(k, one, sink);
    Values results;
    for (Value column : one.columns)
      results.push_back(k.mul(column, factor));
    Value index = k.add(k.mul(k.add(firstRow, row), op.getHeads()), head);
    Value at = k.add(k.mul(index, valueDim), columnOfThread());
    storeColumns(results, k.at(block.address(op.getInto()), k.mul(at, 4)));
  }

  Value partialAt(Value number, Value head) {
    Value record = k.add(k.mul(number, int64_t(op.getHeads())), head);
    return k.at(block.address(op.getPartials()), k.mul(record, cache.layout.partialBytes()));
  }

  // For pack.merge, or for the block that ends last.
  void leave(ArrayRef<Sums> all) {
    forQueries(all, [&](const Sums &one, Value row, Value head) {
      Value to = partialAt(k.add(place, row), head);
      k.ifThen(k.equal(columnOfThread(), k.constI64(0)), [&] {
        k.store(one.maximum, to, 4);
        k.store(one.sum, k.at(to, 4), 4);
      });
      Value values = k.at(to, KvLayout::kPartialValues);
      storeColumns(one.columns, k.at(values, k.mul(columnOfThread(), 4)));
    });
  }

  // Does nothing in blocks of the key head that others are still to come after.
  void mergeLast() {
    Value counter = k.at(block.scratch, k.mul(kvHead, 4)),
          first = k.equal(block.thread, k.constI64(0));
    block.barrier();
    k.ifThen(first, [&] { k.store(block.countUp(counter), arrivals, 4); });
    block.barrier();
    Value before = k.extendU(k.load(k.i32(), arrivals, 4), k.i64());
    k.ifThen(k.equal(k.add(before, 1), block.tiles), [&] {
      k.ifThen(first, [&] { k.store(k.zero(k.i32()), counter, 4); });
      for (int64_t turn = 0; turn < llvm::divideCeil(perKeyHead, together); ++turn) {
        Value number = queryOfThread(turn);
        k.ifThen(k.andBits(hasQuery(), k.less(number, k.constI64(perKeyHead))),
                 [&] { mergeHead(k.add(k.mul(kvHead, perKeyHead), number)); });
      }
    });
  }

  void mergeHead(Value head) {
    Value spans = spanAfter(k, k.add(position, 1)), start = k.sub(place, firstSpan);
    Value at = k.mul(columnOfThread(), 4);
    auto number = [&](Value address) { return k.bitcast(block.loadCoherent(address), k.f32()); };
    auto read = [&](Value span) {
      Value from = partialAt(k.add(start, span), head);
      Value values = k.at(from, KvLayout::kPartialValues);
      Sums one = {number(from), number(k.at(from, 4)), {}};
      for (Value word : block.loadCoherent(k.at(values, at), kColumns))
        one.columns.push_back(k.bitcast(word, k.f32()));
      return one;
    };
    constexpr int64_t kMany = 8, kFew = 4;
    Value many = k.mul(k.div(spans, kMany), kMany);
    Sums all = mergeSpans(k, k.constI64(0), many, kMany, Sums::none(k, kColumns), read);
    store(mergeSpans(k, many, spans, kFew, all, read), k.constI64(0), head);
  }

  Block &block;
  pack::AttentionOp op;
  KernelBuilder &k;
  AttentionCore core;
  Cache &cache;
  int64_t dim, valueDim;
  int64_t perKeyHead; // query heads
  int64_t tilesEach;  // runs of 8 columns of a warp: of half a panel, or of one
  int64_t perQuery;   // threads that have its columns
  int64_t together;   // queries of which threads have columns
  int64_t most;       // queries of a batch
  int64_t rows;       // of a lane's two queries, those that may be there
  int64_t turns;
  // In shared memory: queries' words and what they are divided by, each warp's maxima,
  // each group's factors, the span's maxima and sums of weights.
  Value stage, inverses, maxima, factors, lasts, arrivals;
  Value weights, sums, values;
  std::optional<RowHeads> heads; // with Block::heads
  Value kvHead, firstRow, pairs, position, pages, firstPair;
  Value partFirst, partEnd, place; // null without parts
  Value firstSpan, endSpan, begin, last;
  Values begins, ends; // i32, of the lane's queries
};

} // namespace

namespace attention_row {

bool takes(pack::AttentionOp op) {
  return AttentionCore::takes(op) && op.getParts() && op.getWindow() == 0 &&
         op.getHeads() <= kMostHeads;
}

int64_t units(pack::AttentionOp op) {
  return cast<pack::KvType>(op.getCache().getType()).getHeads();
}
int64_t scratchBytes(pack::AttentionOp op) { return 4 * units(op); }

void emit(Block &block, pack::AttentionOp op) { RowEmitter(block, op).emit(); }

} // namespace attention_row

} // namespace izhc::cuda
