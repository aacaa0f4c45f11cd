// pack.route: the choice of experts row by row, then the grouping of all pairs
// by expert (a counting sort, so that rows stay in order).
//
// Scores and ranks of a row lie in the stack frame, padded to whole vectors
// with ranks that nobody can win.

#include "compiler/target/vector/Pieces.h"
#include "compiler/target/vector/VectorLowering.h"
#include "dialects/pack/RoutesLayout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <limits>

namespace izhc {

using namespace mlir;

namespace {

constexpr double kLowest = -std::numeric_limits<float>::infinity();

class Route {
public:
  Route(KernelFrame &frame, pack::RouteOp op);
  void emit();

private:
  void choose(Value token);
  void loadRanks(Value token);
  void softmax();
  void sigmoid();
  void rankByScores();
  void dropGroups();
  Value groupWorth(Value group);
  Value best();
  void finishWeights(Value token);
  void group();

  // All whole vectors of the padded row: body(byte offset).
  void forVectors(llvm::function_ref<void(Value offset)> body) {
    k.loop(k.constI64(0), k.constI64(4 * padded), 4 * lanes, body);
  }
  Value vectorAt(Value array, Value offset) {
    return k.load(floats, k.at(array, offset), 4 * lanes);
  }
  Value index(Value array, Value i) {
    return k.extendS(k.load(k.i32(), k.at(array, k.mul(i, 4)), 4), k.i64());
  }
  void storeIndex(Value value, Value pointer) { k.store(k.truncate(value, k.i32()), pointer, 4); }
  Value floatAt(Value array, Value i) { return k.load(k.f32(), k.at(array, k.mul(i, 4)), 4); }
  Value lowest() { return k.constFloat(k.f32(), kLowest); }
  // Pair and choice number i of the table.
  Value entry(Value i) { return k.at(k.at(table, layout.pairs()), k.mul(i, layout.kPairBytes)); }

  KernelFrame &frame;
  KernelBuilder &k;
  pack::RouteOp op;
  pack::RoutesLayout layout;
  int64_t lanes, experts, chosen, padded;
  Type floats, ints;
  Value table, scores, ranks, worths, counts;
};

Route::Route(KernelFrame &frame, pack::RouteOp op)
    : frame(frame), k(frame.k), op(op), layout(op.getRoutes()), lanes(frame.machine.lanes),
      experts(layout.type.getExperts()), chosen(layout.type.getChosen()),
      padded((experts + lanes - 1) / lanes * lanes), floats(k.vec(lanes, k.f32())),
      ints(k.vec(lanes, k.i32())), table(frame.address(op.getInto())) {
  scores = k.stack(4 * padded);
  ranks = k.stack(4 * padded);
  worths = k.stack(4 * int64_t(op.getGroups()));
  counts = k.stack(8 * experts);
}

void Route::emit() {
  k.loop(frame.begin, frame.end, 1, [&](Value) {
    forVectors([&](Value offset) {
      k.store(k.constFloat(floats, kLowest), k.at(ranks, offset), 4 * lanes);
    });
    k.loop(k.constI64(0), frame.tokens, 1, [&](Value token) { choose(token); });
    group();
  });
}

void Route::choose(Value token) {
  loadRanks(token);
  switch (op.getScore()) {
  case pack::Score::Softmax:
    softmax();
    break;
  case pack::Score::Sigmoid:
    sigmoid();
    break;
  case pack::Score::SoftmaxChosen:
    forVectors([&](Value at) { k.store(vectorAt(ranks, at), k.at(scores, at), 4 * lanes); });
    break;
  }
  // Scores rise with ratings: alone they are no other ranks.
  if (op.getBias() || op.getGroups() > 1)
    rankByScores();
  if (op.getGroups() > 1)
    dropGroups();
  k.loop(k.constI64(0), k.constI64(chosen), 1, [&](Value j) {
    Value expert = best();
    k.store(lowest(), k.at(ranks, k.mul(expert, 4)), 4);
    Value to = entry(k.add(k.mul(token, chosen), j));
    storeIndex(expert, k.at(to, layout.kChoice));
    k.store(floatAt(scores, expert), k.at(to, layout.kChoiceWeight), 4);
  });
  finishWeights(token);
}

void Route::loadRanks(Value token) {
  Value row = k.at(frame.address(op.getRatings()), k.mul(token, 4 * experts));
  forEachPiece(k, experts, lanes, [&](Value offset, int64_t piece) {
    k.store(k.load(k.vec(piece, k.f32()), k.at(row, offset), 4), k.at(ranks, offset), 4);
  });
}

void Route::softmax() {
  Value zero = k.constI64(0), end = k.constI64(4 * padded), step = k.constI64(4 * lanes);
  Value most = k.loop(zero, end, step, {k.constFloat(floats, kLowest)},
                      [&](Value at, ArrayRef<Value> carried) {
                        return KernelBuilder::Values{k.max(carried[0], vectorAt(ranks, at))};
                      })[0];
  Value shift = k.splat(k.maxLanes(most), lanes);
  Value sums = k.loop(zero, end, step, {k.zero(floats)}, [&](Value at, ArrayRef<Value> carried) {
    // The bound also takes what isn't a number.
    Value x = k.max(k.sub(vectorAt(ranks, at), shift), k.constFloat(floats, -100));
    Value power = k.exp(x);
    k.store(power, k.at(scores, at), 4 * lanes);
    return KernelBuilder::Values{k.add(carried[0], power)};
  })[0];
  Value factor = k.splat(k.div(k.constFloat(k.f32(), 1), k.sumLanes(sums)), lanes);
  forVectors(
      [&](Value at) { k.store(k.mul(vectorAt(scores, at), factor), k.at(scores, at), 4 * lanes); });
}

void Route::sigmoid() {
  Value one = k.constFloat(floats, 1);
  forVectors([&](Value at) {
    Value x = k.max(vectorAt(ranks, at), k.constFloat(floats, -80));
    k.store(k.div(one, k.add(one, k.exp(k.neg(x)))), k.at(scores, at), 4 * lanes);
  });
}

void Route::rankByScores() {
  forEachPiece(k, experts, lanes, [&](Value offset, int64_t piece) {
    Type type = k.vec(piece, k.f32());
    Value rank = k.load(type, k.at(scores, offset), 4);
    if (op.getBias())
      rank = k.add(rank, k.load(type, k.at(frame.address(op.getBias()), offset), 4));
    k.store(rank, k.at(ranks, offset), 4);
  });
}

// The sum of a group's best one or two ranks.
Value Route::groupWorth(Value group) {
  int64_t size = experts / int64_t(op.getGroups());
  Value first = k.mul(group, size);
  KernelBuilder::Values two =
      k.loop(first, k.add(first, size), k.constI64(1), {lowest(), lowest()},
             [&](Value i, ArrayRef<Value> carried) {
               Value x = floatAt(ranks, i);
               Value lesser = k.min(x, carried[0]);
               return KernelBuilder::Values{k.max(x, carried[0]), k.max(lesser, carried[1])};
             });
  return op.getGroupBest() == 2 ? k.add(two[0], two[1]) : two[0];
}

// Gives the lowest rank to all experts outside of the best groups: takes the
// worst group away until few enough are left.
void Route::dropGroups() {
  int64_t groups = op.getGroups(), size = experts / groups;
  Value none = k.constFloat(k.f32(), -kLowest);
  k.loop(k.constI64(0), k.constI64(groups), 1,
         [&](Value g) { k.store(groupWorth(g), k.at(worths, k.mul(g, 4)), 4); });
  k.loop(k.constI64(0), k.constI64(groups - int64_t(op.getGroupChosen())), 1, [&](Value) {
    Value worst = k.loop(k.constI64(0), k.constI64(groups), k.constI64(1),
                         {none, k.constI64(groups - 1)}, [&](Value g, ArrayRef<Value> carried) {
                           Value worth = floatAt(worths, g);
                           // Of equals the last goes.
                           Value less = k.lessEqual(worth, carried[0]);
                           return KernelBuilder::Values{k.select(less, worth, carried[0]),
                                                        k.select(less, g, carried[1])};
                         })[1];
    k.store(none, k.at(worths, k.mul(worst, 4)), 4);
    Value first = k.mul(worst, size);
    k.loop(first, k.add(first, size), 1,
           [&](Value i) { k.store(lowest(), k.at(ranks, k.mul(i, 4)), 4); });
  });
}

// The first expert of the greatest rank. Lanes keep their greatest rank and
// padded - number, which is greater for the earlier of equals.
Value Route::best() {
  llvm::SmallVector<int32_t> numbers;
  for (int64_t i = 0; i < lanes; ++i)
    numbers.push_back(int32_t(padded - i));
  Value keys = arith::ConstantOp::create(
      k.builder, k.loc, DenseElementsAttr::get(cast<VectorType>(ints), ArrayRef(numbers)));
  Value step = k.constInt(ints, lanes);
  auto found = k.loop(k.constI64(0), k.constI64(4 * padded), k.constI64(4 * lanes),
                      {k.constFloat(floats, kLowest), k.zero(ints), keys},
                      [&](Value at, ArrayRef<Value> carried) {
                        Value rank = vectorAt(ranks, at);
                        Value better = k.less(carried[0], rank);
                        return KernelBuilder::Values{k.select(better, rank, carried[0]),
                                                     k.select(better, carried[2], carried[1]),
                                                     k.sub(carried[2], step)};
                      });
  Value most = k.splat(k.maxLanes(found[0]), lanes);
  Value key = k.maxLanes(k.select(k.equal(found[0], most), found[1], k.zero(ints)));
  Value expert = k.sub(k.constI64(padded), k.extendS(key, k.i64()));
  // Ranks that are no numbers win nowhere.
  return k.min(expert, k.constI64(experts - 1));
}

void Route::finishWeights(Value token) {
  Value first = k.mul(token, chosen);
  auto weightOf = [&](Value j) { return k.at(entry(k.add(first, j)), layout.kChoiceWeight); };
  auto sumOf = [&](llvm::function_ref<Value(Value)> term) {
    return k.loop(k.constI64(0), k.constI64(chosen), k.constI64(1), {k.zero(k.f32())},
                  [&](Value j, ArrayRef<Value> carried) {
                    return KernelBuilder::Values{k.add(carried[0], term(j))};
                  })[0];
  };
  Value factor = k.constFloat(k.f32(), op.getScale().convertToDouble());
  bool byRating = op.getScore() == pack::Score::SoftmaxChosen;
  if (byRating) {
    Value most = k.load(k.f32(), weightOf(k.constI64(0)), 4);
    factor = k.div(factor, sumOf([&](Value j) {
                     Value x = k.sub(k.load(k.f32(), weightOf(j), 4), most);
                     Value power = k.exp(k.max(x, k.constFloat(k.f32(), -100)));
                     k.store(power, weightOf(j), 4);
                     return power;
                   }));
  } else if (op.getNormalize()) {
    Value sum = sumOf([&](Value j) { return k.load(k.f32(), weightOf(j), 4); });
    factor = k.div(factor, k.add(sum, k.constFloat(k.f32(), 1e-20)));
  } else if (op.getScale().convertToFloat() == 1.0f) {
    return;
  }
  k.loop(k.constI64(0), k.constI64(chosen), 1,
         [&](Value j) { k.store(k.mul(k.load(k.f32(), weightOf(j), 4), factor), weightOf(j), 4); });
}

void Route::group() {
  Value zero = k.constI64(0), pairs = k.mul(frame.tokens, chosen), end = k.constI64(experts);
  Value next = k.at(counts, 4 * experts);
  auto choiceOf = [&](Value i) {
    return k.extendS(k.load(k.i32(), k.at(entry(i), layout.kChoice), 4), k.i64());
  };
  k.loop(zero, end, 1, [&](Value e) { storeIndex(zero, k.at(counts, k.mul(e, 4))); });
  k.loop(zero, pairs, 1, [&](Value i) {
    Value expert = choiceOf(i);
    storeIndex(k.add(index(counts, expert), 1), k.at(counts, k.mul(expert, 4)));
  });
  Value active =
      k.loop(zero, end, k.constI64(1), {zero, zero}, [&](Value e, ArrayRef<Value> carried) {
        Value count = index(counts, e), first = carried[0];
        storeIndex(first, k.at(next, k.mul(e, 4)));
        // The next expert overwrites the entry of one without pairs.
        Value to = k.at(k.at(table, layout.kExperts), k.mul(carried[1], layout.kExpertBytes));
        storeIndex(e, to);
        storeIndex(first, k.at(to, layout.kFirst));
        storeIndex(count, k.at(to, layout.kCount));
        Value used = k.extendU(k.less(zero, count), k.i64());
        return KernelBuilder::Values{k.add(first, count), k.add(carried[1], used)};
      })[1];
  storeIndex(active, table);
  k.loop(zero, pairs, 1, [&](Value i) {
    Value expert = choiceOf(i);
    Value place = index(next, expert);
    storeIndex(k.add(place, 1), k.at(next, k.mul(expert, 4)));
    Value to = entry(place);
    storeIndex(k.div(i, chosen), to);
    Value weight = k.load(k.f32(), k.at(entry(i), layout.kChoiceWeight), 4);
    k.store(weight, k.at(to, layout.kWeight), 4);
  });
}

} // namespace

llvm::LogicalResult emitRoute(KernelFrame &frame, pack::RouteOp op) {
  Route(frame, op).emit();
  return success();
}

} // namespace izhc
