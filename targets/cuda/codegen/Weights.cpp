// Scales and codes of a run of weights, four codes at a time.

#include "targets/cuda/codegen/Weights.h"
#include "compiler/target/GridCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace izhc::cuda {

using namespace mlir;

static constexpr int64_t kChunk = 64;

std::optional<Weights> Weights::of(Operation *op, Block &block, Type type) {
  auto weight = cast<pack::WeightType>(type);
  const FormatSpec *format = findFormat(weight.getFormat().getValue());
  if (!format) {
    op->emitError("reads weights of the unknown format '") << weight.getFormat().getValue() << "'";
    return std::nullopt;
  }
  return Weights(block, *format, weight);
}

Value Weights::floatWeight(Value tile, Value row, Value index) const {
  int64_t bytes = layout.unitBytes / PackedLayout::kTileRows;
  Value at = k.at(tile, k.add(k.mul(index, layout.unitBytes), k.mul(row, bytes)));
  if (format.kind == ElementKind::F32)
    return k.load(k.f32(), at, 4);
  Value bits = k.load(k.i16(), at, 2);
  if (format.kind == ElementKind::F16)
    return k.halfToFloat(bits);
  return k.bitcast(k.shl(k.extendU(bits, k.i32()), 16), k.f32());
}

bool Weights::hasFloats(pack::WeightType type) {
  const FormatSpec *format = findFormat(type.getFormat().getValue());
  return format && format->kind != ElementKind::Quantized;
}

// Neighbouring rows of two bytes share a word.
Value Weights::fetchFloat(Value tile, Value row, Value index) const {
  int64_t bytes = layout.unitBytes / PackedLayout::kTileRows;
  Value inColumn = k.mul(k.div(k.mul(row, bytes), 4), 4);
  return block.fetch(k.at(tile, k.add(k.mul(index, layout.unitBytes), inColumn)), 1)[0];
}

Value Weights::floatIn(Value bits, Value row) const {
  if (format.kind == ElementKind::F32)
    return k.bitcast(bits, k.f32());
  Value isSecond = k.equal(k.rem(row, 2), k.constI64(1));
  Value half = k.select(isSecond, k.shrU(bits, 16), bits);
  if (format.kind == ElementKind::F16)
    return k.halfToFloat(k.truncate(half, k.i16()));
  return k.bitcast(k.shl(half, 16), k.f32());
}

// A float16 of the head; those of the unit's second block lie elsewhere.
Value Weights::half(const Run &run, int64_t first, int64_t second) const {
  Value blockNumber = k.div(run.inUnit, format.blockWeights);
  Value at = k.add(k.mul(blockNumber, second - first), k.mul(run.row, 2));
  return k.halfToFloat(k.load(k.i16(), k.at(k.at(run.unit, first), at), 2));
}

Value Weights::scale(const Run &run) const {
  int64_t last = layout.unitWeights - format.blockWeights;
  auto byteAt = [&](Value at) { return k.extendU(k.load(k.i8(), k.at(run.unit, at), 1), k.i32()); };
  switch (format.scaleKind) {
  case ScaleKind::Half:
    if (format.grid && !layout.headBytes)
      return k.halfToFloat(k.truncate(
          GridCode(k, layout).element(FieldRole::Scale, run.unit, run.row, k.constI64(0)),
          k.i16()));
    return half(run, layout.scaleOffset(0), layout.scaleOffset(last));
  case ScaleKind::PowerOfTwo: {
    Value byte = byteAt(k.add(k.mul(run.row, 2), k.div(run.inUnit, format.blockWeights)));
    return k.bitcast(k.shl(byte, 23), k.f32());
  }
  case ScaleKind::PerSub: {
    Value byte = byteAt(k.add(k.mul(run.row, 4), k.div(run.inUnit, runWeights())));
    // Four exponent bits of bias 7 among float16's five of bias 15.
    Value bits = k.truncate(k.shl(k.andBits(byte, 127), 7), k.i16());
    return k.mul(k.halfToFloat(bits), k.constFloat(k.f32(), 256.0));
  }
  }
  return {};
}

Weights::Run Weights::run(Value tile, Value row, Value index) const {
  Run run;
  run.row = row;
  run.first = k.mul(index, runWeights());
  run.inUnit = k.rem(run.first, layout.unitWeights);
  run.unit = k.at(tile, k.mul(k.div(run.first, layout.unitWeights), layout.unitBytes));
  run.scale = scale(run);
  if (format.factor != 1)
    run.scale = k.mul(run.scale, k.constFloat(k.f32(), format.factor));
  if (format.hasMin)
    run.min =
        half(run, layout.minOffset(0), layout.minOffset(layout.unitWeights - format.blockWeights));
  Value chunkNumber = k.div(run.inUnit, kChunk);
  run.inChunk = k.rem(run.inUnit, kChunk);
  run.chunk = k.at(run.unit, k.mul(chunkNumber, layout.chunkBytes));
  readSubScales(run, chunkNumber);
  return run;
}

void Weights::readSubScales(Run &run, Value chunkNumber) const {
  if (layout.subs == SubScales::None || format.scaleKind == ScaleKind::PerSub)
    return;
  auto shifted = [&](Value bits, Value by) -> Value {
    return arith::ShRUIOp::create(k.builder, k.loc, bits, k.truncate(by, k.i32()));
  };
  Value inChunk = k.div(run.inChunk, runWeights());
  Value subs = k.at(run.unit, layout.subOffset(0));
  auto byteAt = [&](Value vector, Value j) {
    return k.extendU(k.load(k.i8(), k.at(vector, k.add(k.mul(run.row, 4), j)), 1), k.i32());
  };
  switch (layout.subs) {
  case SubScales::SixBitPacked: {
    auto sixBits = [&](Value j) {
      Value low = byteAt(k.at(subs, k.mul(k.div(chunkNumber, 2), 64)), j);
      low = k.andBits(shifted(low, k.mul(k.rem(chunkNumber, 2), 4)), 15);
      Value high = k.andBits(shifted(byteAt(k.at(subs, 128), j), k.mul(chunkNumber, 2)), 3);
      return k.orBits(low, k.shl(high, 4));
    };
    run.sub = sixBits(inChunk);
    if (format.hasMin)
      run.subMin = sixBits(k.add(inChunk, 2));
    break;
  }
  case SubScales::SixBitEight: {
    Value i = k.add(k.mul(chunkNumber, 2), inChunk);
    Value low = k.load(k.i32(), k.at(subs, k.mul(run.row, 4)), 4);
    Value high = k.load(k.i16(), k.at(k.at(run.unit, layout.highOffset()), k.mul(run.row, 2)), 2);
    low = k.andBits(shifted(low, k.mul(i, 4)), 15);
    high = k.andBits(shifted(k.extendU(high, k.i32()), k.mul(i, 2)), 3);
    run.sub = k.orBits(low, k.shl(high, 4));
    break;
  }
  case SubScales::InWords:
    run.sub = k.mul(GridCode(k, layout).element(FieldRole::Sub, run.unit, run.row,
                                                k.div(run.inUnit, format.subWeights)),
                    format.subStep);
    break;
  default: {
    int64_t stride = layout.subOffset(1) - layout.subOffset(0);
    Value byte = byteAt(k.at(subs, k.mul(chunkNumber, stride)), inChunk);
    run.sub = format.subBits < 8 ? k.andBits(byte, (1 << format.subBits) - 1) : byte;
    if (format.hasMin)
      run.subMin = k.shrU(byte, 4);
  }
  }
  if (format.signedSub)
    run.sub = k.shrS(k.shl(run.sub, 32 - format.subBits), 32 - format.subBits);
  run.sub = k.add(run.sub, -int64_t(format.subZero));
}

// Byte 4r + c of a plane's vector holds weights c, 4 + c, 8 + c, ... of row r,
// so the word of a row holds four neighbours at each multiple of the width.
Value Weights::codes(const Run &run, int64_t i) const {
  if (format.grid) {
    GridCode grid(k, layout);
    Value four;
    for (int64_t j = 0; j < 4; ++j) {
      Value code = k.andBits(grid.code(run.unit, run.row, k.add(run.inUnit, i + j)), 255);
      four = four ? k.orBits(four, k.shl(code, 8 * j)) : code;
    }
    return four;
  }
  Value place = k.add(run.inChunk, i);
  int64_t span = 0;
  for (const CodePlane &plane : layout.planes)
    span = std::max<int64_t>(span, 32 / plane.width);
  Value result;
  for (auto [p, plane] : llvm::enumerate(layout.planes)) {
    int64_t covers = 32 / plane.width, groups = 8 / plane.width;
    int64_t stride = layout.planeOffset(p, span) - layout.planeOffset(p, 0);
    Value at =
        k.add(k.mul(k.div(place, span), stride), k.mul(k.div(k.rem(place, span), covers), 64));
    at = k.add(at, k.mul(run.row, 4));
    Value word = k.load(k.i32(), k.at(k.at(run.chunk, layout.planeOffset(p, 0)), at), 4);
    if (plane.width < 8) {
      Value group = k.truncate(k.rem(k.div(place, 4), groups), k.i32());
      word = arith::ShRUIOp::create(k.builder, k.loc, word, k.mul(group, plane.width));
      word = k.andBits(word, 0x01010101 * ((int64_t(1) << plane.width) - 1));
    }
    word = k.shl(word, plane.shift);
    result = result ? k.orBits(result, word) : word;
  }
  return format.codebook.empty() ? result : block.lookUp(format.codebook, result);
}

Value Weights::plainCode(Value four, int64_t j) const {
  Value code =
      signedCodes() ? k.shrS(k.shl(four, 24 - 8 * j), 24) : k.andBits(k.shrU(four, 8 * j), 255);
  return k.add(code, -zeroPoint());
}

Value Weights::factor(const Run &run) const {
  return run.sub ? k.mul(run.scale, k.intToFloat(run.sub)) : run.scale;
}

Value Weights::minimum(const Run &run) const {
  if (!run.min)
    return {};
  Value min = run.subMin ? k.mul(run.min, k.intToFloat(run.subMin)) : run.min;
  return format.subtractMin ? k.neg(min) : min;
}

void Weights::decode(Value tile, Value row, Value index,
                     llvm::function_ref<void(Value, Value)> body) const {
  if (isFloat())
    return body(index, floatWeight(tile, row, index));
  Run r = run(tile, row, index);
  Value w = factor(r), m = minimum(r);
  for (int64_t i = 0; i < runWeights(); i += 4) {
    Value four = codes(r, i);
    for (int64_t j = 0; j < 4; ++j) {
      Value weight = k.mul(w, k.intToFloat(plainCode(four, j)));
      body(k.add(r.first, i + j), m ? k.add(weight, m) : weight);
    }
  }
}

bool Weights::hasByteCodes(pack::WeightType type) {
  const FormatSpec *format = findFormat(type.getFormat().getValue());
  if (!format || format->kind != ElementKind::Quantized)
    return false;
  return format->grid || format->signedCodes || mostCode(*format) <= 127;
}

// Where codes have so few bits that their zero point can be a byte's highest,
// shifting and flipping that bit subtracts it: from four at a time, and twice as
// many times as the bits that codes leave.
static int64_t spareBits(const FormatSpec &format) {
  int64_t spare = 0;
  if (format.zeroPoint > 0 && !format.grid && format.codebook.empty() &&
      mostCode(format) < 2 * format.zeroPoint)
    while (format.zeroPoint << spare < 128)
      ++spare;
  return format.zeroPoint << spare == 128 ? spare : 0;
}

double signedUnit(const FormatSpec &format) { return 1.0 / double(1 << spareBits(format)); }

Value signedBytes(KernelBuilder &k, const FormatSpec &format, Value four) {
  int64_t zeroPoint = format.grid ? 0 : format.zeroPoint;
  if (!zeroPoint)
    return four;
  // With its highest bit set, no byte borrows from the next.
  Value high = k.constInt(k.i32(), int32_t(0x80808080));
  if (int64_t spare = spareBits(format))
    four = k.shl(four, spare);
  else
    four = k.sub(k.orBits(four, high), k.constInt(k.i32(), 0x01010101 * zeroPoint));
  return k.xorBits(four, int32_t(0x80808080));
}

Weights::Bytes Weights::bytes(Value tile, Value row, Value index) const {
  Run r = run(tile, row, index);
  Bytes bytes = {{}, factor(r), minimum(r)};
  if (signedUnit(format) != 1)
    bytes.factor = k.mul(bytes.factor, k.constFloat(k.f32(), signedUnit(format)));
  for (int64_t i = 0; i < runWeights(); i += 4)
    bytes.codes.push_back(signedBytes(k, format, codes(r, i)));
  return bytes;
}

bool Weights::takes(Operation *op, pack::ActType act) const {
  if (!isFloat() || act.getKind() == pack::ActKind::F32)
    return true;
  op->emitError("multiplies float weights with integer activations; quantize to f32");
  return false;
}

Value Weights::actScale(Value record, Value first, pack::ActType act) const {
  pack::ActLayout fields(act);
  Value scales = k.at(record, fields.scales);
  if (act.getKind() == pack::ActKind::Block32)
    return loadFloat(k, scales, k.div(first, 32));
  Value exponent =
      k.load(k.i32(), k.at(k.at(record, fields.exponents), k.mul(k.div(first, 32), 4)), 4);
  Value power = k.bitcast(k.add(exponent, int64_t(127) << 23), k.f32());
  return k.mul(loadFloat(k, scales, k.div(first, 256)), power);
}

// What the record says of the codes of the run, read as `type`; null where it
// doesn't have the field. Fields are for 32 codes, or for 16.
Value Weights::sumOf(const Run &run, Value record, int64_t field, int64_t codes, Type type) const {
  if (field < 0 || codes != runWeights())
    return {};
  return k.load(type, k.at(k.at(record, field), k.mul(k.div(run.first, codes), 4)), 4);
}

// `sum` with the term of the run.
Value Weights::addRun(const Run &run, llvm::ArrayRef<Value> codes, Value record, pack::ActType act,
                      Value sum) const {
  pack::ActLayout fields(act);
  // -zeroPoint * sum(codes), and scale * sum(codes), if the record has them.
  Value corrected, scaled;
  if (zeroPoint()) {
    corrected =
        sumOf(run, record, fields.find(act.getCorr32(), fields.corr32, zeroPoint()), 32, k.i32());
    if (!corrected)
      corrected =
          sumOf(run, record, fields.find(act.getCorr16(), fields.corr16, zeroPoint()), 16, k.i32());
  }
  if (run.min && act.getSums())
    scaled = sumOf(run, record, fields.sums, 32, k.f32());
  bool needsSum = (zeroPoint() && !corrected) || (run.min && !scaled);

  Value ones = k.constInt(k.i32(), 0x01010101), all = k.zero(k.i32());
  Value products = corrected ? corrected : all;
  for (size_t i = 0; i < codes.size(); i += 4) {
    Value at = k.at(k.at(record, fields.codes), k.add(run.first, int64_t(4 * i)));
    Value sixteen = k.load(k.vec(4, k.i32()), at, 16);
    for (int64_t j = 0; j < 4; ++j) {
      Value four = k.extract(sixteen, j);
      products = block.dot4(products, codes[i + j], four, signedCodes());
      if (needsSum)
        all = block.dot4(all, ones, four, /*signedCodes=*/true);
    }
  }
  if (zeroPoint() && !corrected)
    products = k.sub(products, k.mul(all, zeroPoint()));
  Value scale = actScale(record, run.first, act);
  sum = k.mulAdd(k.mul(factor(run), k.intToFloat(products)), scale, sum);
  if (!run.min)
    return sum;
  // There the sums are in units of the group's step.
  if (scaled && act.getKind() == pack::ActKind::Block256)
    scaled = k.mul(scaled, loadFloat(k, k.at(record, fields.scales), k.div(run.first, 256)));
  return k.mulAdd(minimum(run), scaled ? scaled : k.mul(k.intToFloat(all), scale), sum);
}

Weights::Values Weights::dot(Value tile, Value row, Value span, llvm::ArrayRef<Value> records,
                             pack::ActType act) const {
  Values zeros(records.size(), k.zero(k.f32()));
  int64_t each = spans().columnsEach() / runWeights();
  Value first = k.mul(span, each), end = k.min(k.add(first, each), k.constI64(runs()));
  bool floats = act.getKind() == pack::ActKind::F32;
  // Activations of four columns at a time.
  bool fours = isFloat() && type.getCols() % 4 == 0;
  Value turn = k.constI64(fours ? 4 : 1);
  return k.loop(first, end, turn, zeros, [&](Value index, llvm::ArrayRef<Value> carried) {
    Values sums(carried.begin(), carried.end());
    if (fours) {
      Values weights, acts;
      for (int64_t i = 0; i < 4; ++i)
        weights.push_back(floatWeight(tile, row, k.add(index, i)));
      for (Value record : records)
        acts.push_back(k.load(k.vec(4, k.f32()), k.at(record, k.mul(index, 4)), 16));
      for (int64_t i = 0; i < 4; ++i)
        for (auto [sum, act] : llvm::zip(sums, acts))
          sum = k.mulAdd(weights[i], k.extract(act, i), sum);
      return sums;
    }
    if (floats) {
      decode(tile, row, index, [&](Value i, Value weight) {
        for (auto [sum, record] : llvm::zip(sums, records))
          sum = k.mulAdd(weight, loadFloat(k, record, i), sum);
      });
      return sums;
    }
    Run r = run(tile, row, index);
    Values all;
    for (int64_t i = 0; i < runWeights(); i += 4)
      all.push_back(codes(r, i));
    for (auto [sum, record] : llvm::zip(sums, records))
      sum = addRun(r, all, record, act, sum);
    return sums;
  });
}

} // namespace izhc::cuda
