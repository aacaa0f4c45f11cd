// Streaming of weights: tiles are packed straight from the mapped source into
// pieces, which are hashed, written and forgotten, together with the source's
// pages. So the resident memory doesn't grow with the model.

#include "compiler/emit/WeightStream.h"
#include "compiler/emit/PackingThreads.h"
#include "compiler/support/Error.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <xxhash.h>

namespace izhc::emit {
namespace {

// A single tile must fit into memory whatever the file says.
constexpr uint64_t kMostTileBytes = 1 << 30;

using HashState = std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)>;

HashState newHash() {
  HashState state(XXH3_createState(), &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  return state;
}

llvm::Error checkView(const Weight &weight, const SourceTensor &tensor) {
  const RowView &view = weight.view;
  if (!view.run)
    return llvm::Error::success();
  uint64_t end = weight.count * weight.rows - 1, last;
  if (__builtin_mul_overflow(end / view.run, view.stride, &last) ||
      __builtin_add_overflow(last, view.first + end % view.run, &last) ||
      last >= tensor.size() / rowBytes(weight))
    return makeError("internal error: the plan reads rows of tensor {0} that it doesn't have",
                     quote(weight.name));
  return llvm::Error::success();
}

llvm::Error checkWeight(const Weight &weight, const SourceTensor &tensor) {
  llvm::StringRef format = weight.format->name;
  if (weight.rows < 1 || weight.cols < 1 || weight.count < 1 ||
      weight.cols % weight.format->blockWeights != 0)
    return makeError("tensor {0} is {1} x {2}, but rows of {3} are whole blocks of {4}",
                     quote(weight.name), weight.rows, weight.cols, format,
                     weight.format->blockWeights);
  if (tensor.format != weight.format)
    return makeError("internal error: tensor {0} is planned as {1}, but stored as {2}",
                     quote(weight.name), format, tensor.format ? tensor.format->name : "none");
  if (llvm::Error error = checkView(weight, tensor))
    return error;
  uint64_t expected;
  if (__builtin_mul_overflow(rowBytes(weight), uint64_t(weight.rows), &expected) ||
      __builtin_mul_overflow(expected, uint64_t(weight.count), &expected) ||
      (!weight.view.run && tensor.size() != expected))
    return makeError("tensor {0} has {1} bytes, but {2} x {3} in {4} need {5}", quote(weight.name),
                     tensor.size(), weight.rows, weight.cols, format, expected);
  PackedLayout layout(*weight.format);
  if (uint64_t(layout.tileBytes(weight.cols)) > kMostTileBytes)
    return makeError("tensor {0} has rows of {1} values, which is more than can be packed",
                     quote(weight.name), weight.cols);
  uint64_t packed = weight.count * layout.matrixBytes(weight.rows, weight.cols);
  if (weight.size != packed)
    return makeError("internal error: the plan gives tensor {0} {1} bytes, but it packs into {2}",
                     quote(weight.name), weight.size, packed);
  return llvm::Error::success();
}

// Writes zeros up to the place of the next matrix.
llvm::Error writePadding(OutputFile &file, uint64_t offset, uint64_t bytes, XXH3_state_t *hash) {
  std::vector<uint8_t> zeros(std::min<uint64_t>(bytes, 65536));
  for (uint64_t done = 0; done < bytes;) {
    uint64_t piece = std::min<uint64_t>(bytes - done, zeros.size());
    XXH3_64bits_update(hash, zeros.data(), piece);
    if (llvm::Error error = file.write(offset + done, {zeros.data(), size_t(piece)}))
      return error;
    done += piece;
  }
  return llvm::Error::success();
}

llvm::Error notFinite(const TensorSource &tensors, llvm::StringRef name,
                      const SourceTensor &tensor) {
  std::string why = tensor.reader ? tensor.reader->problem() : "";
  if (why.empty())
    why = "holds values that are infinite or not a number: the file is damaged; get it again";
  return makeError("{0} {1}", tensors.describe(name), why);
}

// The float32 values of a vector that the model stores in `tensor`.
llvm::Error decodeVector(const Constant &constant, const TensorSource &tensors,
                         const SourceTensor &tensor, float *out) {
  const FormatSpec &format = *tensor.format;
  if (constant.count % format.blockWeights != 0 ||
      tensor.size() != constant.count / format.blockWeights * format.blockBytes)
    return makeError("tensor {0} has {1} bytes of {2}, but a vector of {3} values is needed",
                     quote(constant.name), tensor.size(), format.name, constant.count);
  std::vector<uint8_t> copy;
  const uint8_t *bytes = tensor.bytes.data();
  if (tensor.reader) {
    copy.resize(tensor.size());
    tensor.reader->read(0, tensor.readerRows, copy.data());
    bytes = copy.data();
  }
  decodeBlocks(format, bytes, constant.count / format.blockWeights, out);
  for (uint64_t i = 0; i < constant.count; ++i)
    if (!std::isfinite(out[i]))
      return notFinite(tensors, constant.name, tensor);
  return llvm::Error::success();
}

} // namespace

std::string TensorSource::describe(llvm::StringRef name) const { return "tensor " + quote(name); }

llvm::Error checkWeights(const ArtifactInput &input) {
  uint64_t end = 0;
  for (const Weight &weight : input.plan.weights) {
    auto tensor = input.tensors.find(weight.name);
    if (!tensor)
      return tensor.takeError();
    if (llvm::Error error = checkWeight(weight, *tensor))
      return error;
    if (weight.offset < end || weight.size > input.plan.weightsBytes ||
        weight.offset > input.plan.weightsBytes - weight.size)
      return makeError("internal error: the plan puts tensor {0} at {1}, which is not free",
                       quote(weight.name), weight.offset);
    end = weight.offset + weight.size;
  }
  return llvm::Error::success();
}

llvm::Error streamWeights(const ArtifactInput &input, OutputFile &file, Layout &layout) {
  llvm::ArrayRef<Weight> weights = input.plan.weights;
  std::vector<SourceTensor> sources;
  for (const Weight &weight : weights) {
    auto tensor = input.tensors.find(weight.name);
    if (!tensor)
      return tensor.takeError();
    sources.push_back(std::move(*tensor));
  }
  HashState sectionHash = newHash(), hash = newHash();
  uint64_t done = 0;
  PackingThreads packing(weights, sources, input.threads);
  while (std::unique_ptr<PackedPiece> piece = packing.next()) {
    const Weight &weight = weights[piece->weight];
    const SourceTensor &source = sources[piece->weight];
    if (!piece->finite)
      return notFinite(input.tensors, weight.name, source);
    if (piece->firstTile == 0) {
      if (llvm::Error error = writePadding(file, layout.weights.offset + done, weight.offset - done,
                                           sectionHash.get()))
        return error;
      done = weight.offset;
      hash = newHash();
    }
    const std::vector<uint8_t> &bytes = piece->bytes;
    XXH3_64bits_update(hash.get(), bytes.data(), bytes.size());
    XXH3_64bits_update(sectionHash.get(), bytes.data(), bytes.size());
    if (llvm::Error error = file.write(layout.weights.offset + done, bytes))
      return error;
    WeightTiles(weight, source).release(input.tensors, piece->firstTile, piece->count);
    done += bytes.size();
    layout.weightHashes[piece->weight] = XXH3_64bits_digest(hash.get());
    if (input.progress)
      input.progress(done, input.plan.weightsBytes);
  }
  if (llvm::Error error = writePadding(file, layout.weights.offset + done,
                                       input.plan.weightsBytes - done, sectionHash.get()))
    return error;
  layout.weights.hash = XXH3_64bits_digest(sectionHash.get());
  return llvm::Error::success();
}

llvm::Expected<std::vector<uint8_t>> buildConstants(const ArtifactInput &input, Layout &layout) {
  std::vector<uint8_t> bytes(input.plan.constantsBytes);
  for (auto [index, constant] : llvm::enumerate(input.plan.constants)) {
    uint64_t size = constant.count * sizeof(float);
    if (constant.count > bytes.size() || constant.offset > bytes.size() ||
        size > bytes.size() - constant.offset)
      return makeError("internal error: the plan puts vector {0} outside of the constants",
                       quote(constant.name));
    std::vector<float> values = constant.values;
    values.resize(constant.count);
    if (constant.values.empty()) {
      auto tensor = input.tensors.find(constant.name);
      if (!tensor)
        return tensor.takeError();
      if (llvm::Error error = decodeVector(constant, input.tensors, *tensor, values.data()))
        return error;
    }
    memcpy(bytes.data() + constant.offset, values.data(), size);
    layout.constantHashes[index] = XXH3_64bits(values.data(), size);
  }
  layout.constants.hash = XXH3_64bits(bytes.data(), bytes.size());
  return bytes;
}

} // namespace izhc::emit
