// What `izhc export` needs beside the weights of an artifact to write the GGUF
// file that they came from: keys, shapes, and the small tensors that the plan
// holds in another form.

#pragma once

#include "compiler/emit/Artifact.h"
#include "compiler/import/ModelSource.h"

namespace izhc::emit {

struct ExportTable {
  static constexpr uint64_t kAlignment = 32;

  struct Tensor {
    // Numbers in the artifact's list: one, or several that share out the rows.
    // None: `data` has the tensor.
    std::vector<uint32_t> weights;
    uint64_t size; // in the GGUF file
    std::vector<uint8_t> data;
  };
  // Everything before the tensors' bytes, which follow in order, each at a
  // multiple of kAlignment.
  std::vector<uint8_t> header;
  std::vector<Tensor> tensors;
};

// The section of an artifact; empty if the source has no GGUF keys, or the
// plan lacks a tensor that is too large to keep twice. `more`: keys beside
// those of the source.
std::vector<uint8_t> buildExportTable(const ModelSource &source, const Plan &plan,
                                      llvm::ArrayRef<ExportKey> more = {});

// Fails with a sentence (without the file's name) if the section is malformed.
llvm::Expected<ExportTable> readExportTable(llvm::ArrayRef<uint8_t> section);

} // namespace izhc::emit
