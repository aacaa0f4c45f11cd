// Rows of a tensor, encoded in another format on the way.

#pragma once

#include "compiler/import/ModelSource.h"
#include <functional>

namespace izhc {

// `stored` has a format with whole blocks of `format` in its rows.
// `importance` has a row of columns for each of some equal parts of the rows,
// or is empty. `release` hands back bytes of `stored`, which must live as long
// as the reader. Blocks with weights that are no numbers are all ones, which
// no format takes for numbers.
std::shared_ptr<const RowReader>
encodingReader(TensorInfo stored, const FormatSpec &format, std::vector<float> importance,
               std::function<void(const uint8_t *, uint64_t)> release);

// Of all weights that are finite; `stored` has a format.
float largestMagnitude(const TensorInfo &stored);

} // namespace izhc
