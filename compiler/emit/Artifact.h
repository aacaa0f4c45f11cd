// What an .izh file is made of, and the function that writes one. Nothing here
// knows the IR (ReadPlan.h turns a module into a Plan) or where tensors come
// from (a TensorSource hands out their bytes).

#pragma once

#include "compiler/formats/Format.h"
#include "compiler/import/RowReader.h"
#include "compiler/target/Target.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace izhc::emit {

// Numbers of runtime/schema/artifact.fbs.
enum class Space : uint8_t { Arena, Weights, Constants, State, Input };
enum class Extent : uint8_t { Fixed, Tokens, Outputs, Tiles, Merges, Sequences };

struct Binding {
  Space space;
  uint64_t offset;
  uint64_t size;
};

struct Dispatch {
  uint32_t kernel;
  std::vector<Binding> bindings;
  uint64_t units;
  Extent extent;
  uint32_t grain;
};

// Which rows of a tensor make a matrix: row r is row
// first + (r / run) * stride + r % run. A run of 0: all of them, in order.
struct RowView {
  uint64_t first = 0, run = 0, stride = 0;
};

// The row of the tensor that is row `row` of the matrix.
inline uint64_t sourceRow(const RowView &view, uint64_t row) {
  return view.run ? view.first + row / view.run * view.stride + row % view.run : row;
}

// An encoded matrix of the weights section, or `count` of them one after the
// other (their rows counted through in the view); `size` is what its packed
// layout needs.
struct Weight {
  std::string name;
  const FormatSpec *format;
  int64_t rows;
  int64_t cols;
  uint64_t offset;
  uint64_t size;
  RowView view = {};
  int64_t count = 1;
};

// A float32 vector of the constants section. `values` is empty if the vector
// is a tensor of the model, of any float type, that is called `name`.
struct Constant {
  std::string name;
  uint64_t offset;
  uint64_t count;
  std::vector<float> values;
};

struct Plan {
  std::vector<std::string> kernels;
  std::vector<Dispatch> dispatches;
  std::vector<uint64_t> statePageBytes;
  // Numbers of the states that have one page a sequence.
  std::vector<size_t> sequenceStates;
  // How many tokens back are read of states with a window, by their numbers.
  std::map<size_t, uint32_t> stateWindows;
  std::vector<Weight> weights; // offsets ascend
  std::vector<Constant> constants;
  uint64_t weightsBytes = 0;
  uint64_t constantsBytes = 0;
  uint64_t arenaBytes = 0;
  uint64_t logitsOffset = 0;
  uint32_t maxTokens = 0;
  uint32_t maxOutputs = 0;
  uint32_t tileTokens = 0;
  uint32_t pageTokens = 0;
  uint32_t spanTokens = 0;
  uint32_t maxPartials = 0;
  // What all dispatches together do for a token, or for a row of the outputs.
  uint64_t tokenBytes = 0;
  uint64_t tokenOperations = 0;
  uint64_t outputOperations = 0;
};

struct Facts {
  std::string architecture, name, chatTemplate;
  uint32_t vocabulary = 0, context = 0, embedding = 0, layers = 0;
  uint64_t parameters = 0;
};

// Digits of the hash of a source.
constexpr size_t kSourceHashDigits = 32;

struct Provenance {
  std::string compiler, commandLine, source, recipe;
  // Asked for when all else is written, so that a file can be hashed while it
  // is read.
  std::function<std::string()> sourceHash;
};

struct Variant {
  std::string name, arch;
  uint64_t features = 0;
  uint32_t rank = 0;
  CodeBlob code;
};

// The bytes of one tensor, in GGUF's row order, or who reads its rows.
struct SourceTensor {
  const FormatSpec *format = nullptr;
  llvm::ArrayRef<uint8_t> bytes;
  std::shared_ptr<const RowReader> reader = nullptr;
  // What the reader has.
  int64_t readerRows = 0;
  uint64_t readerBytes = 0;

  uint64_t size() const { return reader ? readerBytes : bytes.size(); }
};

class TensorSource {
public:
  virtual ~TensorSource() = default;
  virtual llvm::Expected<SourceTensor> find(llvm::StringRef name) = 0;
  // What messages call it: "FILE: tensor 'NAME'".
  virtual std::string describe(llvm::StringRef name) const;
  // The bytes will not be read again: mapped pages may be dropped.
  virtual void release(llvm::ArrayRef<uint8_t> bytes) {}
};

struct ArtifactInput {
  const Plan &plan;
  const Facts &facts;
  const Provenance &provenance;
  llvm::ArrayRef<Variant> variants;
  llvm::ArrayRef<uint8_t> tokenizer; // empty: the model has none
  TensorSource &tensors;
  unsigned threads = 1;
  // Called now and then from the calling thread; may be null.
  llvm::function_ref<void(uint64_t done, uint64_t total)> progress;
  llvm::ArrayRef<uint8_t> gguf = {}; // made by buildExportTable; may be empty
};

// Sizes of what was written, for `--stats`.
struct ArtifactSizes {
  uint64_t file = 0, root = 0, code = 0, constants = 0, tokenizer = 0, gguf = 0, weights = 0;
};

// Writes `path`, under another name until it is complete; on failure or a
// signal nothing is left behind. Memory stays near a few megabytes whatever
// the size of the model.
llvm::Expected<ArtifactSizes> writeArtifact(llvm::StringRef path, const ArtifactInput &input);

} // namespace izhc::emit
