// The numbers that describe a decoder, read from metadata and checked.

#pragma once

#include "compiler/models/blocks/ModelBuilder.h"

namespace izhc {

struct Hyper {
  std::string prefix; // "ARCH.", what the keys begin with
  int64_t context = 0;
  int64_t embedding = 0;
  int64_t layers = 0;
  int64_t feedForward = 0;
  int64_t heads = 0;
  int64_t kvHeads = 0; // divides heads
  int64_t headDim = 0;
  int64_t window = 0; // of layers that don't see all tokens; 0: none
  float eps = 0;
  float logitCap = 0;     // of the logits; 0: none
  float attentionCap = 0; // of attention's products
  int64_t vocabulary = 0; // rows of the embedding matrix
};

// Whether layers may differ in their key heads and feed-forward parts.
enum class LayerSizes {
  Equal,  // files in which they do are refused
  Differ, // Hyper has the greatest numbers, the architecture knows each layer's
};

// Reads {architecture}.embedding_length and the like. After an error (see
// ModelBuilder) every number is 1.
Hyper readHyper(ModelBuilder &builder, llvm::StringRef architecture,
                LayerSizes sizes = LayerSizes::Equal);

} // namespace izhc
