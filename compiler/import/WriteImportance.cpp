// The importance of a model's matrices as the GGUF file that Importance.cpp
// describes.

#include "compiler/import/GgufFile.h"
#include "compiler/import/Importance.h"
#include "compiler/support/Error.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace izhc;

namespace {
class Writer {
public:
  template <typename T> void put(T value) {
    content.append(reinterpret_cast<const char *>(&value), sizeof(value));
  }
  void string(llvm::StringRef text) {
    put<uint64_t>(text.size());
    content += text;
  }
  void key(llvm::StringRef name, GgufType type) {
    string(name);
    put(static_cast<uint32_t>(type));
  }
  void tensor(llvm::StringRef name, uint64_t columns) {
    string(name);
    put<uint32_t>(2);
    put<uint64_t>(columns);
    put<uint64_t>(1);
    put(findFormat("f32")->ggufType);
    put(offset);
    offset += padded(columns * sizeof(float));
  }
  void floats(llvm::ArrayRef<float> values) {
    size_t end = content.size() + padded(values.size() * sizeof(float));
    content.append(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
    content.resize(end);
  }
  void pad() { content.resize(padded(content.size())); }

  std::string content;

private:
  static uint64_t padded(uint64_t size) { return (size + 31) / 32 * 32; }
  uint64_t offset = 0;
};
} // namespace

llvm::Error izhc::writeImportance(llvm::StringRef path, llvm::ArrayRef<ImportanceSums> matrices,
                                  llvm::StringRef source, uint32_t chunks, uint32_t chunkTokens) {
  Writer out;
  out.content = "GGUF";
  out.put<uint32_t>(3);
  out.put<uint64_t>(2 * matrices.size());
  out.put<uint64_t>(4);
  out.key("general.type", GgufType::String);
  out.string("imatrix");
  out.key("imatrix.datasets", GgufType::Array);
  out.put(static_cast<uint32_t>(GgufType::String));
  out.put<uint64_t>(1);
  out.string(source);
  out.key("imatrix.chunk_count", GgufType::U32);
  out.put(chunks);
  out.key("imatrix.chunk_size", GgufType::U32);
  out.put(chunkTokens);
  for (const ImportanceSums &matrix : matrices) {
    out.tensor(matrix.name + ".in_sum2", matrix.sums.size());
    out.tensor(matrix.name + ".counts", 1);
  }
  out.pad();
  for (const ImportanceSums &matrix : matrices) {
    out.floats(matrix.sums);
    out.floats(static_cast<float>(matrix.count));
  }
  return llvm::writeToOutput(path, [&](llvm::raw_ostream &stream) {
    stream << out.content;
    return llvm::Error::success();
  });
}
