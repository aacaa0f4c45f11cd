// Builds small artifacts. The default one is a whole model of four kernels:
// the logits of a token are the sum of all ids of its sequence up to it, plus
// a weight for each column, plus a constant. Tests change what they want to
// see refused.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/schema/artifact_generated.h"
#include "runtime/schema/header.h"

namespace izh::test {

constexpr uint32_t kVocabulary = 24;

struct TestBinding {
  schema::Space space;
  uint64_t offset;
  uint64_t size;
};

struct TestDispatch {
  uint32_t kernel;
  std::vector<TestBinding> bindings;
  uint64_t units;
  schema::Extent extent;
  uint32_t grain;
};

struct TestVariant {
  std::string name;
  std::string arch;
  uint64_t features;
  uint32_t rank;
};

struct TestArtifact {
  TestArtifact();  // the default model, for this machine

  // The bytes of the file, with right hashes and checksum.
  std::vector<uint8_t> build() const;

  std::vector<std::string> kernels;
  std::vector<TestDispatch> dispatches;
  std::vector<uint64_t> states;
  std::vector<uint64_t> sequence_states;  // behind the others, one page a sequence
  uint32_t window = 0;                    // of the last of `states`
  uint32_t sequence_window = 0;           // of sequence_states; none makes sense
  std::vector<TestVariant> variants;
  std::vector<uint32_t> entries;  // of every variant
  std::vector<uint8_t> code, weights, constants, tokenizer;
  uint64_t arena_bytes;
  uint64_t logits_offset;
  uint32_t vocabulary = kVocabulary;
  uint32_t context = 1000;
  uint32_t max_tokens = 16;
  uint32_t max_outputs = 4;
  uint32_t tile_tokens = 4;
  uint32_t page_tokens = 64;
  // Last changes before hashing: to sections (by role) and to the header.
  std::function<void(const char* role, schema::Section*)> change_section;
  std::function<void(schema::Header*)> change_header;
  uint64_t tensor_offset = 0;
  uint32_t entry_count_change = 0;
  uint64_t first_section = 16 * schema::kSectionAlignment;  // has to lie behind the root
};

// What the default model says of a token whose sequence has the prefix sum
// `sum`, in column `column`.
float expectedLogit(int32_t sum, uint32_t column);

// The machine's name as variants spell it.
const char* testArch();

// Makes hashes and checksum of a changed file right again, as far as its parts
// can still be found: what lies behind them is then reached.
void repair(uint8_t* data, size_t size);

}  // namespace izh::test
