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

// Sizes, heads and norms. `activation` is the one that the architecture computes;
// another is an error, and so are biases that contradict attention_bias,
// attention_out_bias (the same unless the architecture assumes one) or mlp_bias.
void sizeKeys(FolderKeys &keys, llvm::StringRef activation = "silu");
// Refuses a folder where products ("attn_q") lack biases that the flag at `path`
// tells of, or have some against it: without it there are none.
void biasKeys(FolderKeys &keys, llvm::StringRef path, llvm::ArrayRef<const char *> names);
// Sizes and the rope of models whose layers all see all tokens.
void decoderKeysOf(FolderKeys &keys, llvm::StringRef activation);
inline void decoderKeys(FolderKeys &keys) { decoderKeysOf(keys, "silu"); }

// attention.causal, from use_bidirectional_attention (of all tokens, not only
// of those of an image).
void causalKeys(FolderKeys &keys);

// ARCH.`ours`: the scale of attention's products, from query_pre_attn_scalar (256
// without it).
void preScaleKey(FolderKeys &keys, llvm::StringRef ours);

// rope.freq_base, rope.dimension_count and rope.scaling.* (and the divisors of
// "llama3" scaling as rope_freqs.weight). `at` is the object that holds the
// parameters where a model has several ("rope_parameters.full_attention"); in
// old folders rope_scaling has them. What can't be applied is refused.
void ropeKeys(FolderKeys &keys, llvm::StringRef at = "rope_parameters");

// rope.dimension_sections: how many frequencies turn by each kind of position. For
// text all of these are equal, but GGUF files have to say it.
void ropeSectionKeys(FolderKeys &keys);

// Refuses rope_parameters without those of layers that see all tokens and of
// layers that have a window.
void ropeKindKeys(FolderKeys &keys);

// ARCH.`ours`: the base of layers that turn by a base of their own and nothing
// else. `at` is the object of their parameters, `old` the path of the base in old
// folders, or "".
void ropeBaseKey(FolderKeys &keys, llvm::StringRef ours, llvm::StringRef at,
                 llvm::StringRef old = {});

// Values of a head, from head_dim or the embedding's share; 0 if neither is there.
int64_t folderHeadDim(const FolderKeys &keys);

} // namespace izhc
