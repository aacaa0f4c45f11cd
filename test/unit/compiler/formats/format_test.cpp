// The registry and the bit fields of every format in it.

#include "test/unit/compiler/formats/random_blocks.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <set>

using namespace izhc;
using namespace izhc::test;

TEST(FormatRegistryTest, HoldsExactlyTheFilesOfTheFolder) {
  std::set<std::string> files, names;
  for (const auto &entry :
       std::filesystem::directory_iterator(IZH_SOURCE_DIR "/compiler/formats")) {
    std::string stem = entry.path().stem().string();
    if (entry.path().extension() == ".cpp" && std::islower(stem[0]))
      files.insert(stem);
  }
  for (const FormatSpec *format : allFormats())
    names.insert(format->name.str());
  EXPECT_EQ(names, files);
  EXPECT_EQ(names.size(), allFormats().size());
}

TEST(FormatRegistryTest, FindsByNameAndType) {
  std::set<uint32_t> types;
  for (const FormatSpec *format : allFormats()) {
    EXPECT_EQ(findFormat(format->name), format);
    EXPECT_EQ(findFormatByGgufType(format->ggufType), format);
    EXPECT_TRUE(types.insert(format->ggufType).second) << format->name.str();
  }
  EXPECT_EQ(findFormat("no_such_format"), nullptr);
  EXPECT_EQ(findFormatByGgufType(9999), nullptr);
}

class QuantizedFormatTest : public testing::TestWithParam<const FormatSpec *> {};

static uint32_t firstBitOf(const BitField &field, uint32_t i) {
  return field.firstBit + i / field.count * field.repeatStride + i % field.count * field.bitStride;
}

// What follows from fields is lossless only if no bit is left out or shared.
TEST_P(QuantizedFormatTest, FieldsCoverEveryBitOnce) {
  const FormatSpec &format = *GetParam();
  std::vector<int> uses(format.blockBytes * 8);
  for (const BitField &field : format.fields)
    for (uint32_t i = 0; i < field.count * field.repeats; ++i)
      for (uint32_t bit = 0; bit < field.width; ++bit) {
        uint32_t at = firstBitOf(field, i) + bit;
        ASSERT_LT(at, uses.size());
        ++uses[at];
      }
  EXPECT_EQ(uses, std::vector<int>(uses.size(), 1));
}

TEST_P(QuantizedFormatTest, FieldsGiveEveryElementItsBits) {
  const FormatSpec &format = *GetParam();
  uint32_t code[256] = {}, sub[16] = {}, subMin[16] = {}, scale[1] = {}, min[1] = {};
  uint32_t index[64] = {}, sign[32] = {}, delta[32] = {};
  uint32_t *elements[] = {code, scale, min, sub, subMin, index, sign, delta};
  for (const BitField &field : format.fields)
    for (uint32_t i = 0; i < field.count * field.repeats; ++i)
      elements[static_cast<int>(field.role)][field.firstElement + i] |= ((1u << field.width) - 1)
                                                                        << field.shift;
  for (uint32_t i = 0; i < format.blockWeights; ++i)
    EXPECT_EQ(code[i], (1u << format.codeBits) - 1);
  if (const Grid *grid = format.grid) {
    // An index for every entry; ternary ones are bytes, 51 of five weights and
    // the rest in 4 of four.
    uint32_t last = grid->isTernary() ? 255 : static_cast<uint32_t>(grid->entries.size()) - 1;
    uint32_t count = grid->isTernary() ? 52 : format.blockWeights / grid->groupWeights;
    for (uint32_t i = 0; i < 64; ++i)
      EXPECT_EQ(index[i], i < count ? last : 0u);
    uint32_t deltas = grid->deltaWeights ? format.blockWeights / grid->deltaWeights : 0;
    for (uint32_t i = 0; i < 32; ++i) {
      EXPECT_EQ(sign[i], (1u << grid->signBits) - 1);
      EXPECT_EQ(delta[i], i < deltas ? 1u : 0u);
    }
  }
  uint32_t subs = format.subWeights ? format.blockWeights / format.subWeights : 0;
  for (uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(sub[i], i < subs ? (1u << format.subBits) - 1 : 0u);
    EXPECT_EQ(subMin[i], i < subs && format.hasMin ? (1u << format.subBits) - 1 : 0u);
  }
  EXPECT_EQ(scale[0], format.scaleKind == ScaleKind::Half         ? 0xffffu
                      : format.scaleKind == ScaleKind::PowerOfTwo ? 0xffu
                                                                  : 0u);
  EXPECT_EQ(min[0], format.hasMin ? 0xffffu : 0u);
}

// The formula of Format.h on the parts, rounded in the order that the
// published code has.
static float valueOf(const FormatSpec &format, const BlockParts &parts, uint32_t i) {
  uint32_t sub = format.subWeights ? i / format.subWeights : 0;
  volatile float step = format.factor;
  if (format.scaleKind == ScaleKind::PerSub)
    step = step * scaleValue(format, static_cast<uint16_t>(parts.sub[sub]));
  else
    step = step * scaleValue(format, parts.scale);
  if (format.subWeights && format.scaleKind != ScaleKind::PerSub)
    step = step * static_cast<float>(parts.sub[sub] * format.subStep - format.subZero);
  volatile float value =
      step * static_cast<float>(codeOf(format, parts.code[i]) - format.zeroPoint);
  if (!format.hasMin)
    return value;
  volatile float base = halfToFloat(parts.min);
  if (format.subWeights)
    base = base * static_cast<float>(parts.subMin[sub]);
  return format.subtractMin ? value - base : value + base;
}

TEST_P(QuantizedFormatTest, FieldsDecodeToTheValuesOfDecodeBlock) {
  const FormatSpec &format = *GetParam();
  constexpr size_t kBlocks = 200;
  std::vector<uint8_t> blocks = randomBlocks(format, kBlocks, 1);
  for (size_t i = 0; i < kBlocks; ++i) {
    const uint8_t *block = blocks.data() + i * format.blockBytes;
    BlockParts parts;
    unpackBlock(format, block, parts);
    float expected[256];
    format.decodeBlock(block, expected);
    for (uint32_t k = 0; k < format.blockWeights; ++k)
      ASSERT_EQ(valueOf(format, parts, k), expected[k]) << "block " << i << " weight " << k;
  }
}

TEST_P(QuantizedFormatTest, RepackRestoresTheBlock) {
  const FormatSpec &format = *GetParam();
  constexpr size_t kBlocks = 200;
  std::vector<uint8_t> blocks = randomBlocks(format, kBlocks, 2);
  std::vector<uint8_t> again(format.blockBytes);
  for (size_t i = 0; i < kBlocks; ++i) {
    const uint8_t *block = blocks.data() + i * format.blockBytes;
    BlockParts parts;
    unpackBlock(format, block, parts);
    std::fill(again.begin(), again.end(), 0xaa);
    repackBlock(format, parts, again.data());
    ASSERT_EQ(std::memcmp(again.data(), block, format.blockBytes), 0) << "block " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(AllFormats, QuantizedFormatTest, testing::ValuesIn(quantizedFormats()),
                         [](const auto &info) { return info.param->name.str(); });
