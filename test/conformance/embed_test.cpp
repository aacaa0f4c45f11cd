// pack.embed of every target and format against the format's decodeBlock,
// exactly. Blocks are random bits but for their float16 scales.

#include "compiler/formats/PackedLayout.h"
#include "test/conformance/operands.h"

using namespace izhc;
using namespace izhc::conformance;

namespace {

// Rows of blocks in GGUF order.
struct EncodedRows {
  int64_t rows, cols, rowBytes;
  std::vector<uint8_t> bytes;
};

void randomBlock(const FormatSpec &format, Random &random, uint8_t *block) {
  float value = random.next();
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  uint16_t half = floatToHalf(value);
  switch (format.kind) {
  case ElementKind::F32:
    std::memcpy(block, &bits, 4);
    return;
  case ElementKind::F16:
    std::memcpy(block, &half, 2);
    return;
  case ElementKind::BF16:
    half = uint16_t(bits >> 16);
    std::memcpy(block, &half, 2);
    return;
  case ElementKind::Quantized:
    break;
  }
  for (uint32_t i = 0; i < format.blockBytes; ++i)
    block[i] = uint8_t(random.bits());
  BlockParts parts;
  unpackBlock(format, block, parts);
  randomScales(format, random, parts);
  repackBlock(format, parts, block);
}

EncodedRows randomMatrix(const FormatSpec &format, int64_t rows, int64_t cols) {
  int64_t blocks = cols / format.blockWeights;
  EncodedRows matrix{rows, cols, blocks * format.blockBytes, {}};
  matrix.bytes.resize(rows * matrix.rowBytes);
  Random random(cols);
  for (int64_t i = 0; i < rows * blocks; ++i)
    randomBlock(format, random, &matrix.bytes[i * format.blockBytes]);
  return matrix;
}

class EmbedTest : public TargetTest {
protected:
  void check(const FormatSpec &format, int64_t rows, int64_t cols, float scale);
};

void EmbedTest::check(const FormatSpec &format, int64_t rows, int64_t cols, float scale) {
  SCOPED_TRACE(format.name.str() + " " + number(cols));
  EncodedRows matrix = randomMatrix(format, rows, cols);
  PackedLayout layout(format);
  Buffer packed(layout.matrixBytes(rows, cols));
  for (int64_t tile = 0; 16 * tile < rows; ++tile)
    packTile(layout, &matrix.bytes[16 * tile * matrix.rowBytes],
             std::min<int64_t>(16, rows - 16 * tile), matrix.rowBytes, cols,
             packed.data() + tile * layout.tileBytes(cols));
  Kernel kernel(target(), fill(R"(
    plan.kernel @k(%i: memref<?xi32>, %w: !pack.weight<$r x $c, "$f">, %o: $o) {
      pack.embed %i, %w into %o {scale = $s : f32}
        : (memref<?xi32>, !pack.weight<$r x $c, "$f">, $o) -> ()
    })",
                               {{"r", number(rows)},
                                {"c", number(cols)},
                                {"f", format.name.str()},
                                {"o", "memref<?x" + number(cols) + "xf32>"},
                                {"s", std::to_string(scale)}}));
  ASSERT_TRUE(bool(kernel));
  Array<int32_t> ids(std::vector<int32_t>{int32_t(rows) - 1, 0, 7, 16});
  Array<float> out(ids.count * cols, 0xEE);
  kernel.run({ids.data(), packed.data(), out.data()}, {4}, 0, 4);
  std::vector<float> block(format.blockWeights);
  for (size_t t = 0; t < ids.count; ++t)
    for (int64_t c = 0; c < cols; ++c) {
      if (c % format.blockWeights == 0)
        format.decodeBlock(
            &matrix.bytes[ids[t] * matrix.rowBytes + c / format.blockWeights * format.blockBytes],
            block.data());
      ASSERT_EQ(out[t * cols + c], scale * block[c % format.blockWeights]) << t << " " << c;
    }
}

TEST_P(EmbedTest, DecodesEveryFormat) {
  for (const FormatSpec *format : formatsFor(target()))
    check(*format, 40, format->blockWeights == 256 ? 768 : 128, 1.0f);
}

TEST_P(EmbedTest, StopsAtTheEndOfARow) {
  for (const FormatSpec *format : formatsFor(target()))
    check(*format, 17,
          format->blockWeights == 1    ? 96
          : format->blockWeights == 32 ? 96
                                       : format->blockWeights,
          1.0f);
}

TEST_P(EmbedTest, Scales) {
  for (const FormatSpec *format : formatsFor(target()))
    check(*format, 17, format->blockWeights == 256 ? 256 : 64, 12.5f);
}

IZH_FOR_EACH_TARGET(EmbedTest);

} // namespace
