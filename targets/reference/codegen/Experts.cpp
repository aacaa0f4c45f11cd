// Mixtures of experts: `route`, `expert_gate` and `expert_sum`.

#include "targets/reference/codegen/Lowering.h"
#include "targets/reference/codegen/Weights.h"
#include <limits>

namespace izhc::reference {

using namespace mlir;

namespace {

constexpr int64_t kTile = PackedLayout::kTileRows;
constexpr double kInfinity = std::numeric_limits<float>::infinity();

// The choice of experts, one row after the other.
struct RouteEmitter {
  KernelFrameBase &frame;
  KernelBuilder &k;
  pack::RouteOp op;
  pack::RoutesLayout layout;
  int64_t experts, chosen;
  Value table, scores, ranks, worths;

  RouteEmitter(KernelFrameBase &frame, pack::RouteOp op)
      : frame(frame), k(frame.k), op(op), layout(op.getRoutes()), experts(layout.type.getExperts()),
        chosen(layout.type.getChosen()), table(frame.address(op.getInto())),
        scores(k.stack(4 * experts)), ranks(k.stack(4 * experts)),
        worths(k.stack(4 * int64_t(op.getGroups()))) {}

  void each(int64_t count, llvm::function_ref<void(Value i)> body) {
    k.loop(k.constI64(0), k.constI64(count), 1, body);
  }
  Value number(double value) { return k.constFloat(k.f32(), value); }
  Value pair(Value i) { return k.at(k.at(table, layout.pairs()), k.mul(i, layout.kPairBytes)); }

  // The number, of `count`, of the greatest value of `array`: the first of equals.
  Value greatest(Value array, int64_t count) {
    return k.loop(k.constI64(0), k.constI64(count), k.constI64(1),
                  {number(-kInfinity), k.constI64(count - 1)},
                  [&](Value i, ArrayRef<Value> carried) {
                    Value x = loadFloat(k, array, i);
                    Value better = k.less(carried[0], x);
                    return KernelBuilder::Values{k.select(better, x, carried[0]),
                                                 k.select(better, i, carried[1])};
                  })[1];
  }

  void score(Value ratings) {
    if (op.getScore() == pack::Score::SoftmaxChosen)
      return each(experts, [&](Value i) { storeFloat(k, loadFloat(k, ratings, i), scores, i); });
    if (op.getScore() == pack::Score::Sigmoid)
      return each(experts, [&](Value i) {
        Value power = k.exp(k.neg(loadFloat(k, ratings, i)));
        storeFloat(k, k.div(number(1), k.add(number(1), power)), scores, i);
      });
    Value most = loadFloat(k, ratings, greatest(ratings, experts));
    Value all = sum(k, k.f32(), k.constI64(experts), [&](Value i) {
      Value power = k.exp(k.sub(loadFloat(k, ratings, i), most));
      storeFloat(k, power, scores, i);
      return power;
    });
    each(experts, [&](Value i) { storeFloat(k, k.div(loadFloat(k, scores, i), all), scores, i); });
  }

  // What a group is worth: the sum of its greatest one or two ranks.
  Value worth(Value group) {
    int64_t size = experts / int64_t(op.getGroups());
    Value first = k.mul(group, size);
    auto best =
        k.loop(first, k.add(first, size), k.constI64(1), {number(-kInfinity), number(-kInfinity)},
               [&](Value i, ArrayRef<Value> carried) {
                 Value x = loadFloat(k, ranks, i);
                 Value second = k.max(carried[1], k.min(carried[0], x));
                 return KernelBuilder::Values{k.max(carried[0], x), second};
               });
    return op.getGroupBest() == 2 ? k.add(best[0], best[1]) : best[0];
  }

  void rank(Value ratings) {
    int64_t groups = op.getGroups(), size = experts / groups;
    bool byScore = op.getBias() || groups > 1;
    each(experts, [&](Value i) {
      Value x = loadFloat(k, byScore ? scores : ratings, i);
      if (op.getBias())
        x = k.add(x, loadFloat(k, frame.address(op.getBias()), i));
      storeFloat(k, x, ranks, i);
    });
    if (groups == 1)
      return;
    // Chosen groups are marked by a worth that no group has.
    each(groups, [&](Value g) { storeFloat(k, worth(g), worths, g); });
    each(int64_t(op.getGroupChosen()),
         [&](Value) { storeFloat(k, number(-kInfinity), worths, greatest(worths, groups)); });
    each(experts, [&](Value i) {
      Value left = k.less(number(-kInfinity), loadFloat(k, worths, k.div(i, size)));
      storeFloat(k, k.select(left, number(-kInfinity), loadFloat(k, ranks, i)), ranks, i);
    });
  }

  void choose(Value token) {
    Value ratings = k.at(frame.address(op.getRatings()), k.mul(token, 4 * experts));
    score(ratings);
    rank(ratings);
    Value first = k.mul(token, chosen);
    auto weight = [&](Value j) { return k.at(pair(k.add(first, j)), layout.kChoiceWeight); };
    auto weightNow = [&](Value j) { return k.load(k.f32(), weight(j), 4); };
    each(chosen, [&](Value j) {
      Value expert = greatest(ranks, experts);
      storeFloat(k, number(-kInfinity), ranks, expert);
      Value at = k.at(pair(k.add(first, j)), layout.kChoice);
      k.store(k.truncate(expert, k.i32()), at, 4);
      k.store(loadFloat(k, scores, expert), weight(j), 4);
    });
    Value count = k.constI64(chosen), divisor = number(1);
    if (op.getScore() == pack::Score::SoftmaxChosen) {
      Value most = weightNow(k.constI64(0));
      each(chosen, [&](Value j) { k.store(k.exp(k.sub(weightNow(j), most)), weight(j), 4); });
      divisor = sum(k, k.f32(), count, weightNow);
    } else if (op.getNormalize()) {
      divisor = k.add(sum(k, k.f32(), count, weightNow), number(1e-20));
    }
    Value scale = number(op.getScale().convertToDouble());
    each(chosen,
         [&](Value j) { k.store(k.mul(k.div(weightNow(j), divisor), scale), weight(j), 4); });
  }

  // For each expert: all choices are looked at, and those of it become pairs.
  void group() {
    Value zero = k.constI64(0), one = k.constI64(1);
    Value choices = k.mul(frame.tokens, chosen);
    Value active =
        k.loop(zero, k.constI64(experts), one, {zero, zero}, [&](Value e, ArrayRef<Value> from) {
          Value end = k.loop(zero, choices, one, {from[0]}, [&](Value i, ArrayRef<Value> place) {
            Value choice = k.load(k.i32(), k.at(pair(i), layout.kChoice), 4);
            Value own = k.equal(k.extendS(choice, k.i64()), e);
            k.ifThen(own, [&] {
              k.store(k.truncate(k.div(i, chosen), k.i32()), pair(place[0]), 4);
              Value weight = k.load(k.f32(), k.at(pair(i), layout.kChoiceWeight), 4);
              k.store(weight, k.at(pair(place[0]), layout.kWeight), 4);
            });
            return KernelBuilder::Values{k.select(own, k.add(place[0], 1), place[0])};
          })[0];
          Value some = k.less(from[0], end);
          k.ifThen(some, [&] {
            Value to = k.at(k.at(table, layout.kExperts), k.mul(from[1], layout.kExpertBytes));
            k.store(k.truncate(e, k.i32()), to, 4);
            k.store(k.truncate(from[0], k.i32()), k.at(to, layout.kFirst), 4);
            k.store(k.truncate(k.sub(end, from[0]), k.i32()), k.at(to, layout.kCount), 4);
          });
          return KernelBuilder::Values{end, k.select(some, k.add(from[1], 1), from[1])};
        })[1];
    k.store(k.truncate(active, k.i32()), table, 4);
  }
};

// The stacks of an op, read with its activations.
struct Stacks {
  KernelFrameBase &frame;
  KernelBuilder &k;
  Operation *op;
  Value act, table;
  pack::ActType actType;
  pack::RoutesLayout layout;
  llvm::SmallVector<Weights> readers;
  llvm::SmallVector<Value> bases, biases;
  int64_t rows = 0, matrixBytes = 0;
  bool ok = true;

  Stacks(KernelFrameBase &frame, Operation *op, Value act, Value routes)
      : frame(frame), k(frame.k), op(op), act(act), table(frame.address(routes)),
        actType(cast<pack::ActType>(act.getType())),
        layout(cast<pack::RoutesType>(routes.getType())) {}

  LogicalResult init(ValueRange weights, ValueRange biasOperands) {
    for (Value operand : weights) {
      auto type = cast<pack::WeightType>(operand.getType());
      auto reader = Weights::of(op, k, type);
      if (!reader)
        return failure();
      readers.push_back(*reader);
      bases.push_back(frame.address(operand));
      rows = type.getRows();
    }
    for (Value operand : biasOperands)
      biases.push_back(frame.address(operand));
    return success();
  }

  // y[pair, row] of one stack's matrix of `expert`.
  Value at(size_t which, Value expert, Value pair, Value row) {
    auto type = cast<pack::WeightType>(weightOf(which).getType());
    PackedLayout packed(*findFormat(type.getFormat().getValue()));
    Value base =
        k.at(bases[which], k.mul(expert, packed.matrixBytes(type.getRows(), type.getCols())));
    Value record = k.at(frame.address(act), k.mul(pair, pack::ActLayout(actType).stride));
    auto y = readers[which].dot(op, readers[which].row(base, row), record, actType);
    ok &= succeeded(y);
    if (!ok)
      return k.zero(k.f32());
    if (biases.empty())
      return *y;
    return k.add(*y, loadFloat(k, biases[which], k.add(k.mul(expert, rows), row)));
  }

  // Calls body(expert, pair, row) for all pairs and the rows of the frame's units.
  void forEach(llvm::function_ref<void(Value expert, Value pair, Value row)> body) {
    auto load = [&](Value from) { return k.extendS(k.load(k.i32(), from, 4), k.i64()); };
    k.loop(k.constI64(0), load(table), 1, [&](Value i) {
      Value entry = k.at(k.at(table, layout.kExperts), k.mul(i, layout.kExpertBytes));
      Value expert = load(entry), first = load(k.at(entry, layout.kFirst));
      Value end = k.add(first, load(k.at(entry, layout.kCount)));
      forRows(
          [&](Value row) { k.loop(first, end, 1, [&](Value pair) { body(expert, pair, row); }); });
    });
  }

  void forRows(llvm::function_ref<void(Value row)> body) {
    Value end = k.min(k.mul(frame.end, kTile), k.constI64(rows));
    k.loop(k.mul(frame.begin, kTile), end, 1, body);
  }

  Value weightOf(size_t which) {
    if (auto gate = dyn_cast<pack::ExpertGateOp>(op))
      return gate.getWeights()[which];
    return cast<pack::ExpertSumOp>(op).getWeight();
  }
};

} // namespace

LogicalResult emitRoute(KernelFrameBase &frame, pack::RouteOp op) {
  KernelBuilder &k = frame.k;
  RouteEmitter route(frame, op);
  k.loop(frame.begin, frame.end, 1, [&](Value) {
    k.loop(k.constI64(0), frame.tokens, 1, [&](Value token) { route.choose(token); });
    route.group();
  });
  return success();
}

LogicalResult emitExpertGate(KernelFrameBase &frame, pack::ExpertGateOp op) {
  KernelBuilder &k = frame.k;
  Stacks stacks(frame, op, op.getAct(), op.getRoutes());
  if (failed(stacks.init(op.getWeights(), op.getBiases())))
    return failure();
  auto constant = [&](const llvm::APFloat &value) {
    return k.constFloat(k.f32(), value.convertToDouble());
  };
  stacks.forEach([&](Value expert, Value pair, Value row) {
    Value gate = stacks.at(0, expert, pair, row), up = stacks.at(1, expert, pair, row);
    Value result;
    if (op.getGating() == pack::Gating::LimitedSilu) {
      Value limit = constant(op.getLimit()), one = k.constFloat(k.f32(), 1);
      gate = k.min(gate, limit);
      up = k.max(k.neg(limit), k.min(up, limit));
      Value power = k.exp(k.neg(k.mul(constant(op.getAlpha()), gate)));
      result = k.mul(k.div(gate, k.add(one, power)), k.add(up, one));
    } else {
      result = k.mul(k.silu(gate), up);
    }
    Value out = k.at(frame.address(op.getInto()), k.mul(pair, rowBytes(op.getInto())));
    storeFloat(k, result, out, row);
  });
  return success(stacks.ok);
}

LogicalResult emitExpertSum(KernelFrameBase &frame, pack::ExpertSumOp op) {
  KernelBuilder &k = frame.k;
  Stacks stacks(frame, op, op.getAct(), op.getRoutes());
  llvm::SmallVector<Value, 1> biases;
  if (op.getBias())
    biases.push_back(op.getBias());
  if (failed(stacks.init(op.getWeight(), biases)))
    return failure();
  auto outRow = [&](Value token) {
    return k.at(frame.address(op.getInto()), k.mul(token, rowBytes(op.getInto())));
  };
  if (op.getEpilogue() == pack::Epilogue::Store)
    k.loop(k.constI64(0), frame.tokens, 1, [&](Value token) {
      stacks.forRows([&](Value row) { storeFloat(k, k.zero(k.f32()), outRow(token), row); });
    });
  stacks.forEach([&](Value expert, Value pair, Value row) {
    Value entry =
        k.at(k.at(stacks.table, stacks.layout.pairs()), k.mul(pair, stacks.layout.kPairBytes));
    Value weight = k.load(k.f32(), k.at(entry, stacks.layout.kWeight), 4);
    weight = k.mul(weight, k.constFloat(k.f32(), op.getScale().convertToDouble()));
    Value out = outRow(pairRow(k, stacks.table, stacks.layout.type, pair));
    Value y = k.mul(stacks.at(0, expert, pair, row), weight);
    storeFloat(k, k.add(loadFloat(k, out, row), y), out, row);
  });
  return success(stacks.ok);
}

} // namespace izhc::reference
