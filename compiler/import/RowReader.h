// Rows of a tensor that don't lie in the file as they are wanted: stacked from
// several tensors, in another order, or stored in a way that izh has no format
// for. Read in pieces, so that memory stays small.

#pragma once

#include <cstdint>
#include <string>

namespace izhc {

class RowReader {
public:
  virtual ~RowReader() = default;
  // Writes rows first .. first + count of the tensor, in its format, to `out`.
  // Safe from several threads. first + count is at most the tensor's rows().
  virtual void read(int64_t first, int64_t count, uint8_t *out) const = 0;
  // Hands back the pages that these rows were read from. They may still be
  // read afterwards.
  virtual void release(int64_t first, int64_t count) const {}
  // Why rows that were read hold what is no number, if not because the file
  // does: what a sentence says behind the tensor's name. "": no reason is known.
  virtual std::string problem() const { return {}; }
};

} // namespace izhc
