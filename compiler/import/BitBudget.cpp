// Every matrix begins with its smallest format; the one that gains most for a
// bit takes its next, until the bits are spent.

#include "compiler/import/BitBudget.h"
#include "compiler/import/EncodingReader.h"

#include <algorithm>
#include <cmath>

using namespace izhc;

// Rows that are measured, spread over the matrix.
static constexpr int64_t kSamples = 16;

static double bitsOf(const FormatSpec &format, const TensorInfo &stored) {
  return 8.0 * format.blockBytes / format.blockWeights * double(stored.elements());
}

static void decodeRow(const FormatSpec &format, const uint8_t *row, std::vector<float> &values) {
  decodeBlocks(format, row, values.size() / format.blockWeights, values.data());
}

// Sum of the weights' relative squared errors, scaled to the whole matrix.
static double errorOf(const BudgetMatrix &matrix, const FormatSpec &format) {
  const TensorInfo &stored = *matrix.stored;
  if (&format == stored.format)
    return 0;
  auto reader =
      encodingReader(stored, format, matrix.importance.vec(), [](const uint8_t *, uint64_t) {});
  std::vector<uint8_t> before(stored.rowBytes());
  std::vector<uint8_t> after(stored.cols() / format.blockWeights * format.blockBytes);
  std::vector<float> was(stored.cols()), now(stored.cols());
  double error = 0, size = 0;
  int64_t count = std::min(kSamples, stored.rows());
  for (int64_t i = 0; i < count; ++i) {
    int64_t row = i * (stored.rows() / count);
    stored.readRows(row, 1, before.data());
    reader->read(row, 1, after.data());
    decodeRow(*stored.format, before.data(), was);
    decodeRow(format, after.data(), now);
    const float *weights = nullptr;
    if (!matrix.importance.empty()) {
      int64_t parts = matrix.importance.size() / stored.cols();
      weights = matrix.importance.data() + row / (stored.rows() / parts) * stored.cols();
    }
    for (int64_t k = 0; k < stored.cols(); ++k) {
      double weight = weights ? weights[k] : 1, rest = double(was[k]) - now[k];
      error += weight * rest * rest;
      size += weight * double(was[k]) * was[k];
    }
  }
  // What is no number is told where it is packed.
  return size > 0 && std::isfinite(error) ? error / size * double(stored.elements()) : 0;
}

std::vector<const FormatSpec *> izhc::spendBits(llvm::ArrayRef<BudgetMatrix> matrices,
                                                double bits) {
  std::vector<std::vector<double>> errors;
  std::vector<size_t> chosen(matrices.size());
  for (const BudgetMatrix &matrix : matrices) {
    std::vector<double> own;
    for (const FormatSpec *format : matrix.formats)
      own.push_back(errorOf(matrix, *format));
    errors.push_back(std::move(own));
    bits -= bitsOf(*matrix.formats.front(), *matrix.stored);
  }
  while (true) {
    double best = 0;
    size_t which = 0, to = 0;
    for (size_t i = 0; i < matrices.size(); ++i)
      for (size_t next = chosen[i] + 1; next < matrices[i].formats.size(); ++next) {
        const TensorInfo &stored = *matrices[i].stored;
        double cost = bitsOf(*matrices[i].formats[next], stored) -
                      bitsOf(*matrices[i].formats[chosen[i]], stored);
        double gain = (errors[i][chosen[i]] - errors[i][next]) / std::max(cost, 1.0);
        if (cost <= bits && gain > best) {
          best = gain;
          which = i;
          to = next;
        }
      }
    if (best <= 0)
      break;
    bits -= bitsOf(*matrices[which].formats[to], *matrices[which].stored) -
            bitsOf(*matrices[which].formats[chosen[which]], *matrices[which].stored);
    chosen[which] = to;
  }
  std::vector<const FormatSpec *> result;
  for (size_t i = 0; i < matrices.size(); ++i)
    result.push_back(matrices[i].formats[chosen[i]]);
  return result;
}
