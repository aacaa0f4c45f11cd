// How folders of ordinary decoders correspond to what Decoder.h and Rope.h
// read. Architectures add their own rules and keys.

#pragma once

#include "compiler/import/FolderMap.h"

namespace izhc {

// Embedding, norms, attention, gated feed-forward part and output.
llvm::ArrayRef<TensorRule> decoderTensors();

// Queries and keys of architectures that turn neighbouring values as pairs,
// whose folders store the two values of a pair half a head apart.
llvm::ArrayRef<TensorRule> pairedHeads();

// Sizes, heads, norms and rope. `activation` is the one that the architecture
// computes; another is an error.
void decoderKeysOf(FolderKeys &keys, llvm::StringRef activation);
inline void decoderKeys(FolderKeys &keys) { decoderKeysOf(keys, "silu"); }

// attention.causal, from use_bidirectional_attention (of all tokens, not only
// of those of an image).
void causalKeys(FolderKeys &keys);

// rope.freq_base, rope.dimension_count and rope.scaling.* (and the divisors of
// "llama3" scaling as rope_freqs.weight). `at` is the object that holds the
// parameters where a model has several ("rope_parameters.full_attention").
void ropeKeys(FolderKeys &keys, llvm::StringRef at = "rope_parameters");

// Values of a head, from head_dim or the embedding's share; 0 if neither is there.
int64_t folderHeadDim(const FolderKeys &keys);

} // namespace izhc
