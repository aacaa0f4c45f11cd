// pack.quantize: norm and conversion of rows to activation records.
//
// A row is read once for the norm (if any) and once for the codes. Values of a
// block of 32 stay in registers between its maximum and its codes; those of a
// group of 256 and of a last, partial block lie in the stack frame.

#include "compiler/target/vector/Pieces.h"
#include "compiler/target/vector/VectorLowering.h"
#include "dialects/pack/ActLayout.h"
#include "dialects/pack/RoutesLayout.h"

namespace izhc {

using namespace mlir;

namespace {

// Below this a maximum counts as 0: its reciprocal would overflow.
constexpr double kTiny = 0x1p-100;

class Quantize {
public:
  Quantize(KernelFrame &frame, pack::QuantizeOp op);
  void emit();

private:
  using Values = KernelBuilder::Values;

  Value sourceOf(Value unit);
  void encode();
  void copyRecord();
  Value normFactor(Value row);
  Value normalized(Value offset, int64_t piece);
  void copyRow();
  void fillScratch(int64_t from, int64_t count);
  void emitBlocks();
  void emitGroups();
  void encodeBlock32(const Values &values, Value block);
  void encodeGroup256(Value group);
  Values scratchBlock(Value offset);
  Value largest(const Values &values);
  Value reciprocal(Value numerator, Value maximum);
  void storeCodes(const Values &values, Value factor, Value block, Value sumFactor);
  void storeSums(const Values &codes, Value block, Value sumFactor);

  KernelFrame &frame;
  KernelBuilder &k;
  pack::QuantizeOp op;
  pack::ActType type;
  pack::ActLayout layout;
  int64_t lanes, width;
  Type floats;
  // Row of the input, weights of the norm (null without), record.
  Value row, norm, record;
  // 1 / sqrt(mean + eps)
  Value factor;
  // 256 floats, then 8 maxima, 8 reciprocals and 8 exponents.
  Value scratch, blockMaxima, blockReciprocals, blockExponents;
};

Quantize::Quantize(KernelFrame &frame, pack::QuantizeOp op)
    : frame(frame), k(frame.k), op(op), type(cast<pack::ActType>(op.getInto().getType())),
      layout(type), lanes(frame.machine.lanes), width(type.getWidth()),
      floats(k.vec(lanes, k.f32())) {
  if (op.getNorm())
    norm = frame.address(op.getNorm());
  scratch = k.stack(4 * 256);
  blockMaxima = k.stack(4 * 8);
  blockReciprocals = k.stack(4 * 8);
  blockExponents = k.stack(4 * 8);
}

void Quantize::emit() {
  Value input = frame.address(op.getInput()), out = frame.address(op.getInto());
  k.loop(frame.begin, frame.end, 1, [&](Value unit) {
    Value source = sourceOf(unit);
    row = k.at(input, k.mul(source, 4 * width));
    record = k.at(out, k.mul(unit, layout.stride));
    if (!op.getIndices())
      return encode();
    Value before = sourceOf(k.max(k.add(unit, -1), frame.begin));
    Value known = k.select(k.less(frame.begin, unit), before, k.constI64(-1));
    k.ifThenElse(k.equal(source, known), [&] { copyRecord(); }, [&] { encode(); });
  });
}

// The row of the input that becomes record number `unit`.
Value Quantize::sourceOf(Value unit) {
  if (!op.getIndices())
    return unit;
  auto routes = dyn_cast<pack::RoutesType>(op.getIndices().getType());
  Value at = k.at(frame.address(op.getIndices()),
                  k.mul(unit, routes ? pack::RoutesLayout::kPairBytes : 4));
  if (routes)
    at = k.at(at, pack::RoutesLayout(routes).pairs());
  return k.extendS(k.load(k.i32(), at, 4), k.i64());
}

void Quantize::encode() {
  if (norm)
    factor = normFactor(row);
  switch (type.getKind()) {
  case pack::ActKind::F32:
    return copyRow();
  case pack::ActKind::Block32:
    return emitBlocks();
  case pack::ActKind::Block256:
    return emitGroups();
  }
}

// The record before is of the same row: all pairs of the only row of a step,
// for example.
void Quantize::copyRecord() {
  Type words = k.vec(lanes, k.i32());
  k.loop(k.constI64(0), k.constI64(layout.stride), 4 * lanes, [&](Value offset) {
    Value from = k.at(record, k.add(offset, -layout.stride));
    k.store(k.load(words, from, 4), k.at(record, offset), 4);
  });
}

// Four chains of sums hide the latency of the addition.
Value Quantize::normFactor(Value row) {
  constexpr int64_t kChains = 4;
  int64_t span = kChains * lanes, whole = width / span * span;
  Values sums(kChains, k.zero(floats));
  auto square = [&](Value at, int64_t piece, Value sum) {
    Value x = k.load(k.vec(piece, k.f32()), at, 4);
    return k.mulAdd(x, x, sum);
  };
  sums =
      k.loop(k.constI64(0), k.constI64(4 * whole), k.constI64(4 * span), sums,
             [&](Value offset, ArrayRef<Value> carried) {
               Values next;
               for (int64_t i = 0; i < kChains; ++i)
                 next.push_back(square(k.at(k.at(row, offset), 4 * i * lanes), lanes, carried[i]));
               return next;
             });
  int64_t done = whole;
  for (int64_t i = 0; done + lanes <= width; done += lanes, ++i)
    sums[i] = square(k.at(row, 4 * done), lanes, sums[i]);
  Value total = k.sumLanes(k.add(k.add(sums[0], sums[2]), k.add(sums[1], sums[3])));
  for (int64_t piece : tailPieces(width - done, lanes)) {
    Value sum = square(k.at(row, 4 * done), piece, k.zero(k.vec(piece, k.f32())));
    total = k.add(total, piece ? k.sumLanes(sum) : sum);
    done += pieceValues(piece);
  }
  Value mean = k.div(total, k.constFloat(k.f32(), width));
  Value eps = k.constFloat(k.f32(), op.getEps().convertToDouble());
  return k.div(k.constFloat(k.f32(), 1.0), k.sqrt(k.add(mean, eps)));
}

// Values at a byte offset of the row, after the norm.
Value Quantize::normalized(Value offset, int64_t piece) {
  Type type = k.vec(piece, k.f32());
  Value x = k.load(type, k.at(row, offset), 4);
  if (!norm)
    return x;
  return k.mul(k.mul(x, k.splat(factor, piece)), k.load(type, k.at(norm, offset), 4));
}

void Quantize::copyRow() {
  forEachPiece(k, width, lanes, [&](Value offset, int64_t piece) {
    k.store(normalized(offset, piece), k.at(record, offset), 4);
  });
  Value behind = k.at(record, 4 * width);
  forEachPiece(k, layout.padded - width, lanes, [&](Value offset, int64_t piece) {
    k.store(k.zero(k.vec(piece, k.f32())), k.at(behind, offset), 4);
  });
}

// Values from..from+count of the row, then zeros up to 256.
void Quantize::fillScratch(int64_t from, int64_t count) {
  forEachPiece(k, 256, lanes, [&](Value offset, int64_t piece) {
    k.store(k.zero(floats), k.at(scratch, offset), 4 * lanes);
  });
  forEachPiece(k, count, lanes, [&](Value offset, int64_t piece) {
    k.store(normalized(k.add(offset, 4 * from), piece), k.at(scratch, offset), 4);
  });
}

// The 32 values at a byte offset of the scratch.
Quantize::Values Quantize::scratchBlock(Value offset) {
  Values values;
  for (int64_t i = 0; i < 32; i += lanes)
    values.push_back(k.load(floats, k.at(k.at(scratch, offset), 4 * i), 4 * lanes));
  return values;
}

void Quantize::emitBlocks() {
  int64_t whole = width / 32, blocks = layout.padded / 32;
  k.loop(k.constI64(0), k.constI64(whole), 1, [&](Value block) {
    Values values;
    for (int64_t i = 0; i < 32; i += lanes)
      values.push_back(normalized(k.add(k.mul(block, 128), 4 * i), lanes));
    encodeBlock32(values, block);
  });
  if (whole == blocks)
    return;
  fillScratch(32 * whole, width - 32 * whole);
  k.loop(k.constI64(whole), k.constI64(blocks), 1, [&](Value block) {
    encodeBlock32(scratchBlock(k.mul(k.add(block, -whole), 128)), block);
  });
}

void Quantize::emitGroups() {
  int64_t whole = width / 256;
  k.loop(k.constI64(0), k.constI64(whole), 1, [&](Value group) {
    k.loop(k.constI64(0), k.constI64(8), 1, [&](Value block) {
      Value offset = k.mul(block, 128);
      for (int64_t i = 0; i < 32; i += lanes) {
        Value from = k.add(k.add(k.mul(group, 1024), offset), 4 * i);
        k.store(normalized(from, lanes), k.at(k.at(scratch, offset), 4 * i), 4 * lanes);
      }
    });
    encodeGroup256(group);
  });
  if (width == layout.padded)
    return;
  fillScratch(256 * whole, width - 256 * whole);
  encodeGroup256(k.constI64(whole));
}

Value Quantize::largest(const Values &values) {
  Values left;
  for (Value value : values)
    left.push_back(k.abs(value));
  for (; left.size() > 1; left.resize(left.size() / 2))
    for (size_t i = 0, half = left.size() / 2; i < half; ++i)
      left[i] = k.max(left[i], left[i + half]);
  return k.maxLanes(left[0]);
}

// numerator / maximum, or 0 where the maximum is tiny.
Value Quantize::reciprocal(Value numerator, Value maximum) {
  Value tiny = k.less(maximum, k.constFloat(k.f32(), kTiny));
  return k.select(tiny, k.zero(k.f32()), k.div(numerator, maximum));
}

void Quantize::encodeBlock32(const Values &values, Value block) {
  Value maximum = largest(values);
  Value limit = k.constFloat(k.f32(), 127.0);
  Value tiny = k.less(maximum, k.constFloat(k.f32(), kTiny));
  Value scale = k.select(tiny, k.zero(k.f32()), k.div(maximum, limit));
  k.store(scale, k.at(k.at(record, layout.scales), k.mul(block, 4)), 4);
  storeCodes(values, reciprocal(limit, maximum), block, scale);
}

// The group's values are in the scratch.
void Quantize::encodeGroup256(Value group) {
  Value zero = k.constI64(0), eight = k.constI64(8);
  k.loop(zero, eight, 1, [&](Value block) {
    k.store(largest(scratchBlock(k.mul(block, 128))), k.at(blockMaxima, k.mul(block, 4)), 4);
  });
  Type floats8 = k.vec(8, k.f32()), ints8 = k.vec(8, k.i32());
  Value maxima = k.load(floats8, blockMaxima, 32);
  Value maximum = k.maxLanes(maxima);
  Value tiny = k.less(maximum, k.constFloat(k.f32(), kTiny));
  Value scale = k.div(maximum, k.constFloat(k.f32(), 127.0));
  scale = k.select(tiny, k.zero(k.f32()), scale);
  // The exponent field of the quotient, at least 127; where a maximum is 0 the
  // quotient is no number or infinite and its field is above 127 + 15.
  Value ratio = k.bitcast(k.div(k.splat(maximum, 8), maxima), ints8);
  Value n = k.min(k.constInt(ints8, 127 + 15), k.andBits(k.shrU(ratio, 23), 0xff));
  n = k.sub(n, k.constInt(ints8, 127));
  Value most = k.maxLanes(n);
  // 2^-most as bits.
  Value power = k.bitcast(k.shl(k.sub(k.constInt(k.i32(), 127), most), 23), k.f32());
  Value step = k.mul(scale, power);
  k.store(step, k.at(k.at(record, layout.scales), k.mul(group, 4)), 4);
  // (127 / maximum) * 2^n
  Value perStep = reciprocal(k.constFloat(k.f32(), 127.0), maximum);
  Value powers = k.bitcast(k.shl(k.add(n, 127), 23), floats8);
  k.store(k.mul(k.splat(perStep, 8), powers), blockReciprocals, 32);
  Value exponents = k.shl(k.sub(k.splat(most, 8), n), 23);
  k.store(exponents, blockExponents, 32);
  k.store(exponents, k.at(k.at(record, layout.exponents), k.mul(group, 32)), 4);

  k.loop(zero, eight, 1, [&](Value block) {
    Value offset = k.mul(block, 4);
    Value factor = k.load(k.f32(), k.at(blockReciprocals, offset), 4);
    Value exponent = k.load(k.i32(), k.at(blockExponents, offset), 4);
    Value power = k.bitcast(k.add(exponent, int64_t(127) << 23), k.f32());
    storeCodes(scratchBlock(k.mul(block, 128)), factor, k.add(k.mul(group, 8), block), power);
  });
}

// Rounds values * factor to the codes of a block and stores them with what
// the record keeps of their sums.
void Quantize::storeCodes(const Values &values, Value factor, Value block, Value sumFactor) {
  Value at = k.at(k.at(record, layout.codes), k.mul(block, 32));
  Values codes;
  for (auto [i, value] : llvm::enumerate(values)) {
    codes.push_back(k.roundToInt(k.mul(value, k.splat(factor, lanes))));
    k.store(k.truncate(codes.back(), k.i8()), k.at(at, int64_t(i) * lanes), lanes);
  }
  storeSums(codes, block, sumFactor);
}

void Quantize::storeSums(const Values &codes, Value block, Value sumFactor) {
  bool halves = !type.getCorr16().empty();
  if (!halves && type.getCorr32().empty() && !type.getSums())
    return;
  auto sumOf = [&](size_t from, size_t to) {
    Value sum = codes[from];
    for (size_t i = from + 1; i < to; ++i)
      sum = k.add(sum, codes[i]);
    return k.sumLanes(sum);
  };
  Value sum;
  if (halves) {
    size_t middle = codes.size() / 2;
    Value first = sumOf(0, middle), second = sumOf(middle, codes.size());
    for (auto [z, field] : llvm::zip(type.getCorr16(), layout.corr16)) {
      Value at = k.at(k.at(record, field), k.mul(block, 8));
      k.store(k.mul(first, -z), at, 4);
      k.store(k.mul(second, -z), k.at(at, 4), 4);
    }
    sum = k.add(first, second);
  } else {
    sum = sumOf(0, codes.size());
  }
  Value offset = k.mul(block, 4);
  for (auto [z, field] : llvm::zip(type.getCorr32(), layout.corr32))
    k.store(k.mul(sum, -z), k.at(k.at(record, field), offset), 4);
  if (type.getSums())
    k.store(k.mul(sumFactor, k.intToFloat(sum)), k.at(k.at(record, layout.sums), offset), 4);
}

} // namespace

llvm::LogicalResult emitQuantize(KernelFrame &frame, pack::QuantizeOp op) {
  Quantize(frame, op).emit();
  return success();
}

} // namespace izhc
