#include "compiler/target/vector/DecodedPanel.h"

namespace izhc {

using namespace mlir;

DecodedPanel::DecodedPanel(KernelBuilder &k, const WeightReader &reader, Options options,
                           int64_t weights, Value unpacking, Value memory)
    : nested(reader.spec.blockWeights == 256), step(reader.spec.subWeights == 16 ? 16 : 32),
      steps(64 / step), k(k), reader(reader), options(options), unpacking(unpacking),
      chunks(memory) {
  scalesOffset = 16 * kVector;
  shiftsOffset = scalesOffset + steps * kVector;
  minimaOffset = shiftsOffset + (options.shift != 0 && !nested ? steps * kVector : 0);
  chunkBytes = minimaOffset + (reader.spec.hasMin ? steps * kVector : 0);
}

Value DecodedPanel::chunkAt(Value chunk, int64_t offset) {
  return k.at(k.at(chunks, k.mul(chunk, chunkBytes)), offset);
}

void DecodedPanel::store(Value vector, Value place, int64_t part) {
  int64_t bytes = 4 * reader.lanes;
  k.store(vector, k.at(place, part * bytes), unsigned(bytes));
}

void DecodedPanel::decode(Value tile, Value firstUnit, Value units) {
  for (int64_t part = 0; part < PackedLayout::kTileRows / reader.lanes; ++part)
    decodePart(tile, firstUnit, units, part);
}

void DecodedPanel::decodePart(Value tile, Value firstUnit, Value units, int64_t part) {
  const PackedLayout &layout = reader.layout;
  int64_t count = layout.unitWeights / 64, offset = 4 * reader.lanes * part;
  k.loop(k.constI64(0), units, 1, [&](Value u) {
    Value unit = k.at(tile, k.mul(k.add(firstUnit, u), layout.unitBytes));
    Value bytes = k.at(unit, offset), halves = k.at(unit, offset / 2);
    if (!nested)
      return decodeChunk(bytes, Value(), halves, {}, u, part);
    Head head{reader.scale(bytes, halves, 0), Value()};
    if (reader.spec.hasMin)
      head.minimum = k.neg(reader.minimum(halves, 0));
    Value scratch = k.at(unpacking, offset);
    if (reader.unpacksSubs())
      reader.unpackSubs(bytes, halves, scratch);
    if (reader.expands())
      reader.expandCodes(bytes, scratch);
    Value codes = reader.expands() ? k.at(scratch, WeightReader::kCodesInScratch) : bytes;
    k.loop(k.constI64(0), k.constI64(count), 1, [&](Value q) {
      decodeChunk(k.at(codes, k.mul(q, layout.chunkBytes)), k.at(scratch, k.mul(q, 64)), Value(),
                  head, k.add(k.mul(u, count), q), part);
    });
  });
}

// `subs`: unpacked sub-scales; `halves`: of units that are one chunk.
void DecodedPanel::decodeChunk(Value codes, Value subs, Value halves, const Head &head, Value chunk,
                               int64_t part) {
  const FormatSpec &spec = reader.spec;
  Value dwords = reader.hasSubs() ? reader.subDwords(codes, subs) : Value();
  for (int64_t s = 0; s < steps; ++s) {
    Value scale = nested ? reader.scaleOfSub(head.scale, dwords, s * step)
                  : dwords ? reader.sub(dwords, s * step)
                           : reader.scale(Value(), halves, s * step);
    store(scale, scales(chunk, s), part);
    if (options.shift != 0 && !nested)
      store(k.mul(scale, k.constFloat(scale.getType(), options.shift)), shifts(chunk, s), part);
    if (spec.hasMin)
      store(nested ? k.mul(head.minimum, reader.subMin(dwords, s * step))
                   : reader.minimum(halves, s * step),
            minima(chunk, s), part);
  }
  WeightReader::Planes planes;
  for (int64_t kk = 0; kk < 64; kk += 4) {
    Value vector = reader.codes(planes, codes, kk);
    if (options.lessZeroPoint)
      vector = k.add(vector, -int64_t(spec.zeroPoint));
    store(vector, this->codes(chunk, kk), part);
  }
}

} // namespace izhc
