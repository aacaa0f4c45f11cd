// What `izhc export` needs beside the weights of an artifact to write the GGUF
// file that they came from: keys, shapes, and the small tensors that the plan
// holds in another form.

#pragma once

#include "compiler/emit/Artifact.h"
#include "compiler/import/ModelSource.h"

namespace izhc::emit {

struct ExportTable {
  static constexpr uint64_t kAlignment = 32;
  static constexpr uint32_t kInline = UINT32_MAX;

  struct Tensor {
    uint32_t weight; // number in the artifact's list; kInline: `data` has it
    uint64_t size;   // in the GGUF file
    std::vector<uint8_t> data;
  };
  // Everything before the tensors' bytes, which follow in order, each at a
  // multiple of kAlignment.
  std::vector<uint8_t> header;
  std::vector<Tensor> tensors;
};

// The section of an artifact; empty if the source has no GGUF keys, or the
// plan lacks a tensor that is too large to keep twice.
std::vector<uint8_t> buildExportTable(const ModelSource &source, const Plan &plan);

// Fails with a sentence (without the file's name) if the section is malformed.
llvm::Expected<ExportTable> readExportTable(llvm::ArrayRef<uint8_t> section);

} // namespace izhc::emit
