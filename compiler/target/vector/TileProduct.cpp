// Products of a tile. Weights are read once, front to back; each row of
// activations has its own accumulators, and rows share the unpacked weights.
//
//   block32    acc += float(dot of 32) * (d * scale)            (+ m * sum)
//   block16    as block32 with a scale for each 16
//   block256   part += (float(dot) * 2^e) * (d * sub)   (- (dmin * sub-minimum) * sum)
//              acc += part * step                               one 256
//   block32 with weights in blocks of 256: as block256 with scale for 2^e, step 1
//   f32        acc += weight * x, the weights expanded to float32

#include "compiler/target/vector/TileProduct.h"

namespace izhc {

using namespace mlir;

// Codes that become floats are not flipped.
static bool flips(const KernelFrame &frame, const FormatSpec &format, pack::ActType type) {
  return frame.machine.unsignedDots && type.getKind() != pack::ActKind::F32;
}

TileProduct::TileProduct(KernelFrame &frame, const FormatSpec &format, pack::ActType type,
                         int64_t cols, Value scratch, int64_t rowStride)
    : frame(frame), k(frame.k),
      reader(frame.k, format, frame.machine.lanes, flips(frame, format, type)), type(type),
      act(type), fields(reader, type, act), cols(cols), lanes(frame.machine.lanes),
      scratch(scratch) {
  if (rowStride)
    act.stride = rowStride;
}

TileProduct::Values TileProduct::zeros(int64_t count) {
  return Values(count, k.zero(k.vec(lanes, k.f32())));
}

void TileProduct::fetchAhead(int64_t rows, Value place, int64_t count) {
  if (frame.machine.prefetchRows == 0 || rows < frame.machine.prefetchRows)
    return;
  bool few = rows < frame.machine.nearRows;
  int64_t distance = few ? frame.machine.nearBytes : 8192;
  auto number = [&](int32_t value) { return k.builder.getI32IntegerAttr(value); };
  for (int64_t line = 0; line < count; line += 64)
    LLVM::Prefetch::create(k.builder, k.loc, k.at(place, distance + line), /*rw=*/number(0),
                           /*hint=*/number(few ? 3 : 2), /*cache=*/number(1));
}

TileProduct::Values TileProduct::spread(Value base, int64_t count, int64_t step) {
  Values all;
  for (int64_t p = 0; p < count; ++p)
    all.push_back(k.at(base, p * step));
  return all;
}

Value TileProduct::rowValue(Type element, Value base, int64_t row, int64_t offset) {
  return k.loadSplat(element, lanes, k.at(base, row * act.stride + offset));
}

void TileProduct::emit(Value tile, Value first, int64_t rows, Value out, int64_t outStride) {
  int64_t count = PackedLayout::kTileRows / lanes;
  // One row alone: all parts side by side, so that every line of the stream is
  // finished before the next. Several rows: a pass for each part, for want of
  // registers; the tile is in the cache by then. So too where unpacking takes
  // more than reading.
  bool costly = reader.expands() || (!reader.spec.codebook.empty() && !frame.machine.shufflesBytes);
  if (count == 1 || (rows == 1 && !costly))
    return emitParts({count, tile, tile, scratch}, first, rows, out, outStride);
  k.loop(k.constI64(0), k.constI64(count), 1, [&](Value p) {
    Value wide = k.mul(p, 4 * lanes), narrow = k.mul(p, 2 * lanes);
    Parts parts{1, k.at(tile, wide), k.at(tile, narrow), k.at(scratch, wide)};
    emitParts(parts, first, rows, k.at(out, wide), outStride);
  });
}

void TileProduct::emitParts(Parts parts, Value first, int64_t rows, Value out, int64_t outStride) {
  Values sums;
  if (reader.spec.kind != ElementKind::Quantized)
    sums = floatUnits(parts, first, rows);
  else if (type.getKind() == pack::ActKind::F32)
    sums = expandedUnits(parts, first, rows);
  else if (reader.spec.blockWeights == 32)
    sums = block32Units(parts, first, rows);
  else if (reader.spec.blockWeights == 64)
    sums = block16Units(parts, first, rows);
  else
    sums = block256Units(parts, first, rows);
  Value factor =
      reader.spec.factor == 1 ? Value() : k.constFloat(k.vec(lanes, k.f32()), reader.spec.factor);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t p = 0; p < parts.count; ++p) {
      Value sum = sums[r * parts.count + p];
      k.store(factor ? k.mul(sum, factor) : sum, k.at(out, r * outStride + p * 4 * lanes),
              unsigned(4 * lanes));
    }
}

//===----------------------------------------------------------------------===//
// Integer products
//===----------------------------------------------------------------------===//

// Dots of weights kk..kk+count of a chunk, for all rows and parts.
TileProduct::Values TileProduct::dots(llvm::MutableArrayRef<WeightReader::Planes> planes,
                                      llvm::ArrayRef<Value> bytes, const ActPlace &place,
                                      int64_t rows, int64_t kk, int64_t count) {
  size_t parts = bytes.size();
  Type ints = k.vec(lanes, k.i32()), codesType = k.vec(4 * lanes, k.i8());
  Values sums;
  for (int64_t r = 0; r < rows; ++r) {
    Value start = fields.corr < 0 ? k.zero(ints)
                                  : rowValue(k.i32(), place.corr, r, kk / fields.corrWeights * 4);
    sums.append(parts, start);
  }
  bool isSigned = reader.spec.signedCodes && !reader.flips;
  int64_t max = reader.flips ? 255 : mostCode(reader.spec);
  for (int64_t at = kk; at < kk + count; at += 4) {
    Values codes;
    for (size_t p = 0; p < parts; ++p)
      codes.push_back(reader.codes(planes[p], bytes[p], at));
    for (int64_t r = 0; r < rows; ++r) {
      Value values = k.bitcast(rowValue(k.i32(), place.codes, r, at), codesType);
      for (size_t p = 0; p < parts; ++p) {
        Value &sum = sums[r * parts + p];
        sum = pack::DotOp::create(k.builder, k.loc, ints, sum, codes[p], values,
                                  k.builder.getI64IntegerAttr(max),
                                  isSigned ? k.builder.getUnitAttr() : UnitAttr());
      }
    }
  }
  return sums;
}

// Puts into the scratch what the format's units have to be unpacked to.
void TileProduct::unpackUnit(const Parts &parts, llvm::ArrayRef<Value> bytes,
                             llvm::ArrayRef<Value> halves) {
  for (int64_t p = 0; p < parts.count; ++p) {
    Value scratch = k.at(parts.scratch, p * 4 * lanes);
    if (reader.unpacksSubs())
      reader.unpackSubs(bytes[p], halves[p], scratch);
    if (reader.expands())
      reader.expandCodes(bytes[p], scratch);
  }
}

// Where the codes of a unit begin.
Value TileProduct::codesOf(const Parts &parts, Value unit) {
  return reader.expands() ? k.at(parts.scratch, WeightReader::kCodesInScratch)
                          : k.at(parts.bytes, unit);
}

// Activations of 64-weight chunk number `chunk`.
TileProduct::ActPlace TileProduct::placeOf(Value first, Value chunk) {
  ActPlace place;
  auto field = [&](int64_t offset, int64_t bytesAChunk) {
    return offset < 0 ? Value() : k.at(k.at(first, k.mul(chunk, bytesAChunk)), offset);
  };
  place.codes = field(act.codes, 64);
  place.scales = field(act.scales, 8);
  place.exponents = field(act.exponents, 8);
  place.sums = field(act.sums, 8);
  place.sums16 = field(fields.sums16, 16);
  place.corr = field(fields.corr, 4 * (64 / fields.corrWeights));
  return place;
}

TileProduct::Values TileProduct::block32Units(const Parts &parts, Value first, int64_t rows) {
  Value units = k.constI64(reader.layout.unitsPerRow(cols));
  Values start = zeros(rows * parts.count);
  return k.loop(k.constI64(0), units, k.constI64(1), start,
                [&](Value u, llvm::ArrayRef<Value> carried) {
                  Values acc(carried.begin(), carried.end());
                  Value offset = k.mul(u, reader.layout.unitBytes);
                  Values bytes = spread(k.at(parts.bytes, offset), parts.count, 4 * lanes);
                  Values halves = spread(k.at(parts.halves, offset), parts.count, 2 * lanes);
                  ActPlace place = placeOf(first, u);
                  fetchAhead(rows, bytes[0], reader.layout.unitBytes);
                  llvm::SmallVector<WeightReader::Planes, 4> planes(parts.count);
                  // The head of the unit: scales of both blocks.
                  Values scales, minima;
                  for (int64_t b = 0; b < 2; ++b)
                    for (Value half : halves) {
                      scales.push_back(reader.scale(Value(), half, 32 * b));
                      if (reader.spec.hasMin)
                        minima.push_back(reader.minimum(half, 32 * b));
                    }
                  for (int64_t b = 0; b < 2; ++b) {
                    Values sums = dots(planes, bytes, place, rows, 32 * b, 32);
                    for (int64_t r = 0; r < rows; ++r) {
                      Value scale = rowValue(k.f32(), place.scales, r, 4 * b);
                      for (int64_t p = 0; p < parts.count; ++p) {
                        Value &to = acc[r * parts.count + p];
                        int64_t at = b * parts.count + p;
                        Value sum = k.intToFloat(sums[r * parts.count + p]);
                        to = k.mulAdd(k.mul(sum, scales[at]), scale, to);
                        if (reader.spec.hasMin)
                          to = k.mulAdd(minima[at], rowValue(k.f32(), place.sums, r, 4 * b), to);
                      }
                    }
                  }
                  return acc;
                });
}

// Scales of their own for each 16 weights.
TileProduct::Values TileProduct::block16Units(const Parts &parts, Value first, int64_t rows) {
  Value units = k.constI64(reader.layout.unitsPerRow(cols));
  return k.loop(k.constI64(0), units, k.constI64(1), zeros(rows * parts.count),
                [&](Value u, llvm::ArrayRef<Value> carried) {
                  Values acc(carried.begin(), carried.end());
                  Value unit = k.at(parts.bytes, k.mul(u, reader.layout.unitBytes));
                  Values bytes = spread(unit, parts.count, 4 * lanes);
                  ActPlace place = placeOf(first, u);
                  fetchAhead(rows, bytes[0], reader.layout.unitBytes);
                  llvm::SmallVector<WeightReader::Planes, 4> planes(parts.count);
                  Values dwords;
                  for (Value from : bytes)
                    dwords.push_back(reader.subDwords(from, Value()));
                  for (int64_t kk = 0; kk < 64; kk += 16) {
                    Values sums = dots(planes, bytes, place, rows, kk, 16), scales;
                    for (Value dword : dwords)
                      scales.push_back(reader.sub(dword, kk));
                    for (int64_t r = 0; r < rows; ++r) {
                      Value scale = rowValue(k.f32(), place.scales, r, kk / 32 * 4);
                      for (int64_t p = 0; p < parts.count; ++p) {
                        Value &to = acc[r * parts.count + p];
                        Value sum = k.intToFloat(sums[r * parts.count + p]);
                        to = k.mulAdd(k.mul(sum, scales[p]), scale, to);
                      }
                    }
                  }
                  return acc;
                });
}

// One chunk of 64 weights of a 256-block: adds to the unit's sums.
void TileProduct::chunkOfBlock256(const Parts &parts, const Heads &heads, Value unit, Value chunk,
                                  const ActPlace &place, int64_t rows, Values &sums) {
  const FormatSpec &spec = reader.spec;
  Value offset = k.mul(chunk, reader.layout.chunkBytes);
  Values bytes = spread(k.at(codesOf(parts, unit), offset), parts.count, 4 * lanes);
  Value subs = k.at(parts.scratch, k.mul(chunk, 64));
  if (!reader.expands())
    fetchAhead(rows, bytes[0], reader.layout.chunkBytes);
  llvm::SmallVector<WeightReader::Planes, 4> planes(parts.count);
  Values dwords;
  for (int64_t p = 0; p < parts.count && reader.hasSubs(); ++p)
    dwords.push_back(reader.subDwords(bytes[p], k.at(subs, p * 4 * lanes)));
  int64_t step = spec.subWeights == 16 ? 16 : 32;
  bool grouped = type.getKind() == pack::ActKind::Block256;
  for (int64_t kk = 0; kk < 64; kk += step) {
    Values products = dots(planes, bytes, place, rows, kk, step);
    Values scales, minima;
    for (int64_t p = 0; p < parts.count; ++p) {
      Value dword = dwords.empty() ? Value() : dwords[p];
      scales.push_back(reader.scaleOfSub(heads.scales[p], dword, kk));
      if (spec.hasMin)
        minima.push_back(k.mul(heads.minima[p], reader.subMin(dword, kk)));
    }
    for (int64_t r = 0; r < rows; ++r) {
      Value factor = grouped ? powerOf(k, rowValue(k.i32(), place.exponents, r, kk / 32 * 4))
                             : rowValue(k.f32(), place.scales, r, kk / 32 * 4);
      auto scaled = [&](Value sum) { return k.mul(k.intToFloat(sum), factor); };
      for (int64_t p = 0; p < parts.count; ++p) {
        Value &to = sums[r * parts.count + p];
        to = k.mulAdd(scaled(products[r * parts.count + p]), scales[p], to);
        if (spec.hasMin) {
          Value sum = step == 32 ? rowValue(k.f32(), place.sums, r, kk / 32 * 4)
                                 : scaled(rowValue(k.i32(), place.sums16, r, kk / 16 * 4));
          to = k.mulAdd(minima[p], sum, to);
        }
      }
    }
  }
}

TileProduct::Values TileProduct::block256Units(const Parts &parts, Value first, int64_t rows) {
  Value units = k.constI64(reader.layout.unitsPerRow(cols));
  int64_t count = rows * parts.count;
  bool grouped = type.getKind() == pack::ActKind::Block256;
  return k.loop(k.constI64(0), units, k.constI64(1), zeros(count),
                [&](Value u, llvm::ArrayRef<Value> carried) {
                  Values acc(carried.begin(), carried.end());
                  Value unit = k.mul(u, reader.layout.unitBytes);
                  Values halves = spread(k.at(parts.halves, unit), parts.count, 2 * lanes);
                  Heads heads;
                  Values bytes = spread(k.at(parts.bytes, unit), parts.count, 4 * lanes);
                  for (int64_t p = 0; p < parts.count; ++p) {
                    heads.scales.push_back(reader.scale(bytes[p], halves[p], 0));
                    if (reader.spec.hasMin)
                      heads.minima.push_back(k.neg(reader.minimum(halves[p], 0)));
                  }
                  // Chunks fetch their own lines, but where they are expanded before.
                  const PackedLayout &layout = reader.layout;
                  fetchAhead(rows, bytes[0],
                             reader.expands() ? layout.unitBytes : layout.headBytes);
                  unpackUnit(parts, bytes, halves);
                  Value firstChunk = k.mul(u, 4);
                  Values sums = k.loop(k.constI64(0), k.constI64(4), k.constI64(1), zeros(count),
                                       [&](Value q, llvm::ArrayRef<Value> carried) {
                                         Values sums(carried.begin(), carried.end());
                                         ActPlace place = placeOf(first, k.add(firstChunk, q));
                                         chunkOfBlock256(parts, heads, unit, q, place, rows, sums);
                                         return sums;
                                       });
                  Value steps = k.at(k.at(first, k.mul(u, 4)), act.scales);
                  for (int64_t r = 0; r < rows; ++r) {
                    // Activations with a scale a block have been multiplied by it already.
                    Value step = grouped ? rowValue(k.f32(), steps, r, 0) : Value();
                    for (int64_t p = 0; p < parts.count; ++p) {
                      size_t i = r * parts.count + p;
                      acc[i] = step ? k.mulAdd(sums[i], step, acc[i]) : k.add(sums[i], acc[i]);
                    }
                  }
                  return acc;
                });
}

//===----------------------------------------------------------------------===//
// Float products
//===----------------------------------------------------------------------===//

TileProduct::Values TileProduct::floatUnits(const Parts &parts, Value first, int64_t rows) {
  ElementKind kind = reader.spec.kind;
  bool wide = kind == ElementKind::F32;
  int64_t partBytes = (wide ? 4 : 2) * lanes;
  return k.loop(k.constI64(0), k.constI64(cols), k.constI64(1), zeros(rows * parts.count),
                [&](Value kk, llvm::ArrayRef<Value> carried) {
                  Values acc(carried.begin(), carried.end());
                  Value base =
                      k.at(wide ? parts.bytes : parts.halves, k.mul(kk, reader.layout.unitBytes));
                  Value values = k.at(k.at(first, k.mul(kk, 4)), act.codes);
                  Values weights;
                  for (Value from : spread(base, parts.count, partBytes)) {
                    Type type = wide ? k.vec(lanes, k.f32()) : k.vec(lanes, k.i16());
                    Value loaded = loadStream(k, type, from, unsigned(partBytes));
                    if (kind == ElementKind::F16)
                      loaded = k.halfToFloat(loaded);
                    else if (kind == ElementKind::BF16)
                      loaded =
                          k.bitcast(k.shl(k.extendU(loaded, k.i32()), 16), k.vec(lanes, k.f32()));
                    weights.push_back(loaded);
                  }
                  for (int64_t r = 0; r < rows; ++r) {
                    Value x = rowValue(k.f32(), values, r, 0);
                    for (int64_t p = 0; p < parts.count; ++p)
                      acc[r * parts.count + p] = k.mulAdd(weights[p], x, acc[r * parts.count + p]);
                  }
                  return acc;
                });
}

// Weights kk..kk+count of a chunk as floats, code by code, times float rows.
void TileProduct::expandBlock(llvm::ArrayRef<Value> bytes, llvm::ArrayRef<Value> scales,
                              llvm::ArrayRef<Value> minima, Value values, int64_t rows, int64_t kk,
                              int64_t count, llvm::MutableArrayRef<WeightReader::Planes> planes,
                              Values &sums) {
  const FormatSpec &spec = reader.spec;
  size_t parts = bytes.size();
  for (int64_t at = kk; at < kk + count; at += 4) {
    Values dwords;
    for (size_t p = 0; p < parts; ++p)
      dwords.push_back(k.bitcast(reader.codes(planes[p], bytes[p], at), k.vec(lanes, k.i32())));
    for (int64_t c = 0; c < 4; ++c)
      for (size_t p = 0; p < parts; ++p) {
        Value code = spec.signedCodes ? k.shrS(k.shl(dwords[p], 24 - 8 * c), 24)
                                      : k.andBits(k.shrU(dwords[p], 8 * c), 255);
        if (spec.zeroPoint)
          code = k.add(code, -int64_t(spec.zeroPoint));
        Value weight = k.mul(k.intToFloat(code), scales[p]);
        if (spec.hasMin)
          weight = k.add(weight, minima[p]);
        for (int64_t r = 0; r < rows; ++r) {
          Value &to = sums[r * parts + p];
          to = k.mulAdd(weight, rowValue(k.f32(), values, r, 4 * (at + c)), to);
        }
      }
  }
}

// Any block format with float rows: what `--exact` asks for.
TileProduct::Values TileProduct::expandedUnits(const Parts &parts, Value first, int64_t rows) {
  const FormatSpec &spec = reader.spec;
  const PackedLayout &layout = reader.layout;
  int64_t chunks = layout.unitWeights / 64;
  int64_t step = spec.subWeights == 16 ? 16 : 32;
  Value units = k.constI64(layout.unitsPerRow(cols));
  return k.loop(k.constI64(0), units, k.constI64(1), zeros(rows * parts.count),
                [&](Value u, llvm::ArrayRef<Value> carried) {
                  Value unit = k.mul(u, layout.unitBytes);
                  Values halves = spread(k.at(parts.halves, unit), parts.count, 2 * lanes);
                  Values starts = spread(k.at(parts.bytes, unit), parts.count, 4 * lanes);
                  unpackUnit(parts, starts, halves);
                  return k.loop(
                      k.constI64(0), k.constI64(chunks), k.constI64(1), carried,
                      [&](Value q, llvm::ArrayRef<Value> carried) {
                        Values sums(carried.begin(), carried.end());
                        Value from = k.at(codesOf(parts, unit), k.mul(q, layout.chunkBytes));
                        Values bytes = spread(from, parts.count, 4 * lanes);
                        Value chunk = k.add(k.mul(u, chunks), q);
                        Value values = k.at(k.at(first, k.mul(chunk, 256)), act.codes);
                        Value subs = k.at(parts.scratch, k.mul(q, 64));
                        llvm::SmallVector<WeightReader::Planes, 4> planes(parts.count);
                        // What stands before the codes is read before them.
                        Values dwords, heads, headMinima;
                        for (int64_t p = 0; p < parts.count && reader.hasSubs(); ++p)
                          dwords.push_back(reader.subDwords(bytes[p], k.at(subs, p * 4 * lanes)));
                        for (int64_t kk = 0; kk < 64; kk += step)
                          for (int64_t p = 0; p < parts.count; ++p) {
                            heads.push_back(reader.scale(starts[p], halves[p], kk));
                            if (spec.hasMin)
                              headMinima.push_back(reader.minimum(halves[p], kk));
                          }
                        for (int64_t kk = 0; kk < 64; kk += step) {
                          Values scales, minima;
                          for (int64_t p = 0; p < parts.count; ++p) {
                            int64_t at = kk / step * parts.count + p;
                            Value scale = heads[at];
                            Value minimum = spec.hasMin ? headMinima[at] : Value();
                            if (reader.hasSubs()) {
                              scale = k.mul(scale, reader.sub(dwords[p], kk));
                              if (spec.hasMin)
                                minimum = k.mul(minimum, reader.subMin(dwords[p], kk));
                            }
                            scales.push_back(scale);
                            if (spec.hasMin)
                              minima.push_back(spec.subtractMin ? k.neg(minimum) : minimum);
                          }
                          expandBlock(bytes, scales, minima, values, rows, kk, step, planes, sums);
                        }
                        return sums;
                      });
                });
}

void forRowGroups(KernelBuilder &k, llvm::ArrayRef<int64_t> tiles, Value count,
                  llvm::function_ref<void(Value first, int64_t rows)> body) {
  Value done = k.constI64(0);
  for (int64_t rows : tiles) {
    Value left = k.sub(count, done);
    Value end = k.add(done, k.mul(k.div(left, rows), rows));
    k.loop(done, end, rows, [&](Value first) { body(first, rows); });
    done = end;
  }
}

} // namespace izhc
