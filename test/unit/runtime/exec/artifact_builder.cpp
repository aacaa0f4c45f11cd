// The builder of test artifacts.

#include "test/unit/runtime/exec/artifact_builder.h"

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "test/unit/runtime/exec/test_kernels.h"

namespace izh::test {
namespace {

using schema::Extent;
using schema::Space;

// Buffers of the arena.
constexpr uint64_t kSums = 0, kGathered = 1024, kLogits = 2048;

float weightOf(uint32_t column) { return 0.25f * static_cast<float>(column); }
constexpr float kConstant = 100.0f;

uint64_t alignUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

template <size_t N>
void appendKernel(TestArtifact* artifact, const char* name, const uint8_t (&code)[N]) {
  artifact->kernels.push_back(name);
  artifact->code.resize(alignUp(artifact->code.size(), 16));
  artifact->entries.push_back(static_cast<uint32_t>(artifact->code.size()));
  artifact->code.insert(artifact->code.end(), code, code + N);
}

void appendFloat(std::vector<uint8_t>* bytes, float value) {
  const uint8_t* raw = reinterpret_cast<const uint8_t*>(&value);
  bytes->insert(bytes->end(), raw, raw + sizeof(value));
}

uint64_t hashOf(const uint8_t* data, size_t size) { return XXH3_64bits(data, size); }

// Lays sections out behind the root, which grows while they are described;
// offsets are therefore counted from a fixed place.
struct Layout {
  const TestArtifact& artifact;
  std::vector<std::pair<uint64_t, std::vector<uint8_t>>> contents;
  uint64_t end = artifact.first_section;

  schema::Section place(const char* role, const std::vector<uint8_t>& bytes) {
    schema::Section section(bytes.empty() ? 0 : end, bytes.size(),
                            hashOf(bytes.data(), bytes.size()));
    contents.emplace_back(end, bytes);
    end = alignUp(end + bytes.size(), schema::kSectionAlignment);
    if (artifact.change_section) artifact.change_section(role, &section);
    return section;
  }
};

flatbuffers::Offset<schema::Plan> buildPlan(flatbuffers::FlatBufferBuilder* builder,
                                            const TestArtifact& artifact) {
  std::vector<flatbuffers::Offset<schema::Dispatch>> dispatches;
  for (const TestDispatch& dispatch : artifact.dispatches) {
    std::vector<schema::Binding> bindings;
    for (const TestBinding& binding : dispatch.bindings) {
      bindings.emplace_back(binding.offset, binding.size, binding.space);
    }
    dispatches.push_back(schema::CreateDispatch(*builder, dispatch.kernel,
                                                builder->CreateVectorOfStructs(bindings),
                                                dispatch.units, dispatch.extent, dispatch.grain));
  }
  std::vector<flatbuffers::Offset<schema::State>> states;
  for (size_t i = 0; i < artifact.states.size(); ++i) {
    const bool last = i + 1 == artifact.states.size();
    states.push_back(
        schema::CreateState(*builder, artifact.states[i], false, last ? artifact.window : 0));
  }
  for (uint64_t page_bytes : artifact.sequence_states) {
    states.push_back(schema::CreateState(*builder, page_bytes, true, artifact.sequence_window));
  }
  return schema::CreatePlan(*builder, builder->CreateVectorOfStrings(artifact.kernels),
                            builder->CreateVector(dispatches), builder->CreateVector(states),
                            artifact.arena_bytes, artifact.max_tokens, artifact.max_outputs,
                            artifact.tile_tokens, artifact.page_tokens, artifact.logits_offset);
}

std::vector<flatbuffers::Offset<schema::Variant>> buildVariants(
    flatbuffers::FlatBufferBuilder* builder, const TestArtifact& artifact, Layout* layout) {
  std::vector<flatbuffers::Offset<schema::Variant>> variants;
  for (const TestVariant& variant : artifact.variants) {
    const schema::Section code = layout->place("code", artifact.code);
    std::vector<uint32_t> entries = artifact.entries;
    entries.resize(entries.size() + artifact.entry_count_change);
    variants.push_back(schema::CreateVariantDirect(*builder, variant.name.c_str(),
                                                   variant.arch.c_str(), variant.features,
                                                   variant.rank, &code, &entries));
  }
  return variants;
}

}  // namespace

const char* testArch() {
#if defined(__x86_64__)
  return "x86_64";
#else
  return "aarch64";
#endif
}

float expectedLogit(int32_t sum, uint32_t column) {
  return static_cast<float>(sum) + weightOf(column) + kConstant;
}

TestArtifact::TestArtifact() {
  appendKernel(this, "store", kStoreCode);
  appendKernel(this, "sum", kSumCode);
  appendKernel(this, "gather", kGatherCode);
  appendKernel(this, "fill", kFillCode);
  for (uint32_t column = 0; column < kVocabulary; ++column) {
    appendFloat(&weights, weightOf(column));
  }
  appendFloat(&constants, kConstant);
  tokenizer = {1, 2, 3, 4, 5, 6, 7, 8};
  states = {64 * sizeof(int32_t)};
  variants = {{"plain", testArch(), 0, 1}};
  arena_bytes = 4096;
  logits_offset = kLogits;
  // Inputs by number: 0 ids, 2 slots, 3 output rows, 4 tiles, 5 pages.
  dispatches = {
      {0, {{Space::Input, 0, 0}, {Space::Input, 2, 0}, {Space::State, 0, 0}}, 1, Extent::Tokens, 3},
      {1,
       {{Space::State, 0, 0},
        {Space::Input, 4, 0},
        {Space::Input, 5, 0},
        {Space::Arena, kSums, 64}},
       1,
       Extent::Tiles,
       1},
      {2,
       {{Space::Arena, kSums, 64}, {Space::Input, 3, 0}, {Space::Arena, kGathered, 64}},
       1,
       Extent::Outputs,
       1},
      {3,
       {{Space::Arena, kGathered, 64},
        {Space::Weights, 0, kVocabulary * 4},
        {Space::Constants, 0, 4},
        {Space::Arena, kLogits, 4 * kVocabulary * 4}},
       kVocabulary,
       Extent::Fixed,
       5},
  };
}

std::vector<uint8_t> TestArtifact::build() const {
  flatbuffers::FlatBufferBuilder builder;
  Layout layout{*this, {}};
  const auto variant_list = buildVariants(&builder, *this, &layout);
  const schema::Section weights_section = layout.place("weights", weights);
  const schema::Section constants_section = layout.place("constants", constants);
  const schema::Section tokenizer_section = layout.place("tokenizer", tokenizer);
  const auto plan = buildPlan(&builder, *this);
  const auto model = schema::CreateModelDirect(builder, "test", "a model of sums", vocabulary,
                                               context, 8, 1, 25, "{{ messages }}");
  const std::vector<flatbuffers::Offset<schema::Weight>> tensors = {
      schema::CreateWeightDirect(builder, "columns", "f32", 1, kVocabulary, tensor_offset,
                                 weights.size(), hashOf(weights.data(), weights.size()), false)};
  const auto provenance = schema::CreateProvenanceDirect(
      builder, "izhc test", "izhc compile m.gguf", "m.gguf", "00ff", "as is");
  schema::FinishArtifactBuffer(
      builder, schema::CreateArtifact(builder, model, plan, builder.CreateVector(variant_list),
                                      builder.CreateVector(tensors), &weights_section,
                                      &constants_section, &tokenizer_section, provenance));
  schema::Header header = {};
  memcpy(header.magic, schema::kMagic, sizeof(header.magic));
  header.format_major = schema::kFormatMajor;
  header.format_minor = schema::kFormatMinor;
  header.least_runtime = schema::kRuntimeVersion;
  header.root_offset = sizeof(header);
  header.root_size = builder.GetSize();
  uint64_t length = header.root_offset + header.root_size;
  for (const auto& [offset, bytes] : layout.contents) {
    if (!bytes.empty()) length = std::max(length, offset + bytes.size());
  }
  header.file_length = length;
  header.root_hash = hashOf(builder.GetBufferPointer(), builder.GetSize());
  if (change_header) change_header(&header);
  header.checksum = hashOf(reinterpret_cast<uint8_t*>(&header), offsetof(schema::Header, checksum));
  std::vector<uint8_t> file(length);
  memcpy(file.data(), &header, sizeof(header));
  memcpy(file.data() + sizeof(header), builder.GetBufferPointer(), builder.GetSize());
  for (const auto& [offset, bytes] : layout.contents) {
    if (!bytes.empty()) memcpy(file.data() + offset, bytes.data(), bytes.size());
  }
  return file;
}

void repair(uint8_t* data, size_t size) {
  schema::Header header;
  if (size < sizeof(header)) return;
  memcpy(&header, data, sizeof(header));
  if (header.root_offset <= size && header.root_size <= size - header.root_offset &&
      header.root_offset % 64 == 0) {
    uint8_t* root = data + header.root_offset;
    flatbuffers::Verifier verifier(root, header.root_size);
    if (header.root_size >= 16 && schema::VerifyArtifactBuffer(verifier)) {
      const schema::Artifact* artifact = schema::GetArtifact(root);
      auto fix = [&](const schema::Section* section) {
        if (!section) return;
        uint64_t numbers[3];  // offset, size, hash; perhaps not aligned any more
        uint8_t* place = root + (reinterpret_cast<const uint8_t*>(section) - root);
        memcpy(numbers, place, sizeof(numbers));
        if (numbers[0] > size || numbers[1] > size - numbers[0]) return;
        numbers[2] = hashOf(data + numbers[0], numbers[1]);
        memcpy(place, numbers, sizeof(numbers));
      };
      for (const schema::Variant* variant : *artifact->variants()) fix(variant->code());
      fix(artifact->tokenizer_section());
    }
    header.root_hash = hashOf(root, header.root_size);
  }
  header.checksum = hashOf(reinterpret_cast<uint8_t*>(&header), offsetof(schema::Header, checksum));
  memcpy(data, &header, sizeof(header));
}

}  // namespace izh::test
