// Reads a packed weight tile in stream order as vectors: codes for dot
// products, scales, sub-scales.
//
// A machine with fewer than 16 lanes sees a tile as 16 / lanes parts. Callers
// give two addresses of a unit (or of a chunk, whose offsets are those of the
// unit's first chunk): `bytes`, moved on by 4 * lanes * part for the 64-byte
// vectors, and `halves`, moved on by 2 * lanes * part for arrays of float16.

#pragma once

#include "compiler/formats/PackedLayout.h"
#include "compiler/target/LoadOrder.h"

namespace izhc {

class WeightReader {
public:
  using Value = mlir::Value;

  // `flips`: codes of signed formats are given xor 0x80.
  WeightReader(KernelBuilder &k, const FormatSpec &format, int64_t lanes, bool flips = false)
      : layout(format), spec(format), lanes(lanes), flips(flips && format.signedCodes), k(k) {}

  PackedLayout layout;
  const FormatSpec &spec;
  int64_t lanes;
  bool flips;

  // The vectors of each code plane that were loaded last.
  struct Planes {
    llvm::SmallVector<Value, 2> vectors;
    llvm::SmallVector<int64_t, 2> offsets;
  };
  // Codes of weights kk..kk+3 (kk a multiple of 4) as 4 * lanes bytes. Asking
  // in ascending order loads each vector once and in stream order.
  Value codes(Planes &planes, Value bytes, int64_t kk);

  // Scale or minimum of the block with weight kk, as float32; a scale of 1
  // where sub-blocks have their own. The format's factor is left out.
  Value scale(Value bytes, Value halves, int64_t kk);
  Value minimum(Value halves, int64_t kk);

  bool hasSubs() const { return spec.subWeights != 0; }
  // Whether codes pass through the scratch: then they lie kCodesInScratch
  // behind its start.
  bool expands() const { return spec.grid; }
  static constexpr int64_t kCodesInScratch = 256;
  // Whether sub-scales pass through the scratch.
  bool unpacksSubs() const {
    return layout.subs != SubScales::None && layout.subs != SubScales::InChunk;
  }
  // Expands the codes of a unit; addresses as in unpackSubs.
  void expandCodes(Value bytes, Value scratch);
  // Unpacks six-bit sub-scales of a unit to four vectors at `scratch`
  // (64 bytes a chunk); `scratch` is moved on like `bytes`.
  void unpackSubs(Value bytes, Value halves, Value scratch);
  // Dwords (one a row) with the sub-scales of a chunk. `scratch` as above, for
  // the chunk wanted.
  Value subDwords(Value bytes, Value scratch);
  // Sub-scale and sub-minimum of weight kk (0..63) of the chunk, as float.
  Value sub(Value dwords, int64_t kk);
  Value subMin(Value dwords, int64_t kk);
  // The scale of weight kk of a unit of 256: `scale`, the unit's, times its
  // sub-scale where there are any (else `dwords` is null).
  Value scaleOfSub(Value scale, Value dwords, int64_t kk);

private:
  // Grids.
  Value wordAt(Value bytes, Value word);
  Value element(FieldRole role, Value bytes, Value block, int64_t index);
  Value staticElement(FieldRole role, Value bytes, int64_t index);
  void unpackWords(Value bytes, Value scratch);
  void expandTernary(Value bytes, Value scratch);
  void expandGroup(Value bytes, Value block, int64_t group, Value table, Value to);
  Value negated(Value codes, Value signs);
  // How far a place of a vector of this size is aligned.
  unsigned alignOf(int64_t bytes) const { return unsigned(std::min(bytes, layout.align)); }
  Value loadBytes(Value from) {
    return loadStream(k, k.vec(4 * lanes, k.i8()), from, alignOf(4 * lanes));
  }
  Value loadWords(Value from) {
    return loadStream(k, k.vec(lanes, k.i16()), from, alignOf(2 * lanes));
  }
  void unpackEight(Value bytes, Value halves, Value scratch);
  Value planeBits(Value vector, const CodePlane &plane, int64_t group);
  Value byteOf(Value dwords, int64_t index, bool isSigned);

  KernelBuilder &k;
};

} // namespace izhc
