// Dots go over all rows and vectors of a group side by side. What belongs to a
// row of activations and needs arithmetic of its own is prepared once for all
// weights of the panel: the sums to begin with, and powers of two.
//
// In
//     sum * scale = (float(bits + sum) - 1.5 * 2^23) * scale
//                 = fma(float(bits + sum), scale, -1.5 * 2^23 * scale)
// the product on the right is exact for scales of few bits, so the result is
// rounded once, as that of TileProduct is.

#include "compiler/target/vector/DecodedProduct.h"

namespace izhc {

using namespace mlir;

namespace {

constexpr double kBias = 0x1.8p23;
constexpr int64_t kBiasBits = 0x4B400000;
// What `prepared` holds.
enum Prepared : int64_t { Starts, Powers, Shifts };

} // namespace

bool DecodedProduct::serves(const VectorMachine &machine, const FormatSpec &format,
                            pack::ActType act) {
  return machine.decodesPanels && format.kind == ElementKind::Quantized &&
         act.getKind() != pack::ActKind::F32;
}

// Scales that are large powers of two would overflow; scales of activations
// have too many bits.
static bool canBias(const FormatSpec &format, pack::ActType act) {
  return format.blockWeights == 256 ? act.getKind() == pack::ActKind::Block256
                                    : format.scaleKind != ScaleKind::PowerOfTwo;
}

DecodedProduct::DecodedProduct(KernelFrame &frame, const FormatSpec &format, pack::ActType type,
                               int64_t cols, Value unpacking, Value scratch)
    : k(frame.k), reader(frame.k, format, frame.machine.lanes, frame.machine.unsignedDots),
      type(type), act(type), fields(reader, type, act), cols(cols), lanes(frame.machine.lanes),
      size(groupRows(frame.machine)), biased(canBias(format, type)),
      grouped(type.getKind() == pack::ActKind::Block256), floats(k.vec(lanes, k.f32())),
      ints(k.vec(lanes, k.i32())) {
  int64_t bytes = DecodedPanel::bytesFor(kPanelWeights);
  for (int64_t i = 0; i < tilesAtOnce(frame.machine); ++i)
    panels.emplace_back(k, reader, DecodedPanel::Options{biased ? -kBias : 0, false}, kPanelWeights,
                        unpacking, k.at(scratch, i * bytes));
  rowScratch = k.at(scratch, kVectors * bytes);
}

void DecodedProduct::emit(ArrayRef<Value> tiles, Value first, Value rows, ArrayRef<Value> out,
                          int64_t outStride) {
  RowGroups groups{size, rows};
  Value count = groups.count(k), zero = k.constI64(0);
  Values places;
  for (int64_t v = 0; v < kVectors; ++v)
    places.push_back(
        k.at(out[v * lanes / PackedLayout::kTileRows], v * lanes % PackedLayout::kTileRows * 4));
  auto forSlots = [&](function_ref<Value(Value)> value) {
    k.loop(zero, k.mul(count, size * outStride), outStride, [&](Value at) {
      for (Value place : places)
        k.store(value(k.at(place, at)), k.at(place, at), unsigned(4 * lanes));
    });
  };
  forSlots([&](Value) { return k.zero(floats); });
  int64_t units = reader.layout.unitsPerRow(cols), most = kPanelWeights / reader.layout.unitWeights;
  k.loop(zero, k.constI64(units), most, [&](Value firstUnit) {
    Value some = k.min(k.sub(k.constI64(units), firstUnit), k.constI64(most));
    Span span{firstUnit, some, k.mul(some, reader.layout.unitWeights / 64)};
    Value behind = k.mul(k.add(firstUnit, some), reader.layout.unitBytes);
    for (auto [panel, tile] : llvm::zip(panels, tiles))
      panel.decode(tile, firstUnit, some);
    k.loop(zero, count, 1, [&](Value g) {
      Group group{k.at(first, k.mul(groups.firstRow(k, g), act.stride)), {}, {}, outStride};
      for (Value place : places)
        group.out.push_back(k.at(place, k.mul(g, size * outStride)));
      for (Value tile : tiles)
        group.ahead.push_back(k.at(k.at(tile, behind), k.mul(k.mul(g, span.chunks), 64)));
      prepare(span, group);
      panels[0].nested ? overUnits(span, group) : overChunks(span, group);
    });
  });
  if (reader.spec.factor != 1)
    forSlots([&](Value place) {
      return k.mul(k.load(floats, place, unsigned(4 * lanes)),
                   k.constFloat(floats, reader.spec.factor));
    });
}

//===----------------------------------------------------------------------===//
// Rows of activations
//===----------------------------------------------------------------------===//

// The place of a field of the group's first record that has so many bytes for
// a chunk.
Value DecodedProduct::field(const Span &span, const Group &group, Value chunk, int64_t offset,
                            int64_t bytesAChunk) {
  Value number = k.add(k.mul(span.firstUnit, reader.layout.unitWeights / 64), chunk);
  return k.at(k.at(group.record, k.mul(number, bytesAChunk)), offset);
}

Value DecodedProduct::rowValue(Type element, Value base, int64_t row, int64_t offset) {
  return k.loadSplat(element, lanes, k.at(base, row * act.stride + offset));
}

// The span's part of a field with a dword for each `weights` values, a vector
// at a time; fields are padded to whole vectors.
void DecodedProduct::prepareField(const Span &span, const Group &group, int64_t offset,
                                  int64_t weights, function_ref<void(int64_t, Value, Value)> body) {
  int64_t bytesAChunk = 64 / weights * 4;
  Value from = field(span, group, k.constI64(0), offset, bytesAChunk);
  k.loop(k.constI64(0), k.mul(span.chunks, bytesAChunk), 4 * lanes, [&](Value at) {
    for (int64_t r = 0; r < size; ++r)
      body(r, at, k.load(ints, k.at(k.at(from, at), r * act.stride), 4));
  });
}

void DecodedProduct::prepare(const Span &span, const Group &group) {
  auto keep = [&](Prepared which, int64_t row, Value at, Value vector) {
    k.store(vector, k.at(prepared(which, row), at), unsigned(4 * lanes));
  };
  if (biased && fields.corr >= 0)
    prepareField(
        span, group, fields.corr, fields.corrWeights,
        [&](int64_t r, Value at, Value bits) { keep(Starts, r, at, k.add(bits, kBiasBits)); });
  if (panels[0].nested && grouped)
    prepareField(span, group, act.exponents, 32, [&](int64_t r, Value at, Value bits) {
      Value power = powerOf(k, bits);
      keep(Powers, r, at, power);
      keep(Shifts, r, at, k.mul(power, k.constFloat(floats, -kBias)));
    });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

// What lies at `place` for each vector of weights.
DecodedProduct::Values DecodedProduct::vectors(function_ref<Value(DecodedPanel &)> place) {
  Values result;
  for (int64_t v = 0; v < kVectors; ++v) {
    Value at = place(panels[v * lanes / PackedLayout::kTileRows]);
    result.push_back(k.at(at, v * lanes % PackedLayout::kTileRows * 4));
  }
  return result;
}

// Sums of step `s` of a chunk.
DecodedProduct::Values DecodedProduct::dots(const Span &span, const Group &group, Value chunk,
                                            int64_t s) {
  int64_t step = panels[0].step, perChunk = 64 / fields.corrWeights;
  Values sums;
  for (int64_t r = 0; r < size; ++r) {
    Value start;
    if (fields.corr < 0)
      start = k.constInt(ints, biased ? kBiasBits : 0);
    else if (biased)
      start = k.loadSplat(k.i32(), lanes,
                          k.at(k.at(prepared(Starts, r), k.mul(chunk, 4 * perChunk)),
                               s * step / fields.corrWeights * 4));
    else
      start = rowValue(k.i32(), field(span, group, chunk, fields.corr, 4 * perChunk), r,
                       s * step / fields.corrWeights * 4);
    sums.append(kVectors, start);
  }
  bool isSigned = reader.spec.signedCodes && !reader.flips;
  int64_t most = reader.flips ? 255 : mostCode(reader.spec);
  Type bytes = k.vec(4 * lanes, k.i8());
  Value values = field(span, group, chunk, act.codes, 64);
  for (int64_t kk = s * step; kk < (s + 1) * step; kk += 4) {
    Values codes;
    for (Value at : vectors([&](DecodedPanel &panel) { return panel.codes(chunk, kk); }))
      codes.push_back(k.load(bytes, at, unsigned(4 * lanes)));
    Value four;
    forSums([&](int64_t r, int64_t v, size_t i) {
      if (v == 0)
        four = k.bitcast(rowValue(k.i32(), values, r, kk), bytes);
      sums[i] = pack::DotOp::create(k.builder, k.loc, ints, sums[i], codes[v], four,
                                    k.builder.getI64IntegerAttr(most),
                                    isSigned ? k.builder.getUnitAttr() : UnitAttr());
    });
  }
  return sums;
}

// Weights come meanwhile that are read after the panel.
void DecodedProduct::fetchAhead(const Group &group, Value chunk) {
  for (Value ahead : group.ahead)
    k.prefetch(k.at(ahead, k.mul(chunk, 64)));
}

// acc += (float(sum) * scale) * the activations' scale   (+ m * sum of these)
void DecodedProduct::overChunks(const Span &span, const Group &group) {
  auto load = [&](Value at) { return k.load(floats, at, unsigned(4 * lanes)); };
  auto place = [&](int64_t r, int64_t v) { return k.at(group.out[v], r * group.outStride); };
  Values state;
  forSums([&](int64_t r, int64_t v, size_t) { state.push_back(load(place(r, v))); });
  state = k.loop(
      k.constI64(0), span.chunks, k.constI64(1), state, [&](Value chunk, ArrayRef<Value> carried) {
        Values acc(carried.begin(), carried.end());
        fetchAhead(group, chunk);
        Value rowScales = field(span, group, chunk, act.scales, 8);
        Value rowSums = reader.spec.hasMin ? field(span, group, chunk, act.sums, 8) : Value();
        for (int64_t s = 0; s < panels[0].steps; ++s) {
          Values sums = dots(span, group, chunk, s), scales, shifts, minima;
          for (Value at : vectors([&](DecodedPanel &p) { return p.scales(chunk, s); }))
            scales.push_back(load(at));
          for (Value at : vectors([&](DecodedPanel &p) { return p.shifts(chunk, s); }))
            shifts.push_back(biased ? load(at) : Value());
          for (Value at : vectors([&](DecodedPanel &p) { return p.minima(chunk, s); }))
            minima.push_back(rowSums ? load(at) : Value());
          int64_t block = s * panels[0].step / 32 * 4;
          Value rowScale, rowSum;
          forSums([&](int64_t r, int64_t v, size_t i) {
            if (v == 0) {
              rowScale = rowValue(k.f32(), rowScales, r, block);
              rowSum = rowSums ? rowValue(k.f32(), rowSums, r, block) : Value();
            }
            Value product = biased ? k.mulAdd(k.bitcast(sums[i], floats), scales[v], shifts[v])
                                   : k.mul(k.intToFloat(sums[i]), scales[v]);
            acc[i] = k.mulAdd(product, rowScale, acc[i]);
            if (rowSum)
              acc[i] = k.mulAdd(minima[v], rowSum, acc[i]);
          });
        }
        return acc;
      });
  forSums(
      [&](int64_t r, int64_t v, size_t i) { k.store(state[i], place(r, v), unsigned(4 * lanes)); });
}

void DecodedProduct::overUnits(const Span &span, const Group &group) {
  k.loop(k.constI64(0), span.units, 1, [&](Value u) {
    Values start(size * kVectors, k.zero(floats));
    Values parts = k.loop(k.constI64(0), k.constI64(4), k.constI64(1), start,
                          [&](Value q, ArrayRef<Value> carried) {
                            Values parts(carried.begin(), carried.end());
                            Value chunk = k.add(k.mul(u, 4), q);
                            fetchAhead(group, chunk);
                            addParts(span, group, chunk, parts);
                            return parts;
                          });
    addScaled(span, group, u, parts);
  });
}

// part += (float(sum) * 2^e) * scale   (+ m * sum of activations); or scales of
// the activations for 2^e.
void DecodedProduct::addParts(const Span &span, const Group &group, Value chunk, Values &parts) {
  DecodedPanel &panel = panels[0];
  bool hasMin = reader.spec.hasMin, by32 = panel.step == 32;
  auto load = [&](Value at) { return k.load(floats, at, unsigned(4 * lanes)); };
  Value rowScales = grouped ? Value() : field(span, group, chunk, act.scales, 8);
  Value rowSums;
  if (hasMin)
    rowSums = by32 ? field(span, group, chunk, act.sums, 8)
                   : field(span, group, chunk, fields.sums16, 16);
  for (int64_t s = 0; s < panel.steps; ++s) {
    Values sums = dots(span, group, chunk, s), scales, minima;
    for (Value at : vectors([&](DecodedPanel &p) { return p.scales(chunk, s); }))
      scales.push_back(load(at));
    for (Value at : vectors([&](DecodedPanel &p) { return p.minima(chunk, s); }))
      minima.push_back(hasMin ? load(at) : Value());
    int64_t block = s * panel.step / 32 * 4;
    Value power, shift, rowSum;
    forSums([&](int64_t r, int64_t v, size_t i) {
      if (v == 0) {
        auto ofBlock = [&](Prepared which) {
          return k.loadSplat(k.f32(), lanes,
                             k.at(k.at(prepared(which, r), k.mul(chunk, 8)), block));
        };
        power = grouped ? ofBlock(Powers) : rowValue(k.f32(), rowScales, r, block);
        shift = biased ? ofBlock(Shifts) : Value();
        if (hasMin)
          rowSum = by32 ? rowValue(k.f32(), rowSums, r, block)
                        : k.mul(k.intToFloat(rowValue(k.i32(), rowSums, r, 4 * s)), power);
      }
      Value product = biased ? k.mulAdd(k.bitcast(sums[i], floats), power, shift)
                             : k.mul(k.intToFloat(sums[i]), power);
      parts[i] = k.mulAdd(product, scales[v], parts[i]);
      if (hasMin)
        parts[i] = k.mulAdd(minima[v], rowSum, parts[i]);
    });
  }
}

// acc += part * step for a unit.
void DecodedProduct::addScaled(const Span &span, const Group &group, Value unit,
                               const Values &parts) {
  Value steps = k.at(k.at(group.record, k.mul(k.add(span.firstUnit, unit), 4)), act.scales), step;
  forSums([&](int64_t r, int64_t v, size_t i) {
    // Activations with a scale a block have been multiplied by it already.
    if (v == 0 && grouped)
      step = rowValue(k.f32(), steps, r, 0);
    Value place = k.at(group.out[v], r * group.outStride);
    Value old = k.load(floats, place, unsigned(4 * lanes));
    Value sum = grouped ? k.mulAdd(parts[i], step, old) : k.add(parts[i], old);
    k.store(sum, place, unsigned(4 * lanes));
  });
}

} // namespace izhc
