// Makes operands. Nothing here is shared with code generators but the layouts'
// offsets and the packer, which has tests of its own.

#include "test/conformance/operands.h"
#include <cmath>
#include <set>

namespace izhc::conformance {

namespace {

// Random codes and sub-scales; scales of either sign between 0.01 and 0.02.
void randomBlock(const FormatSpec &format, Random &random, uint8_t *block) {
  float value = random.next();
  uint16_t half = floatToHalf(value);
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  uint16_t upper = uint16_t(bits >> 16);
  if (format.kind == ElementKind::F32)
    std::memcpy(block, &bits, 4);
  else if (format.kind == ElementKind::F16)
    std::memcpy(block, &half, 2);
  else if (format.kind == ElementKind::BF16)
    std::memcpy(block, &upper, 2);
  if (format.kind != ElementKind::Quantized)
    return;
  for (uint32_t i = 0; i < format.blockBytes; ++i)
    block[i] = uint8_t(random.bits());
  BlockParts parts;
  unpackBlock(format, block, parts);
  randomScales(format, random, parts);
  repackBlock(format, parts, block);
}

} // namespace

void randomScales(const FormatSpec &format, Random &random, BlockParts &parts) {
  auto scale = [&] {
    float magnitude = 0.015f + 0.005f * random.next();
    return floatToHalf(random.bits() % 2 ? magnitude : -magnitude);
  };
  parts.scale = format.scaleKind == ScaleKind::PowerOfTwo ? 118 + random.bits() % 4 : scale();
  parts.min = scale();
  if (format.scaleKind == ScaleKind::PerSub)
    for (int32_t &sub : parts.sub)
      sub = 16 + random.bits() % 16;
}

Matrix::Matrix(const FormatSpec &format, int64_t rows, int64_t cols, uint64_t seed)
    : format(format), rows(rows), cols(cols), values(rows * cols),
      packed(PackedLayout(format).matrixBytes(rows, cols)) {
  int64_t count = rows * cols / format.blockWeights;
  std::vector<uint8_t> blocks(count * format.blockBytes);
  Random random(seed);
  for (int64_t i = 0; i < count; ++i) {
    uint8_t *block = &blocks[i * format.blockBytes];
    randomBlock(format, random, block);
    format.decodeBlock(block, &values[i * format.blockWeights]);
  }
  pack(blocks);
}

Matrix::Matrix(int64_t rows, int64_t cols, const std::vector<float> &values)
    : format(*findFormat("f32")), rows(rows), cols(cols), values(values),
      packed(PackedLayout(format).matrixBytes(rows, cols)) {
  std::vector<uint8_t> blocks(4 * values.size());
  std::memcpy(blocks.data(), values.data(), blocks.size());
  pack(blocks);
}

void Matrix::pack(const std::vector<uint8_t> &blocks) {
  PackedLayout layout(format);
  int64_t rowBytes = cols / format.blockWeights * format.blockBytes;
  for (int64_t row = 0; row < rows; row += 16)
    packTile(layout, &blocks[row * rowBytes], std::min<int64_t>(16, rows - row), rowBytes, cols,
             packed.data() + row / 16 * layout.tileBytes(cols));
}

std::string Matrix::type() const {
  return "!pack.weight<" + number(rows) + " x " + number(cols) + ", \"" + format.name.str() + "\">";
}

pack::ActType actTypeFor(const std::vector<const FormatSpec *> &formats, int64_t width) {
  std::set<int64_t> corr32, corr16;
  bool sums = false;
  auto kind = pack::ActKind::F32;
  for (const FormatSpec *format : formats) {
    if (format->kind != ElementKind::Quantized)
      continue;
    kind = format->blockWeights == 256 ? pack::ActKind::Block256 : pack::ActKind::Block32;
    // Sums of 16 codes are those of zero point -1.
    if (format->hasMin && format->subWeights == 16)
      corr16.insert(-1);
    sums |= format->hasMin && format->subWeights != 16;
    if (format->zeroPoint)
      (format->subWeights == 16 ? corr16 : corr32).insert(format->zeroPoint);
    if (format->signedCodes)
      corr32.insert(128);
  }
  return pack::ActType::get(&context(), width, kind, sums,
                            std::vector<int64_t>(corr32.begin(), corr32.end()),
                            std::vector<int64_t>(corr16.begin(), corr16.end()));
}

std::vector<const FormatSpec *> oneOfEachSize() {
  std::set<uint32_t> sizes;
  std::vector<const FormatSpec *> formats;
  for (const FormatSpec *format : allFormats())
    if (sizes.insert(format->blockWeights).second)
      formats.push_back(format);
  return formats;
}

std::vector<const FormatSpec *> formatsFor(const Target &target) {
  bool sameCode = llvm::is_contained({"avx512bf16", "avx512fp16", "amx"}, target.name());
  return sameCode && !everyCase() ? oneOfEachSize() : allFormats().vec();
}

pack::ActType floatActs(int64_t width) { return actTypeFor({}, width); }

pack::ActType widestActs(pack::ActKind kind, int64_t width) {
  std::vector<const FormatSpec *> all;
  for (const FormatSpec *format : allFormats())
    all.push_back(format);
  pack::ActType type = actTypeFor(all, width);
  return pack::ActType::get(&context(), width, kind, true, type.getCorr32(), type.getCorr16());
}

Activations::Activations(pack::ActType type, const std::vector<std::vector<float>> &rows)
    : type(type), layout(type), tokens(rows.size()), values(tokens * type.getWidth()),
      records(tokens * layout.stride) {
  for (int64_t token = 0; token < tokens; ++token)
    encode(token, rows[token]);
}

static std::vector<std::vector<float>> randomRows(int64_t width, int64_t tokens, uint64_t seed) {
  Random random(seed);
  std::vector<std::vector<float>> rows;
  for (int64_t token = 0; token < tokens; ++token) {
    rows.push_back(random.floats(width));
    // Blocks of different sizes, so that scales and exponents matter.
    for (int64_t i = 0; i < width; ++i)
      rows.back()[i] *= std::ldexp(1.0f, int(i / 32 * 5 % 7) - 3);
  }
  return rows;
}

Activations::Activations(pack::ActType type, int64_t tokens, uint64_t seed)
    : Activations(type, randomRows(type.getWidth(), tokens, seed)) {}

std::string Activations::typeText() const {
  std::string text;
  llvm::raw_string_ostream(text) << mlir::Type(type);
  return text;
}

void Activations::encode(int64_t token, std::vector<float> row) {
  row.resize(layout.padded);
  if (type.getKind() == pack::ActKind::Block32)
    encode32(token, row);
  else if (type.getKind() == pack::ActKind::Block256)
    encode256(token, row);
  else {
    std::memcpy(record(token), row.data(), 4 * layout.padded);
    std::copy_n(row.begin(), type.getWidth(), &values[token * type.getWidth()]);
  }
}

static float largest(const float *values, int64_t count) {
  float most = 0;
  for (int64_t i = 0; i < count; ++i)
    most = std::max(most, std::abs(values[i]));
  return most;
}

void Activations::encode32(int64_t token, const std::vector<float> &row) {
  for (int64_t block = 0; block < layout.padded / 32; ++block) {
    float amax = largest(&row[32 * block], 32);
    float scale = amax / 127;
    reinterpret_cast<float *>(record(token) + layout.scales)[block] = scale;
    encodeBlock(token, row.data(), block, amax > 0 ? 127 / amax : 0, scale, scale);
  }
}

void Activations::encode256(int64_t token, const std::vector<float> &row) {
  for (int64_t group = 0; group < layout.padded / 256; ++group) {
    float amax = largest(&row[256 * group], 256);
    int n[8];
    for (int i = 0; i < 8; ++i) {
      float m = largest(&row[256 * group + 32 * i], 32);
      n[i] = m > 0 ? std::min(15, std::ilogb(amax / m)) : 15;
    }
    int most = *std::max_element(n, n + 8);
    float step = std::ldexp(amax / 127, -most);
    reinterpret_cast<float *>(record(token) + layout.scales)[group] = step;
    for (int i = 0; i < 8; ++i) {
      int exponent = most - n[i];
      int64_t block = 8 * group + i;
      reinterpret_cast<int32_t *>(record(token) + layout.exponents)[block] = exponent << 23;
      float power = std::ldexp(1.0f, exponent);
      float perStep = amax > 0 ? std::ldexp(127 / amax, n[i]) : 0;
      encodeBlock(token, row.data(), block, perStep, step * power, power);
    }
  }
}

void Activations::encodeBlock(int64_t token, const float *row, int64_t block, float perStep,
                              float scale, float sumScale) {
  uint8_t *bytes = record(token);
  int sums[2] = {0, 0};
  for (int64_t i = 32 * block; i < 32 * block + 32; ++i) {
    int code = int(std::nearbyint(row[i] * perStep));
    bytes[layout.codes + i] = uint8_t(int8_t(code));
    sums[i / 16 % 2] += code;
    if (i < type.getWidth())
      values[token * type.getWidth() + i] = double(code) * scale;
  }
  int all = sums[0] + sums[1];
  if (type.getSums())
    reinterpret_cast<float *>(bytes + layout.sums)[block] = sumScale * float(all);
  for (auto [z, field] : llvm::zip(type.getCorr32(), layout.corr32))
    reinterpret_cast<int32_t *>(bytes + field)[block] = int32_t(-z * all);
  for (auto [z, field] : llvm::zip(type.getCorr16(), layout.corr16))
    for (int half = 0; half < 2; ++half)
      reinterpret_cast<int32_t *>(bytes + field)[2 * block + half] = int32_t(-z * sums[half]);
}

Dot dot(const Matrix &matrix, int64_t row, const Activations &act, int64_t token) {
  Dot result;
  for (int64_t i = 0; i < matrix.cols; ++i) {
    double product =
        double(matrix.values[row * matrix.cols + i]) * act.values[token * matrix.cols + i];
    result.value += product;
    result.size += std::abs(product);
  }
  return result;
}

} // namespace izhc::conformance
