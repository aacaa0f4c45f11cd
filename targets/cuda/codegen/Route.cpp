// `route`: a warp chooses the experts of a row; then a thread an expert lists
// its pairs.

#include "dialects/pack/RoutesLayout.h"
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
  // counts: pairs of each expert in each part of the choices, then their firsts
  Value table, counts;
  Value scores, ranks, worths; // of a warp's row
  Value weights;               // of its choices

  RouteEmitter(Block &block, pack::RouteOp op)
      : block(block), op(op), k(block.k), layout(op.getRoutes()), experts(layout.type.getExperts()),
        chosen(layout.type.getChosen()), groups(op.getGroups()),
        table(block.address(op.getInto())) {}

  // Before `choose`.
  void prepareChoices() {
    scores = ofWarp(experts);
    ranks = ofWarp(experts);
    worths = ofWarp(groups);
    weights = ofWarp(chosen);
  }

  Value ofWarp(int64_t floats) {
    return k.at(block.shared(4 * floats * block.warps()), k.mul(block.warp, 4 * floats));
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
    bool byScore = op.getBias() || groups > 1;
    block.forLanes(experts, [&](Value i) {
      Value x = loadFloat(k, byScore ? scores : ratings, i);
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

  void choose(Value token) {
    Value ratings = k.at(block.address(op.getRatings()), k.mul(token, 4 * experts));
    score(ratings);
    rank(ratings);
    Value first = k.mul(token, chosen);
    k.loop(k.constI64(0), k.constI64(chosen), 1, [&](Value j) {
      Value expert = greatest(ranks, experts);
      block.syncWarp();
      mark(ranks, expert);
      k.ifThen(k.equal(block.lane, k.constI64(0)), [&] {
        k.store(k.truncate(expert, k.i32()), k.at(pair(k.add(first, j)), layout.kChoice), 4);
        storeFloat(k, loadFloat(k, scores, expert), weights, j);
      });
    });
    block.syncWarp();
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

  // Of the choices, which threads that share an expert divide.
  int64_t parts() const { return std::max<int64_t>(1, block.threads / experts); }
  Value partEnd(Value part) {
    Value each = k.div(k.add(k.mul(block.tokens, chosen), parts() - 1), parts());
    return k.min(k.mul(part, each), k.mul(block.tokens, chosen));
  }

  // Calls body(choice, `before` and how many of the expert came before in the part)
  // for its choices; returns the last number, as i64.
  Value forChoices(Value expert, Value part, Value before,
                   llvm::function_ref<void(Value i, Value before)> body) {
    return k.loop(partEnd(part), partEnd(k.add(part, 1)), k.constI64(1), {before},
                  [&](Value i, ArrayRef<Value> carried) {
                    Value own = k.equal(field(pair(i), layout.kChoice), expert);
                    k.ifThen(own, [&] { body(i, carried[0]); });
                    return Block::Values{k.select(own, k.add(carried[0], 1), carried[0])};
                  })[0];
  }

  void list() {
    counts = block.shared(8 * experts * parts());
    int64_t shares = experts * parts();
    Value firsts = k.at(counts, 4 * shares);
    auto store = [&](Value value, Value address) {
      k.store(k.truncate(value, k.i32()), address, 4);
    };
    block.forThreads(shares, [&](Value share) {
      Value e = k.div(share, parts()), part = k.rem(share, parts());
      Value count = forChoices(e, part, k.constI64(0), [](Value, Value) {});
      store(count, k.at(counts, k.mul(share, 4)));
    });
    block.barrier();
    k.ifThen(k.equal(block.thread, k.constI64(0)), [&] {
      auto all = k.loop(
          k.constI64(0), k.constI64(experts), k.constI64(1), {k.constI64(0), k.constI64(0)},
          [&](Value e, ArrayRef<Value> from) {
            Value count = k.constI64(0);
            for (int64_t part = 0; part < parts(); ++part) {
              Value share = k.add(k.mul(e, parts()), part);
              store(k.add(from[0], count), k.at(firsts, k.mul(share, 4)));
              count = k.add(count, loadIndex(k, counts, share));
            }
            Value some = k.less(k.constI64(0), count);
            k.ifThen(some, [&] {
              Value to = k.at(k.at(table, layout.kExperts), k.mul(from[1], layout.kExpertBytes));
              store(e, to);
              store(from[0], k.at(to, layout.kFirst));
              store(count, k.at(to, layout.kCount));
            });
            return Block::Values{k.add(from[0], count), k.select(some, k.add(from[1], 1), from[1])};
          });
      store(all[1], table);
    });
    block.barrier();
    block.forThreads(shares, [&](Value share) {
      Value e = k.div(share, parts()), part = k.rem(share, parts());
      Value first = loadIndex(k, firsts, share);
      forChoices(e, part, first, [&](Value i, Value before) {
        Value to = pair(before);
        store(k.div(i, chosen), to);
        Value weight = k.load(k.f32(), k.at(pair(i), layout.kChoiceWeight), 4);
        k.store(weight, k.at(to, layout.kWeight), 4);
      });
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
                 RouteEmitter route(block, op);
                 route.prepareChoices();
                 Value token = block.k.add(block.k.mul(block.unit, kRowsEach), block.warp);
                 block.k.ifThen(block.k.less(token, block.tokens), [&] { route.choose(token); });
                 return success();
               }};
  form.then = [op](Block &block) mutable {
    RouteEmitter(block, op).list();
    return success();
  };
  form.thenThreads = kListThreads;
  form.thenUnits = 1;
  return {form};
}

LogicalResult emitRoute(Block &block, pack::RouteOp op) {
  KernelBuilder &k = block.k;
  RouteEmitter route(block, op);
  route.prepareChoices();
  k.loop(block.warp, block.tokens, block.warps(), [&](Value token) { route.choose(token); });
  block.barrier();
  route.list();
  return success();
}

} // namespace izhc::cuda
