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
// So do all vectors where sums are float16. While a piece of a page is read, the
// next one is fetched: pieces are too short for a processor to see it coming.

#include "compiler/target/vector/KvReader.h"
#include "compiler/target/vector/PairProducts.h"
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

class Attention {
public:
  Attention(KernelFrame &frame, pack::AttentionOp op);
  void emit();

private:
  using Values = KernelBuilder::Values;

  void emitUnit(Value unit);
  void emitQueries(Value base, Value size);
  void copyQuery(Value index);
  void narrowQuery(Value copy, Value to, int64_t bytes, Value scale);
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
  Value nextKeys(Value key);
  Value nextValues(Value page, Value stop, Value panel);
  Value fetched(Value first, Value next, Value here);
  Value keysOfUnit(Value unit);
  void storeScores(Value first, int64_t size, Value key, int64_t firstVector, Values sums);
  void addOutputs(Value first, int64_t size, Value panel, int64_t firstVector, Values sums);

  // Calls body(first vector, size) for blocks of the group's vectors.
  void forEachBlock(ArrayRef<int64_t> sizes, llvm::function_ref<void(Value, int64_t)> body);
  // What weights are multiplied by so that float16 sums of values can't overflow.
  static constexpr double headroom() { return 1.0 / (1 << PairProducts::kHeadroomBits); }
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
  // The page of token number `token` of a sequence.
  Value pageOf(Value list, Value token) {
    Value entry = k.at(list, k.mul(k.div(token, layout.page), 4));
    Value page = k.extendS(k.load(k.i32(), entry, 4), k.i64());
    return k.at(cache, k.mul(page, layout.pageBytes));
  }
  // That of a key of the span.
  Value physicalPage(Value key) { return pageOf(pageList, k.add(spanFirst, key)); }
  // Keys from `key` on, a panel's first, in their page.
  Value keysIn(Value page, Value head, Value key) {
    Value inPage = k.div(k.rem(key, layout.page), kPanel);
    return k.at(k.at(page, k.mul(head, layout.keyHeadBytes)), k.mul(inPage, layout.keyPanelBytes));
  }
  Value valuesIn(Value page) {
    return k.at(k.at(page, layout.valuesOffset), k.mul(kvHead, layout.valueHeadBytes));
  }
  // Vectors of panels that lie `panelStride` apart, or of those of a page.
  SmallVector<int64_t> starts(int64_t firstVector, int64_t count, int64_t panelStride,
                              bool inPage = false) {
    SmallVector<int64_t> result;
    int64_t bytes = inPage ? 4 * kPanel / form.vectors() : form.vectorBytes();
    for (int64_t v = firstVector; v < firstVector + count; ++v)
      result.push_back(v / form.vectors() * panelStride + v % form.vectors() * bytes);
    return result;
  }
  PairRows queryRows(Value first, int64_t count) {
    return {k.at(rows, k.mul(first, queryStride)), queryStride, count};
  }
  // Weights of tokens from pair `pair` of the span on.
  PairRows weightRows(Value first, int64_t count, Value pair) {
    Value at = k.add(k.mul(first, 4 * kSpan), k.mul(pair, form.pairBytes()));
    return {k.at(scores, at), 4 * kSpan, count};
  }
  KernelFrame &frame;
  KernelBuilder &k;
  pack::AttentionOp op;
  pack::KvType kv;
  KvLayout layout;
  PairForm form;
  PairProducts product;
  KvReader reader;
  SpanSums span;
  int64_t lanes, heads, kvHeads, group, window;
  int64_t queryStride, keyStride, valueStride;
  // Query vectors of a group; a multiple of all blocks.
  int64_t most;
  // Sizes of blocks, largest first: of those that read converted panels, and of
  // those that convert what they read and so had better be large.
  SmallVector<int64_t, 4> blocks, converting;
  int64_t keyPanels, valuePanels; // converted together
  // Pages are as products need them.
  bool readsPages;
  Value queries, cache, tiles, pages, parts, out, partials;
  // Stack.
  Value wide, rows, scores, panels, outputs, scales, maxima, sums, factors, spanFactors;
  // Of the unit at hand.
  Value firstRow, firstPosition, kvHead, pageList, place;
  // Of the group: its first vector, their number, the first key seen by any.
  Value base, count, firstKey;
  // Of the span: its first key; keys low..end of it are seen by some vector.
  Value spanFirst, low, end;
  // What is read after the span.
  Value after;
};

Attention::Attention(KernelFrame &frame, pack::AttentionOp op)
    : frame(frame), k(frame.k), op(op), kv(cast<pack::KvType>(op.getCache().getType())), layout(kv),
      form{op.getExact() ? PairNumber::Float32 : frame.machine.pairs, frame.machine.lanes},
      product(k, form), reader(k, kv, form),
      span(k, kv, frame.machine.lanes, op.getSinks() ? frame.address(op.getSinks()) : Value()),
      lanes(frame.machine.lanes), heads(op.getHeads()), kvHeads(kv.getHeads()),
      group(heads / kvHeads), window(op.getWindow()) {
  queryStride = llvm::alignTo(layout.keyPairs * form.pairBytes(), 64);
  keyStride = layout.keyPairs * form.rowBytes();
  valueStride = kSpan / 2 * form.rowBytes();
  bool many = frame.machine.vectorRegisters >= 32;
  if (group % 3 == 0)
    converting = many ? SmallVector<int64_t, 4>{6, 3} : SmallVector<int64_t, 4>{3};
  else if (many)
    converting =
        group % 2 == 0 ? SmallVector<int64_t, 4>{6, 4, 2} : SmallVector<int64_t, 4>{6, 4, 2, 1};
  else
    converting = {3, 2, 1};
  // With three rows, sums and panels together are more than 16 registers.
  blocks = many ? converting : SmallVector<int64_t, 4>{2, 1};
  most = kv.getDim() > 128 ? 24 : 48;
  readsPages = layout.bits == 16 && form.number == PairNumber::Float16;
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
  if (!readsPages)
    panels = k.stack(std::max(keyPanels * keyStride, valuePanels * valueStride));
  outputs = k.stack(most * span.outputBytes());
  for (Value *each : {&scales, &maxima, &sums, &factors, &spanFactors})
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
    Value later = keysOfUnit(k.min(k.add(unit, 1), k.add(frame.end, -1)));
    k.loop(begin, stop, 1, [&](Value number) {
      Value next = k.mul(k.min(k.add(number, 1), k.add(stop, -1)), kSpan);
      next = keysIn(pageOf(pageList, next), kvHead, next);
      after = k.select(k.less(k.add(number, 1), stop), next, later);
      emitSpan(number);
    });
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

// Where the keys lie that a unit reads first.
Value Attention::keysOfUnit(Value unit) {
  Value entry = k.mul(k.div(unit, kvHeads), 16);
  auto word = [&](Value array, int64_t i) {
    return k.extendS(k.load(k.i32(), k.at(k.at(array, entry), 4 * i), 4), k.i64());
  };
  Value key = parts ? k.mul(word(parts, 0), kSpan) : k.constI64(0);
  if (window)
    key = k.max(key, k.add(word(tiles, 2), 1 - window));
  Value page = pageOf(k.at(pages, k.mul(word(tiles, 3), 4)), key);
  return keysIn(page, k.rem(unit, kvHeads), key);
}

// A query as pairs, zeros behind it, and its sums before the first key.
void Attention::copyQuery(Value index) {
  Type floats = k.vec(lanes, k.f32());
  Value from = k.at(queries, k.mul(numberOf(index), 4 * kv.getDim()));
  Value to = k.at(rows, k.mul(index, queryStride)), copy = form.isNarrow() ? wide : to;
  int64_t padded = llvm::alignTo(kv.getDim(), lanes), last = padded - lanes;
  k.store(k.zero(floats), k.at(copy, 4 * last), 4);
  forEachPiece(k, kv.getDim(), lanes, [&](Value offset, int64_t piece) {
    k.store(k.load(k.vec(piece, k.f32()), k.at(from, offset), 4), k.at(copy, offset), 4);
  });
  Value slot = k.mul(index, 4);
  if (form.isNarrow())
    narrowQuery(copy, to, 4 * padded, k.at(scales, slot));
  span.clear(k.at(maxima, slot), k.at(sums, slot), k.at(outputs, k.mul(index, span.outputBytes())));
}

// Float16 queries are multiplied by a power of two that makes the largest value
// of magnitude less than 2^-kHeadroomBits; `scale` gets its inverse times the
// scale of scores.
void Attention::narrowQuery(Value copy, Value to, int64_t bytes, Value scale) {
  Type floats = k.vec(lanes, k.f32());
  Value factor;
  if (form.number == PairNumber::Float16) {
    constexpr int64_t kBias = 127, kBits = PairProducts::kHeadroomBits + 1;
    Value most = k.maxLanes(k.loop(k.constI64(0), k.constI64(bytes), k.constI64(4 * lanes),
                                   {k.zero(floats)}, [&](Value offset, ArrayRef<Value> carried) {
                                     Value value = k.load(floats, k.at(copy, offset), 4);
                                     return Values{k.max(carried[0], k.abs(value))};
                                   })[0]);
    // Magnitudes beyond 2^120 have no business here.
    Value exponent = k.min(k.shrU(k.bitcast(most, k.i32()), 23), k.constInt(k.i32(), 120 + kBias));
    Value power = k.shl(k.sub(k.constInt(k.i32(), 2 * kBias - kBits), exponent), 23);
    Value inverse = k.shl(k.add(exponent, kBits), 23);
    factor = k.splat(k.bitcast(power, k.f32()), lanes);
    k.store(
        k.mul(k.bitcast(inverse, k.f32()), k.constFloat(k.f32(), op.getScale().convertToDouble())),
        scale, 4);
  }
  k.loop(k.constI64(0), k.constI64(bytes), 4 * lanes, [&](Value offset) {
    Value value = k.load(floats, k.at(copy, offset), 4);
    if (factor)
      value = k.mul(value, factor);
    Type narrow = k.vec(lanes, form.element(k));
    k.store(arith::TruncFOp::create(k.builder, k.loc, narrow, value), k.at(to, k.div(offset, 2)),
            2);
  });
}

void Attention::emitSpan(Value number) {
  spanFirst = k.mul(number, kSpan);
  low = k.max(k.sub(firstKey, spanFirst), k.constI64(0));
  end = keysUpTo(k.add(count, -1));
  bool halves = layout.bits == 16;
  int64_t most = frame.machine.floats.convertsHalf ? kFew : converting.front();
  Value few = k.lessEqual(count, k.constI64(most));
  auto either = [&](function_ref<void()> direct, function_ref<void()> converted) {
    if (readsPages)
      return direct();
    halves ? k.ifThenElse(few, direct, converted) : converted();
  };
  either([&] { readScores(); }, [&] { emitScores(); });
  k.loop(k.constI64(0), count, 1, [&](Value index) { emitSoftmax(index); });
  either([&] { readValues(); }, [&] { emitValues(); });
}

void Attention::forEachBlock(ArrayRef<int64_t> sizes, function_ref<void(Value, int64_t)> body) {
  Value done = k.constI64(0);
  for (int64_t size : sizes) {
    Value stop = k.add(done, k.mul(k.div(k.sub(count, done), size), size));
    k.loop(done, stop, size, [&](Value first) { body(first, size); });
    done = stop;
  }
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

void Attention::emitScores() {
  int64_t step = keyPanels * kPanel;
  Value first = k.mul(k.div(low, step), step);
  k.loop(first, end, step, [&](Value key) {
    Value from = keysIn(physicalPage(key), kvHead, key);
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
  Value all = k.constFloat(k.vec(lanes, k.f32()), op.getScale().convertToDouble());
  Value to = k.at(scores, k.add(k.mul(first, 4 * kSpan), k.mul(key, 4)));
  int64_t each = sums.size() / size;
  int64_t token = firstVector / form.vectors() * kPanel +
                  firstVector % form.vectors() * kPanel / form.vectors();
  Value own = k.at(scales, k.mul(first, 4));
  for (int64_t i = 0; i < size; ++i) {
    Value scale =
        form.number == PairNumber::Float16 ? k.loadSplat(k.f32(), lanes, k.at(own, 4 * i)) : all;
    for (int64_t j = 0; j < each; ++j)
      k.store(k.softcap(k.mul(sums[i * each + j], scale), op.getSoftcap().convertToDouble()),
              k.at(to, 4 * (i * kSpan + token + j * lanes)), 4 * lanes);
  }
}

void Attention::scoresOfPanels(Value key, int64_t count) {
  forEachBlock(blocks, [&](Value first, int64_t size) {
    k.ifThen(k.less(key, keysUpTo(k.add(first, size - 1))), [&] {
      int64_t vectors = count * form.vectors();
      for (int64_t v = 0; v < vectors; v += kWidth) {
        int64_t some = std::min(kWidth, vectors - v);
        Values sums =
            product.add(queryRows(first, size), {panels, starts(v, some, keyStride)}, k.constI64(0),
                        k.constI64(layout.keyPairs), Value(), product.zeros(size, some));
        storeScores(first, size, key, v, product.outputs(sums));
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
    if (form.isNarrow()) {
      Type narrow = k.vec(lanes, form.element(k));
      Value weight =
          form.number == PairNumber::Float16 ? k.mul(p, k.constFloat(floats, headroom())) : p;
      k.store(arith::TruncFOp::create(k.builder, k.loc, narrow, weight), k.at(row, k.mul(key, 2)),
              2 * lanes);
    } else {
      k.store(p, k.at(row, k.mul(key, 4)), 4 * lanes);
    }
    return Values{k.add(carried[0], p)};
  })[0];
  Value slot = k.mul(index, 4);
  auto [factor, spanFactor] =
      span.merge(k.at(maxima, slot), k.at(sums, slot), maximum, k.sumLanes(total));
  if (form.number == PairNumber::Float16)
    spanFactor = k.mul(spanFactor, k.constFloat(k.f32(), 1 / headroom()));
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
           Value from = valuesIn(physicalPage(k.mul(page, layout.page)));
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
  int64_t perPair = 8 * form.pairBytes();
  Type pairs = k.vec(form.numbers() / 2, form.isNarrow() ? k.i32() : k.i64());
  Value line = k.at(panels, k.mul(k.div(end, 2), form.rowBytes()));
  for (int64_t start : starts(0, count * form.vectors(), valueStride)) {
    Value at = k.at(line, start), row = k.load(pairs, at, form.vectorBytes());
    k.store(k.shrU(k.shl(row, perPair / 2), perPair / 2), at, form.vectorBytes());
  }
}

void Attention::sumsOfPanels(Value panel, int64_t count) {
  int64_t vectors = count * form.vectors();
  Value begin = k.div(low, 2);
  forEachBlock(blocks, [&](Value first, int64_t size) {
    Value keys = keysUpTo(k.add(first, size - 1));
    Value stop = k.div(k.add(k.max(keys, k.constI64(0)), 1), 2);
    for (int64_t v = 0; v < vectors; v += kWidth) {
      int64_t some = std::min(kWidth, vectors - v);
      Values sums = product.add(weightRows(first, size, k.constI64(0)),
                                {panels, starts(v, some, valueStride)}, begin, stop, Value(),
                                product.zeros(size, some));
      addOutputs(first, size, panel, v, product.outputs(sums));
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

// What is read after the panels of keys from `key` on.
Value Attention::nextKeys(Value key) {
  Value next = k.add(key, keyPanels * kPanel);
  Value keys = k.min(next, k.add(end, -1));
  keys = keysIn(physicalPage(keys), kvHead, keys);
  return k.select(k.less(next, end), keys, valuesIn(physicalPage(low)));
}

// What is read after panels of values in page number `page` of the span, of
// which there are `stop`. A page's first keys are more than its panels of
// values: all that read the last page fetch a part.
Value Attention::nextValues(Value page, Value stop, Value panel) {
  Value next = k.min(k.add(page, 1), k.add(stop, -1));
  Value values =
      k.at(valuesIn(physicalPage(k.mul(next, layout.page))), k.mul(panel, layout.valuePanelBytes));
  return k.select(k.less(k.add(page, 1), stop), values,
                  k.at(after, k.mul(panel, layout.valuePanelBytes)));
}

// The first vectors fetch `next`; the others find it near them and have
// nothing to do but to read again.
Value Attention::fetched(Value first, Value next, Value here) {
  if (!frame.machine.prefetchRows)
    return {};
  return k.select(k.equal(first, k.constI64(0)), next, here);
}

void Attention::readScores() {
  int64_t step = keyPanels * kPanel, vectors = keyPanels * form.vectors();
  k.loop(k.mul(k.div(low, step), step), end, step, [&](Value key) {
    Value from = keysIn(physicalPage(key), kvHead, key), next = nextKeys(key);
    forEachBlock(converting, [&](Value first, int64_t size) {
      k.ifThen(k.less(key, keysUpTo(k.add(first, size - 1))), [&] {
        for (int64_t v = 0; v < vectors; v += kWidth) {
          int64_t some = std::min(kWidth, vectors - v);
          PairVectors keys = {from, starts(v, some, layout.keyPanelBytes, /*inPage=*/true),
                              /*inPage=*/true, fetched(first, next, from)};
          Values sums =
              product.add(queryRows(first, size), keys, k.constI64(0), k.constI64(layout.keyPairs),
                          Value(), product.zeros(size, some));
          storeScores(first, size, key, v, product.outputs(sums));
        }
      });
    });
  });
}

void Attention::readValues() {
  auto emit = [&](Value panel, int64_t panels) {
    int64_t vectors = panels * form.vectors();
    forEachBlock(converting, [&](Value first, int64_t size) {
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

// Sums over the tokens of all pages of the span. The last pair of an odd
// number of tokens is half there.
void Attention::readValuesOf(Value panel, Value first, int64_t size, int64_t firstVector,
                             int64_t vectors) {
  int64_t pageRows = layout.page / 2;
  Value seen = k.max(keysUpTo(k.add(first, size - 1)), k.constI64(0));
  Value begin = k.div(low, 2), stop = k.div(k.add(seen, 1), 2);
  Value pages = k.div(k.add(stop, pageRows - 1), pageRows);
  Values sums =
      k.loop(k.div(begin, pageRows), pages, k.constI64(1), product.zeros(size, vectors),
             [&](Value page, ArrayRef<Value> carried) {
               Value offset = k.mul(page, pageRows);
               Value from = k.at(valuesIn(physicalPage(k.mul(page, layout.page))),
                                 k.mul(panel, layout.valuePanelBytes));
               PairVectors values = {
                   from, starts(firstVector, vectors, layout.valuePanelBytes, /*inPage=*/true),
                   /*inPage=*/true, fetched(first, nextValues(page, pages, panel), from)};
               return product.add(weightRows(first, size, offset), values,
                                  k.max(k.sub(begin, offset), k.constI64(0)),
                                  k.min(k.sub(stop, offset), k.constI64(pageRows)),
                                  k.sub(k.div(end, 2), offset), carried);
             });
  addOutputs(first, size, panel, firstVector, product.outputs(sums));
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
