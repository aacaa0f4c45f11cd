// Encoding of float weights: the inverse of decodeBlock, as close as the
// format allows. Follows from the FormatSpec, as everything else does.

#pragma once

#include "compiler/formats/Format.h"

namespace izhc {

// Whether there is an encoder: for float formats, blocks of 32 and blocks of
// 256 with sub-blocks.
bool canEncode(const FormatSpec &format);

// The magnitude up to which a format holds weights of either sign, whatever the
// others in their block are.
double largestWeight(const FormatSpec &format);

// Encodes the weights of `count` blocks, all finite; those above
// largestWeight() are cut. `importance` has as many values, at least 0: squared
// errors are weighed by them; null: all alike. A block's bytes depend neither
// on the others nor on the machine.
void encodeBlocks(const FormatSpec &format, const float *weights, const float *importance,
                  int64_t count, uint8_t *blocks);

} // namespace izhc
