// pack.expert_gate and pack.expert_sum: for each expert that has pairs, tiles
// of its matrices times the records of its pairs, which lie side by side.
//
// Experts are the outer loop and tiles the inner one, so that a piece of units
// reads one run of bytes of each expert. A tile that was read stays in the
// first cache while its pairs pass by in groups.

#include "compiler/target/vector/SegmentProducts.h"
#include "dialects/pack/RoutesLayout.h"

namespace izhc {

using namespace mlir;

namespace {

class Experts {
public:
  // Pairs rows.first..rows.first+rows.count of all.
  using Rows = SegmentProducts::Rows;

  Experts(KernelFrame &frame, Operation *op, Value act, Value routes, Value into, int64_t matrices)
      : frame(frame), k(frame.k), op(op), actType(cast<pack::ActType>(act.getType())),
        layout(actType), routes(cast<pack::RoutesType>(routes.getType())),
        table(frame.address(routes)), records(frame.address(act)), out(frame.address(into)),
        outStride(4 * cast<MemRefType>(into.getType()).getDimSize(1)),
        products(frame, actType, matrices) {}

  // Reads the operands; a failure has its diagnostic.
  LogicalResult init(ValueRange weights, ValueRange biases);

  // For each group of pairs of each tile of each expert: the products are made
  // and `finish` is called.
  void forPairs(llvm::function_ref<void(const Rows &pairs)> finish);
  // The columns of a tile that exist, a vector or one at a time.
  void forColumns(Value tile, llvm::function_ref<void(Value column, int64_t lanes)> body);
  // The sums (+ bias) of product `which` at a column of the tile.
  Value sumAt(size_t which, const Rows &pairs, Value row, Value column, int64_t lanes);
  // The place of `column` of the tile in row `row` of the result.
  Value outAt(Value row, Value tile, Value column) {
    Value first = k.add(k.mul(tile, PackedLayout::kTileRows), column);
    return k.at(k.at(out, k.mul(row, outStride)), k.mul(first, 4));
  }
  // Row and weight of a pair.
  Value pairRow(Value pair) { return k.extendS(k.load(k.i32(), pairAt(pair), 4), k.i64()); }
  Value pairWeight(Value pair) {
    return k.load(k.f32(), k.at(pairAt(pair), pack::RoutesLayout::kWeight), 4);
  }

  KernelFrame &frame;
  KernelBuilder &k;

private:
  Value pairAt(Value pair) {
    return k.at(k.at(table, routes.pairs()), k.mul(pair, pack::RoutesLayout::kPairBytes));
  }
  void tiles(Value expert, Value first, Value count, llvm::function_ref<void(const Rows &)> finish);

  Operation *op;
  pack::ActType actType;
  pack::ActLayout layout;
  pack::RoutesLayout routes;
  Value table, records, out;
  int64_t outStride;
  // The stacks, and the same at the expert of the moment.
  llvm::SmallVector<Segment, 2> stacks, segments;
  SegmentProducts products;
};

LogicalResult Experts::init(ValueRange weights, ValueRange biases) {
  for (auto [i, weight] : llvm::enumerate(weights)) {
    auto stack = segmentOf(frame, op, actType, weight, biases.empty() ? Value() : biases[i]);
    if (failed(stack))
      return failure();
    stacks.push_back(*stack);
  }
  return success();
}

void Experts::forPairs(llvm::function_ref<void(const Rows &)> finish) {
  auto number = [&](Value from) { return k.extendS(k.load(k.i32(), from, 4), k.i64()); };
  k.loop(k.constI64(0), number(table), 1, [&](Value i) {
    Value entry =
        k.at(k.at(table, pack::RoutesLayout::kExperts), k.mul(i, pack::RoutesLayout::kExpertBytes));
    tiles(number(entry), number(k.at(entry, pack::RoutesLayout::kFirst)),
          number(k.at(entry, pack::RoutesLayout::kCount)), finish);
  });
}

void Experts::tiles(Value expert, Value first, Value count,
                    llvm::function_ref<void(const Rows &)> finish) {
  segments = stacks;
  for (Segment &segment : segments) {
    int64_t tileBytes = PackedLayout(*segment.format).tileBytes(segment.cols);
    segment.weights = k.at(segment.weights, k.mul(expert, segment.tiles() * tileBytes));
    if (segment.bias)
      segment.bias = k.at(segment.bias, k.mul(expert, 4 * segment.rows));
  }
  products.emit(segments, k.at(records, k.mul(first, layout.stride)), count, [&](Rows pairs) {
    pairs.first = k.add(first, pairs.first);
    finish(pairs);
  });
}

void Experts::forColumns(Value tile, llvm::function_ref<void(Value, int64_t)> body) {
  int64_t lanes = frame.machine.lanes, surplus = stacks[0].rows % PackedLayout::kTileRows;
  auto columns = [&](int64_t count, int64_t lanes) {
    k.loop(k.constI64(0), k.constI64(count), lanes, [&](Value column) { body(column, lanes); });
  };
  if (surplus == 0)
    return columns(PackedLayout::kTileRows, lanes);
  Value last = k.equal(tile, k.constI64(stacks[0].tiles() - 1));
  k.ifThenElse(
      last, [&] { columns(surplus, 1); }, [&] { columns(PackedLayout::kTileRows, lanes); });
}

Value Experts::sumAt(size_t which, const Rows &pairs, Value row, Value column, int64_t lanes) {
  Type type = k.vec(lanes, k.f32());
  Value at = k.mul(k.add(k.mul(row, PackedLayout::kTileRows), column), 4);
  Value sum = k.load(type, k.at(pairs.sums[which], at), unsigned(4 * lanes));
  const Segment &segment = segments[which];
  if (!segment.bias)
    return sum;
  Value first = k.add(k.mul(pairs.tile, PackedLayout::kTileRows), column);
  return k.add(sum, k.load(type, k.at(segment.bias, k.mul(first, 4)), 4));
}

Value gate(KernelBuilder &k, pack::ExpertGateOp op, Value gate, Value up) {
  if (op.getGating() == pack::Gating::Silu)
    return k.mul(k.silu(gate), up);
  Value limit = k.constFloat(gate.getType(), op.getLimit().convertToDouble());
  Value one = k.constFloat(gate.getType(), 1);
  gate = k.min(gate, limit);
  up = k.max(k.min(up, limit), k.neg(limit));
  Value scaled = k.mul(gate, k.constFloat(gate.getType(), -op.getAlpha().convertToDouble()));
  return k.mul(k.div(gate, k.add(one, k.exp(scaled))), k.add(up, one));
}

} // namespace

llvm::LogicalResult emitExpertGate(KernelFrame &frame, pack::ExpertGateOp op) {
  KernelBuilder &k = frame.k;
  Experts experts(frame, op, op.getAct(), op.getRoutes(), op.getInto(), op.getWeights().size());
  if (failed(experts.init(op.getWeights(), op.getBiases())))
    return failure();
  experts.forPairs([&](const Experts::Rows &pairs) {
    k.loop(k.constI64(0), pairs.count, 1, [&](Value row) {
      experts.forColumns(pairs.tile, [&](Value column, int64_t lanes) {
        Value result = gate(k, op, experts.sumAt(0, pairs, row, column, lanes),
                            experts.sumAt(1, pairs, row, column, lanes));
        k.store(result, experts.outAt(k.add(pairs.first, row), pairs.tile, column), 4);
      });
    });
  });
  return success();
}

llvm::LogicalResult emitExpertSum(KernelFrame &frame, pack::ExpertSumOp op) {
  KernelBuilder &k = frame.k;
  Experts experts(frame, op, op.getAct(), op.getRoutes(), op.getInto(), 1);
  llvm::SmallVector<Value, 1> biases;
  if (op.getBias())
    biases.push_back(op.getBias());
  if (failed(experts.init(op.getWeight(), biases)))
    return failure();
  if (op.getEpilogue() == pack::Epilogue::Store)
    k.loop(k.constI64(0), frame.tokens, 1, [&](Value row) {
      k.loop(frame.begin, frame.end, 1, [&](Value tile) {
        experts.forColumns(tile, [&](Value column, int64_t lanes) {
          k.store(k.zero(k.vec(lanes, k.f32())), experts.outAt(row, tile, column), 4);
        });
      });
    });
  experts.forPairs([&](const Experts::Rows &pairs) {
    k.loop(k.constI64(0), pairs.count, 1, [&](Value i) {
      Value number = k.add(pairs.first, i);
      Value row = experts.pairRow(number), weight = experts.pairWeight(number);
      if (op.getScale().convertToFloat() != 1.0f)
        weight = k.mul(weight, k.constFloat(k.f32(), op.getScale().convertToDouble()));
      experts.forColumns(pairs.tile, [&](Value column, int64_t lanes) {
        Value to = experts.outAt(row, pairs.tile, column);
        Value sum = experts.sumAt(0, pairs, i, column, lanes);
        Value old = k.load(k.vec(lanes, k.f32()), to, 4);
        k.store(k.mulAdd(sum, k.splat(weight, lanes), old), to, 4);
      });
    });
  });
  return success();
}

} // namespace izhc
