// Lane l = 4 g + t has columns t of each group of a matrix instruction, and its
// rows g and g + 8. Which columns and rows of the tiles these are is free, as
// long as records are read alike: a lane takes what its 16 bytes hold.

#include "targets/cuda/codegen/PairDot.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "targets/cuda/codegen/TensorCore.h"

namespace izhc::cuda {

using namespace mlir;

namespace {

constexpr int64_t kChunk = Spans::kChunk, kRun = 32;

int64_t wordWeightsOf(const PackedLayout &layout) {
  uint32_t widest = 0;
  for (const CodePlane &plane : layout.planes)
    widest = std::max(widest, plane.width);
  return 32 / widest;
}

} // namespace

bool PairDot::supports(pack::WeightType type, pack::ActType act) {
  const FormatSpec *format = findFormat(type.getFormat().getValue());
  if (!format || format->kind != ElementKind::Quantized || format->grid ||
      act.getKind() == pack::ActKind::F32)
    return false;
  // A lane's words of a run are two groups of four columns.
  int64_t weights = wordWeightsOf(PackedLayout(*format));
  if (weights != 4 && weights != 8)
    return false;
  bool isByte = format->signedCodes || format->codeBits < 8;
  bool fine = format->subWeights == 16;
  pack::ActLayout fields(act);
  bool corrected = !format->zeroPoint ||
                   (fine ? fields.find(act.getCorr16(), fields.corr16, format->zeroPoint)
                         : fields.find(act.getCorr32(), fields.corr32, format->zeroPoint)) >= 0;
  return isByte && corrected && (!format->hasMin || (act.getSums() && !fine));
}

PairDot::PairDot(Block &block, pack::WeightType type, pack::ActType act, bool oneRecord)
    : block(block), k(block.k), format(*findFormat(type.getFormat().getValue())), layout(format),
      actType(act), oneRecord(oneRecord), wordWeights(wordWeightsOf(layout)) {
  place = k.rem(block.lane, 4);
  group = k.div(block.lane, 4);
  quad = k.rem(group, 4);
  second = k.div(group, 4);
}

// The words of all planes that hold the lane's columns, from `column` of the
// chunk on, of the four rows.
PairDot::Values PairDot::readPlanes(Value inUnit, int64_t column, Reader reader) const {
  int64_t span = 0;
  for (const CodePlane &plane : layout.planes)
    span = std::max<int64_t>(span, 32 / plane.width);
  Value first = k.add(k.mul(place, wordWeights), column), rows = k.mul(quad, 4 * kRows);
  Values all;
  for (auto [p, plane] : llvm::enumerate(layout.planes)) {
    int64_t covers = 32 / plane.width;
    int64_t stride = layout.planeOffset(p, span) - layout.planeOffset(p, 0);
    Value offset = k.mul(k.div(first, span), stride);
    offset = k.add(offset, k.mul(k.div(k.rem(first, span), covers), 64));
    offset = k.add(k.add(offset, rows), k.mul(inUnit, layout.chunkBytes));
    Values words = reader(k.add(offset, layout.planeOffset(p, 0)), kRows);
    // Neighbouring lanes share words of narrow planes.
    Value shift;
    if (covers > wordWeights)
      shift = k.truncate(k.mul(k.rem(k.div(first, 4), 8 / plane.width), plane.width), k.i32());
    for (Value word : words)
      all.push_back(shifted(word, shift));
  }
  return all;
}

PairDot::Words PairDot::read(Value inUnit, Reader reader) const {
  Words words;
  for (int64_t run = 0; run < kChunk / kRun; ++run) {
    Values first = readPlanes(inUnit, run * kRun, reader), next = first;
    if (wordWeights == 4)
      next = readPlanes(inUnit, run * kRun + kRun / 2, reader);
    for (const Values &one : {first, next}) {
      words.groups.emplace_back();
      for (size_t p = 0; p < layout.planes.size(); ++p)
        words.groups.back().emplace_back(one.begin() + kRows * p, one.begin() + kRows * (p + 1));
    }
  }
  readScales(words, inUnit, reader);
  return words;
}

void PairDot::readScales(Words &words, Value inUnit, Reader reader) const {
  Value halfRows = k.mul(quad, 2 * kRows), wordRows = k.mul(quad, 4 * kRows);
  auto at = [&](Value lane, int64_t offset) { return k.add(lane, offset); };
  if (format.scaleKind != ScaleKind::PerSub) {
    bool each = format.blockWeights == 32 && format.scaleKind == ScaleKind::Half;
    for (int64_t run = 0; run < (each ? 2 : 1); ++run) {
      words.scales[run] = reader(at(halfRows, layout.scaleOffset(run * kRun)), 2);
      if (format.hasMin)
        words.mins[run] = reader(at(halfRows, layout.minOffset(run * kRun)), 2);
    }
  }
  switch (layout.subs) {
  case SubScales::None:
  case SubScales::InWords:
    break;
  case SubScales::InChunk:
    words.subs =
        reader(at(k.add(wordRows, k.mul(inUnit, layout.chunkBytes)), layout.subOffset(0)), 4);
    break;
  case SubScales::SixBitPacked:
    words.subs = reader(at(k.add(wordRows, k.mul(k.div(inUnit, 2), 64)), layout.subOffset(0)), 4);
    words.subsHigh = reader(at(wordRows, layout.subOffset(0) + 128), 4);
    break;
  case SubScales::SixBitEight:
    words.subs = reader(at(wordRows, layout.subOffset(0)), 4);
    words.subsHigh = reader(at(halfRows, layout.highOffset()), 2);
    break;
  }
}

int64_t PairDot::words(pack::WeightType type) {
  const FormatSpec &format = *findFormat(type.getFormat().getValue());
  return words(format, PackedLayout(format));
}

int64_t PairDot::words(const FormatSpec &format, const PackedLayout &layout) {
  int64_t count = kRows * layout.planes.size() * (wordWeightsOf(layout) == 4 ? 4 : 2);
  bool each = format.blockWeights == 32 && format.scaleKind == ScaleKind::Half;
  if (format.scaleKind != ScaleKind::PerSub)
    count += (each ? 4 : 2) * (format.hasMin ? 2 : 1);
  if (layout.subs == SubScales::InChunk)
    count += 4;
  if (layout.subs == SubScales::SixBitPacked)
    count += 8;
  if (layout.subs == SubScales::SixBitEight)
    count += 6;
  return count;
}

PairDot::Values PairDot::fetch(Value tile, Value chunk) const {
  int64_t chunks = layout.unitWeights / kChunk;
  Value unit = k.at(tile, k.mul(k.div(chunk, chunks), layout.unitBytes));
  Values all;
  // What the words mean is worked out where they are used.
  read(k.rem(chunk, chunks), [&](Value offset, int64_t words) {
    Values found = block.fetch(k.at(unit, offset), words);
    all.append(found.begin(), found.end());
    return found;
  });
  return all;
}

Value PairDot::shifted(Value word, Value by) const {
  return by ? Value(arith::ShRUIOp::create(k.builder, k.loc, word, by)) : word;
}

// (word >> (by + fixed)) & mask
Value PairDot::bits(Value word, Value by, int64_t fixed, int64_t mask) const {
  return k.andBits(k.shrU(shifted(word, by), fixed), mask);
}

Value PairDot::half(ArrayRef<Value> words, int64_t row) const {
  return k.halfToFloat(k.truncate(k.shrU(words[row / 2], row % 2 * 16), k.i16()));
}

// The integer of a sub-block, or of its minimum.
Value PairDot::sub(const Words &words, Value inUnit, int64_t run, int64_t row, bool isMin) const {
  auto times = [&](int64_t factor) { return k.truncate(k.mul(inUnit, factor), k.i32()); };
  Value chunk = k.truncate(inUnit, k.i32()), result;
  switch (layout.subs) {
  case SubScales::InChunk: {
    int64_t mask = isMin ? 15 : (1 << format.subBits) - 1;
    result = bits(words.subs[row], {}, 8 * run + (isMin ? 4 : 0), mask);
    break;
  }
  case SubScales::SixBitPacked: {
    // Chunks of even and odd number share bytes of the lower bits.
    int64_t byte = 8 * (run + (isMin ? 2 : 0));
    Value low = bits(words.subs[row], k.mul(k.andBits(chunk, 1), 4), byte, 15);
    Value high = bits(words.subsHigh[row], times(2), byte, 3);
    result = k.orBits(low, k.shl(high, 4));
    break;
  }
  case SubScales::SixBitEight: {
    Value low = bits(words.subs[row], times(8), 4 * run, 15);
    Value high = bits(words.subsHigh[row / 2], times(4), 2 * run + row % 2 * 16, 3);
    result = k.orBits(low, k.shl(high, 4));
    break;
  }
  default:
    return {};
  }
  if (isMin)
    return result;
  if (format.signedSub)
    result = k.shrS(k.shl(result, 32 - format.subBits), 32 - format.subBits);
  if (format.subStep != 1)
    result = k.mul(result, k.constInt(k.i32(), format.subStep));
  return k.add(result, -int64_t(format.subZero));
}

Value PairDot::factor(const Words &words, Value inUnit, int64_t run, int64_t row) const {
  Value scale;
  switch (format.scaleKind) {
  case ScaleKind::Half:
    scale = half(words.scales[format.blockWeights == 32 ? run : 0], row);
    break;
  case ScaleKind::PowerOfTwo: {
    // Byte 2r of the first block of 32, 2r + 1 of the second.
    Value byte = bits(words.scales[0][row / 2], {}, row % 2 * 16 + 8 * run, 255);
    scale = k.bitcast(k.shl(byte, 23), k.f32());
    break;
  }
  case ScaleKind::PerSub: {
    // Four exponent bits of bias 7 among float16's five of bias 15.
    Value byte = bits(words.subs[row], {}, 8 * run, 127);
    Value wide = k.halfToFloat(k.truncate(k.shl(byte, 7), k.i16()));
    scale = k.mul(wide, k.constFloat(k.f32(), 256.0));
    break;
  }
  }
  if (format.factor != 1)
    scale = k.mul(scale, k.constFloat(k.f32(), format.factor));
  if (format.scaleKind == ScaleKind::PerSub)
    return scale;
  Value integer = sub(words, inUnit, run, row, /*isMin=*/false);
  return integer ? k.mul(scale, k.intToFloat(integer)) : scale;
}

Value PairDot::minimum(const Words &words, Value inUnit, int64_t run, int64_t row) const {
  Value min = half(words.mins[format.blockWeights == 32 ? run : 0], row);
  if (Value integer = sub(words, inUnit, run, row, /*isMin=*/true))
    min = k.mul(min, k.intToFloat(integer));
  return format.subtractMin ? k.neg(min) : min;
}

// Four codes of a row as bytes; groups 2 r and 2 r + 1 are those of run r of 32.
Value PairDot::codes(const Words &words, int64_t group, int64_t row) const {
  Value result;
  for (auto [p, plane] : llvm::enumerate(layout.planes)) {
    Value word = words.groups[group][p][row];
    if (plane.width < 8) {
      word = k.shrU(word, group % 2 * plane.width);
      word = k.andBits(word, 0x01010101 * ((int64_t(1) << plane.width) - 1));
    }
    word = k.shl(word, plane.shift);
    result = result ? k.orBits(result, word) : word;
  }
  return format.codebook.empty() ? result : block.lookUp(format.codebook, result);
}

PairDot::Act PairDot::act(Value record, Value run, Value valid) const {
  pack::ActLayout fields(actType);
  auto at = [&](int64_t field, Value i) { return k.at(k.at(record, field), k.mul(i, 4)); };
  Act result;
  // The number of 32 columns.
  Value wide = k.div(run, kRun / runWeights());
  Value step;
  if (actType.getKind() == pack::ActKind::Block32) {
    result.scale = k.load(k.f32(), at(fields.scales, wide), 4);
  } else {
    Value exponent = k.load(k.i32(), at(fields.exponents, wide), 4);
    Value power = k.bitcast(k.add(exponent, int64_t(127) << 23), k.f32());
    step = k.load(k.f32(), at(fields.scales, k.div(wide, 256 / kRun)), 4);
    result.scale = k.mul(step, power);
  }
  if (format.hasMin) {
    result.sum = k.load(k.f32(), at(fields.sums, wide), 4);
    // There the sums are in units of the group's step.
    if (step)
      result.sum = k.mul(result.sum, step);
  }
  if (valid) {
    result.scale = k.mul(result.scale, valid);
    if (result.sum)
      result.sum = k.mul(result.sum, valid);
  }
  result.start = k.zero(k.i32());
  if (format.zeroPoint) {
    int64_t field = runWeights() == 16
                        ? fields.find(actType.getCorr16(), fields.corr16, format.zeroPoint)
                        : fields.find(actType.getCorr32(), fields.corr32, format.zeroPoint);
    result.start = k.load(k.i32(), at(field, run), 4);
  }
  return result;
}

void PairDot::addRun(const Words &words, Value inUnit, int64_t run, ArrayRef<Act> acts,
                     ArrayRef<Value> bytes, Values &sums) const {
  int64_t group = 2 * (run * runWeights() / kRun);
  for (int64_t row = 0; row < kRows; row += 2) {
    Value left[] = {codes(words, group, row), codes(words, group, row + 1),
                    codes(words, group + 1, row), codes(words, group + 1, row + 1)};
    Value start[] = {acts[0].start, acts.back().start, acts[0].start, acts.back().start};
    Values products = multiplyBytes(k, kRun, left, bytes, start);
    for (int64_t i = 0; i < 2; ++i) {
      Value scale = factor(words, inUnit, run, row + i), min;
      if (format.hasMin)
        min = minimum(words, inUnit, run, row + i);
      for (int64_t column = 0; column < columns(); ++column) {
        Value &sum = sums[(row + i) * columns() + column];
        Value product = k.mul(scale, k.intToFloat(products[2 * i + column]));
        sum = k.mulAdd(product, acts[column].scale, sum);
        if (min)
          sum = k.mulAdd(min, acts[column].sum, sum);
      }
    }
  }
}

PairDot::Words PairDot::parse(ArrayRef<Value> all, Value inUnit) const {
  size_t next = 0;
  return read(inUnit, [&](Value, int64_t count) {
    Values found(all.begin() + next, all.begin() + next + count);
    next += count;
    return found;
  });
}

PairDot::Bytes PairDot::bytes(ArrayRef<Value> all, Value chunk, int64_t run) const {
  Value inUnit = k.rem(chunk, layout.unitWeights / kChunk);
  Words words = parse(all, inUnit);
  int64_t group = 2 * (run * runWeights() / kRun);
  Bytes result;
  for (int64_t row = 0; row < kRows; ++row) {
    result.factors.push_back(factor(words, inUnit, run, row));
    if (format.hasMin)
      result.minima.push_back(minimum(words, inUnit, run, row));
  }
  for (int64_t half = 0; half < 2; ++half)
    for (int64_t i = 0; i < 4; ++i)
      result.left[half].push_back(
          signedBytes(k, format, codes(words, group + i / 2, 2 * half + i % 2)));
  return result;
}

SmallVector<PairDot::Piece, 2> PairDot::pieces(int64_t part) const {
  Value first = k.add(k.mul(place, wordWeights), part * kRun);
  if (wordWeights == 8)
    return {{first, 2}};
  return {{first, 1}, {k.add(first, kRun / 2), 1}};
}

std::array<Value, 2> PairDot::masked(std::array<Value, 2> words, int64_t run) const {
  if (runWeights() == kRun)
    return words;
  int64_t part = run % 2;
  Value zero = k.zero(k.i32());
  if (wordWeights == 4) {
    words[1 - part] = zero;
    return words;
  }
  Value here = k.equal(k.div(place, 2), k.constI64(part));
  return {k.select(here, words[0], zero), k.select(here, words[1], zero)};
}

void PairDot::add(ArrayRef<Value> all, Value chunk, Value valid,
                  llvm::function_ref<Value(Value)> record, Values &sums) const {
  Value inUnit = k.rem(chunk, layout.unitWeights / kChunk);
  Words words = parse(all, inUnit);
  // A column of the instruction is a record; with one record all are the same.
  Value zero = k.constI64(0);
  Value mine = record(oneRecord ? zero : group);
  SmallVector<Value, 2> others;
  for (int64_t column = 0; column < columns(); ++column)
    others.push_back(record(oneRecord ? zero : k.add(firstRecord(), column)));
  pack::ActLayout fields(actType);
  int64_t parts = kRun / runWeights();
  for (int64_t run = 0; run < kChunk / kRun; ++run) {
    Value first = k.add(k.add(k.mul(chunk, kChunk), run * kRun), k.mul(place, wordWeights));
    Value at = k.at(k.at(mine, fields.codes), first), bytes[2];
    if (wordWeights == 8) {
      Value both = k.load(k.vec(2, k.i32()), at, 8);
      for (int64_t i = 0; i < 2; ++i)
        bytes[i] = k.extract(both, i);
    } else {
      for (int64_t i = 0; i < 2; ++i)
        bytes[i] = k.load(k.i32(), k.at(at, i * kRun / 2), 4);
    }
    for (int64_t part = 0; part < parts; ++part) {
      // The columns of other runs count nothing.
      int64_t number = run * parts + part;
      std::array<Value, 2> ofRun = masked({bytes[0], bytes[1]}, number);
      Value inRow = k.add(k.mul(chunk, kChunk / runWeights()), number);
      SmallVector<Act, 2> acts;
      for (Value other : others)
        acts.push_back(act(other, inRow, valid));
      addRun(words, inUnit, number, acts, ofRun, sums);
    }
  }
}

} // namespace izhc::cuda
