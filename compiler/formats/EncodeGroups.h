// Encoding of many groups of weights at once. Only for this folder.

#pragma once

#include "compiler/formats/Lanes.h"
#include "compiler/formats/RawBlock.h"

namespace izhc::formats {

// Lanes have their `count` values, a multiple of kLanes, one behind the other
// in `from`, or in `to`.
void sideBySide(const float *from, int count, Floats *to);
void oneByOne(const Bytes *from, int count, uint8_t *to);

// Encodes weights x, of which w tells how much each matters (null: all alike).
// A lane holds a sub-block, or a block without; `count` weights. Fills in all
// parts of the blocks but the codes, which it writes to `codes`, as they are
// stored, as many as weights.
void encodeGroups(const FormatSpec &format, const Floats *x, const Floats *w, int count,
                  RawBlock *raws, Bytes *codes);

} // namespace izhc::formats
