// Pairs of tensors that mean one: 8-bit floats with a factor a block, and 4-bit
// floats with an exponent a group.

#include "compiler/import/CombineStored.h"

#include "compiler/formats/StoredTypes.h"
#include "compiler/support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <cstring>

using namespace izhc;

namespace {

using Release = std::function<void(const uint8_t *, uint64_t)>;

// A matrix of 8-bit floats times a factor for each block, as float32.
class ScaledReader final : public RowReader {
public:
  ScaledReader(llvm::ArrayRef<uint8_t> values, int64_t cols, std::vector<float> factors,
               ScaleBlock block, Release release)
      : values(values), cols(cols), factors(std::move(factors)), block(block),
        release_(std::move(release)) {
    for (unsigned bits = 0; bits < 256; ++bits)
      table[bits] = scaledFloatValue(uint8_t(bits));
  }

  void read(int64_t first, int64_t count, uint8_t *out) const override {
    int64_t across = llvm::divideCeil(cols, block.cols);
    for (int64_t row = first; row < first + count; ++row) {
      const uint8_t *from = values.data() + row * cols;
      const float *scale = factors.data() + row / block.rows * across;
      for (int64_t col = 0; col < cols; ++col, out += 4) {
        float value = table[from[col]] * scale[col / block.cols];
        std::memcpy(out, &value, 4);
      }
    }
  }

  void release(int64_t first, int64_t count) const override {
    release_(values.data() + first * cols, count * cols);
  }

private:
  llvm::ArrayRef<uint8_t> values;
  int64_t cols;
  std::vector<float> factors;
  ScaleBlock block;
  Release release_;
  float table[256];
};

// Groups of 4-bit floats and their exponents, as blocks of the format for them.
class FourBitReader final : public RowReader {
public:
  FourBitReader(llvm::ArrayRef<uint8_t> pairs, llvm::ArrayRef<uint8_t> exponents, int64_t groups,
                uint32_t blockBytes, Release release)
      : pairs(pairs), exponents(exponents), groups(groups), blockBytes(blockBytes),
        release_(std::move(release)) {}

  void read(int64_t first, int64_t count, uint8_t *out) const override {
    for (int64_t i = first * groups; i < (first + count) * groups; ++i, out += blockBytes)
      packFourBitPairs(pairs.data() + i * (kFourBitGroup / 2), exponents[i], out);
  }

  void release(int64_t first, int64_t count) const override {
    int64_t bytes = groups * (kFourBitGroup / 2);
    release_(pairs.data() + first * bytes, count * bytes);
  }

private:
  llvm::ArrayRef<uint8_t> pairs, exponents;
  int64_t groups;
  uint32_t blockBytes;
  Release release_;
};

// Columns first, without sizes of 1 but one; false if too many are left.
bool toShape(llvm::ArrayRef<int64_t> stored, llvm::SmallVector<int64_t, 4> &shape) {
  for (int64_t size : llvm::reverse(stored))
    if (size != 1)
      shape.push_back(size);
  if (shape.empty())
    shape.push_back(1);
  return shape.size() <= 4;
}

class Combiner {
public:
  Combiner(llvm::StringRef name, llvm::ArrayRef<StoredTensor> stored, ScaleBlock block,
           Release release)
      : name(name), stored(stored), block(block), release(std::move(release)) {
    for (const StoredTensor &tensor : stored)
      byName[tensor.name] = &tensor;
  }

  llvm::Expected<std::vector<CombinedTensor>> run() {
    for (const StoredTensor &tensor : stored)
      if (llvm::Error error = add(tensor))
        return std::move(error);
    return std::move(result);
  }

private:
  const StoredTensor *find(const std::string &other) const { return byName.lookup(other); }

  llvm::Error add(const StoredTensor &tensor) {
    llvm::StringRef full = tensor.name;
    if (isScaledFloat(tensor.type))
      if (const StoredTensor *factors = factorsOf(tensor))
        return addScaled(tensor, *factors);
    // Parts of a pair, which stand for nothing alone.
    if (isPartOfScaled(full))
      return llvm::Error::success();
    llvm::StringRef whole = full;
    if (whole.consume_back("_blocks") && find((whole + "_scales").str()))
      return addFourBit(whole, tensor, *find((whole + "_scales").str()));
    whole = full;
    if (whole.consume_back("_scales") && find((whole + "_blocks").str()))
      return llvm::Error::success();
    CombinedTensor plain;
    plain.name = tensor.name;
    plain.type = tensor.type;
    if (!toShape(tensor.shape, plain.shape))
      return makeError("{0}: the tensor {1} has {2} dimensions, but at most 4 are supported", name,
                       quote(tensor.name), plain.shape.size());
    plain.format = formatOfStored(tensor.type);
    plain.data = plain.format ? tensor.bytes.data() : nullptr;
    result.push_back(std::move(plain));
    return llvm::Error::success();
  }

  const StoredTensor *factorsOf(const StoredTensor &tensor) const {
    for (const char *suffix : {"_scale_inv", "_scale"})
      if (const StoredTensor *factors = find(tensor.name + suffix))
        return factors;
    return nullptr;
  }

  // Factors of weights, and of activations, which are quantized anew here.
  bool isPartOfScaled(llvm::StringRef part) const {
    auto scaled = [&](llvm::StringRef weight) {
      const StoredTensor *tensor = find(weight.str());
      return tensor && isScaledFloat(tensor->type);
    };
    llvm::StringRef base = part;
    if (base.consume_back("_scale_inv") || base.consume_back("_scale"))
      if (scaled(base))
        return true;
    base = part;
    return (base.consume_back("activation_scale") || base.consume_back("input_scale")) &&
           scaled((base + "weight").str());
  }

  llvm::Error addScaled(const StoredTensor &tensor, const StoredTensor &factors) {
    CombinedTensor made;
    made.name = tensor.name;
    made.type = tensor.type;
    made.format = formatOfStored("F32");
    if (!toShape(tensor.shape, made.shape))
      return makeError("{0}: the tensor {1} has {2} dimensions, but at most 4 are supported", name,
                       quote(tensor.name), made.shape.size());
    const FormatSpec *type = formatOfStored(factors.type);
    if (!type)
      return makeError("{0}: the factors {1} are of type {2}, expected F32, F16 or BF16", name,
                       quote(factors.name), quote(factors.type));
    std::vector<float> values(factors.bytes.size() / type->blockBytes);
    decodeBlocks(*type, factors.bytes.data(), values.size(), values.data());
    int64_t cols = made.shape[0], rows = int64_t(tensor.bytes.size()) / cols;
    ScaleBlock used = block;
    // One factor for the whole matrix.
    if (values.size() == 1)
      used = {rows, cols};
    // One for each row.
    else if (int64_t(values.size()) == rows && factors.shape.back() == 1)
      used = {1, cols};
    // Stacked matrices have their factors stacked, which fits only if no block
    // reaches from one into the next.
    int64_t each = tensor.shape.size() < 2 ? 1 : tensor.shape[tensor.shape.size() - 2];
    bool fits = tensor.shape.size() < 3 || each % used.rows == 0;
    uint64_t needed = llvm::divideCeil(rows, used.rows) * llvm::divideCeil(cols, used.cols);
    if (!fits || values.size() != needed)
      return makeError("{0}: the tensor {1} of {2} x {3} values has {4} factors in {5}, but blocks "
                       "of {6} x {7} need {8}",
                       name, quote(tensor.name), rows, cols, values.size(), quote(factors.name),
                       used.rows, used.cols, needed);
    made.reader =
        std::make_shared<ScaledReader>(tensor.bytes, cols, std::move(values), used, release);
    result.push_back(std::move(made));
    return llvm::Error::success();
  }

  llvm::Error addFourBit(llvm::StringRef whole, const StoredTensor &pairs,
                         const StoredTensor &exponents) {
    llvm::ArrayRef<int64_t> shape = pairs.shape;
    if (pairs.type != "U8" || exponents.type != "U8" || shape.size() < 2 ||
        shape.back() != kFourBitGroup / 2 || shape.drop_back() != llvm::ArrayRef(exponents.shape))
      return makeError("{0}: the tensors {1} and {2} are no bytes of 16 pairs and one exponent for "
                       "each 32 values",
                       name, quote(pairs.name), quote(exponents.name));
    CombinedTensor made;
    made.name = whole.str();
    made.type = "4-bit floats";
    int64_t groups = shape[shape.size() - 2];
    llvm::SmallVector<int64_t, 4> sizes(shape.drop_back(2));
    sizes.push_back(groups * kFourBitGroup);
    if (!toShape(sizes, made.shape))
      return makeError("{0}: the tensor {1} has {2} dimensions, but at most 4 are supported", name,
                       quote(whole), made.shape.size());
    made.format = formatOfFourBitPairs();
    if (made.format)
      made.reader = std::make_shared<FourBitReader>(pairs.bytes, exponents.bytes, groups,
                                                    made.format->blockBytes, release);
    result.push_back(std::move(made));
    return llvm::Error::success();
  }

  llvm::StringRef name;
  llvm::ArrayRef<StoredTensor> stored;
  ScaleBlock block;
  Release release;
  llvm::StringMap<const StoredTensor *> byName;
  std::vector<CombinedTensor> result;
};

} // namespace

llvm::Expected<std::vector<CombinedTensor>>
izhc::combineStored(llvm::StringRef name, llvm::ArrayRef<StoredTensor> stored, ScaleBlock block,
                    std::function<void(const uint8_t *, uint64_t)> release) {
  return Combiner(name, stored, block, std::move(release)).run();
}
