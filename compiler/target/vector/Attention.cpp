// pack.attention: one key head of one tile of query rows.
//
// The query vectors of a tile (its rows times the heads that share the key
// head) are taken in groups of at most kQueries, and for each group the spans
// of the context in order. In a span:
//   1. scores: panels of keys are converted once for all vectors of the group;
//      s[j] = scale * (q . K[j]), tokens in lanes;
//   2. softmax of the span alone: m = max s, p = e^(s - m), l = sum p;
//   3. values: panels are converted once; o = sum over j of p[j] V[j], columns
//      in lanes, and merged into the sums so far (SpanSums).
// A pass multiplies a block of query vectors with a few panels, so that a load
// serves several multiply-adds. What a vector's result is made of doesn't
// depend on its block: tokens that it doesn't see have p = 0.
//
// Few vectors (decode) read the pages' float16 panels directly, converted in
// registers: writing and reading the converted panels would take longer than
// fetching the pages from memory does. The numbers and their order are the same.

#include "compiler/target/vector/KvReader.h"
#include "compiler/target/vector/Pieces.h"
#include "compiler/target/vector/SpanSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

namespace izhc {

using namespace mlir;
using pack::KvLayout;

namespace {

constexpr int64_t kSpan = KvLayout::kSpan, kPanel = KvLayout::kLanes;
// Vectors that a block multiplies with at a time.
constexpr int64_t kWidth = 4;
// Up to so many vectors convert a panel each time that they read it, where an
// instruction does.
constexpr int64_t kFew = 8;
// How far ahead directly read panels are fetched: about what a core reads
// while one access to memory takes.
constexpr int64_t kAhead = 2048;

class Attention {
public:
  Attention(KernelFrame &frame, pack::AttentionOp op);
  void emit();

private:
  using Values = KernelBuilder::Values;

  void emitUnit(Value unit);
  void emitQueries(Value base, Value size);
  void copyQuery(Value index);
  void emitSpan(Value span);
  void emitScores();
  void scoresOfPanels(Value key, int64_t panels);
  void emitSoftmax(Value index);
  void emitValues();
  void convertValues(Value panel, int64_t panels);
  void clearHiddenToken(int64_t panels);
  void sumsOfPanels(Value panel, int64_t panels);
  void leavePartial(Value index);
  void readScores();
  void readValues();
  void readValuesOf(Value panel, Value first, int64_t size, int64_t firstVector, int64_t vectors);
  void storeScores(Value first, int64_t size, Value key, int64_t firstVector, Values sums);
  void addOutputs(Value first, int64_t size, Value panel, int64_t firstVector, Values sums);

  // Calls body(first vector, size) for blocks of the group's vectors.
  void forEachBlock(llvm::function_ref<void(Value, int64_t)> body);
  // Keys of the span that the vectors up to `index` see, or fewer than 1.
  Value keysUpTo(Value index) {
    Value seen = k.sub(k.add(positionOf(index), 1), spanFirst);
    return k.min(seen, k.constI64(kSpan));
  }
  Value rowOf(Value index) { return k.div(k.add(base, index), group); }
  Value positionOf(Value index) { return k.add(firstPosition, rowOf(index)); }
  Value headOf(Value index) {
    return k.add(k.mul(kvHead, group), k.rem(k.add(base, index), group));
  }
  // Of `heads` a row.
  Value numberOf(Value index) {
    return k.add(k.mul(k.add(firstRow, rowOf(index)), heads), headOf(index));
  }
  Value physicalPage(Value key) {
    Value entry = k.at(pageList, k.mul(k.div(k.add(spanFirst, key), layout.page), 4));
    Value page = k.extendS(k.load(k.i32(), entry, 4), k.i64());
    return k.at(cache, k.mul(page, layout.pageBytes));
  }
  // Where vector v of consecutive panels begins.
  SmallVector<int64_t> starts(int64_t firstVector, int64_t count, int64_t panelStride) {
    SmallVector<int64_t> result;
    for (int64_t v = firstVector; v < firstVector + count; ++v)
      result.push_back(v / form.vectors() * panelStride + v % form.vectors() * form.vectorBytes());
    return result;
  }
  Values products(Value left, int64_t leftStride, int64_t size, Value right,
                  ArrayRef<int64_t> starts, Value begin, Value end);
  Values halfProducts(Value left, int64_t leftStride, int64_t size, Value right,
                      ArrayRef<int64_t> starts, Value begin, Value end, Values sums, bool hidesOdd);
  Value loadHalves(Value from, bool hidesOdd);
  Value factorAt(Value at);
  Value multiplyAdd(Value factor, Value vector, Value sum);
  Values joinPairs(Values sums);

  KernelFrame &frame;
  KernelBuilder &k;
  pack::AttentionOp op;
  pack::KvType kv;
  KvLayout layout;
  PairForm form;
  KvReader reader;
  SpanSums span;
  int64_t lanes, heads, kvHeads, group, window;
  int64_t queryStride, keyStride, valueStride;
  // Query vectors of a group; a multiple of all blocks.
  int64_t most;
  SmallVector<int64_t, 4> blocks;
  int64_t keyPanels, valuePanels; // converted together
  Value queries, cache, tiles, pages, parts, out, partials;
  // Stack.
  Value wide, rows, scores, panels, outputs, maxima, sums, spanMaxima, spanSums, factors,
      spanFactors;
  // Of the unit at hand.
  Value firstRow, firstPosition, kvHead, pageList, place;
  // Of the group: its first vector, their number, the first key seen by any.
  Value base, count, firstKey;
  // Of the span: its first key; keys low..end of it are seen by some vector.
  Value spanFirst, low, end;
};

Attention::Attention(KernelFrame &frame, pack::AttentionOp op)
    : frame(frame), k(frame.k), op(op), kv(cast<pack::KvType>(op.getCache().getType())), layout(kv),
      form{frame.machine.pairDots && !op.getExact(), frame.machine.lanes}, reader(k, kv, form),
      span(k, kv, frame.machine.lanes, op.getSinks() ? frame.address(op.getSinks()) : Value()),
      lanes(frame.machine.lanes), heads(op.getHeads()), kvHeads(kv.getHeads()),
      group(heads / kvHeads), window(op.getWindow()) {
  queryStride = llvm::alignTo(layout.keyPairs * form.pairBytes(), 64);
  keyStride = layout.keyPairs * form.rowBytes();
  valueStride = kSpan / 2 * form.rowBytes();
  bool many = frame.machine.vectorRegisters >= 32;
  if (group % 3 == 0)
    blocks = many ? SmallVector<int64_t, 4>{6, 3} : SmallVector<int64_t, 4>{3};
  else if (many)
    blocks =
        group % 2 == 0 ? SmallVector<int64_t, 4>{6, 4, 2} : SmallVector<int64_t, 4>{6, 4, 2, 1};
  else
    blocks = {3, 2, 1};
  most = kv.getDim() > 128 ? 24 : 48;
  keyPanels = std::max<int64_t>(1, kWidth / form.vectors());
  valuePanels = std::max(keyPanels, reader.panelsAtOnce());
  queries = frame.address(op.getQueries());
  cache = frame.address(op.getCache());
  tiles = frame.address(op.getTiles());
  pages = frame.address(op.getPages());
  out = frame.address(op.getInto());
  if (op.getParts()) {
    parts = frame.address(op.getParts());
    partials = frame.address(op.getPartials());
  }
}

void Attention::emit() {
  wide = k.stack(llvm::alignTo(4 * kv.getDim(), 64));
  rows = k.stack(most * queryStride);
  scores = k.stack(most * kSpan * 4);
  panels = k.stack(std::max(keyPanels * keyStride, valuePanels * valueStride));
  outputs = k.stack(most * span.outputBytes());
  for (Value *each : {&maxima, &sums, &spanMaxima, &spanSums, &factors, &spanFactors})
    *each = k.stack(4 * most);
  k.loop(frame.begin, frame.end, 1, [&](Value unit) { emitUnit(unit); });
}

void Attention::emitUnit(Value unit) {
  kvHead = k.rem(unit, kvHeads);
  Value number = k.div(unit, kvHeads);
  auto word = [&](Value array, int64_t i) {
    Value entry = k.at(array, k.mul(number, 16));
    return k.extendS(k.load(k.i32(), k.at(entry, 4 * i), 4), k.i64());
  };
  firstRow = word(tiles, 0);
  firstPosition = word(tiles, 2);
  pageList = k.at(pages, k.mul(word(tiles, 3), 4));
  Value vectors = k.mul(word(tiles, 1), group);
  Value first = k.constI64(0), last;
  if (parts) {
    first = word(parts, 0);
    last = word(parts, 1);
    place = word(parts, 2);
  }
  k.loop(k.constI64(0), vectors, most, [&](Value at) {
    base = at;
    count = k.min(k.sub(vectors, at), k.constI64(most));
    firstKey = k.constI64(0);
    if (window)
      firstKey = k.max(k.add(positionOf(k.constI64(0)), 1 - window), firstKey);
    Value begin = k.max(first, k.div(firstKey, kSpan));
    Value stop = k.add(k.div(positionOf(k.add(count, -1)), kSpan), 1);
    if (parts)
      stop = k.min(stop, last);
    k.loop(k.constI64(0), count, 1, [&](Value index) { copyQuery(index); });
    k.loop(begin, stop, 1, [&](Value number) { emitSpan(number); });
    auto each = [&](llvm::function_ref<void(Value)> body) {
      k.loop(k.constI64(0), count, 1, body);
    };
    auto finish = [&] {
      each([&](Value index) {
        Value slot = k.mul(index, 4);
        span.quotient(k.at(maxima, slot), k.at(sums, slot),
                      k.at(outputs, k.mul(index, span.outputBytes())), headOf(index),
                      k.at(out, k.mul(numberOf(index), 4 * kv.getValueDim())));
      });
    };
    if (!parts)
      return finish();
    k.ifThenElse(k.less(place, k.constI64(0)), finish,
                 [&] { each([&](Value index) { leavePartial(index); }); });
  });
}

// A query as pairs, zeros behind it, and its sums before the first key.
void Attention::copyQuery(Value index) {
  Type floats = k.vec(lanes, k.f32());
  Value from = k.at(queries, k.mul(numberOf(index), 4 * kv.getDim()));
  Value to = k.at(rows, k.mul(index, queryStride)), copy = form.bf16 ? wide : to;
  int64_t padded = llvm::alignTo(kv.getDim(), lanes), last = padded - lanes;
  k.store(k.zero(floats), k.at(copy, 4 * last), 4);
  forEachPiece(k, kv.getDim(), lanes, [&](Value offset, int64_t piece) {
    k.store(k.load(k.vec(piece, k.f32()), k.at(from, offset), 4), k.at(copy, offset), 4);
  });
  if (form.bf16)
    k.loop(k.constI64(0), k.constI64(4 * padded), 4 * lanes, [&](Value offset) {
      Type narrow = k.vec(lanes, k.builder.getBF16Type());
      Value value = k.load(floats, k.at(copy, offset), 4);
      k.store(arith::TruncFOp::create(k.builder, k.loc, narrow, value), k.at(to, k.div(offset, 2)),
              2);
    });
  Value slot = k.mul(index, 4);
  span.clear(k.at(maxima, slot), k.at(sums, slot), k.at(outputs, k.mul(index, span.outputBytes())));
}

void Attention::emitSpan(Value number) {
  spanFirst = k.mul(number, kSpan);
  low = k.max(k.sub(firstKey, spanFirst), k.constI64(0));
  end = keysUpTo(k.add(count, -1));
  bool halves = layout.bits == 16;
  int64_t most = frame.machine.floats.convertsHalf ? kFew : blocks.front();
  Value few = k.lessEqual(count, k.constI64(most));
  auto either = [&](function_ref<void()> direct, function_ref<void()> converted) {
    halves ? k.ifThenElse(few, direct, converted) : converted();
  };
  either([&] { readScores(); }, [&] { emitScores(); });
  k.loop(k.constI64(0), count, 1, [&](Value index) { emitSoftmax(index); });
  either([&] { readValues(); }, [&] { emitValues(); });
}

void Attention::forEachBlock(function_ref<void(Value, int64_t)> body) {
  Value done = k.constI64(0);
  for (int64_t size : blocks) {
    Value stop = k.add(done, k.mul(k.div(k.sub(count, done), size), size));
    k.loop(done, stop, size, [&](Value first) { body(first, size); });
    done = stop;
  }
}

// Sums over pairs begin..end of the products of `size` rows with vectors;
// [row][vector], each with `lanes` outputs.
Attention::Values Attention::products(Value left, int64_t leftStride, int64_t size, Value right,
                                      ArrayRef<int64_t> starts, Value begin, Value end) {
  Type floats = k.vec(lanes, k.f32());
  auto step = [&](Value pair, ArrayRef<Value> sums) {
    Value line = k.at(right, k.mul(pair, form.rowBytes()));
    Value factor = k.at(left, k.mul(pair, form.pairBytes()));
    Type type = form.bf16 ? k.vec(2 * lanes, k.builder.getBF16Type()) : floats;
    Values loaded, next;
    for (int64_t start : starts)
      loaded.push_back(k.load(type, k.at(line, start), form.vectorBytes()));
    for (int64_t i = 0; i < size; ++i) {
      Value both = factorAt(k.at(factor, i * leftStride));
      for (size_t v = 0; v < starts.size(); ++v)
        next.push_back(multiplyAdd(both, loaded[v], sums[i * starts.size() + v]));
    }
    return next;
  };
  Values inits(size * starts.size(), k.zero(floats));
  return joinPairs(k.loop(begin, end, k.constI64(1), inits, step));
}

// One pair of a row, in all lanes.
Value Attention::factorAt(Value at) {
  return form.bf16
             ? k.bitcast(k.loadSplat(k.i32(), lanes, at), k.vec(2 * lanes, k.builder.getBF16Type()))
             : k.bitcast(k.loadSplat(k.i64(), lanes / 2, at), k.vec(lanes, k.f32()));
}

Value Attention::multiplyAdd(Value factor, Value vector, Value sum) {
  if (form.bf16)
    return pack::DotPairsOp::create(k.builder, k.loc, sum.getType(), sum, factor, vector);
  return k.mulAdd(factor, vector, sum);
}

// Float lanes hold sums of even and of odd products: vectors 2i and 2i + 1
// together make one vector of outputs.
Attention::Values Attention::joinPairs(Values sums) {
  if (form.bf16)
    return sums;
  SmallVector<int64_t> even, odd;
  for (int64_t i = 0; i < lanes; ++i) {
    even.push_back(2 * i);
    odd.push_back(2 * i + 1);
  }
  Values joined;
  for (size_t i = 0; i < sums.size(); i += 2)
    joined.push_back(
        k.add(k.shuffle(sums[i], sums[i + 1], even), k.shuffle(sums[i], sums[i + 1], odd)));
  return joined;
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

void Attention::emitScores() {
  int64_t step = keyPanels * kPanel;
  Value first = k.mul(k.div(low, step), step);
  k.loop(first, end, step, [&](Value key) {
    Value page = k.at(physicalPage(key), k.mul(kvHead, layout.keyHeadBytes));
    Value inPage = k.div(k.rem(key, layout.page), kPanel);
    Value from = k.at(page, k.mul(inPage, layout.keyPanelBytes));
    k.loop(k.constI64(0), k.constI64(keyPanels), 1, [&](Value panel) {
      reader.keyPanel(k.at(from, k.mul(panel, layout.keyPanelBytes)),
                      k.at(panels, k.mul(panel, keyStride)));
    });
    scoresOfPanels(key, keyPanels);
  });
}

// Scores of the tokens from vector `firstVector` behind `key` on.
void Attention::storeScores(Value first, int64_t size, Value key, int64_t firstVector,
                            Values sums) {
  Value scale = k.constFloat(k.vec(lanes, k.f32()), op.getScale().convertToDouble());
  Value to = k.at(scores, k.add(k.mul(first, 4 * kSpan), k.mul(key, 4)));
  int64_t each = sums.size() / size;
  int64_t token = firstVector / form.vectors() * kPanel +
                  firstVector % form.vectors() * kPanel / form.vectors();
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j < each; ++j)
      k.store(k.softcap(k.mul(sums[i * each + j], scale), op.getSoftcap().convertToDouble()),
              k.at(to, 4 * (i * kSpan + token + j * lanes)), 4 * lanes);
}

void Attention::scoresOfPanels(Value key, int64_t count) {
  forEachBlock([&](Value first, int64_t size) {
    k.ifThen(k.less(key, keysUpTo(k.add(first, size - 1))), [&] {
      Value left = k.at(rows, k.mul(first, queryStride));
      int64_t vectors = count * form.vectors();
      for (int64_t v = 0; v < vectors; v += kWidth) {
        Values sums = products(left, queryStride, size, panels,
                               starts(v, std::min(kWidth, vectors - v), keyStride), k.constI64(0),
                               k.constI64(layout.keyPairs));
        storeScores(first, size, key, v, sums);
      }
    });
  });
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

// Scores of one vector become weights, as pairs, in their place.
void Attention::emitSoftmax(Value index) {
  Type floats = k.vec(lanes, k.f32()), ints = k.vec(lanes, k.i32());
  SmallVector<int32_t> ascending;
  for (int32_t i = 0; i < lanes; ++i)
    ascending.push_back(i);
  Value lane = arith::ConstantOp::create(
      k.builder, k.loc, DenseElementsAttr::get(cast<VectorType>(ints), ArrayRef(ascending)));
  Value row = k.at(scores, k.mul(index, 4 * kSpan));
  Value last = k.splat(k.truncate(k.add(keysUpTo(index), -1), k.i32()), lanes);
  Value behind;
  if (window)
    behind = k.splat(
        k.truncate(k.sub(k.sub(positionOf(index), spanFirst), k.constI64(window)), k.i32()), lanes);
  auto visible = [&](Value key) {
    Value keys = k.add(lane, k.splat(k.truncate(key, k.i32()), lanes));
    Value seen = k.lessEqual(keys, last);
    return window ? k.andBits(seen, k.less(behind, keys)) : seen;
  };
  // The products with values read pairs, so the range begins at whole vectors.
  Value first = k.mul(k.div(low, lanes), lanes), step = k.constI64(lanes);
  Value masked = k.constFloat(floats, SpanSums::kMasked);
  Value highest = k.loop(first, end, step, {masked}, [&](Value key, ArrayRef<Value> carried) {
    Value s = k.load(floats, k.at(row, k.mul(key, 4)), 4 * lanes);
    return Values{k.max(carried[0], k.select(visible(key), s, masked))};
  })[0];
  Value maximum = k.maxLanes(highest), all = k.splat(maximum, lanes);
  Value total = k.loop(first, end, step, {k.zero(floats)}, [&](Value key, ArrayRef<Value> carried) {
    Value s = k.load(floats, k.at(row, k.mul(key, 4)), 4 * lanes);
    Value p = k.select(visible(key), k.exp(k.sub(s, all)), k.zero(floats));
    if (form.bf16) {
      Type narrow = k.vec(lanes, k.builder.getBF16Type());
      k.store(arith::TruncFOp::create(k.builder, k.loc, narrow, p), k.at(row, k.mul(key, 2)),
              2 * lanes);
    } else {
      k.store(p, k.at(row, k.mul(key, 4)), 4 * lanes);
    }
    return Values{k.add(carried[0], p)};
  })[0];
  Value slot = k.mul(index, 4);
  auto [factor, spanFactor] =
      span.merge(k.at(maxima, slot), k.at(sums, slot), maximum, k.sumLanes(total));
  k.store(factor, k.at(factors, slot), 4);
  k.store(spanFactor, k.at(spanFactors, slot), 4);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void Attention::emitValues() {
  int64_t whole = layout.valuePanels / valuePanels * valuePanels;
  auto emit = [&](Value panel, int64_t count) {
    convertValues(panel, count);
    sumsOfPanels(panel, count);
  };
  if (whole)
    k.loop(k.constI64(0), k.constI64(whole), valuePanels,
           [&](Value panel) { emit(panel, valuePanels); });
  if (int64_t rest = layout.valuePanels - whole)
    emit(k.constI64(whole), rest);
}

// Rows of the span's pages that hold seen tokens.
void Attention::convertValues(Value panel, int64_t count) {
  int64_t pageRows = layout.page / 2, together = reader.panelsAtOnce();
  Value firstRow = k.div(low, 2), endRow = k.div(k.add(end, 1), 2);
  k.loop(k.div(low, layout.page), k.div(k.add(end, layout.page - 1), layout.page), 1,
         [&](Value page) {
           Value offset = k.mul(page, pageRows);
           Value begin = k.max(k.sub(firstRow, offset), k.constI64(0));
           Value stop = k.min(k.sub(endRow, offset), k.constI64(pageRows));
           Value from = k.at(k.at(physicalPage(k.mul(page, layout.page)), layout.valuesOffset),
                             k.mul(kvHead, layout.valueHeadBytes));
           Value to = k.at(panels, k.mul(offset, form.rowBytes()));
           for (int64_t i = 0; i < count; i += together) {
             Value number = k.div(k.add(panel, i), together);
             reader.valuePanels(k.at(from, k.mul(number, layout.valuePanelBytes)), begin, stop,
                                k.at(to, i * valueStride), valueStride);
           }
         });
  k.ifThen(k.equal(k.rem(end, 2), k.constI64(1)), [&] { clearHiddenToken(count); });
}

// The last pair has a token that is not there yet: what its place holds, times
// a weight of 0, might be no number.
void Attention::clearHiddenToken(int64_t count) {
  int64_t perPair = form.bf16 ? 32 : 64;
  Type pairs = k.vec(form.vectorBytes() * 8 / perPair, form.bf16 ? k.i32() : k.i64());
  Value line = k.at(panels, k.mul(k.div(end, 2), form.rowBytes()));
  for (int64_t start : starts(0, count * form.vectors(), valueStride)) {
    Value at = k.at(line, start), row = k.load(pairs, at, form.vectorBytes());
    k.store(k.shrU(k.shl(row, perPair / 2), perPair / 2), at, form.vectorBytes());
  }
}

void Attention::sumsOfPanels(Value panel, int64_t count) {
  int64_t vectors = count * form.vectors();
  Value begin = k.div(low, 2);
  forEachBlock([&](Value first, int64_t size) {
    Value keys = keysUpTo(k.add(first, size - 1));
    Value stop = k.div(k.add(k.max(keys, k.constI64(0)), 1), 2);
    Value left = k.at(scores, k.mul(first, 4 * kSpan));
    for (int64_t v = 0; v < vectors; v += kWidth) {
      Values products =
          this->products(left, 4 * kSpan, size, panels,
                         starts(v, std::min(kWidth, vectors - v), valueStride), begin, stop);
      addOutputs(first, size, panel, v, products);
    }
  });
}

// Merges sums of the span into the outputs, from vector `firstVector` of the
// columns of `panel` on.
void Attention::addOutputs(Value first, int64_t size, Value panel, int64_t firstVector,
                           Values sums) {
  int64_t each = sums.size() / size;
  int64_t column = firstVector / form.vectors() * kPanel +
                   firstVector % form.vectors() * kPanel / form.vectors();
  Value to = k.at(k.at(outputs, k.mul(first, span.outputBytes())),
                  k.add(k.mul(panel, 4 * kPanel), 4 * column));
  for (int64_t i = 0; i < size; ++i) {
    Value slot = k.mul(k.add(first, i), 4);
    Value before = k.loadSplat(k.f32(), lanes, k.at(factors, slot));
    Value added = k.loadSplat(k.f32(), lanes, k.at(spanFactors, slot));
    for (int64_t j = 0; j < each; ++j) {
      Value at = k.at(to, i * span.outputBytes() + 4 * j * lanes);
      Value old = k.load(k.vec(lanes, k.f32()), at, 4 * lanes);
      k.store(span.fold(old, before, sums[i * each + j], added), at, 4 * lanes);
    }
  }
}

//===----------------------------------------------------------------------===//
// Float16 panels as they lie in their pages
//===----------------------------------------------------------------------===//

// A vector of a row; with `hidesOdd` the second of each pair becomes zero: a
// token that is not there yet.
Value Attention::loadHalves(Value from, bool hidesOdd) {
  int64_t halves = form.vectorBytes() / (form.bf16 ? 2 : 4);
  Value bits;
  if (hidesOdd) {
    Value pairs = k.load(k.vec(halves / 2, k.i32()), from, 2);
    bits = k.bitcast(k.andBits(pairs, 0xffff), k.vec(halves, k.i16()));
  } else {
    bits = k.load(k.vec(halves, k.i16()), from, 2);
  }
  Value floats = k.halfToFloat(bits);
  if (!form.bf16)
    return floats;
  Type narrow = k.vec(halves, k.builder.getBF16Type());
  return arith::TruncFOp::create(k.builder, k.loc, narrow, floats);
}

// As `products`, from rows of float16 and on top of `sums`, whose pairs are
// not joined.
Attention::Values Attention::halfProducts(Value left, int64_t leftStride, int64_t size, Value right,
                                          ArrayRef<int64_t> starts, Value begin, Value end,
                                          Values sums, bool hidesOdd) {
  constexpr int64_t kRow = 4 * kPanel;
  return k.loop(begin, end, k.constI64(1), sums, [&](Value pair, ArrayRef<Value> carried) {
    Values next(carried.begin(), carried.end()), factors;
    Value line = k.at(right, k.mul(pair, kRow));
    Value factor = k.at(left, k.mul(pair, form.pairBytes()));
    for (int64_t i = 0; i < size; ++i)
      factors.push_back(factorAt(k.at(factor, i * leftStride)));
    for (auto [v, start] : llvm::enumerate(starts)) {
      if (frame.machine.prefetchRows == 1 && start % kRow == 0)
        k.prefetch(k.at(line, start + kAhead));
      Value vector = loadHalves(k.at(line, start), hidesOdd);
      for (int64_t i = 0; i < size; ++i) {
        Value &sum = next[i * starts.size() + v];
        sum = multiplyAdd(factors[i], vector, sum);
      }
    }
    return next;
  });
}

// Where vector v of float16 panels that lie `panelStride` apart begins.
static SmallVector<int64_t> halfStarts(const PairForm &form, int64_t firstVector, int64_t count,
                                       int64_t panelStride) {
  SmallVector<int64_t> result;
  int64_t bytes = 4 * kPanel / form.vectors();
  for (int64_t v = firstVector; v < firstVector + count; ++v)
    result.push_back(v / form.vectors() * panelStride + v % form.vectors() * bytes);
  return result;
}

void Attention::readScores() {
  int64_t step = keyPanels * kPanel, vectors = keyPanels * form.vectors();
  Value first = k.mul(k.div(low, step), step), floats = k.zero(k.vec(lanes, k.f32()));
  k.loop(first, end, step, [&](Value key) {
    Value page = k.at(physicalPage(key), k.mul(kvHead, layout.keyHeadBytes));
    Value inPage = k.div(k.rem(key, layout.page), kPanel);
    Value from = k.at(page, k.mul(inPage, layout.keyPanelBytes));
    forEachBlock([&](Value first, int64_t size) {
      Value left = k.at(rows, k.mul(first, queryStride));
      for (int64_t v = 0; v < vectors; v += kWidth) {
        auto starts = halfStarts(form, v, std::min(kWidth, vectors - v), layout.keyPanelBytes);
        Values sums(size * starts.size(), floats);
        sums = halfProducts(left, queryStride, size, from, starts, k.constI64(0),
                            k.constI64(layout.keyPairs), sums, /*hidesOdd=*/false);
        storeScores(first, size, key, v, joinPairs(sums));
      }
    });
  });
}

void Attention::readValues() {
  auto emit = [&](Value panel, int64_t panels) {
    int64_t vectors = panels * form.vectors();
    forEachBlock([&](Value first, int64_t size) {
      for (int64_t v = 0; v < vectors; v += kWidth)
        readValuesOf(panel, first, size, v, std::min(kWidth, vectors - v));
    });
  };
  int64_t whole = layout.valuePanels / keyPanels * keyPanels;
  if (whole)
    k.loop(k.constI64(0), k.constI64(whole), keyPanels,
           [&](Value panel) { emit(panel, keyPanels); });
  if (int64_t rest = layout.valuePanels - whole)
    emit(k.constI64(whole), rest);
}

// Sums over the tokens of all pages of the span.
void Attention::readValuesOf(Value panel, Value first, int64_t size, int64_t firstVector,
                             int64_t vectors) {
  int64_t pageRows = layout.page / 2;
  auto starts = halfStarts(form, firstVector, vectors, layout.valuePanelBytes);
  Value seen = k.max(keysUpTo(k.add(first, size - 1)), k.constI64(0));
  Value begin = k.div(low, 2), stop = k.div(k.add(seen, 1), 2);
  // The last pair of an odd number of tokens is half there.
  Value whole = k.min(stop, k.div(end, 2));
  auto rowsOf = [&](Value page, Value from, Value to, Values sums, bool hidesOdd) {
    Value offset = k.mul(page, pageRows);
    Value right = k.at(k.at(physicalPage(k.mul(page, layout.page)), layout.valuesOffset),
                       k.mul(kvHead, layout.valueHeadBytes));
    right = k.at(right, k.mul(panel, layout.valuePanelBytes));
    Value left = k.at(scores, k.add(k.mul(first, 4 * kSpan), k.mul(offset, form.pairBytes())));
    return halfProducts(left, 4 * kSpan, size, right, starts,
                        k.max(k.sub(from, offset), k.constI64(0)),
                        k.min(k.sub(to, offset), k.constI64(pageRows)), sums, hidesOdd);
  };
  Values sums(size * starts.size(), k.zero(k.vec(lanes, k.f32())));
  sums = k.loop(k.div(begin, pageRows), k.div(k.add(whole, pageRows - 1), pageRows), k.constI64(1),
                sums, [&](Value page, ArrayRef<Value> carried) {
                  return rowsOf(page, begin, whole, Values(carried), /*hidesOdd=*/false);
                });
  // Once or not at all.
  sums = k.loop(k.max(whole, begin), stop, k.constI64(1), sums,
                [&](Value pair, ArrayRef<Value> carried) {
                  return rowsOf(k.div(pair, pageRows), pair, stop, Values(carried),
                                /*hidesOdd=*/true);
                });
  addOutputs(first, size, panel, firstVector, joinPairs(sums));
}

void Attention::leavePartial(Value index) {
  Value row = k.add(place, rowOf(index));
  Value number = k.add(k.mul(row, heads), headOf(index)), slot = k.mul(index, 4);
  Value to = k.at(partials, k.mul(number, layout.partialBytes()));
  k.store(k.load(k.f32(), k.at(maxima, slot), 4), to, 4);
  k.store(k.load(k.f32(), k.at(sums, slot), 4), k.at(to, 4), 4);
  Value from = k.at(outputs, k.mul(index, span.outputBytes()));
  Value values = k.at(to, KvLayout::kPartialValues);
  k.loop(k.constI64(0), k.constI64(span.outputBytes()), 4 * lanes, [&](Value offset) {
    k.store(k.load(k.vec(lanes, k.f32()), k.at(from, offset), 4), k.at(values, offset), 4);
  });
}

} // namespace

llvm::LogicalResult emitAttention(KernelFrame &frame, pack::AttentionOp op) {
  Attention(frame, op).emit();
  return success();
}

} // namespace izhc
