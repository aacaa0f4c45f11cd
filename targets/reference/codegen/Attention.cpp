// Causal attention over the paged cache, in two passes over the keys: the
// largest score first, then the weights and the sum of values. Scores are
// computed in both, so that no memory grows with the context.

#include "targets/reference/codegen/Lowering.h"

namespace izhc::reference {

using namespace mlir;

namespace {

struct AttentionEmitter {
  KernelBuilder &k;
  pack::AttentionOp op;
  pack::KvType kv;
  Value cache, pages; // pages: from the sequence's first entry
  Value sinks;        // of all heads, or null
  Value kvHead;

  // The page that holds key `j`, and its place there.
  Value page(Value j, Value &slot) {
    slot = k.rem(j, kv.getPage());
    Value number = loadIndex(k, pages, k.div(j, kv.getPage()));
    return k.at(cache, k.mul(number, kv.getPageBytes()));
  }

  Value half(Value page, Value index) {
    return k.halfToFloat(k.load(k.i16(), k.at(page, k.mul(index, 2)), 2));
  }

  Value score(Value query, Value j) {
    Value slot;
    Value keys = page(j, slot);
    Value dot = sum(k, k.f32(), k.constI64(kv.getDim()), [&](Value i) {
      Value index = k.add(k.mul(k.add(k.mul(kvHead, kv.getDim()), i), kv.getPage()), slot);
      return k.mul(loadFloat(k, query, i), half(keys, index));
    });
    Value scaled = k.mul(dot, k.constFloat(k.f32(), op.getScale().convertToFloat()));
    return k.softcap(scaled, op.getSoftcap().convertToFloat());
  }

  // out += weight * value j
  void addValue(Value out, Value weight, Value j) {
    Value slot;
    Value values = k.at(page(j, slot), kv.getValuesOffset());
    k.loop(k.constI64(0), k.constI64(kv.getValueDim()), 1, [&](Value i) {
      Value index = k.add(k.mul(k.add(k.mul(kvHead, kv.getPage()), slot), kv.getValueDim()), i);
      Value term = k.mul(weight, half(values, index));
      storeFloat(k, k.add(loadFloat(k, out, i), term), out, i);
    });
  }

  // Head `head` of a token that sees the keys `begin` to `end` - 1; `scratch`
  // holds a head.
  void emit(Value query, Value into, Value head, Value begin, Value end, Value scratch) {
    Value zero = k.constI64(0), one = k.constI64(1), dim = k.constI64(kv.getValueDim());
    Value start = sinks ? loadFloat(k, sinks, head) : score(query, begin);
    Value most = k.loop(begin, end, one, {start}, [&](Value j, llvm::ArrayRef<Value> carried) {
      return KernelBuilder::Values{k.max(carried[0], score(query, j))};
    })[0];
    k.loop(zero, dim, 1, [&](Value i) { storeFloat(k, k.zero(k.f32()), scratch, i); });
    Value sink = sinks ? k.exp(k.sub(start, most)) : k.zero(k.f32());
    Value total = k.loop(begin, end, one, {sink}, [&](Value j, llvm::ArrayRef<Value> carried) {
      Value weight = k.exp(k.sub(score(query, j), most));
      addValue(scratch, weight, j);
      return KernelBuilder::Values{k.add(carried[0], weight)};
    })[0];
    k.loop(zero, dim, 1,
           [&](Value i) { storeFloat(k, k.div(loadFloat(k, scratch, i), total), into, i); });
  }
};

} // namespace

LogicalResult emitAttention(KernelFrameBase &frame, pack::AttentionOp op) {
  KernelBuilder &k = frame.k;
  auto kv = cast<pack::KvType>(op.getCache().getType());
  int64_t group = int64_t(op.getHeads()) / kv.getHeads();
  Value scratch = k.stack(4 * kv.getValueDim());
  k.loop(frame.begin, frame.end, 1, [&](Value unit) {
    Value tile = k.at(frame.address(op.getTiles()), k.mul(k.div(unit, kv.getHeads()), 16));
    auto field = [&](int64_t i) { return loadIndex(k, tile, k.constI64(i)); };
    Value firstRow = field(0), rows = field(1), firstPosition = field(2), firstPage = field(3);
    AttentionEmitter emitter{k,
                             op,
                             kv,
                             frame.address(op.getCache()),
                             k.at(frame.address(op.getPages()), k.mul(firstPage, 4)),
                             op.getSinks() ? frame.address(op.getSinks()) : Value(),
                             k.rem(unit, kv.getHeads())};
    k.loop(k.constI64(0), rows, 1, [&](Value i) {
      k.loop(k.constI64(0), k.constI64(group), 1, [&](Value inGroup) {
        Value head = k.add(k.mul(emitter.kvHead, group), inGroup);
        Value row = k.add(firstRow, i);
        auto headOf = [&](Value buffer, int64_t size) {
          Value at = k.add(k.mul(row, rowBytes(buffer)), k.mul(head, 4 * size));
          return k.at(frame.address(buffer), at);
        };
        Value end = k.add(k.add(firstPosition, i), 1), begin = k.constI64(0);
        if (int64_t window = op.getWindow())
          begin = k.max(begin, k.add(end, -window));
        emitter.emit(headOf(op.getQueries(), kv.getDim()), headOf(op.getInto(), kv.getValueDim()),
                     head, begin, end, scratch);
      });
    });
  });
  return success();
}

} // namespace izhc::reference
