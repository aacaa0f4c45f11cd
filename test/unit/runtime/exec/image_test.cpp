// Verification: the default artifact passes, and each thing that could make
// the runtime step outside of its memory is refused with a sentence.

#include "runtime/exec/image.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "runtime/exec/device_image.h"
#include "runtime/exec/device_image.h"
#include "runtime/exec/model.h"
#include "test/unit/runtime/exec/artifact_builder.h"

namespace izh {
namespace {

using test::TestArtifact;

// Copies to memory of the artifact's exact size, so that sanitizers see reads
// behind its end, at the alignment of a mapped file.
struct AlignedBytes {
  explicit AlignedBytes(const std::vector<uint8_t>& bytes) : size(bytes.size()) {
    data = static_cast<uint8_t*>(aligned_alloc(64, size ? (size + 63) / 64 * 64 : 64));
    if (size) memcpy(data, bytes.data(), size);
  }
  ~AlignedBytes() { free(data); }
  uint8_t* data;
  size_t size;
};

izh_status verify(const std::vector<uint8_t>& bytes, std::string* message) {
  AlignedBytes copy(bytes);
  Image image;
  izh_error error = {};
  const izh_status status = image_verify(copy.data, copy.size, "m.izh", &image, &error);
  *message = error.message;
  return status;
}

void expectRefused(const TestArtifact& artifact, const char* sentence_part) {
  std::string message;
  EXPECT_EQ(verify(artifact.build(), &message), IZH_BAD_ARTIFACT) << sentence_part;
  EXPECT_NE(message.find(sentence_part), std::string::npos) << message;
  EXPECT_NE(message.find("m.izh"), std::string::npos) << message;
}

TEST(ImageTest, AcceptsAWellFormedArtifact) {
  std::string message;
  EXPECT_EQ(verify(TestArtifact().build(), &message), IZH_OK) << message;
}

TEST(ImageTest, RefusesEveryCutFile) {
  const std::vector<uint8_t> whole = TestArtifact().build();
  for (size_t length = 0; length < whole.size(); length += length < 4096 ? 1 : 4099) {
    std::string message;
    ASSERT_EQ(verify({whole.begin(), whole.begin() + length}, &message), IZH_BAD_ARTIFACT)
        << length;
    ASSERT_NE(message.find("m.izh"), std::string::npos) << message;
  }
}

TEST(ImageTest, RefusesOtherFiles) {
  std::string message;
  EXPECT_EQ(verify(std::vector<uint8_t>(4096, 'x'), &message), IZH_BAD_ARTIFACT);
  EXPECT_NE(message.find("is not an .izh file"), std::string::npos) << message;
}

void expectHeaderRefused(std::function<void(schema::Header*)> change, const char* sentence_part) {
  TestArtifact artifact;
  artifact.change_header = std::move(change);
  expectRefused(artifact, sentence_part);
}

TEST(ImageTest, SaysWhichVersionIsNeeded) {
  expectHeaderRefused([](auto* header) { header->least_runtime = 20304; },
                      "needs runtime 2.3.4 or newer, but this is 0.1.4: update izh-rt");
  expectHeaderRefused([](auto* header) { header->format_major = 2; }, "update izh-rt");
  expectHeaderRefused([](auto* header) { header->format_major = 0; }, "compile the model again");
}

TEST(ImageTest, ReadsNewerMinorFormats) {
  TestArtifact artifact;
  artifact.change_header = [](auto* header) {
    header->format_minor = 7;
    header->reserved = 1;
  };
  std::string message;
  EXPECT_EQ(verify(artifact.build(), &message), IZH_OK) << message;
}

// Records of GPU kernels have grown: those of another size must not be read.
TEST(ImageTest, OlderCodeForGpusIsToBeCompiledAgain) {
  for (const int age : {0, 1}) {
    TestArtifact artifact;
    artifact.change_header = [&](auto* header) {
      header->format_minor = static_cast<uint16_t>(schema::kDeviceFormatMinor - age);
    };
    AlignedBytes copy(artifact.build());
    izh_model model;
    izh_error error = {};
    ASSERT_EQ(image_verify(copy.data, copy.size, "m.izh", &model.image, &error), IZH_OK);
    ASSERT_TRUE(model.path.append("m.izh", 6));
    // The code of this artifact is a processor's: damaged, if it is looked at.
    EXPECT_EQ(device_code_check(model, &error), IZH_BAD_ARTIFACT);
    const std::string message = error.message;
    EXPECT_EQ(message.find("has code for GPUs of format 1.") != std::string::npos, age == 1)
        << message;
    EXPECT_NE(message.find("compile"), std::string::npos) << message;
  }
}

TEST(ImageTest, RefusesDamagedHeaders) {
  expectHeaderRefused([](auto* header) { header->reserved = 1; }, "reserved");
  expectHeaderRefused([](auto* header) { ++header->file_length; }, "header says");
  expectHeaderRefused([](auto* header) { header->root_offset = 0; }, "not inside the file");
  expectHeaderRefused([](auto* header) { header->root_offset = ~0ull - 63; },
                      "not inside the file");
  expectHeaderRefused([](auto* header) { header->root_offset = 96; }, "not inside the file");
  expectHeaderRefused([](auto* header) { header->root_size = ~0ull; }, "not inside the file");
  expectHeaderRefused([](auto* header) { ++header->root_hash; },
                      "the plan of m.izh does not match");
  std::vector<uint8_t> bytes = TestArtifact().build();
  bytes[17] ^= 1;
  std::string message;
  EXPECT_EQ(verify(bytes, &message), IZH_BAD_ARTIFACT);
  EXPECT_NE(message.find("checksum"), std::string::npos) << message;
}

TEST(ImageTest, RefusesARootThatIsNoFlatbuffer) {
  std::vector<uint8_t> bytes = TestArtifact().build();
  std::string message;
  bytes[64 + 5] ^= 1;  // the identifier
  test::repair(bytes.data(), bytes.size());
  EXPECT_EQ(verify(bytes, &message), IZH_BAD_ARTIFACT);
  EXPECT_NE(message.find("identifier"), std::string::npos) << message;
  bytes[64 + 5] ^= 1;
  bytes[64 + 3] = 0x7f;  // the root table's offset
  test::repair(bytes.data(), bytes.size());
  EXPECT_EQ(verify(bytes, &message), IZH_BAD_ARTIFACT);
  EXPECT_NE(message.find("well-formed"), std::string::npos) << message;
}

void expectSectionRefused(const char* role, std::function<schema::Section(schema::Section)> change,
                          const char* sentence_part) {
  TestArtifact artifact;
  artifact.change_section = [=](const char* found, schema::Section* section) {
    if (strcmp(found, role) == 0) *section = change(*section);
  };
  expectRefused(artifact, sentence_part);
}

TEST(ImageTest, RefusesSectionsOutOfPlace) {
  auto moved = [](uint64_t offset) {
    return [=](schema::Section s) { return schema::Section(offset, s.size(), s.hash()); };
  };
  auto sized = [](uint64_t size) {
    return [=](schema::Section s) { return schema::Section(s.offset(), size, s.hash()); };
  };
  for (const char* role : {"code", "weights", "constants", "tokenizer"}) {
    expectSectionRefused(role, moved(65536 * 16 + 64), "not a multiple of 65536");
    expectSectionRefused(role, moved(uint64_t{1} << 62), "not inside the file");
    expectSectionRefused(role, moved(0), "overlap");
    expectSectionRefused(role, sized(~0ull), "not inside the file");
  }
  expectSectionRefused("weights", moved(65536 * 16), "overlap");
  expectSectionRefused("code", sized(0), "has no code");
}

void expectPlanRefused(std::function<void(TestArtifact*)> change, const char* sentence_part) {
  TestArtifact artifact;
  change(&artifact);
  expectRefused(artifact, sentence_part);
}

TEST(ImageTest, RefusesLimitsOutOfRange) {
  expectPlanRefused([](auto* a) { a->vocabulary = 0; }, "number of logits");
  expectPlanRefused([](auto* a) { a->vocabulary = 1u << 30; }, "number of logits");
  expectPlanRefused([](auto* a) { a->max_tokens = 0; }, "max_tokens");
  expectPlanRefused([](auto* a) { a->max_tokens = 4097; }, "max_tokens");
  expectPlanRefused([](auto* a) { a->max_outputs = 0; }, "max_outputs");
  expectPlanRefused([](auto* a) { a->max_outputs = 17; }, "max_outputs");
  expectPlanRefused([](auto* a) { a->tile_tokens = 0; }, "tile_tokens");
  expectPlanRefused([](auto* a) { a->page_tokens = 32; }, "page_tokens");
  expectPlanRefused([](auto* a) { a->arena_bytes = 0; }, "arena's size");
  expectPlanRefused([](auto* a) { a->arena_bytes = ~0ull; }, "arena's size");
  expectPlanRefused([](auto* a) { a->logits_offset = 4096 - 320; }, "do not fit");
  expectPlanRefused([](auto* a) { a->logits_offset = ~0ull - 63; }, "do not fit");
  expectPlanRefused([](auto* a) { a->logits_offset = 2050; }, "do not fit");
  expectPlanRefused([](auto* a) { a->states[0] = 0; }, "page size");
  expectPlanRefused([](auto* a) { a->states[0] = uint64_t{1} << 40; }, "page size");
  expectPlanRefused([](auto* a) { a->states[0] = 100; }, "not a multiple");
  expectPlanRefused([](auto* a) { a->states.resize(5000, 64); }, "at most 4096");
  expectPlanRefused([](auto* a) { a->dispatches.clear(); }, "no dispatches");
  expectPlanRefused([](auto* a) { a->variants.clear(); }, "no variants");
}

TEST(ImageTest, RefusesDispatchesThatReachOutside) {
  expectPlanRefused([](auto* a) { a->dispatches[1].kernel = 4; }, "runs kernel 4");
  expectPlanRefused([](auto* a) { a->dispatches[1].units = 0; }, "has 0 units");
  expectPlanRefused([](auto* a) { a->dispatches[1].units = ~0ull; }, "units, but");
  expectPlanRefused([](auto* a) { a->dispatches[1].units = 1u << 30; }, "units, but");
  expectPlanRefused([](auto* a) { a->dispatches[1].grain = 0; }, "never end");
  expectPlanRefused([](auto* a) { a->dispatches[1].extent = schema::Extent(9); },
                    "unknown extent 9");
  expectPlanRefused([](auto* a) { a->dispatches[1].bindings.resize(65); }, "at most 64");
}

TEST(ImageTest, RefusesBindingsThatReachOutside) {
  using schema::Space;
  auto refuse = [](test::TestBinding binding, const char* sentence_part) {
    expectPlanRefused([=](auto* a) { a->dispatches[2].bindings[1] = binding; }, sentence_part);
  };
  refuse({Space(7), 0, 0}, "unknown space 7");
  refuse({Space::Arena, 0, 0}, "inside the arena");
  refuse({Space::Arena, 0, 4097}, "inside the arena");
  refuse({Space::Arena, 4096, 64}, "inside the arena");
  refuse({Space::Arena, ~0ull - 63, 128}, "inside the arena");
  refuse({Space::Arena, 32, 64}, "multiple of 64");
  refuse({Space::Weights, 64, 64}, "inside the weights");
  refuse({Space::Weights, 0, ~0ull}, "inside the weights");
  refuse({Space::Constants, 64, 4}, "inside the constants");
  refuse({Space::State, 1, 0}, "names state 1");
  refuse({Space::State, 0, 4}, "names state 0");
  refuse({Space::Input, 11, 0}, "names input 11");
}

TEST(ImageTest, RefusesEntriesAndTensorsOutside) {
  expectPlanRefused([](auto* a) { a->entries[2] = static_cast<uint32_t>(a->code.size()); },
                    "kernel gather of variant plain");
  expectPlanRefused([](auto* a) { a->entry_count_change = 1; },
                    "has 5 kernels, but the plan has 4");
  expectPlanRefused([](auto* a) { a->tensor_offset = 4; }, "tensor columns");
  expectPlanRefused([](auto* a) { a->tensor_offset = ~0ull; }, "tensor columns");
}

// A short stand-in for the fuzzer: whatever is changed, opening ends with a
// status and, on failure, a sentence.
TEST(ImageTest, SurvivesMutations) {
  const std::vector<uint8_t> whole = TestArtifact().build();
  const uint64_t extremes[] = {
      0,          1,          2,          63,         64,           65535,
      65536,      0x7fffffff, 0x80000000, 0xffffffff, whole.size(), whole.size() - 1,
      1ull << 62, ~0ull,      ~0ull - 63};
  schema::Header header;
  memcpy(&header, whole.data(), sizeof(header));
  const size_t end = header.root_offset + header.root_size;
  std::mt19937 random(1);
  AlignedBytes copy(whole);
  int accepted = 0;
  for (int round = 0; round < 6000; ++round) {
    memcpy(copy.data, whole.data(), end);
    for (unsigned change = 0; change <= random() % 3; ++change) {
      const size_t width = size_t{1} << (random() % 4);
      const size_t place = random() % (end - width);
      const uint64_t value = random() % 2 ? extremes[random() % std::size(extremes)] : random();
      memcpy(copy.data + place, &value, width);
    }
    test::repair(copy.data, copy.size);
    izh_model* model = nullptr;
    izh_error error = {};
    const izh_status status =
        model_open_memory(copy.data, copy.size, "m.izh", nullptr, /*run=*/false, &model, &error);
    ASSERT_EQ(status == IZH_OK, model != nullptr);
    ASSERT_EQ(status == IZH_OK, error.message[0] == 0);
    accepted += status == IZH_OK;
    if (!model) continue;
    (void)izh_model_verify(model, &error);
    izh_model_info info;
    izh_model_get_info(model, &info);
    izh_model_close(model);
  }
  // Otherwise the repairs would have been for nothing.
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace izh
