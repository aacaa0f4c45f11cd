// A block's parts as bytes, the form in which the packer moves them: what
// BlockParts holds, unsigned and without sign extension. Only for this folder.

#pragma once

#include "compiler/formats/Format.h"

namespace izhc::formats {

struct RawBlock {
  uint8_t code[256];
  uint16_t index[64];
  uint8_t sign[32];
  uint8_t delta[32];
  uint8_t sub[16];
  uint8_t subMin[16];
  uint16_t scale;
  uint16_t min;
};

// Inverse of each other on formats of kind Quantized. Parts that the format
// doesn't have are zero.
void readRaw(const FormatSpec &format, const uint8_t *block, RawBlock &raw);
// The codes that a grid makes of indices, signs and deltas.
void expandGrid(const FormatSpec &format, const RawBlock &raw, uint8_t *codes);
void writeRaw(const FormatSpec &format, const RawBlock &raw, uint8_t *block);

} // namespace izhc::formats
