// pack.embed: decodes one row of a packed matrix for each token.
//
// A token is one row of thousands, so this is scalar code over the row's bytes
// within each 64-byte vector, four weights at a time. Floats are rounded as in
// the format's own definition: scale * sub-scale, times the code, -/+ the
// minimum.

#include "compiler/formats/PackedLayout.h"
#include "compiler/target/GridCode.h"
#include "compiler/target/vector/VectorLowering.h"

namespace izhc {

using namespace mlir;

namespace {

class Embed {
public:
  Embed(KernelFrame &frame, pack::EmbedOp op, const FormatSpec &format);
  void emit();

private:
  void emitFloats(Value tile, Value row, Value out);
  void emitUnit(Value unit, Value row, Value out, int64_t weights);
  void emitScales(Value unit, Value row);
  void emitSubScales(Value unit, Value row, int64_t chunk);
  void emitCodes(Value unit, Value row, Value out, Value chunk, int64_t weights);
  Value codes(Value chunk, Value row, int64_t weight);
  Value packedSixBits(Value unit, Value row, int64_t chunk);
  Value packedEight(Value unit, Value row, int64_t chunk);
  Value scaleAt(Value unit, Value row, int64_t kk);
  void emitGridScales(Value unit, Value row);
  Value wordAt(Value pointer, Value row, int64_t offset);
  Value halfAt(Value pointer, Value row, int64_t offset);
  // The four bytes of an i32, lowest first.
  Value bytes(Value word) { return k.bitcast(k.splat(word, 1), k.vec(4, k.i8())); }
  void storeOut(Value value, Value at);

  KernelFrame &frame;
  KernelBuilder &k;
  pack::EmbedOp op;
  const FormatSpec &format;
  PackedLayout layout;
  int64_t cols;
  double factor;
  // Weights that share one scale, and the scales (with sub-scales) and minima
  // of a unit, as floats in the stack frame.
  int64_t span;
  Value scales, minima;
};

Embed::Embed(KernelFrame &frame, pack::EmbedOp op, const FormatSpec &format)
    : frame(frame), k(frame.k), op(op), format(format), layout(format),
      cols(cast<pack::WeightType>(op.getWeight().getType()).getCols()),
      factor(op.getScale().convertToDouble()), span(format.subWeights == 16 ? 16 : 32) {}

void Embed::emit() {
  Value ids = frame.address(op.getIds()), weight = frame.address(op.getWeight());
  Value out = frame.address(op.getInto());
  if (format.kind == ElementKind::Quantized) {
    scales = k.stack(4 * layout.unitWeights / span);
    minima = k.stack(4 * layout.unitWeights / span);
  }
  k.loop(frame.begin, frame.end, 1, [&](Value token) {
    Value id = k.extendS(k.load(k.i32(), k.at(ids, k.mul(token, 4)), 4), k.i64());
    Value row = k.rem(id, PackedLayout::kTileRows);
    Value tile = k.at(weight, k.mul(k.div(id, PackedLayout::kTileRows), layout.tileBytes(cols)));
    Value to = k.at(out, k.mul(token, 4 * cols));
    if (format.kind != ElementKind::Quantized)
      return emitFloats(tile, row, to);
    int64_t whole = cols / layout.unitWeights;
    k.loop(k.constI64(0), k.constI64(whole), 1, [&](Value unit) {
      emitUnit(k.at(tile, k.mul(unit, layout.unitBytes)), row,
               k.at(to, k.mul(unit, 4 * layout.unitWeights)), layout.unitWeights);
    });
    // A unit of two blocks may be half used.
    if (int64_t rest = cols % layout.unitWeights)
      emitUnit(k.at(tile, whole * layout.unitBytes), row, k.at(to, 4 * whole * layout.unitWeights),
               rest);
  });
}

void Embed::storeOut(Value value, Value at) {
  if (factor != 1.0)
    value = k.mul(value, k.constFloat(value.getType(), factor));
  k.store(value, at, 4);
}

void Embed::emitFloats(Value tile, Value row, Value out) {
  Value first = k.at(tile, k.mul(row, format.blockBytes));
  k.loop(k.constI64(0), k.constI64(cols), 1, [&](Value i) {
    Value at = k.at(first, k.mul(i, layout.unitBytes));
    Value value;
    switch (format.kind) {
    case ElementKind::F16:
      value = k.halfToFloat(k.load(k.i16(), at, 2));
      break;
    case ElementKind::BF16:
      value = k.bitcast(k.shl(k.extendU(k.load(k.i16(), at, 2), k.i32()), 16), k.f32());
      break;
    default:
      value = k.load(k.f32(), at, 4);
      break;
    }
    storeOut(value, k.at(out, k.mul(i, 4)));
  });
}

void Embed::emitUnit(Value unit, Value row, Value out, int64_t weights) {
  emitScales(unit, row);
  if (format.grid)
    return k.loop(k.constI64(0), k.constI64(weights), 1, [&](Value weight) {
      Value code = GridCode(k, layout).code(unit, row, weight);
      Value scale = k.load(k.f32(), k.at(scales, k.mul(k.div(weight, span), 4)), 4);
      storeOut(k.mul(scale, k.intToFloat(code)), k.at(out, k.mul(weight, 4)));
    });
  int64_t whole = weights / layout.chunkWeights;
  k.loop(k.constI64(0), k.constI64(whole), 1,
         [&](Value chunk) { emitCodes(unit, row, out, chunk, layout.chunkWeights); });
  if (int64_t rest = weights % layout.chunkWeights)
    emitCodes(unit, row, out, k.constI64(whole), rest);
}

Value Embed::wordAt(Value pointer, Value row, int64_t offset) {
  return k.load(k.i32(), k.at(k.at(pointer, k.mul(row, 4)), offset), 4);
}

Value Embed::halfAt(Value pointer, Value row, int64_t offset) {
  return k.halfToFloat(k.load(k.i16(), k.at(k.at(pointer, k.mul(row, 2)), offset), 2));
}

// The scale of the block with weight kk of the unit, times the format's factor.
Value Embed::scaleAt(Value unit, Value row, int64_t kk) {
  Value factor = k.constFloat(k.f32(), format.factor);
  if (format.grid && !layout.headBytes) {
    Value bits = GridCode(k, layout).element(FieldRole::Scale, unit, row, k.constI64(0));
    return k.mul(k.halfToFloat(k.truncate(bits, k.i16())), factor);
  }
  if (format.scaleKind == ScaleKind::Half)
    return k.mul(halfAt(unit, row, layout.scaleOffset(kk)), factor);
  int64_t byteOfRow = format.scaleKind == ScaleKind::PerSub ? kk / format.subWeights : kk / 32;
  int64_t bytesOfRow = layout.unitWeights / span;
  Value at = k.at(k.at(unit, k.mul(row, bytesOfRow)), byteOfRow);
  Value byte = k.extendU(k.load(k.i8(), at, 1), k.i32());
  if (format.scaleKind == ScaleKind::PowerOfTwo)
    return k.mul(k.bitcast(k.shl(byte, 23), k.f32()), factor);
  Value half = k.truncate(k.shl(k.andBits(byte, 127), 7), k.i16());
  return k.mul(k.halfToFloat(half), k.constFloat(k.f32(), 256.0 * format.factor));
}

// Fills `scales` and `minima` for a unit.
void Embed::emitScales(Value unit, Value row) {
  if (layout.subs == SubScales::InWords)
    return emitGridScales(unit, row);
  if (layout.subs != SubScales::None && format.scaleKind != ScaleKind::PerSub) {
    for (int64_t chunk = 0; chunk < layout.unitWeights / layout.chunkWeights; ++chunk)
      emitSubScales(unit, row, chunk);
    return;
  }
  for (int64_t i = 0; i < layout.unitWeights / span; ++i) {
    k.store(scaleAt(unit, row, i * span), k.at(scales, 4 * i), 4);
    if (format.hasMin)
      k.store(halfAt(unit, row, layout.minOffset(i * span)), k.at(minima, 4 * i), 4);
  }
}

// Sub-scales 2q and 2q + 1 in the lower bytes.
Value Embed::packedEight(Value unit, Value row, int64_t chunk) {
  Value low = k.shrU(wordAt(unit, row, layout.subOffset(0)), 8 * chunk);
  Value high = k.load(k.i16(), k.at(k.at(unit, k.mul(row, 2)), layout.highOffset()), 2);
  high = k.shrU(k.extendU(high, k.i32()), 4 * chunk);
  Value first = k.orBits(k.andBits(low, 0x0f), k.shl(k.andBits(high, 3), 4));
  return k.orBits(first, k.orBits(k.shl(k.andBits(low, 0xf0), 4), k.shl(k.andBits(high, 12), 10)));
}

// The bytes T_q of PackedLayout.h for chunk q.
Value Embed::packedSixBits(Value unit, Value row, int64_t chunk) {
  int64_t offset = layout.subOffset(chunk);
  Value low = wordAt(unit, row, offset + 64 * (chunk / 2));
  Value high = wordAt(unit, row, offset + 128);
  low = k.andBits(k.shrU(low, chunk % 2 * 4), 0x0f0f0f0f);
  high = k.andBits(k.shrU(high, 2 * chunk), 0x03030303);
  return k.orBits(low, k.shl(high, 4));
}

// Scales of a grid's sub-blocks.
void Embed::emitGridScales(Value unit, Value row) {
  GridCode code(k, layout);
  Value d = scaleAt(unit, row, 0);
  for (int64_t i = 0; i < layout.unitWeights / span; ++i) {
    Value sub = k.mul(code.element(FieldRole::Sub, unit, row, k.constI64(i)), format.subStep);
    sub = k.add(sub, -int64_t(format.subZero));
    k.store(k.mul(d, k.intToFloat(sub)), k.at(scales, 4 * i), 4);
  }
}

void Embed::emitSubScales(Value unit, Value row, int64_t chunk) {
  Value d = halfAt(unit, row, layout.scaleOffset(0));
  auto storeProducts = [&](Value d, Value values, Value to, int64_t first) {
    Value products = k.mul(k.splat(d, 4), k.intToFloat(values));
    int64_t count = layout.chunkWeights / span;
    if (count == 4)
      return k.store(products, k.at(to, 4 * chunk * count), 4);
    for (int64_t j = 0; j < count; ++j)
      k.store(k.extract(products, first + j), k.at(to, 4 * (chunk * count + j)), 4);
  };
  auto subs = [&](Value word) {
    Value values = bytes(word);
    values = format.signedSub ? k.extendS(values, k.i32()) : k.extendU(values, k.i32());
    return k.add(values, -int64_t(format.subZero));
  };
  bool six = layout.subs == SubScales::SixBitPacked;
  Value word = six                                     ? packedSixBits(unit, row, chunk)
               : layout.subs == SubScales::SixBitEight ? packedEight(unit, row, chunk)
                                                       : wordAt(unit, row, layout.subOffset(chunk));
  if (!format.hasMin)
    return storeProducts(d, subs(word), scales, 0);
  Value dmin = halfAt(unit, row, layout.minOffset(0));
  Value minimumWord = six ? word : k.andBits(k.shrU(word, 4), 0x0f0f0f0f);
  storeProducts(d, subs(six ? word : k.andBits(word, 0x0f0f0f0f)), scales, 0);
  storeProducts(dmin, k.extendU(bytes(minimumWord), k.i32()), minima, six ? 2 : 0);
}

// Four codes from `weight` of the chunk on, as i32.
Value Embed::codes(Value chunk, Value row, int64_t weight) {
  Value all;
  for (auto [p, plane] : llvm::enumerate(layout.planes)) {
    int64_t group = weight % (32 / plane.width) / 4;
    int64_t mask = ((1 << plane.width) - 1) * int64_t(0x01010101);
    Value part = wordAt(chunk, row, layout.planeOffset(p, weight));
    part = k.shl(k.andBits(k.shrU(part, plane.width * group), mask), plane.shift);
    all = all ? k.orBits(all, part) : part;
  }
  Value four = bytes(all);
  if (!format.codebook.empty()) {
    Value table = k.table({reinterpret_cast<const uint8_t *>(format.codebook.data()), 16});
    for (int64_t i = 0; i < 4; ++i) {
      Value number = k.extendU(k.extract(four, i), k.i64());
      four = k.insert(k.load(k.i8(), k.at(table, number), 1), four, i);
    }
  }
  return format.signedCodes ? k.extendS(four, k.i32()) : k.extendU(four, k.i32());
}

void Embed::emitCodes(Value unit, Value row, Value out, Value chunk, int64_t weights) {
  Value base = k.at(unit, k.mul(chunk, layout.chunkBytes));
  Value to = k.at(out, k.mul(chunk, 4 * layout.chunkWeights));
  Value index = k.mul(chunk, 4 * (layout.chunkWeights / span));
  for (int64_t weight = 0; weight < weights; weight += 4) {
    Value code = k.add(codes(base, row, weight), -int64_t(format.zeroPoint));
    int64_t sub = 4 * (weight / span);
    Value scale = k.loadSplat(k.f32(), 4, k.at(k.at(scales, index), sub));
    Value value = k.mul(scale, k.intToFloat(code));
    if (format.hasMin) {
      Value minimum = k.loadSplat(k.f32(), 4, k.at(k.at(minima, index), sub));
      value = format.subtractMin ? k.sub(value, minimum) : k.add(value, minimum);
    }
    storeOut(value, k.at(to, 4 * weight));
  }
}

} // namespace

llvm::LogicalResult emitEmbed(KernelFrame &frame, pack::EmbedOp op) {
  auto type = cast<pack::WeightType>(op.getWeight().getType());
  const FormatSpec *format = findFormat(type.getFormat().getValue());
  if (!format)
    return op.emitError("no weight format is called '") << type.getFormat().getValue() << "'";
  if (type.getCols() % format->blockWeights != 0)
    return op.emitError("rows of ")
           << type.getCols() << " weights are not whole blocks of " << format->name;
  Embed(frame, op, *format).emit();
  return success();
}

} // namespace izhc
