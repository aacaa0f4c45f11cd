// `izhc compile` as a function: from a model's file to an .izh file, through
// all stages in order.

#pragma once

#include "compiler/emit/Artifact.h"
#include "compiler/import/QuantizedSource.h"
#include "compiler/target/Target.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace llvm {
class raw_ostream;
}

namespace izhc {

struct CompileOptions {
  std::string model;
  std::string output;
  // Not owned; at least one.
  std::vector<Target *> targets;
  // Float32 activations for all weights.
  bool exact = false;
  // Formats that weights are encoded in anew.
  QuantizeOptions quantize;
  // Of a value in the caches: 16, 8 or 4.
  int64_t cacheBits = 16;
  // How long texts may become, see buildModel.
  uint32_t context = 0;
  // The model's tokenizer section (buildTokenizer); empty: it has none.
  std::vector<uint8_t> tokenizer;
  // One of stageNames(), or empty. `ir` receives the text.
  std::string printIrAfter;
  llvm::raw_ostream *ir = nullptr;
  std::string compiler; // program and version, for the artifact
  std::string commandLine;
  unsigned threads = 1;
  // What is being done, and the share of the whole that is done; called under
  // a lock, from any thread. May be empty.
  std::function<void(llvm::StringRef what, double share)> progress;
};

// What `--stats` prints.
struct CompileReport {
  emit::ArtifactSizes sizes;
  emit::Plan plan;
  emit::Facts facts;
  uint64_t sourceBytes = 0;
  unsigned encodedTwice = 0;                               // as QuantizedModel says
  uint32_t longest = 0;                                    // tokens that the model was trained for
  std::vector<std::pair<std::string, double>> seconds;     // of each stage, in order
  std::vector<std::pair<std::string, uint64_t>> codeBytes; // of each variant
};

// Names that --print-ir-after takes.
llvm::ArrayRef<llvm::StringRef> stageNames();

// Fails with a sentence about the input; then no output is left behind.
llvm::Expected<CompileReport> compileModel(const CompileOptions &options);

} // namespace izhc
