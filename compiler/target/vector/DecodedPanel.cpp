#include "compiler/target/vector/DecodedPanel.h"

namespace izhc {

using namespace mlir;

DecodedPanel::DecodedPanel(KernelBuilder &k, const WeightReader &reader, Options options,
                           int64_t weights, Value unpacking, Value memory)
    : nested(reader.spec.blockWeights == 256), hasScales(!nested || reader.hasSubs()),
      step(reader.spec.subWeights == 16 ? 16 : 32), steps(64 / step), k(k), reader(reader),
      options(options), unpacking(unpacking), heads(memory),
      chunks(k.at(memory, weights / 256 * 2 * kVector)) {
  scalesOffset = 16 * kVector;
  shiftsOffset = scalesOffset + (hasScales ? steps * kVector : 0);
  minimaOffset = shiftsOffset + (options.shift != 0 && !nested ? steps * kVector : 0);
  chunkBytes = minimaOffset + (reader.spec.hasMin ? steps * kVector : 0);
}

Value DecodedPanel::chunkAt(Value chunk, int64_t offset) {
  return k.at(k.at(chunks, k.mul(chunk, chunkBytes)), offset);
}

Value DecodedPanel::headAt(Value unit, int64_t offset) {
  return k.at(k.at(heads, k.mul(unit, 2 * kVector)), offset);
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
      return decodeChunk(bytes, Value(), halves, u, part);
    decodeHead(bytes, halves, u, part);
    Value scratch = k.at(unpacking, offset);
    if (reader.unpacksSubs())
      reader.unpackSubs(bytes, halves, scratch);
    if (reader.expands())
      reader.expandCodes(bytes, scratch);
    Value codes = reader.expands() ? k.at(scratch, WeightReader::kCodesInScratch) : bytes;
    k.loop(k.constI64(0), k.constI64(count), 1, [&](Value q) {
      decodeChunk(k.at(codes, k.mul(q, layout.chunkBytes)), k.at(scratch, k.mul(q, 64)), Value(),
                  k.add(k.mul(u, count), q), part);
    });
  });
}

void DecodedPanel::decodeHead(Value bytes, Value halves, Value unit, int64_t part) {
  store(reader.scale(bytes, halves, 0), unitScale(unit), part);
  if (reader.spec.hasMin)
    store(k.neg(reader.minimum(halves, 0)), unitMinimum(unit), part);
}

// `subs`: unpacked sub-scales; `halves`: of units that are one chunk.
void DecodedPanel::decodeChunk(Value codes, Value subs, Value halves, Value chunk, int64_t part) {
  const FormatSpec &spec = reader.spec;
  Value dwords = reader.hasSubs() ? reader.subDwords(codes, subs) : Value();
  for (int64_t s = 0; s < steps; ++s) {
    if (hasScales) {
      Value scale = dwords ? reader.sub(dwords, s * step) : reader.scale(Value(), halves, s * step);
      store(scale, scales(chunk, s), part);
      if (options.shift != 0 && !nested)
        store(k.mul(scale, k.constFloat(scale.getType(), options.shift)), shifts(chunk, s), part);
    }
    if (spec.hasMin)
      store(dwords ? reader.subMin(dwords, s * step) : reader.minimum(halves, s * step),
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
