// A few blocks whose values were worked out by hand from the published
// definitions (ggml-common.h), so that decodeBlock itself is tested.

#include "compiler/formats/Format.h"

#include <gtest/gtest.h>
#include <vector>

using namespace izhc;

// float16 of 0.5, 1, 2, -1.
static const uint16_t kHalf = 0x3800, kOne = 0x3c00, kTwo = 0x4000, kMinusOne = 0xbc00;

static void put16(std::vector<uint8_t> &block, size_t at, uint16_t value) {
  block[at] = value & 255;
  block[at + 1] = value >> 8;
}

static std::vector<float> decode(const char *name, const std::vector<uint8_t> &block) {
  const FormatSpec *format = findFormat(name);
  EXPECT_EQ(format->blockBytes, block.size());
  std::vector<float> values(format->blockWeights);
  format->decodeBlock(block.data(), values.data());
  return values;
}

TEST(GoldenTest, PlainFloats) {
  EXPECT_EQ(decode("f32", {0x00, 0x00, 0xc0, 0x3f})[0], 1.5f);
  EXPECT_EQ(decode("f16", {0x00, 0x3e})[0], 1.5f);
  EXPECT_EQ(decode("bf16", {0xc0, 0x3f})[0], 1.5f);
}

TEST(GoldenTest, Q8_0) {
  std::vector<uint8_t> block(34);
  put16(block, 0, kHalf);
  block[2] = 0x80;
  block[3] = 0x7f;
  block[33] = 0xff;
  std::vector<float> w = decode("q8_0", block);
  EXPECT_EQ(w[0], -64.0f);
  EXPECT_EQ(w[1], 63.5f);
  EXPECT_EQ(w[2], 0.0f);
  EXPECT_EQ(w[31], -0.5f);
}

TEST(GoldenTest, Q4_0) {
  std::vector<uint8_t> block(18, 0x88);
  put16(block, 0, kTwo);
  block[2] = 0xf0;
  block[17] = 0x1a;
  std::vector<float> w = decode("q4_0", block);
  EXPECT_EQ(w[0], -16.0f);
  EXPECT_EQ(w[16], 14.0f);
  EXPECT_EQ(w[1], 0.0f);
  EXPECT_EQ(w[15], 4.0f);
  EXPECT_EQ(w[31], -14.0f);
}

TEST(GoldenTest, Q4_1) {
  std::vector<uint8_t> block(20);
  put16(block, 0, kHalf);
  put16(block, 2, kMinusOne);
  block[4] = 0x3f;
  block[19] = 0x20;
  std::vector<float> w = decode("q4_1", block);
  EXPECT_EQ(w[0], 6.5f);
  EXPECT_EQ(w[16], 0.5f);
  EXPECT_EQ(w[1], -1.0f);
  EXPECT_EQ(w[15], -1.0f);
  EXPECT_EQ(w[31], 0.0f);
}

TEST(GoldenTest, Q5_0) {
  std::vector<uint8_t> block(22);
  put16(block, 0, kOne);
  // Bit 4 of weights 0 and 31.
  block[2] = 0x01;
  block[5] = 0x80;
  block[6] = 0x21;
  block[21] = 0xf0;
  std::vector<float> w = decode("q5_0", block);
  EXPECT_EQ(w[0], 1.0f);
  EXPECT_EQ(w[16], -14.0f);
  EXPECT_EQ(w[1], -16.0f);
  EXPECT_EQ(w[31], 15.0f);
}

TEST(GoldenTest, Q5_1) {
  std::vector<uint8_t> block(24);
  put16(block, 0, kTwo);
  put16(block, 2, kHalf);
  // Bit 4 of weights 9 and 16.
  block[5] = 0x02;
  block[6] = 0x01;
  block[8] = 0x53;
  block[17] = 0x04;
  std::vector<float> w = decode("q5_1", block);
  EXPECT_EQ(w[0], 6.5f);
  EXPECT_EQ(w[16], 2 * (16 + 5) + 0.5f);
  EXPECT_EQ(w[9], 2 * (16 + 4) + 0.5f);
  EXPECT_EQ(w[25], 0.5f);
}

// Scales and minima of sub-blocks 1 (plain) and 6 (split in two places).
static void putScales(std::vector<uint8_t> &block) {
  put16(block, 0, kHalf);
  put16(block, 2, kTwo);
  // scale 1 = 41, min 1 = 3
  block[4 + 1] |= 41;
  block[4 + 5] |= 3;
  // scale 6 = 0b10'0101 = 37, min 6 = 0b01'1100 = 28
  block[4 + 2] |= 2 << 6;
  block[4 + 6] |= 1 << 6;
  block[4 + 10] |= 5 | 12 << 4;
}

TEST(GoldenTest, Q4_K) {
  std::vector<uint8_t> block(144);
  putScales(block);
  // Weights 32 + 7 (high nibble) and 192 + 9 (low nibble of chunk 3).
  block[16 + 7] = 0xb0;
  block[16 + 96 + 9] = 0x0d;
  std::vector<float> w = decode("q4_k", block);
  EXPECT_EQ(w[7], 0.0f);
  EXPECT_EQ(w[39], 0.5f * 41 * 11 - 2 * 3);
  EXPECT_EQ(w[40], -6.0f);
  EXPECT_EQ(w[201], 0.5f * 37 * 13 - 2 * 28);
  EXPECT_EQ(w[202], -56.0f);
  EXPECT_EQ(w[255], 0.0f);
}

TEST(GoldenTest, Q5_K) {
  std::vector<uint8_t> block(176);
  putScales(block);
  // Bit 4: of weight 32 + 7 is bit 1 of byte 7, of 192 + 9 bit 6 of byte 9.
  block[16 + 7] = 1 << 1;
  block[16 + 9] = 1 << 6;
  block[48 + 7] = 0xb0;
  block[48 + 96 + 9] = 0x0d;
  std::vector<float> w = decode("q5_k", block);
  EXPECT_EQ(w[39], 0.5f * 41 * (11 + 16) - 2 * 3);
  EXPECT_EQ(w[40], -6.0f);
  EXPECT_EQ(w[201], 0.5f * 37 * (13 + 16) - 2 * 28);
  EXPECT_EQ(w[202], -56.0f);
}

TEST(GoldenTest, Q6_K) {
  std::vector<uint8_t> block(210);
  put16(block, 208, kHalf);
  for (int i = 0; i < 16; ++i)
    block[192 + i] = static_cast<uint8_t>(i - 8);
  // Second half: weight 128 + 32 + 5 is the low nibble of byte 64 + 37, its
  // upper bits are bits 2..3 of byte 128 + 32 + 5.
  block[64 + 37] = 0x09;
  block[128 + 32 + 5] = 3 << 2;
  std::vector<float> w = decode("q6_k", block);
  EXPECT_EQ(w[0], 0.5f * -8 * -32);
  // Sub-block 165 / 16 = 10, scale 2.
  EXPECT_EQ(w[165], 0.5f * 2 * (9 + 48 - 32));
  EXPECT_EQ(w[166], 0.5f * 2 * -32);
  EXPECT_EQ(w[255], 0.5f * 7 * -32);
}

TEST(GoldenTest, Q3_K) {
  std::vector<uint8_t> block(110);
  put16(block, 108, kHalf);
  // Scale of sub-block 10: bits 0..3 are the high nibble of byte 96 + 2, bits
  // 4..5 are bits 4..5 of byte 104 + 2. 0b100101 = 37.
  block[96 + 2] = 5 << 4;
  block[104 + 2] = 2 << 4;
  // Weight 165 = 128 + 32 + 5: bits 0..1 are bits 2..3 of byte 32 + 32 + 5,
  // bit 2 is bit 5 of byte 5.
  block[32 + 32 + 5] = 2 << 2;
  block[5] = 1 << 5;
  std::vector<float> w = decode("q3_k", block);
  EXPECT_EQ(w[165], 0.5f * (37 - 32) * (6 - 4));
  EXPECT_EQ(w[166], 0.5f * (37 - 32) * -4);
  // Sub-block 0 has scale 0 - 32.
  EXPECT_EQ(w[0], 0.5f * -32 * -4);
}

TEST(GoldenTest, IQ4_NL) {
  std::vector<uint8_t> block(18, 0x88);
  put16(block, 0, kHalf);
  block[2] = 0xf0;
  block[17] = 0x39;
  std::vector<float> w = decode("iq4_nl", block);
  EXPECT_EQ(w[0], 0.5f * -127);
  EXPECT_EQ(w[16], 0.5f * 113);
  EXPECT_EQ(w[1], 0.5f);
  EXPECT_EQ(w[15], 0.5f * 13);
  EXPECT_EQ(w[31], 0.5f * -65);
}

TEST(GoldenTest, IQ4_XS) {
  std::vector<uint8_t> block(136);
  put16(block, 0, kHalf);
  // Scale 5: bits 0..3 in the high nibble of byte 4 + 2, bits 4..5 are bits
  // 10..11 of the word at 2. 0b110111 = 55.
  put16(block, 2, 3 << 10);
  block[6] = 7 << 4;
  // Weights 160 + 3 and 160 + 16 + 3.
  block[8 + 80 + 3] = 0xf0;
  std::vector<float> w = decode("iq4_xs", block);
  EXPECT_EQ(w[163], 0.5f * (55 - 32) * -127);
  EXPECT_EQ(w[179], 0.5f * (55 - 32) * 113);
  // The other scales are 0 - 32.
  EXPECT_EQ(w[0], 0.5f * -32 * -127);
}

TEST(GoldenTest, MXFP4) {
  std::vector<uint8_t> block(17);
  block[0] = 129; // 2^2
  block[1] = 0x7f;
  block[16] = 0x92;
  std::vector<float> w = decode("mxfp4", block);
  EXPECT_EQ(w[0], -24.0f);
  EXPECT_EQ(w[16], 24.0f);
  EXPECT_EQ(w[1], 0.0f);
  EXPECT_EQ(w[15], 4.0f);
  EXPECT_EQ(w[31], -2.0f);
}

TEST(GoldenTest, NVFP4) {
  std::vector<uint8_t> block(36);
  block[0] = 0x38; // 1
  block[1] = 0x01; // 2^-9
  block[2] = 0x4c; // 2^2 * 1.5
  block[3] = 0x7e; // 448
  block[4] = 0x7f;
  block[4 + 8] = 0x20;
  block[4 + 16 + 7] = 0xd0;
  block[4 + 24] = 0x01;
  std::vector<float> w = decode("nvfp4", block);
  EXPECT_EQ(w[0], -6.0f);
  EXPECT_EQ(w[8], 6.0f);
  EXPECT_EQ(w[24], 0x1p-9f);
  EXPECT_EQ(w[47], -18.0f);
  EXPECT_EQ(w[48], 224.0f);
}

TEST(GoldenTest, Q2_K) {
  std::vector<uint8_t> block(84);
  put16(block, 80, kHalf);
  put16(block, 82, kTwo);
  // Weight 165 = 128 + 32 + 5 in sub-block 10.
  block[10] = 0x3b;
  block[16 + 32 + 5] = 3 << 2;
  std::vector<float> w = decode("q2_k", block);
  EXPECT_EQ(w[165], 0.5f * 11 * 3 - 2 * 3);
  EXPECT_EQ(w[166], -6.0f);
  EXPECT_EQ(w[0], 0.0f);
}

TEST(GoldenTest, TQ2_0) {
  std::vector<uint8_t> block(66, 0x55);
  put16(block, 64, kTwo);
  block[32 + 5] = 0x55 ^ 3 << 2;
  std::vector<float> w = decode("tq2_0", block);
  EXPECT_EQ(w[165], 2.0f);
  EXPECT_EQ(w[166], 0.0f);
  EXPECT_EQ(w[133], 0.0f);
}
