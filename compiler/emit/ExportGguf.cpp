// Tiles back to rows. Everything that the artifact says is checked against its
// length and against what its formats need before it is used.

#include "compiler/emit/ExportGguf.h"
#include "compiler/emit/ExportTable.h"
#include "compiler/emit/OutputFile.h"
#include "compiler/formats/PackedLayout.h"
#include "compiler/support/Error.h"
#include "runtime/schema/artifact_generated.h"
#include "llvm/Support/MathExtras.h"
#include <xxhash.h>

namespace izhc::emit {
namespace {

namespace schema = izh::schema;

// Rows that are unpacked and written at once.
constexpr uint64_t kWindowBytes = 4 << 20;

llvm::StringRef text(const flatbuffers::String *string) {
  return string ? llvm::StringRef(string->c_str(), string->size()) : llvm::StringRef();
}

class Export {
public:
  Export(const schema::Artifact &artifact, llvm::ArrayRef<uint8_t> file, OutputFile out)
      : artifact(artifact), file(file), out(std::move(out)) {}

  llvm::Error run(const ExportTable &table) {
    if (llvm::Error error = put(table.header))
      return error;
    for (const ExportTable::Tensor &tensor : table.tensors) {
      uint64_t from = written;
      if (llvm::Error error = putTensor(tensor))
        return error;
      if (written - from != tensor.size)
        return makeError("the table for export gives a tensor {0} bytes, but it has {1}",
                         tensor.size, written - from);
      std::vector<uint8_t> padding(llvm::alignTo(written, ExportTable::kAlignment) - written);
      if (llvm::Error error = put(padding))
        return error;
    }
    return out.keep();
  }

private:
  llvm::Error put(llvm::ArrayRef<uint8_t> bytes) {
    uint64_t at = written;
    written += bytes.size();
    return out.write(at, bytes);
  }

  // A range of a section, if it lies inside of both section and file.
  llvm::Expected<llvm::ArrayRef<uint8_t>> bytesOf(const schema::Section *section,
                                                  const schema::Weight &weight) {
    uint64_t end;
    if (!section || __builtin_add_overflow(weight.offset(), weight.size(), &end) ||
        end > section->size() || section->offset() > file.size() ||
        section->size() > file.size() - section->offset())
      return makeError("tensor {0} lies outside of the file", quote(text(weight.name())));
    llvm::ArrayRef<uint8_t> bytes = file.slice(section->offset() + weight.offset(), weight.size());
    if (XXH3_64bits(bytes.data(), bytes.size()) != weight.hash())
      return makeError("tensor {0} is damaged: its checksum does not match",
                       quote(text(weight.name())));
    return bytes;
  }

  llvm::Error putTensor(const ExportTable::Tensor &tensor) {
    if (tensor.weights.empty())
      return put(tensor.data);
    uint64_t rest = tensor.size;
    for (uint32_t number : tensor.weights) {
      if (!artifact.weights() || number >= artifact.weights()->size())
        return makeError("the table for export names tensor {0}, which is not there", number);
      const schema::Weight &weight = *artifact.weights()->Get(number);
      if (weight.constant()) {
        llvm::Expected<llvm::ArrayRef<uint8_t>> bytes =
            bytesOf(artifact.constants_section(), weight);
        return bytes ? put(*bytes) : bytes.takeError();
      }
      if (llvm::Error error = putMatrix(weight, tensor.size, rest))
        return error;
    }
    written += tensor.size - rest;
    return llvm::Error::success();
  }

  // Rows of a tensor of `size` bytes that begins at `written`; takes what is
  // written off `rest`.
  llvm::Error putMatrix(const schema::Weight &weight, uint64_t size, uint64_t &rest) {
    llvm::StringRef name = text(weight.name());
    const FormatSpec *format = findFormat(text(weight.format()));
    if (!format)
      return makeError("tensor {0} has the type {1}, which this izhc does not know", quote(name),
                       quote(text(weight.format())));
    llvm::Expected<llvm::ArrayRef<uint8_t>> bytes = bytesOf(artifact.weights_section(), weight);
    if (!bytes)
      return bytes.takeError();
    constexpr uint64_t kMost = 1ull << 40;
    uint64_t rows = weight.rows(), cols = weight.cols(), count = weight.count();
    PackedLayout layout(*format);
    if (rows == 0 || cols == 0 || rows > kMost || cols > kMost ||
        cols % format->blockWeights != 0 || rows > kMost / cols || count == 0 ||
        count > kMost / (rows * cols) ||
        count * uint64_t(layout.matrixBytes(rows, cols)) != bytes->size())
      return makeError("tensor {0} is {1} x {2} of {3}, {4} times, which does not make {5} bytes",
                       quote(name), rows, cols, format->name, count, bytes->size());
    Matrix matrix = {layout,
                     cols,
                     cols / format->blockWeights * format->blockBytes,
                     {weight.first_row(), weight.run(), weight.stride()},
                     size};
    if (rows * count > rest / matrix.rowBytes)
      return makeError("tensor {0} has more rows than the table for export says", quote(name));
    rest -= rows * count * matrix.rowBytes;
    uint64_t each = bytes->size() / count;
    for (uint64_t i = 0; i < count; ++i)
      if (llvm::Error error = putOne(matrix, bytes->slice(i * each, each), i * rows, rows))
        return error;
    return llvm::Error::success();
  }

  struct Matrix {
    PackedLayout layout;
    uint64_t cols, rowBytes;
    RowView view;
    uint64_t size; // of the whole tensor
  };

  // One matrix of a stack, which has tiles of its own.
  llvm::Error putOne(const Matrix &matrix, llvm::ArrayRef<uint8_t> bytes, uint64_t firstRow,
                     uint64_t rows) {
    uint64_t rowBytes = matrix.rowBytes;
    uint64_t tileBytes = matrix.layout.tileBytes(matrix.cols), tiles = bytes.size() / tileBytes;
    constexpr uint64_t kTileRows = PackedLayout::kTileRows;
    uint64_t atOnce = std::max<uint64_t>(kWindowBytes / (kTileRows * rowBytes), 1);
    std::vector<uint8_t> window;
    for (uint64_t tile = 0; tile < tiles; tile += atOnce) {
      uint64_t count = std::min(atOnce, tiles - tile);
      uint64_t first = tile * kTileRows, some = std::min(count * kTileRows, rows - first);
      window.resize(some * rowBytes);
      for (uint64_t i = 0; i < count; ++i)
        unpackTile(matrix.layout, bytes.data() + (tile + i) * tileBytes,
                   std::min(kTileRows, some - i * kTileRows), rowBytes, matrix.cols,
                   window.data() + i * kTileRows * rowBytes);
      if (llvm::Error error = putRows(matrix, firstRow + first, window))
        return error;
    }
    return llvm::Error::success();
  }

  // Rows of the matrix from the one with this number on, to where they lie in
  // the tensor.
  llvm::Error putRows(const Matrix &matrix, uint64_t row, llvm::ArrayRef<uint8_t> bytes) {
    const RowView &view = matrix.view;
    while (!bytes.empty()) {
      uint64_t rows = bytes.size() / matrix.rowBytes;
      if (view.run)
        rows = std::min(rows, view.run - row % view.run);
      uint64_t piece = rows * matrix.rowBytes, at = sourceRow(view, row);
      if (at > matrix.size / matrix.rowBytes || piece > matrix.size - at * matrix.rowBytes)
        return makeError("the table for export leaves no room for rows {0} to {1} of a tensor", at,
                         at + rows - 1);
      if (llvm::Error error = out.write(written + at * matrix.rowBytes, bytes.take_front(piece)))
        return error;
      bytes = bytes.drop_front(piece);
      row += rows;
    }
    return llvm::Error::success();
  }

  const schema::Artifact &artifact;
  llvm::ArrayRef<uint8_t> file;
  OutputFile out;
  uint64_t written = 0;
};

} // namespace

llvm::Error exportGguf(const schema::Artifact &artifact, llvm::ArrayRef<uint8_t> file,
                       llvm::StringRef path) {
  const schema::Section *section = artifact.gguf_section();
  if (!section || section->size() == 0)
    return makeError(
        "the artifact does not say what a GGUF file says of its model: it was made by "
        "an older izhc, or from a folder whose tokenizer GGUF files can't have; compile "
        "a GGUF file of the model");
  if (section->offset() > file.size() || section->size() > file.size() - section->offset())
    return makeError("the table for export lies outside of the file");
  llvm::ArrayRef<uint8_t> bytes = file.slice(section->offset(), section->size());
  if (XXH3_64bits(bytes.data(), bytes.size()) != section->hash())
    return makeError("the table for export is damaged: its checksum does not match");
  llvm::Expected<ExportTable> table = readExportTable(bytes);
  if (!table)
    return table.takeError();
  llvm::Expected<OutputFile> out = OutputFile::create(path);
  if (!out)
    return out.takeError();
  return Export(artifact, file, std::move(*out)).run(*table);
}

} // namespace izhc::emit
