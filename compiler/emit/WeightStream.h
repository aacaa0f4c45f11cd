// Packs a model's matrices into the weights section, a piece at a time.
// Internal to compiler/emit.

#pragma once

#include "compiler/emit/Artifact.h"
#include "compiler/emit/Layout.h"
#include "compiler/emit/OutputFile.h"

namespace izhc::emit {

// Checks that the plan's places fit the formats and that every tensor exists
// with the bytes that its shape needs.
llvm::Error checkWeights(const ArtifactInput &input);

// Writes all weights at layout.weights.offset and fills in their hashes and
// the section's. Holds a few pieces of packed bytes in memory and releases the
// source behind them.
llvm::Error streamWeights(const ArtifactInput &input, OutputFile &file, Layout &layout);

// The bytes of the constants section; fills in the hashes.
llvm::Expected<std::vector<uint8_t>> buildConstants(const ArtifactInput &input, Layout &layout);

} // namespace izhc::emit
