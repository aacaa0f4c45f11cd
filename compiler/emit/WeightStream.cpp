// Streaming of weights: tiles are packed straight from the mapped source into
// a window, which is hashed, written and forgotten, together with the source's
// pages. So the resident memory doesn't grow with the model.

#include "compiler/emit/WeightStream.h"
#include "compiler/formats/PackedLayout.h"
#include "compiler/support/Error.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <xxhash.h>

namespace izhc::emit {
namespace {

constexpr uint64_t kWindowBytes = 4 << 20;
// A single tile must fit into memory whatever the file says.
constexpr uint64_t kMostTileBytes = 1 << 30;

using HashState = std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)>;

HashState newHash() {
  HashState state(XXH3_createState(), &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  return state;
}

uint64_t rowBytes(const Weight &weight) {
  return weight.cols / weight.format->blockWeights * weight.format->blockBytes;
}

// One matrix on its way into the file.
struct Job {
  const Weight &weight;
  PackedLayout layout;
  const SourceTensor &source;
  uint64_t tileBytes;
  uint64_t tilesEach; // of one matrix
  uint64_t tiles;
  // Cleared by whichever thread meets a scale that is not a number.
  mutable std::atomic<bool> finite{true};

  Job(const Weight &weight, const SourceTensor &source)
      : weight(weight), layout(*weight.format), source(source),
        tileBytes(layout.tileBytes(weight.cols)),
        tilesEach(llvm::divideCeil(weight.rows, PackedLayout::kTileRows)),
        tiles(tilesEach * weight.count) {}

  // All matrices counted through.
  int64_t firstRow(uint64_t tile) const {
    uint64_t inMatrix = tile % tilesEach * PackedLayout::kTileRows;
    return tile / tilesEach * weight.rows + inMatrix;
  }
  int64_t rowsOf(uint64_t firstTile, uint64_t count) const {
    return firstRow(firstTile + count) - firstRow(firstTile);
  }

  // Rows of the tensor from the first to the last that the tiles take.
  std::pair<int64_t, int64_t> span(uint64_t firstTile, uint64_t count) const {
    int64_t first = firstRow(firstTile), last = first + rowsOf(firstTile, count) - 1;
    return {sourceRow(weight.view, first), sourceRow(weight.view, last) + 1};
  }

  // The rows of a tile, one behind the other: where they lie, or in `copy`.
  const uint8_t *read(uint64_t tile, std::vector<uint8_t> &copy) const {
    uint64_t bytes = rowBytes(weight);
    int64_t rows = rowsOf(tile, 1);
    auto [first, end] = span(tile, 1);
    bool together = end - first == rows;
    if (together && !source.reader)
      return source.bytes.data() + first * bytes;
    copy.resize(PackedLayout::kTileRows * bytes);
    if (together) {
      source.reader->read(first, rows, copy.data());
      return copy.data();
    }
    for (int64_t i = 0; i < rows; ++i) {
      uint64_t row = sourceRow(weight.view, firstRow(tile) + i);
      if (source.reader)
        source.reader->read(row, 1, copy.data() + i * bytes);
      else
        memcpy(copy.data() + i * bytes, source.bytes.data() + row * bytes, bytes);
    }
    return copy.data();
  }

  void pack(uint64_t firstTile, uint64_t count, uint8_t *out) const {
    uint64_t bytes = rowBytes(weight);
    std::vector<uint8_t> copy;
    for (uint64_t tile = firstTile; tile < firstTile + count; ++tile) {
      int64_t rows = rowsOf(tile, 1);
      const uint8_t *from = read(tile, copy);
      packTile(layout, from, rows, bytes, weight.cols, out);
      if (!tileIsFinite(layout, out, weight.cols))
        finite = false;
      out += tileBytes;
    }
  }

  void release(TensorSource &tensors, uint64_t firstTile, uint64_t count) const {
    auto [first, end] = span(firstTile, count);
    if (source.reader)
      source.reader->release(first, end - first);
    else
      tensors.release(
          source.bytes.slice(first * rowBytes(weight), (end - first) * rowBytes(weight)));
  }

  // The same, shared between threads.
  void packShared(unsigned threads, uint64_t firstTile, uint64_t count, uint8_t *out) const {
    uint64_t share = llvm::divideCeil(count, std::max(threads, 1u));
    std::vector<std::thread> others;
    for (uint64_t begin = share; begin < count; begin += share)
      others.emplace_back([=, this] {
        pack(firstTile + begin, std::min(share, count - begin), out + begin * tileBytes);
      });
    pack(firstTile, std::min(share, count), out);
    for (std::thread &other : others)
      other.join();
  }
};

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
  HashState sectionHash = newHash();
  uint64_t done = 0;
  std::vector<uint8_t> window;
  for (auto [index, weight] : llvm::enumerate(input.plan.weights)) {
    auto tensor = input.tensors.find(weight.name);
    if (!tensor)
      return tensor.takeError();
    Job job(weight, *tensor);
    if (llvm::Error error = writePadding(file, layout.weights.offset + done, weight.offset - done,
                                         sectionHash.get()))
      return error;
    done = weight.offset;
    HashState hash = newHash();
    uint64_t tilesAtOnce = std::max<uint64_t>(kWindowBytes / job.tileBytes, 1);
    for (uint64_t tile = 0; tile < job.tiles; tile += tilesAtOnce) {
      uint64_t count = std::min(tilesAtOnce, job.tiles - tile);
      window.resize(count * job.tileBytes);
      job.packShared(input.threads, tile, count, window.data());
      if (!job.finite)
        return notFinite(input.tensors, weight.name, *tensor);
      XXH3_64bits_update(hash.get(), window.data(), window.size());
      XXH3_64bits_update(sectionHash.get(), window.data(), window.size());
      if (llvm::Error error = file.write(layout.weights.offset + done, window))
        return error;
      job.release(input.tensors, tile, count);
      done += window.size();
      if (input.progress)
        input.progress(done, input.plan.weightsBytes);
    }
    layout.weightHashes[index] = XXH3_64bits_digest(hash.get());
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
