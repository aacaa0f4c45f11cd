// One row at a time through floats, so that memory stays small.

#include "compiler/import/EncodingReader.h"
#include "compiler/formats/Encode.h"
#include "compiler/support/Numbers.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>

using namespace izhc;

namespace {

class EncodingReader final : public RowReader {
public:
  EncodingReader(TensorInfo stored, const FormatSpec &format, std::vector<float> importance,
                 std::function<void(const uint8_t *, uint64_t)> release)
      : stored(std::move(stored)), format(format), importance(std::move(importance)),
        release_(std::move(release)), most(largestWeight(format)) {}

  void read(int64_t first, int64_t count, uint8_t *out) const override {
    std::vector<uint8_t> bytes(stored.rowBytes());
    std::vector<float> values(stored.cols());
    for (int64_t row = first; row < first + count; ++row) {
      stored.readRows(row, 1, bytes.data());
      decodeBlocks(*stored.format, bytes.data(), stored.cols() / stored.format->blockWeights,
                   values.data());
      out = encode(row, values.data(), out);
    }
  }

  void release(int64_t first, int64_t count) const override {
    if (stored.reader)
      stored.reader->release(first, count);
    else
      release_(stored.data + first * stored.rowBytes(), count * stored.rowBytes());
  }

  std::string problem() const override {
    if (!tooLarge)
      return {};
    return llvm::formatv("holds weights above {0} in magnitude, which {1} can't hold; choose "
                         "another type for it with --tensor-type",
                         shortText(most), format.name)
        .str();
  }

private:
  // Returns the end of what was written.
  uint8_t *encode(int64_t row, const float *values, uint8_t *out) const {
    const float *weights = nullptr;
    if (!importance.empty()) {
      int64_t parts = importance.size() / stored.cols();
      weights = importance.data() + row / (stored.rows() / parts) * stored.cols();
    }
    int64_t blocks = stored.cols() / format.blockWeights, good = 0;
    // Those up to `end` that are not written yet.
    auto flush = [&](int64_t end) {
      int64_t first = (end - good) * format.blockWeights;
      encodeBlocks(format, values + first, weights ? weights + first : nullptr, good,
                   out + (end - good) * format.blockBytes);
      good = 0;
    };
    for (int64_t block = 0; block < blocks; ++block) {
      if (fits(values + block * format.blockWeights)) {
        ++good;
        continue;
      }
      flush(block);
      std::memset(out + block * format.blockBytes, 0xff, format.blockBytes);
    }
    flush(blocks);
    return out + blocks * format.blockBytes;
  }

  // Whether the format can hold a block.
  bool fits(const float *values) const {
    // Bits without the sign are in the order of magnitudes.
    int32_t largest = 0;
    for (uint32_t i = 0; i < format.blockWeights; ++i)
      largest = std::max(largest, std::bit_cast<int32_t>(values[i]) & 0x7fffffff);
    float magnitude = std::bit_cast<float>(largest);
    if (std::isfinite(magnitude) && magnitude > most)
      tooLarge = true;
    return std::isfinite(magnitude) && magnitude <= most;
  }

  TensorInfo stored;
  const FormatSpec &format;
  std::vector<float> importance;
  std::function<void(const uint8_t *, uint64_t)> release_;
  double most;
  // Set by whichever thread meets a weight beyond the format's range.
  mutable std::atomic<bool> tooLarge{false};
};

} // namespace

float izhc::largestMagnitude(const TensorInfo &stored) {
  std::vector<uint8_t> bytes(stored.rowBytes());
  std::vector<float> values(stored.cols());
  float largest = 0;
  for (int64_t row = 0; row < stored.rows(); ++row) {
    stored.readRows(row, 1, bytes.data());
    decodeBlocks(*stored.format, bytes.data(), stored.cols() / stored.format->blockWeights,
                 values.data());
    for (float value : values)
      largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
  }
  return largest;
}

std::shared_ptr<const RowReader>
izhc::encodingReader(TensorInfo stored, const FormatSpec &format, std::vector<float> importance,
                     std::function<void(const uint8_t *, uint64_t)> release) {
  return std::make_shared<EncodingReader>(std::move(stored), format, std::move(importance),
                                          std::move(release));
}
