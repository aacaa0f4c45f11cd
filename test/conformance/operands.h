// Operands of products: random encoded matrices and activation records, with
// the values that they stand for. Matrices are decoded by their formats'
// decodeBlock; records are made here from the documentation of pack.quantize.

#pragma once

#include "compiler/formats/PackedLayout.h"
#include "dialects/pack/ActLayout.h"
#include "test/conformance/harness.h"

namespace izhc::conformance {

// A random scale (and Sub, where sub-blocks have scales of their own) that is
// a small number, in place of the one that `parts` holds.
void randomScales(const FormatSpec &format, Random &random, BlockParts &parts);

// One format of each size of blocks: for what knows nothing else of formats.
std::vector<const FormatSpec *> oneOfEachSize();
// The formats that a test of each goes through: all, but of those targets that
// read weights with the very code of another, as x86's later extensions do.
std::vector<const FormatSpec *> formatsFor(const Target &target);

struct Matrix {
  Matrix(const FormatSpec &format, int64_t rows, int64_t cols, uint64_t seed);
  // A matrix of float32 with the values given.
  Matrix(int64_t rows, int64_t cols, const std::vector<float> &values);

  std::string type() const;

  const FormatSpec &format;
  int64_t rows, cols;
  std::vector<float> values; // decoded
  Buffer packed;

private:
  void pack(const std::vector<uint8_t> &blocks);
};

// The narrowest kind and fields that products of `formats` with integer
// activations read; kind f32 for float formats.
pack::ActType actTypeFor(const std::vector<const FormatSpec *> &formats, int64_t width);
pack::ActType floatActs(int64_t width);
// `kind` with every field that any format asks for.
pack::ActType widestActs(pack::ActKind kind, int64_t width);

struct Activations {
  Activations(pack::ActType type, int64_t tokens, uint64_t seed);
  Activations(pack::ActType type, const std::vector<std::vector<float>> &rows);

  uint8_t *record(int64_t token) { return records.data() + token * layout.stride; }
  std::string typeText() const;

  pack::ActType type;
  pack::ActLayout layout;
  int64_t tokens;
  std::vector<double> values; // tokens x width, as the records say
  Buffer records;

private:
  void encode(int64_t token, std::vector<float> row);
  void encode32(int64_t token, const std::vector<float> &row);
  void encode256(int64_t token, const std::vector<float> &row);
  void encodeBlock(int64_t token, const float *row, int64_t block, float perStep, float scale,
                   float sumScale);
};

// A sum of products and the sum of their magnitudes.
struct Dot {
  double value = 0, size = 0;
};
Dot dot(const Matrix &matrix, int64_t row, const Activations &act, int64_t token);

} // namespace izhc::conformance
