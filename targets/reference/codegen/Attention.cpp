// Causal attention over the paged cache, span by span, in two passes over a
// span's keys: the largest score first, then the weights and the sum of values.
// Scores are computed in both, so that no memory grows with the context.

#include "targets/reference/codegen/KvCells.h"
#include "targets/reference/codegen/Lowering.h"

namespace izhc::reference {

using namespace mlir;
using pack::KvLayout;

namespace {

constexpr double kMasked = -1e30;
constexpr int64_t kSpan = KvLayout::kSpan;

// Maximum, sum and weighted values of the spans merged so far.
struct Sums {
  KernelBuilder &k;
  KvCells cells;
  Value maximum, sum, values;

  Sums(KernelBuilder &k, pack::KvType kv)
      : k(k), cells(k, kv), maximum(k.stack(4)), sum(k.stack(4)),
        values(k.stack(4 * kv.getValueDim())) {}

  void forEachColumn(llvm::function_ref<void(Value)> body) {
    k.loop(k.constI64(0), k.constI64(cells.type.getValueDim()), 1, body);
  }
  void clear() {
    k.store(k.constFloat(k.f32(), kMasked), maximum, 4);
    k.store(k.zero(k.f32()), sum, 4);
    forEachColumn([&](Value i) { storeFloat(k, k.zero(k.f32()), values, i); });
  }
  void merge(Value spanMaximum, Value spanSum, Value spanValues) {
    Value before = k.load(k.f32(), maximum, 4), most = k.max(before, spanMaximum);
    Value c = k.exp(k.sub(before, most)), f = k.exp(k.sub(spanMaximum, most));
    auto fold = [&](Value old, Value added) { return k.add(k.mul(old, c), k.mul(added, f)); };
    k.store(most, maximum, 4);
    k.store(fold(k.load(k.f32(), sum, 4), spanSum), sum, 4);
    forEachColumn([&](Value i) {
      storeFloat(k, fold(loadFloat(k, values, i), loadFloat(k, spanValues, i)), values, i);
    });
  }
  // `sink`: null for none.
  void finish(Value sink, Value into) {
    Value total = k.load(k.f32(), sum, 4), factor = k.constFloat(k.f32(), 1.0);
    if (sink) {
      Value before = k.load(k.f32(), maximum, 4), most = k.max(before, sink);
      factor = k.exp(k.sub(before, most));
      total = k.add(k.mul(total, factor), k.exp(k.sub(sink, most)));
    }
    cells.turn(values, cells.type.getValueDim());
    forEachColumn([&](Value i) {
      storeFloat(k, k.mul(loadFloat(k, values, i), k.div(factor, total)), into, i);
    });
  }
};

struct AttentionEmitter {
  KernelBuilder &k;
  pack::AttentionOp op;
  KvCells cells;
  Sums sums;
  Value cache, scratch; // scratch: weighted values of a span
  Value pages;          // from the sequence's first entry
  Value kvHead;

  // The page that holds key `j`, and its place there.
  Value page(Value j, Value &slot) {
    slot = k.rem(j, cells.layout.page);
    Value number = loadIndex(k, pages, k.div(j, cells.layout.page));
    return k.at(cache, k.mul(number, cells.layout.pageBytes));
  }

  Value score(Value query, Value j) {
    Value slot, keys = page(j, slot);
    Value dot = sum(k, k.f32(), k.constI64(cells.type.getDim()), [&](Value i) {
      return k.mul(loadFloat(k, query, i), cells.key(keys, kvHead, slot, i));
    });
    Value scaled = k.mul(dot, k.constFloat(k.f32(), op.getScale().convertToFloat()));
    return k.softcap(scaled, op.getSoftcap().convertToFloat());
  }

  // scratch += weight * value j
  void addValue(Value weight, Value j) {
    Value slot, values = page(j, slot);
    sums.forEachColumn([&](Value i) {
      Value term = k.mul(weight, cells.value(values, kvHead, slot, i));
      storeFloat(k, k.add(loadFloat(k, scratch, i), term), scratch, i);
    });
  }

  // The keys `begin` to `end` - 1, of one span.
  void addSpan(Value query, Value begin, Value end) {
    Value one = k.constI64(1), masked = k.constFloat(k.f32(), kMasked);
    Value most = k.loop(begin, end, one, {masked}, [&](Value j, ArrayRef<Value> carried) {
      return KernelBuilder::Values{k.max(carried[0], score(query, j))};
    })[0];
    sums.forEachColumn([&](Value i) { storeFloat(k, k.zero(k.f32()), scratch, i); });
    Value total = k.loop(begin, end, one, {k.zero(k.f32())}, [&](Value j, ArrayRef<Value> carried) {
      Value weight = k.exp(k.sub(score(query, j), most));
      addValue(weight, j);
      return KernelBuilder::Values{k.add(carried[0], weight)};
    })[0];
    sums.merge(most, total, scratch);
  }

  // The spans first..last of a row that sees the keys begin..end.
  void addSpans(Value query, Value begin, Value end, Value first, Value last) {
    sums.clear();
    k.loop(first, last, 1, [&](Value span) {
      Value start = k.mul(span, kSpan);
      addSpan(query, k.max(begin, start), k.min(end, k.add(start, kSpan)));
    });
  }
};

Value spanAfter(KernelBuilder &k, Value key) { return k.div(k.add(key, kSpan - 1), kSpan); }

Value windowStart(KernelBuilder &k, Value end, int64_t window) {
  return window ? k.max(k.add(end, -window), k.constI64(0)) : k.constI64(0);
}

} // namespace

LogicalResult emitAttention(KernelFrameBase &frame, pack::AttentionOp op) {
  KernelBuilder &k = frame.k;
  auto kv = cast<pack::KvType>(op.getCache().getType());
  int64_t heads = op.getHeads(), group = heads / kv.getHeads();
  AttentionEmitter emitter{k,
                           op,
                           KvCells(k, kv),
                           Sums(k, kv),
                           frame.address(op.getCache()),
                           k.stack(4 * kv.getValueDim()),
                           {},
                           {}};
  // One head of row `i` of a tile.
  auto emitHead = [&](Value number, Value i, Value head) {
    auto field = [&](Value array, int64_t word) {
      return loadIndex(k, k.at(frame.address(array), k.mul(number, 16)), k.constI64(word));
    };
    Value index = k.add(k.mul(k.add(field(op.getTiles(), 0), i), heads), head);
    auto headOf = [&](Value buffer, int64_t size) {
      return k.at(frame.address(buffer), k.mul(index, 4 * size));
    };
    Value end = k.add(k.add(field(op.getTiles(), 2), i), 1);
    Value begin = windowStart(k, end, op.getWindow());
    Value first = k.div(begin, kSpan), last = spanAfter(k, end);
    if (op.getParts()) {
      first = k.max(first, field(op.getParts(), 0));
      last = k.min(last, field(op.getParts(), 1));
    }
    emitter.addSpans(headOf(op.getQueries(), kv.getDim()), begin, end, first, last);
    auto finish = [&] {
      Value sink = op.getSinks() ? loadFloat(k, frame.address(op.getSinks()), head) : Value();
      emitter.sums.finish(sink, headOf(op.getInto(), kv.getValueDim()));
    };
    if (!op.getParts())
      return finish();
    Value place = field(op.getParts(), 2);
    k.ifThenElse(k.less(place, k.constI64(0)), finish, [&] {
      Value record = k.add(k.mul(k.add(place, i), heads), head);
      Value to = k.at(frame.address(op.getPartials()), k.mul(record, KvLayout(kv).partialBytes()));
      k.store(k.load(k.f32(), emitter.sums.maximum, 4), to, 4);
      k.store(k.load(k.f32(), emitter.sums.sum, 4), k.at(to, 4), 4);
      Value values = k.at(to, KvLayout::kPartialValues);
      emitter.sums.forEachColumn(
          [&](Value c) { storeFloat(k, loadFloat(k, emitter.sums.values, c), values, c); });
    });
  };
  k.loop(frame.begin, frame.end, 1, [&](Value unit) {
    Value number = k.div(unit, kv.getHeads());
    Value tile = k.at(frame.address(op.getTiles()), k.mul(number, 16));
    emitter.kvHead = k.rem(unit, kv.getHeads());
    emitter.pages = k.at(frame.address(op.getPages()), k.mul(loadIndex(k, tile, k.constI64(3)), 4));
    k.loop(k.constI64(0), loadIndex(k, tile, k.constI64(1)), 1, [&](Value i) {
      k.loop(k.constI64(0), k.constI64(group), 1, [&](Value inGroup) {
        emitHead(number, i, k.add(k.mul(emitter.kvHead, group), inGroup));
      });
    });
  });
  return success();
}

LogicalResult emitMerge(KernelFrameBase &frame, pack::MergeOp op) {
  KernelBuilder &k = frame.k;
  auto kv = cast<pack::KvType>(op.getCache().getType());
  int64_t heads = op.getHeads(), record = KvLayout(kv).partialBytes();
  Sums sums(k, kv);
  k.loop(frame.begin, frame.end, 1, [&](Value unit) {
    Value head = k.rem(unit, heads);
    Value entry = k.at(frame.address(op.getMerges()), k.mul(k.div(unit, heads), 16));
    auto field = [&](int64_t word) { return loadIndex(k, entry, k.constI64(word)); };
    Value row = field(0), end = k.add(field(1), 1), place = field(2), step = field(3);
    sums.clear();
    k.loop(k.div(windowStart(k, end, op.getWindow()), kSpan), spanAfter(k, end), 1,
           [&](Value span) {
             Value number = k.add(k.mul(k.add(place, k.mul(span, step)), heads), head);
             Value from = k.at(frame.address(op.getPartials()), k.mul(number, record));
             sums.merge(k.load(k.f32(), from, 4), k.load(k.f32(), k.at(from, 4), 4),
                        k.at(from, KvLayout::kPartialValues));
           });
    Value sink = op.getSinks() ? loadFloat(k, frame.address(op.getSinks()), head) : Value();
    Value into = k.mul(k.add(k.mul(row, heads), head), 4 * kv.getValueDim());
    sums.finish(sink, k.at(frame.address(op.getInto()), into));
  });
  return success();
}

} // namespace izhc::reference
