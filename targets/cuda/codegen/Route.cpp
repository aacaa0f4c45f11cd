// `route`: a warp chooses the experts of a row; then one block lists the pairs.

#include "dialects/pack/RoutesLayout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "targets/cuda/codegen/ExpertRow.h"
#include "targets/cuda/codegen/Forms.h"
#include "targets/cuda/codegen/Lowering.h"
#include <limits>

namespace izhc::cuda {

using namespace mlir;

namespace {

constexpr double kInfinity = std::numeric_limits<float>::infinity();

struct RouteEmitter {
  Block &block;
  pack::RouteOp op;
  KernelBuilder &k;
  pack::RoutesLayout layout;
  int64_t experts, chosen, groups;
  // counts: pairs of each expert in each part of the choices, then in those before
  Value table, counts;
  Value scores, ranks, worths; // of a warp's row
  Value weights;               // of its choices

  int64_t warps; // that have a row each

  RouteEmitter(Block &block, pack::RouteOp op, int64_t warps)
      : block(block), op(op), k(block.k), layout(op.getRoutes()), experts(layout.type.getExperts()),
        chosen(layout.type.getChosen()), groups(op.getGroups()), table(block.address(op.getInto())),
        warps(warps) {}

  // Before `choose`.
  void prepareChoices() {
    scores = ofWarp(experts);
    ranks = ofWarp(experts);
    worths = ofWarp(groups);
    weights = ofWarp(chosen);
  }

  Value ofWarp(int64_t floats) {
    return k.at(block.shared(4 * floats * warps), k.mul(block.warp, 4 * floats));
  }
  Value number(double value) { return k.constFloat(k.f32(), value); }
  Value pair(Value i) { return k.at(k.at(table, layout.pairs()), k.mul(i, layout.kPairBytes)); }
  Value field(Value address, int64_t offset) {
    return k.extendS(k.load(k.i32(), k.at(address, offset), 4), k.i64());
  }

  // The number of the greatest of `count` values: the first of equals.
  Value greatest(Value array, int64_t count) {
    auto better = [&](Value x, Value i, Value best, Value at) {
      Value first = k.andBits(k.equal(x, best), k.less(i, at));
      return k.orBits(k.less(best, x), first);
    };
    Value last = k.constInt(k.i32(), count - 1);
    auto found = k.loop(block.lane, k.constI64(count), k.constI64(kWarp),
                        {number(-kInfinity), last}, [&](Value i, ArrayRef<Value> carried) {
                          Value x = loadFloat(k, array, i), at = k.truncate(i, k.i32());
                          Value take = better(x, at, carried[0], carried[1]);
                          return Block::Values{k.select(take, x, carried[0]),
                                               k.select(take, at, carried[1])};
                        });
    Value best = found[0], at = found[1];
    for (int64_t mask = kWarp / 2; mask; mask /= 2) {
      Value otherBest = block.exchange(best, mask), otherAt = block.exchange(at, mask);
      Value take = better(otherBest, otherAt, best, at);
      best = k.select(take, otherBest, best);
      at = k.select(take, otherAt, at);
    }
    return k.extendS(at, k.i64());
  }

  // term(i) summed over the lanes' values.
  Value sum(int64_t count, llvm::function_ref<Value(Value i)> term) {
    Value own = k.loop(block.lane, k.constI64(count), k.constI64(kWarp), {number(0)},
                       [&](Value i, ArrayRef<Value> carried) {
                         return Block::Values{k.add(carried[0], term(i))};
                       })[0];
    return block.warpSum(own);
  }

  void score(Value ratings) {
    if (op.getScore() == pack::Score::SoftmaxChosen) {
      block.forLanes(experts, [&](Value i) { storeFloat(k, loadFloat(k, ratings, i), scores, i); });
    } else if (op.getScore() == pack::Score::Sigmoid) {
      block.forLanes(experts, [&](Value i) {
        Value power = k.exp(k.neg(loadFloat(k, ratings, i)));
        storeFloat(k, k.div(number(1), k.add(number(1), power)), scores, i);
      });
    } else {
      Value most = loadFloat(k, ratings, greatest(ratings, experts));
      Value all = sum(experts, [&](Value i) {
        Value power = k.exp(k.sub(loadFloat(k, ratings, i), most));
        storeFloat(k, power, scores, i);
        return power;
      });
      block.forLanes(
          experts, [&](Value i) { storeFloat(k, k.div(loadFloat(k, scores, i), all), scores, i); });
    }
    block.syncWarp();
  }

  // What a group is worth: the sum of its greatest one or two ranks.
  Value worth(Value group) {
    int64_t size = experts / groups;
    Value first = k.mul(group, size);
    auto best =
        k.loop(first, k.add(first, size), k.constI64(1), {number(-kInfinity), number(-kInfinity)},
               [&](Value i, ArrayRef<Value> carried) {
                 Value x = loadFloat(k, ranks, i);
                 Value second = k.max(carried[1], k.min(carried[0], x));
                 return Block::Values{k.max(carried[0], x), second};
               });
    return op.getGroupBest() == 2 ? k.add(best[0], best[1]) : best[0];
  }

  // By one lane.
  void mark(Value array, Value at) {
    k.ifThen(k.equal(block.lane, k.constI64(0)),
             [&] { storeFloat(k, number(-kInfinity), array, at); });
    block.syncWarp();
  }

  void rank(Value ratings) {
    block.forLanes(experts, [&](Value i) {
      Value x = loadFloat(k, byScore() ? scores : ratings, i);
      if (op.getBias())
        x = k.add(x, loadFloat(k, block.address(op.getBias()), i));
      storeFloat(k, x, ranks, i);
    });
    block.syncWarp();
    if (groups == 1)
      return;
    // Chosen groups are marked by a worth that no group has.
    block.forLanes(groups, [&](Value g) { storeFloat(k, worth(g), worths, g); });
    block.syncWarp();
    k.loop(k.constI64(0), k.constI64(op.getGroupChosen()), 1,
           [&](Value) { mark(worths, greatest(worths, groups)); });
    block.forLanes(experts, [&](Value i) {
      Value left = k.less(number(-kInfinity), loadFloat(k, worths, k.div(i, experts / groups)));
      storeFloat(k, k.select(left, number(-kInfinity), loadFloat(k, ranks, i)), ranks, i);
    });
    block.syncWarp();
  }

  bool byScore() { return op.getBias() || groups > 1; }

  // A number without sign that is as much larger as `x` is, at least 1; zeroes are equal.
  Value keyOf(Value x) {
    Value bits = k.bitcast(k.add(x, number(0)), k.i32());
    Value key = k.select(k.less(bits, k.zero(k.i32())), k.xorBits(bits, -1),
                         k.orBits(bits, k.constInt(k.i32(), INT32_MIN)));
    return k.select(k.equal(key, k.zero(k.i32())), k.constInt(k.i32(), 1), key);
  }
  Value larger(Value a, Value b) { return k.select(lessUnsigned(a, b), b, a); }
  Value lessUnsigned(Value a, Value b) {
    return arith::CmpIOp::create(k.builder, k.loc, arith::CmpIPredicate::ult, a, b);
  }

  // Calls body(j, expert) in all lanes for the greatest of the experts' ranks in turn, of
  // equal ones the first: expert `lane` + 32 i is the lane's number i.
  void pick(Value ranks, llvm::function_ref<void(Value j, Value expert)> body) {
    int64_t each = llvm::divideCeil(experts, kWarp);
    Value none = k.zero(k.i32()), beyond = k.constInt(k.i32(), experts);
    Block::Values keys;
    for (int64_t i = 0; i < each; ++i) {
      Value expert = k.add(block.lane, i * kWarp);
      Value there = k.min(expert, k.constI64(experts - 1));
      Value key = keyOf(loadFloat(k, ranks, there));
      keys.push_back(experts % kWarp ? k.select(k.equal(there, expert), key, none) : key);
    }
    k.loop(
        k.constI64(0), k.constI64(chosen), k.constI64(1), keys, [&](Value j, ArrayRef<Value> left) {
          Value most = none, mine = beyond, lane = k.truncate(block.lane, k.i32());
          for (Value key : left)
            most = larger(most, key);
          most = block.warpMaxUnsigned(most);
          for (int64_t i = each - 1; i >= 0; --i)
            mine = k.select(k.equal(left[i], most), k.add(lane, i * kWarp), mine);
          Value expert = block.warpMinUnsigned(mine);
          body(j, k.extendU(expert, k.i64()));
          Block::Values next;
          for (auto [i, key] : llvm::enumerate(left))
            next.push_back(k.select(k.equal(expert, k.add(lane, int64_t(i) * kWarp)), none, key));
          return next;
        });
  }

  // Those of a step's only row, which a kernel before may have left lately.
  void bringRatings(Value to) {
    Block::Values all;
    auto inside = [&](int64_t i) { return k.add(block.lane, i); };
    for (int64_t i = 0; i < experts; i += kWarp) {
      Value there = k.min(inside(i), k.constI64(experts - 1));
      all.push_back(block.loadCoherent(k.at(block.address(op.getRatings()), k.mul(there, 4))));
    }
    for (auto [turn, rating] : llvm::enumerate(all)) {
      Value there = k.min(inside(int64_t(turn) * kWarp), k.constI64(experts - 1));
      k.store(rating, k.at(to, k.mul(there, 4)), 4);
    }
    block.syncWarp();
  }

  void choose(Value token) {
    choose(k.at(block.address(op.getRatings()), k.mul(token, 4 * experts)), token);
  }
  // `weighted`: with the choices' weights.
  void choose(Value ratings, Value token, bool weighted = true) {
    if (weighted || byScore())
      score(ratings);
    if (byScore())
      rank(ratings);
    Value first = k.mul(token, chosen);
    pick(byScore() ? ranks : ratings, [&](Value j, Value expert) {
      k.ifThen(k.equal(block.lane, k.constI64(0)), [&] {
        k.store(k.truncate(expert, k.i32()), k.at(pair(k.add(first, j)), layout.kChoice), 4);
        if (weighted)
          storeFloat(k, loadFloat(k, scores, expert), weights, j);
      });
    });
    block.syncWarp();
    if (weighted)
      weigh(first);
  }

  void weigh(Value first) {
    Value divisor = number(1);
    if (op.getScore() == pack::Score::SoftmaxChosen) {
      Value most = loadFloat(k, weights, k.constI64(0));
      block.syncWarp();
      divisor = sum(chosen, [&](Value j) {
        Value power = k.exp(k.sub(loadFloat(k, weights, j), most));
        storeFloat(k, power, weights, j);
        return power;
      });
    } else if (op.getNormalize()) {
      divisor =
          k.add(sum(chosen, [&](Value j) { return loadFloat(k, weights, j); }), number(1e-20));
    }
    Value scale = number(op.getScale().convertToDouble());
    block.forLanes(chosen, [&](Value j) {
      Value weight = k.mul(k.div(loadFloat(k, weights, j), divisor), scale);
      k.store(weight, k.at(pair(k.add(first, j)), layout.kChoiceWeight), 4);
    });
    block.syncWarp();
  }

  // ---- The list of pairs, by counting. Warps share the choices in parts, in their
  // order; a warp takes 32 neighbours at a time.

  // Tables of a count for each expert that shared memory is spent on.
  static constexpr int64_t kCountBytes = 32 << 10;
  int64_t parts() const {
    return std::clamp<int64_t>(kCountBytes / (4 * experts), 1, block.warps());
  }
  Value shareOf(Value part, Value expert) { return k.add(k.mul(part, experts), expert); }
  void storeIndex(Value value, Value array, Value i) {
    k.store(k.truncate(value, k.i32()), k.at(array, k.mul(i, 4)), 4);
  }

  // Calls body(choice, expert, place) for the choices of the warp's part, where
  // `counts` of the part says the place of each expert's first; after it, that
  // behind the last.
  void forChoices(llvm::function_ref<void(Value i, Value expert, Value place)> body) {
    Value all = k.mul(block.tokens, chosen);
    Value each = k.mul(k.div(k.add(all, parts() * kWarp - 1), parts() * kWarp), kWarp);
    Value first = k.min(k.mul(block.warp, each), all), end = k.min(k.add(first, each), all);
    end = k.select(k.less(block.warp, k.constI64(parts())), end, first);
    k.loop(first, end, kWarp, [&](Value start) {
      Value i = k.add(start, block.lane), inside = k.less(i, end);
      Value choice = k.load(k.i32(), k.at(pair(k.min(i, k.add(end, -1))), layout.kChoice), 4);
      choice = k.select(inside, choice, k.constInt(k.i32(), -1));
      // How many lanes below have the same, and kAbove times how many above.
      Value count = k.zero(k.i32()), one;
      for (int64_t mask = 1; mask < kWarp; ++mask) {
        // The highest bit tells which of the two lanes is above.
        if (llvm::isPowerOf2_64(mask))
          one = k.select(k.less(block.lane, xorLane(mask)), k.constInt(k.i32(), kAbove),
                         k.constInt(k.i32(), 1));
        Value same = k.equal(block.exchange(choice, mask), choice);
        count = k.add(count, k.select(same, one, k.zero(k.i32())));
      }
      Value below = k.extendU(k.andBits(count, kAbove - 1), k.i64());
      Value expert = k.extendS(k.select(inside, choice, k.zero(k.i32())), k.i64());
      Value share = shareOf(block.warp, expert), place = k.add(loadIndex(k, counts, share), below);
      block.syncWarp();
      Value isLast = k.andBits(inside, k.less(count, k.constInt(k.i32(), kAbove)));
      k.ifThen(isLast, [&] { storeIndex(k.add(place, 1), counts, share); });
      block.syncWarp();
      k.ifThen(inside, [&] { body(i, expert, place); });
    });
  }
  static constexpr int64_t kAbove = 64; // more than lanes
  Value xorLane(int64_t mask) { return k.xorBits(block.lane, mask); }

  // The sum of what lanes below have; all lanes call it.
  Value sumBelow(Value value) {
    Value sum = k.zero(k.i32()), all = value;
    for (int64_t mask = 1; mask < kWarp; mask *= 2) {
      Value other = block.exchange(all, mask);
      sum = k.add(sum, k.select(k.less(xorLane(mask), block.lane), other, k.zero(k.i32())));
      all = k.add(all, other);
    }
    return sum;
  }

  // Enters the experts that have pairs, with their first pairs in `firsts` too; by one
  // warp.
  void enterExperts(Value totals, Value firsts) {
    int64_t each = llvm::divideCeil(experts, kWarp);
    Value first = k.mul(block.lane, each), zero = k.constI64(0);
    auto forMine = [&](ArrayRef<Value> from, auto body) {
      return k.loop(zero, k.constI64(each), k.constI64(1), from,
                    [&](Value i, ArrayRef<Value> carried) {
                      Value e = k.add(first, i), inside = k.less(e, k.constI64(experts));
                      Value here = k.min(e, k.constI64(experts - 1));
                      Value count = k.select(inside, loadIndex(k, totals, here), zero);
                      Value some = k.less(zero, count);
                      body(e, some, count, carried);
                      return Block::Values{k.add(carried[0], count),
                                           k.select(some, k.add(carried[1], 1), carried[1])};
                    });
    };
    auto mine = forMine({zero, zero}, [](Value, Value, Value, ArrayRef<Value>) {});
    Block::Values before;
    for (Value count : mine)
      before.push_back(k.extendS(sumBelow(k.truncate(count, k.i32())), k.i64()));
    auto after = forMine(before, [&](Value e, Value some, Value count, ArrayRef<Value> at) {
      k.ifThen(some, [&] {
        Value to = k.at(k.at(table, layout.kExperts), k.mul(at[1], layout.kExpertBytes));
        storeIndex(e, to, zero);
        storeIndex(at[0], k.at(to, layout.kFirst), zero);
        storeIndex(count, k.at(to, layout.kCount), zero);
        storeIndex(at[0], firsts, e);
      });
    });
    k.ifThen(k.equal(block.lane, k.constI64(kWarp - 1)),
             [&] { storeIndex(after[1], table, zero); });
  }

  // That of one row, by one warp.
  void listRow() {
    Value zero = k.constI64(0), firsts = ofWarp(chosen);
    auto choiceAt = [&](Value i) { return k.load(k.i32(), k.at(pair(i), layout.kChoice), 4); };
    // How many of the choices j are so.
    auto count = [&](llvm::function_ref<Value(Value j)> isSo) {
      Value all = zero;
      for (int64_t j = 0; j < chosen; ++j)
        all = k.add(all, k.select(isSo(k.constI64(j)), k.constI64(1), zero));
      return all;
    };
    // An expert is chosen twice where ratings are no numbers.
    block.forLanes(chosen, [&](Value i) {
      Value mine = choiceAt(i);
      Value same =
          count([&](Value j) { return k.andBits(k.equal(choiceAt(j), mine), k.less(j, i)); });
      storeIndex(k.select(k.equal(same, zero), k.constI64(1), zero), firsts, i);
    });
    block.syncWarp();
    auto isFirst = [&](Value i) { return k.equal(loadIndex(k, firsts, i), k.constI64(1)); };
    block.forLanes(chosen, [&](Value i) {
      Value mine = choiceAt(i);
      Value below = count([&](Value j) { return k.less(choiceAt(j), mine); });
      Value same = count([&](Value j) { return k.equal(choiceAt(j), mine); });
      Value sameBefore =
          count([&](Value j) { return k.andBits(k.equal(choiceAt(j), mine), k.less(j, i)); });
      Value to = pair(k.add(below, sameBefore));
      storeIndex(zero, to, zero);
      Value weight = k.load(k.f32(), k.at(pair(i), layout.kChoiceWeight), 4);
      k.store(weight, k.at(to, layout.kWeight), 4);
      k.ifThen(isFirst(i), [&] {
        Value number =
            count([&](Value j) { return k.andBits(k.less(choiceAt(j), mine), isFirst(j)); });
        Value entry = k.at(k.at(table, layout.kExperts), k.mul(number, layout.kExpertBytes));
        storeIndex(k.extendS(mine, k.i64()), entry, zero);
        storeIndex(below, k.at(entry, layout.kFirst), zero);
        storeIndex(same, k.at(entry, layout.kCount), zero);
      });
    });
    k.ifThen(k.equal(block.lane, zero), [&] { storeIndex(count(isFirst), table, zero); });
  }

  void list() {
    counts = block.shared(4 * experts * parts());
    Value totals = block.shared(4 * experts), firsts = block.shared(4 * experts);
    Value zero = k.constI64(0);
    block.forThreads(experts * parts(), [&](Value share) { storeIndex(zero, counts, share); });
    block.barrier();
    forChoices([](Value, Value, Value) {});
    block.barrier();
    // What parts before have of an expert.
    block.forThreads(experts, [&](Value e) {
      Value sum = k.loop(zero, k.constI64(parts()), k.constI64(1), {zero},
                         [&](Value part, ArrayRef<Value> before) {
                           Value share = shareOf(part, e), count = loadIndex(k, counts, share);
                           storeIndex(before[0], counts, share);
                           return Block::Values{k.add(before[0], count)};
                         })[0];
      storeIndex(sum, totals, e);
    });
    block.barrier();
    k.ifThen(k.equal(block.warp, zero), [&] { enterExperts(totals, firsts); });
    block.barrier();
    forChoices([&](Value i, Value expert, Value place) {
      Value to = pair(k.add(loadIndex(k, firsts, expert), place));
      storeIndex(k.div(i, chosen), to, zero);
      Value weight = k.load(k.f32(), k.at(pair(i), layout.kChoiceWeight), 4);
      k.store(weight, k.at(to, layout.kWeight), 4);
    });
  }
};

} // namespace

// A warp for each row, then one block that lists the pairs.
Forms formsOf(pack::RouteOp op) {
  constexpr int64_t kRowsEach = 4, kListThreads = 1024;
  Form form = {kWarp * kRowsEach,
               1,
               /*groups=*/1,
               kRowsEach,
               /*leastRows=*/9,
               izh::schema::kTokenRows,
               [op](Block &block) mutable {
                 RouteEmitter route(block, op, kRowsEach);
                 route.prepareChoices();
                 Value token = block.k.add(block.k.mul(block.unit, kRowsEach), block.warp);
                 block.k.ifThen(block.k.less(token, block.tokens), [&] { route.choose(token); });
                 return success();
               }};
  form.then = [op](Block &block) mutable {
    RouteEmitter(block, op, block.warps()).list();
    return success();
  };
  form.thenThreads = kListThreads;
  form.thenUnits = 1;
  return {form};
}

void chooseExperts(Block &block, pack::RouteOp op, bool weighted) {
  KernelBuilder &k = block.k;
  RouteEmitter route(block, op, /*warps=*/1);
  route.prepareChoices();
  Value ratings = block.shared(4 * route.experts);
  k.ifThen(k.equal(block.warp, k.constI64(0)), [&] {
    route.bringRatings(ratings);
    route.choose(ratings, k.constI64(0), weighted);
  });
  block.barrier();
}

LogicalResult emitRoute(Block &block, pack::RouteOp op) {
  KernelBuilder &k = block.k;
  RouteEmitter route(block, op, block.warps());
  route.prepareChoices();
  if (block.oneRow) {
    block.prepare();
    route.choose(k.constI64(0));
    route.listRow();
    return success();
  }
  k.loop(block.warp, block.tokens, block.warps(), [&](Value token) { route.choose(token); });
  block.barrier();
  route.list();
  return success();
}

} // namespace izhc::cuda
