// Copies whole rows where it can, and single values where columns move.

#include "compiler/import/StackedRows.h"

#include <algorithm>
#include <cassert>
#include <cstring>

using namespace izhc;

namespace {

class StackedReader final : public RowReader {
public:
  StackedReader(StackedRows stack, std::function<void(const uint8_t *, uint64_t)> release)
      : stack(std::move(stack)), release_(std::move(release)) {}

  void read(int64_t first, int64_t count, uint8_t *out) const override {
    int64_t each = stack.ourRows();
    while (count > 0) {
      int64_t matrix = first / each, row = first % each;
      int64_t now = std::min(count, each - row);
      readMatrix(matrix, row, now, out);
      out += now * outBytes();
      first += now;
      count -= now;
    }
  }

  void release(int64_t first, int64_t count) const override {
    // Only where rows are read in order; others may be needed again.
    if (stack.transpose || !stack.rowOrder.empty())
      return;
    int64_t each = stack.rows;
    for (int64_t end = first + count; first < end;) {
      int64_t now = std::min(end - first, each - first % each);
      const TensorInfo &part = partOf(first / each);
      int64_t row = inPart(first / each) * each + first % each;
      if (part.reader)
        part.reader->release(row, now);
      else
        release_(part.data + row * part.rowBytes(), now * part.rowBytes());
      first += now;
    }
  }

private:
  const TensorInfo &partOf(int64_t matrix) const { return *stack.parts[matrix / stack.matrices]; }
  int64_t inPart(int64_t matrix) const { return matrix % stack.matrices; }
  uint64_t outBytes() const {
    const FormatSpec &format = *stack.parts[0]->format;
    return uint64_t(stack.ourCols()) / format.blockWeights * format.blockBytes;
  }

  void readMatrix(int64_t matrix, int64_t row, int64_t count, uint8_t *out) const {
    const TensorInfo &part = partOf(matrix);
    int64_t base = inPart(matrix) * stack.rows;
    if (stack.transpose)
      return readTransposed(part, base, row, count, out);
    if (stack.rowOrder.empty() && stack.colOrder.empty())
      return part.readRows(base + row, count, out);
    std::vector<uint8_t> whole(part.rowBytes());
    for (int64_t i = row; i < row + count; ++i, out += outBytes()) {
      int64_t from = stack.rowOrder.empty() ? i : stack.rowOrder[i];
      if (stack.colOrder.empty()) {
        part.readRows(base + from, 1, out);
        continue;
      }
      part.readRows(base + from, 1, whole.data());
      uint64_t size = part.format->blockBytes;
      for (size_t col = 0; col < stack.colOrder.size(); ++col)
        std::memcpy(out + col * size, whole.data() + stack.colOrder[col] * size, size);
    }
  }

  // Goes through all stored rows once for each call and picks what is asked for.
  void readTransposed(const TensorInfo &part, int64_t base, int64_t row, int64_t count,
                      uint8_t *out) const {
    uint64_t size = part.format->blockBytes, width = outBytes();
    std::vector<uint8_t> whole;
    if (part.reader)
      whole.resize(part.rowBytes());
    for (int64_t col = 0; col < stack.ourCols(); ++col) {
      int64_t stored = base + (stack.colOrder.empty() ? col : stack.colOrder[col]);
      const uint8_t *from = part.data + stored * part.rowBytes();
      if (part.reader) {
        part.reader->read(stored, 1, whole.data());
        from = whole.data();
      }
      for (int64_t i = 0; i < count; ++i) {
        int64_t at = stack.rowOrder.empty() ? row + i : stack.rowOrder[row + i];
        std::memcpy(out + i * width + col * size, from + at * size, size);
      }
    }
  }

  StackedRows stack;
  std::function<void(const uint8_t *, uint64_t)> release_;
};

} // namespace

std::shared_ptr<const RowReader>
izhc::readStacked(StackedRows stack, std::function<void(const uint8_t *, uint64_t)> release) {
  assert(!stack.parts.empty());
  return std::make_shared<StackedReader>(std::move(stack), std::move(release));
}
