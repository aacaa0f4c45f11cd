// How a panel is multiplied. The unit's sums of a step (weights that share a
// scale) have to leave its registers to be scaled, so they pass through memory:
//
//   while the steps of one chunk of 64 weights are scaled and added up, the
//   unit works on the next chunk (or the first one of the next group), whose
//   sums go to the other of two buffers.
//
// Sums are exact integers, and each is converted, scaled and added in the order
// of TileProduct: results don't depend on which of both computes a row.

#include "compiler/target/vector/PanelProduct.h"

namespace izhc {

using namespace mlir;

namespace {

constexpr int64_t kVector = DecodedPanel::kVector;
// Weights of a row in a panel: with the records of a group and the sums of all,
// it stays in a first-level cache of 48 KiB.
constexpr int64_t kPanelWeights = 1024;
constexpr int64_t kMostSteps = 4;
// What the unit makes of one step.
constexpr int64_t kSumBytes = PanelProduct::kGroupRows * kVector;
// Fetched while a group passes over a chunk.
constexpr int64_t kAheadBytes = 128;
// Two buffers of the sums of a chunk.
constexpr int64_t kBufferBytes = kMostSteps * kSumBytes;
constexpr int64_t kPanelOffset = 2 * kBufferBytes;
static_assert(kPanelOffset + DecodedPanel::bytesFor(kPanelWeights) <= PanelProduct::kScratchBytes);

} // namespace

bool PanelProduct::serves(const VectorMachine &machine, const FormatSpec &format,
                          pack::ActType act) {
  if (!machine.matrix || format.kind != ElementKind::Quantized ||
      act.getKind() == pack::ActKind::F32)
    return false;
  // A minimum for each 32 weights, added to the same sums as the products,
  // takes the vectors as long as all of TileProduct does: SmolLM2 in Q4_1 6700
  // tokens/s against 7150 (6 layers, Emerald Rapids, 2 threads, 2026-11).
  if (format.hasMin && format.blockWeights == 32)
    return false;
  // Codes less the zero point are signed bytes.
  return mostCode(format) <= (format.signedCodes ? 128 : 127 + format.zeroPoint) &&
         (!format.signedCodes || format.zeroPoint == 0);
}

PanelProduct::PanelProduct(KernelFrame &frame, const FormatSpec &format, pack::ActType type,
                           int64_t cols, Value unpacking, Value scratch)
    : k(frame.k), unit(*frame.machine.matrix), reader(frame.k, format, frame.machine.lanes),
      type(type), act(type), floats(k.vec(PackedLayout::kTileRows, k.f32())),
      ints(k.vec(PackedLayout::kTileRows, k.i32())), cols(cols),
      grouped(type.getKind() == pack::ActKind::Block256),
      decoded(k, reader, {0, /*lessZeroPoint=*/true}, kPanelWeights, unpacking,
              k.at(scratch, kPanelOffset)),
      buffers(scratch) {
  assert(frame.machine.lanes == PackedLayout::kTileRows && "a tile is one vector wide");
  if (decoded.step == 16 && format.hasMin)
    sums16Offset = pack::ActLayout::find(type.getCorr16(), act.corr16, -1);
}

void PanelProduct::emit(Value tile, Value first, Value rows, Value out, int64_t outStride) {
  unit.configure(k, decoded.step);
  Pass pass{first, {kGroupRows, rows}, out, outStride};
  auto forSums = [&](llvm::function_ref<Value(Value place)> value) {
    k.loop(k.constI64(0), k.mul(pass.groups.count(k), kGroupRows * outStride), outStride,
           [&](Value at) {
             Value place = k.at(out, at);
             k.store(value(place), place, 64);
           });
  };
  forSums([&](Value) { return k.zero(floats); });
  int64_t units = reader.layout.unitsPerRow(cols);
  int64_t most = kPanelWeights / reader.layout.unitWeights;
  k.loop(k.constI64(0), k.constI64(units), most, [&](Value firstUnit) {
    Value count = k.min(k.sub(k.constI64(units), firstUnit), k.constI64(most));
    Panel panel{tile, firstUnit, count, k.mul(count, reader.layout.unitWeights / 64)};
    decoded.decode(tile, firstUnit, count);
    multiply(panel, pass);
  });
  unit.release(k);
  if (reader.spec.factor != 1)
    forSums([&](Value place) {
      return k.mul(vectorAt(place), k.constFloat(floats, reader.spec.factor));
    });
}

//===----------------------------------------------------------------------===//
// Multiplying
//===----------------------------------------------------------------------===//

// The place of a field of a record that has so many bytes for a chunk.
Value PanelProduct::actAt(const Panel &panel, Value record, Value chunk, int64_t field,
                          int64_t bytesAChunk) {
  int64_t chunks = reader.layout.unitWeights / 64;
  Value number = k.add(k.mul(panel.firstUnit, chunks), chunk);
  return k.at(k.at(record, k.mul(number, bytesAChunk)), field);
}

Value PanelProduct::rowValue(Type element, Value base, int64_t row, int64_t offset) {
  return k.loadSplat(element, PackedLayout::kTileRows, k.at(base, row * act.stride + offset));
}

// The unit's part of a chunk: sums of each step to a buffer.
void PanelProduct::startChunk(const Panel &panel, Value record, Value chunk, Value buffer) {
  Value values = actAt(panel, record, chunk, act.codes, 64);
  auto to = [&](int64_t s) { return k.at(k.at(buffers, buffer), s * kSumBytes); };
  for (int64_t s = 0; s < decoded.steps; ++s) {
    unit.load(k, MatrixUnit::activations(s), k.at(values, s * decoded.step), act.stride);
    unit.load(k, MatrixUnit::codes(s), decoded.codes(chunk, s * decoded.step), kVector);
    unit.clear(k, MatrixUnit::sums(s));
    unit.multiply(k, MatrixUnit::sums(s), MatrixUnit::activations(s), MatrixUnit::codes(s));
  }
  for (int64_t s = 0; s < decoded.steps; ++s)
    unit.store(k, MatrixUnit::sums(s), to(s), kVector);
}

// Starts the chunk behind `chunk`, the first one of the next group behind the
// last; returns the other buffer, where its sums go.
Value PanelProduct::startNext(const Panel &panel, const Group &group, Value chunk, Value buffer) {
  Value behind = k.add(chunk, 1), isLast = k.equal(behind, panel.chunks);
  Value other = k.sub(k.constI64(kBufferBytes), buffer);
  // The weights of the next panel come meanwhile, two lines a chunk.
  Value ahead = k.at(group.ahead, k.mul(chunk, kAheadBytes));
  for (int64_t line = 0; line < kAheadBytes; line += 64)
    k.prefetch(k.at(ahead, line));
  startChunk(panel, k.select(isLast, group.next, group.record),
             k.select(isLast, k.constI64(0), behind), other);
  return other;
}

void PanelProduct::multiply(const Panel &panel, const Pass &pass) {
  Value zero = k.constI64(0), count = pass.groups.count(k), lastGroup = k.add(count, -1);
  auto record = [&](Value group) {
    return k.at(pass.first, k.mul(pass.groups.firstRow(k, group), act.stride));
  };
  Value behind =
      k.at(panel.tile, k.mul(k.add(panel.firstUnit, panel.units), reader.layout.unitBytes));
  startChunk(panel, pass.first, zero, zero);
  k.loop(zero, count, k.constI64(1), zero, [&](Value g, llvm::ArrayRef<Value> carried) {
    Group group{record(g), record(k.min(k.add(g, 1), lastGroup)),
                k.at(pass.out, k.mul(g, kGroupRows * pass.outStride)),
                k.at(behind, k.mul(k.mul(g, panel.chunks), kAheadBytes)), pass.outStride};
    return Values{decoded.nested ? overUnits(panel, group, carried[0])
                                 : overChunks(panel, group, carried[0])};
  });
}

// acc += float(sum) * (scale * the activations' scale)   (+ m * sum of these)
Value PanelProduct::overChunks(const Panel &panel, const Group &group, Value buffer) {
  auto place = [&](int64_t row) { return k.at(group.out, row * group.outStride); };
  Values state;
  for (int64_t r = 0; r < kGroupRows; ++r)
    state.push_back(vectorAt(place(r)));
  state.push_back(buffer);
  state = k.loop(k.constI64(0), panel.chunks, k.constI64(1), state,
                 [&](Value chunk, llvm::ArrayRef<Value> carried) {
                   Values acc(carried.begin(), carried.end() - 1);
                   Value buffer = carried.back();
                   Value next = startNext(panel, group, chunk, buffer);
                   Value from = k.at(buffers, buffer);
                   Value scales = actAt(panel, group.record, chunk, act.scales, 8);
                   for (int64_t s = 0; s < decoded.steps; ++s) {
                     Value scale = vectorAt(decoded.scales(chunk, s));
                     Value minimum =
                         reader.spec.hasMin ? vectorAt(decoded.minima(chunk, s)) : Value();
                     int64_t block = s * decoded.step / 32 * 4;
                     for (int64_t r = 0; r < kGroupRows; ++r) {
                       Value sum = k.load(ints, k.at(from, s * kSumBytes + r * kVector), 64);
                       Value product = k.mul(k.intToFloat(sum), scale);
                       acc[r] = k.mulAdd(product, rowValue(k.f32(), scales, r, block), acc[r]);
                       if (minimum) {
                         Value sums = actAt(panel, group.record, chunk, act.sums, 8);
                         acc[r] = k.mulAdd(minimum, rowValue(k.f32(), sums, r, block), acc[r]);
                       }
                     }
                   }
                   acc.push_back(next);
                   return acc;
                 });
  buffer = state.pop_back_val();
  for (int64_t r = 0; r < kGroupRows; ++r)
    k.store(state[r], place(r), 64);
  return buffer;
}

// part += (float(sum) * 2^e) * scale (+ m * sum of activations) for the 256 of a
// unit, then acc += part * step; or scales of the activations for 2^e, step 1.
Value PanelProduct::overUnits(const Panel &panel, const Group &group, Value buffer) {
  Values outer = k.loop(k.constI64(0), panel.units, k.constI64(1), buffer,
                        [&](Value u, llvm::ArrayRef<Value> carried) {
                          Values state(kGroupRows, k.zero(floats));
                          state.push_back(carried[0]);
                          state = k.loop(k.constI64(0), k.constI64(4), k.constI64(1), state,
                                         [&](Value q, llvm::ArrayRef<Value> carried) {
                                           Values part(carried.begin(), carried.end() - 1);
                                           Value buffer = carried.back(),
                                                 chunk = k.add(k.mul(u, 4), q);
                                           Value next = startNext(panel, group, chunk, buffer);
                                           addParts(panel, group, chunk, buffer, part);
                                           part.push_back(next);
                                           return part;
                                         });
                          Value next = state.pop_back_val();
                          addScaled(panel, group, u, state);
                          return Values{next};
                        });
  return outer[0];
}

void PanelProduct::addParts(const Panel &panel, const Group &group, Value chunk, Value buffer,
                            Values &part) {
  Value from = k.at(buffers, buffer);
  Type element = grouped ? k.i32() : k.f32();
  Value factors = actAt(panel, group.record, chunk, grouped ? act.exponents : act.scales, 8);
  bool hasMin = reader.spec.hasMin, by32 = decoded.step == 32;
  Value rowSums;
  if (hasMin)
    rowSums = by32 ? actAt(panel, group.record, chunk, act.sums, 8)
                   : actAt(panel, group.record, chunk, sums16Offset, 16);
  for (int64_t s = 0; s < decoded.steps; ++s) {
    Value scale = vectorAt(decoded.scales(chunk, s));
    Value minimum = hasMin ? vectorAt(decoded.minima(chunk, s)) : Value();
    for (int64_t r = 0; r < kGroupRows; ++r) {
      Value factor = rowValue(element, factors, r, s * decoded.step / 32 * 4);
      if (grouped)
        factor = powerOf(k, factor);
      auto scaled = [&](Value sum) { return k.mul(k.intToFloat(sum), factor); };
      Value sum = k.load(ints, k.at(from, s * kSumBytes + r * kVector), 64);
      part[r] = k.mulAdd(scaled(sum), scale, part[r]);
      if (!hasMin)
        continue;
      Value rowSum = by32 ? rowValue(k.f32(), rowSums, r, 4 * s)
                          : scaled(rowValue(k.i32(), rowSums, r, 4 * s));
      part[r] = k.mulAdd(minimum, rowSum, part[r]);
    }
  }
}

// acc += part * step for a unit.
void PanelProduct::addScaled(const Panel &panel, const Group &group, Value u, const Values &part) {
  Value number = k.add(panel.firstUnit, u);
  Value steps = k.at(k.at(group.record, k.mul(number, 4)), act.scales);
  for (int64_t r = 0; r < kGroupRows; ++r) {
    Value place = k.at(group.out, r * group.outStride);
    // Activations with a scale a block have been multiplied by it already.
    Value sum = grouped ? k.mulAdd(part[r], rowValue(k.f32(), steps, r, 0), vectorAt(place))
                        : k.add(part[r], vectorAt(place));
    k.store(sum, place, 64);
  }
}

} // namespace izhc
