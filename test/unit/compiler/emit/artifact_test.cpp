// Writes small artifacts and reads them back through the flatbuffer alone.

#include "compiler/emit/Artifact.h"
#include "compiler/formats/PackedLayout.h"
#include "compiler/support/Error.h"
#include "runtime/schema/artifact_generated.h"
#include "runtime/schema/header.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <unistd.h>
#include <xxhash.h>

using namespace izhc;
namespace schema = izh::schema;

namespace {

using Bytes = std::vector<uint8_t>;

struct MemoryTensors : emit::TensorSource {
  std::map<std::string, std::pair<const FormatSpec *, Bytes>> tensors;
  size_t released = 0;

  llvm::Expected<emit::SourceTensor> find(llvm::StringRef name) override {
    auto it = tensors.find(name.str());
    if (it == tensors.end())
      return makeError("there is no tensor {0}", name);
    return emit::SourceTensor{it->second.first, it->second.second};
  }
  void release(llvm::ArrayRef<uint8_t> bytes) override { released += bytes.size(); }
};

// Without bit 6, so that no float of any width among them is infinite.
Bytes randomBytes(size_t count, uint32_t seed) {
  Bytes bytes(count);
  for (uint8_t &byte : bytes)
    byte = ((seed = seed * 1664525 + 1013904223) >> 24) & 0xbf;
  return bytes;
}

class ArtifactTest : public testing::Test {
protected:
  std::filesystem::path folder = testing::TempDir() + "artifact_" + std::to_string(getpid());
  std::string path = folder / "model.izh";
  emit::Plan plan;
  emit::Facts facts;
  emit::Provenance provenance = {"izhc test", "izhc compile x", "x.gguf", "as stored",
                                 [] { return std::string("0123456789abcdef0123456789abcdef"); }};
  std::vector<emit::Variant> variants;
  Bytes tokenizer = {9, 8, 7};
  MemoryTensors tensors;
  Bytes file;

  void SetUp() override {
    std::filesystem::create_directories(folder);
    facts.architecture = "toy";
    facts.name = "Toy";
    facts.vocabulary = 20;
    facts.context = 64;
    plan.kernels = {"first", "second"};
    plan.dispatches = {{1,
                        {{emit::Space::Weights, 0, 64}, {emit::Space::Input, 2, 0}},
                        5,
                        emit::Extent::Tiles,
                        3}};
    plan.statePageBytes = {4096, 8192};
    plan.arenaBytes = 1 << 20;
    plan.logitsOffset = 128;
    plan.maxTokens = 128;
    plan.maxOutputs = 16;
    plan.tileTokens = 8;
    plan.pageTokens = 64;
    variants.push_back({"small", "x86_64", 3, 1, {{1, 2, 3, 4}, {0, 2}}});
    variants.push_back({"large", "x86_64", 7, 2, {Bytes(70000, 5), {0, 64}}});
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  void addWeight(const char *name, const char *format, int64_t rows, int64_t cols) {
    const FormatSpec *spec = findFormat(format);
    uint64_t size = PackedLayout(*spec).matrixBytes(rows, cols);
    plan.weights.push_back({name, spec, rows, cols, plan.weightsBytes, size});
    plan.weightsBytes += (size + 63) / 64 * 64;
    size_t bytes = rows * (cols / spec->blockWeights) * spec->blockBytes;
    tensors.tensors[name] = {spec, randomBytes(bytes, plan.weights.size())};
  }

  llvm::Expected<emit::ArtifactSizes> write(unsigned threads = 2) {
    return emit::writeArtifact(
        path, {plan, facts, provenance, variants, tokenizer, tensors, threads, nullptr});
  }

  const schema::Artifact *readBack() {
    std::ifstream in(path, std::ios::binary);
    file.assign(std::istreambuf_iterator<char>(in), {});
    schema::Header header;
    if (file.size() < sizeof(header))
      return nullptr;
    memcpy(&header, file.data(), sizeof(header));
    EXPECT_EQ(memcmp(header.magic, schema::kMagic, 8), 0);
    EXPECT_EQ(header.file_length, file.size());
    EXPECT_EQ(header.root_offset % 64, 0u);
    EXPECT_EQ(header.checksum, XXH3_64bits(file.data(), 56));
    EXPECT_EQ(header.root_hash, XXH3_64bits(file.data() + header.root_offset, header.root_size));
    flatbuffers::Verifier verifier(file.data() + header.root_offset, header.root_size);
    EXPECT_TRUE(schema::VerifyArtifactBuffer(verifier));
    return schema::GetArtifact(file.data() + header.root_offset);
  }

  Bytes section(const schema::Section &place) {
    EXPECT_EQ(place.offset() % 65536, 0u);
    EXPECT_LE(place.offset() + place.size(), file.size());
    Bytes bytes(file.begin() + place.offset(), file.begin() + place.offset() + place.size());
    EXPECT_EQ(place.hash(), XXH3_64bits(bytes.data(), bytes.size()));
    return bytes;
  }

  size_t filesInFolder() { return std::distance(std::filesystem::directory_iterator(folder), {}); }
};

TEST_F(ArtifactTest, KeepsFactsPlanAndProvenance) {
  addWeight("w", "f32", 3, 4);
  ASSERT_FALSE(llvm::errorToBool(write().takeError()));
  const schema::Artifact *artifact = readBack();
  ASSERT_TRUE(artifact);
  EXPECT_EQ(artifact->model()->architecture()->str(), "toy");
  EXPECT_EQ(artifact->model()->vocabulary(), 20u);
  EXPECT_EQ(artifact->provenance()->source()->str(), "x.gguf");
  const schema::Plan &read = *artifact->plan();
  EXPECT_EQ(read.kernels()->Get(1)->str(), "second");
  EXPECT_EQ(read.states()->Get(1)->page_bytes(), 8192u);
  EXPECT_EQ(read.logits_offset(), 128u);
  EXPECT_EQ(read.max_outputs(), 16u);
  const schema::Dispatch &dispatch = *read.dispatches()->Get(0);
  EXPECT_EQ(dispatch.kernel(), 1u);
  EXPECT_EQ(dispatch.units(), 5u);
  EXPECT_EQ(dispatch.extent(), schema::Extent::Tiles);
  EXPECT_EQ(dispatch.grain(), 3u);
  EXPECT_EQ(dispatch.bindings()->Get(0)->size(), 64u);
  EXPECT_EQ(dispatch.bindings()->Get(1)->space(), schema::Space::Input);
  EXPECT_EQ(dispatch.bindings()->Get(1)->offset(), 2u);
}

TEST_F(ArtifactTest, KeepsCodeAndTokenizerByteByByte) {
  ASSERT_FALSE(llvm::errorToBool(write().takeError()));
  const schema::Artifact *artifact = readBack();
  ASSERT_TRUE(artifact);
  ASSERT_EQ(artifact->variants()->size(), 2u);
  EXPECT_EQ(section(*artifact->variants()->Get(0)->code()), variants[0].code.bytes);
  EXPECT_EQ(section(*artifact->variants()->Get(1)->code()), variants[1].code.bytes);
  EXPECT_EQ(artifact->variants()->Get(1)->entries()->Get(1), 64u);
  EXPECT_EQ(artifact->variants()->Get(1)->features(), 7u);
  EXPECT_EQ(section(*artifact->tokenizer_section()), tokenizer);
}

TEST_F(ArtifactTest, PacksWeightsSoThatTheirBlocksComeBack) {
  // The second one is larger than a piece, the third has a padded tile.
  addWeight("a", "q8_0", 16, 64);
  addWeight("b", "f32", 300, 4096);
  addWeight("c", "q4_1", 37, 96);
  ASSERT_FALSE(llvm::errorToBool(write().takeError()));
  const schema::Artifact *artifact = readBack();
  ASSERT_TRUE(artifact);
  Bytes weights = section(*artifact->weights_section());
  ASSERT_EQ(artifact->weights()->size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const schema::Weight &weight = *artifact->weights()->Get(i);
    const auto &[format, source] = tensors.tensors[weight.name()->str()];
    EXPECT_EQ(weight.format()->str(), format->name.str());
    EXPECT_FALSE(weight.constant());
    EXPECT_EQ(weight.hash(), XXH3_64bits(weights.data() + weight.offset(), weight.size()));
    PackedLayout layout(*format);
    int64_t rows = weight.rows(), cols = weight.cols();
    int64_t rowBytes = cols / format->blockWeights * format->blockBytes;
    Bytes unpacked(source.size());
    for (int64_t row = 0; row < rows; row += 16)
      unpackTile(layout, weights.data() + weight.offset() + row / 16 * layout.tileBytes(cols),
                 std::min<int64_t>(16, rows - row), rowBytes, cols,
                 unpacked.data() + row * rowBytes);
    EXPECT_EQ(unpacked, source) << weight.name()->str();
  }
}

// Row r of a view is row first + r / run * stride + r % run of the tensor.
TEST_F(ArtifactTest, PacksTheRowsOfAView) {
  addWeight("stored", "q8_0", 80, 64);
  const Bytes &stored = tensors.tensors["stored"].second;
  const FormatSpec *format = findFormat("q8_0");
  PackedLayout layout(*format);
  int64_t rowBytes = 64 / format->blockWeights * format->blockBytes;
  uint64_t size = layout.matrixBytes(24, 64);
  for (emit::RowView view : {emit::RowView{32, 24, 24}, {4, 3, 9}}) {
    plan.weights.push_back({"stored", format, 24, 64, plan.weightsBytes, size, view});
    plan.weightsBytes += (size + 63) / 64 * 64;
  }
  ASSERT_FALSE(llvm::errorToBool(write().takeError()));
  const schema::Artifact *artifact = readBack();
  ASSERT_TRUE(artifact);
  Bytes weights = section(*artifact->weights_section());
  for (size_t i : {1, 2}) {
    const schema::Weight &weight = *artifact->weights()->Get(i);
    emit::RowView view = plan.weights[i].view;
    EXPECT_EQ(weight.first_row(), view.first);
    EXPECT_EQ(weight.run(), view.run);
    EXPECT_EQ(weight.stride(), view.stride);
    Bytes unpacked(24 * rowBytes);
    for (int64_t row = 0; row < 24; row += 16)
      unpackTile(layout, weights.data() + weight.offset() + row / 16 * layout.tileBytes(64),
                 std::min<int64_t>(16, 24 - row), rowBytes, 64, unpacked.data() + row * rowBytes);
    for (int64_t row = 0; row < 24; ++row) {
      int64_t from = view.first + row / view.run * view.stride + row % view.run;
      EXPECT_EQ(memcmp(&unpacked[row * rowBytes], &stored[from * rowBytes], rowBytes), 0) << row;
    }
  }
}

TEST_F(ArtifactTest, RefusesAViewOfRowsThatAreNotThere) {
  addWeight("stored", "q8_0", 80, 64);
  plan.weights[0].rows = 24;
  plan.weights[0].size = PackedLayout(*findFormat("q8_0")).matrixBytes(24, 64);
  plan.weights[0].view = {60, 24, 24};
  EXPECT_NE(llvm::toString(write().takeError()).find("stored"), std::string::npos);
}

TEST_F(ArtifactTest, ReleasesEveryByteOfTheSourceThatItHasPacked) {
  addWeight("a", "q8_0", 33, 64);
  addWeight("b", "f32", 300, 4096);
  ASSERT_FALSE(llvm::errorToBool(write().takeError()));
  EXPECT_EQ(tensors.released,
            tensors.tensors["a"].second.size() + tensors.tensors["b"].second.size());
}

TEST_F(ArtifactTest, IsTheSameForAnyNumberOfThreads) {
  addWeight("a", "f32", 300, 4096);
  ASSERT_FALSE(llvm::errorToBool(write(1).takeError()));
  readBack();
  Bytes one = file;
  ASSERT_FALSE(llvm::errorToBool(write(7).takeError()));
  readBack();
  EXPECT_EQ(one, file);
}

// A source can be hashed while its weights are packed.
TEST_F(ArtifactTest, AsksForTheHashOfTheSourceBehindAllWeights) {
  addWeight("a", "q8_0", 33, 64);
  uint64_t releasedBefore = 0;
  std::string hash(emit::kSourceHashDigits, '7');
  provenance.sourceHash = [&] {
    releasedBefore = tensors.released;
    return hash;
  };
  ASSERT_FALSE(llvm::errorToBool(write().takeError()));
  EXPECT_EQ(releasedBefore, tensors.tensors["a"].second.size());
  const schema::Artifact *artifact = readBack();
  ASSERT_TRUE(artifact);
  EXPECT_EQ(artifact->provenance()->source_hash()->str(), hash);
}

TEST_F(ArtifactTest, WidensVectorsToFloat32) {
  plan.constantsBytes = 192;
  plan.constants = {{"half", 0, 3, {}}, {"given", 64, 2, {0.25f, -8}}, {"brain", 128, 2, {}}};
  // 1, -2, 65504 in float16; 1 and -3 in bfloat16.
  tensors.tensors["half"] = {findFormat("f16"), {0x00, 0x3c, 0x00, 0xc0, 0xff, 0x7b}};
  tensors.tensors["brain"] = {findFormat("bf16"), {0x80, 0x3f, 0x40, 0xc0}};
  ASSERT_FALSE(llvm::errorToBool(write().takeError()));
  const schema::Artifact *artifact = readBack();
  ASSERT_TRUE(artifact);
  Bytes constants = section(*artifact->constants_section());
  ASSERT_EQ(constants.size(), 192u);
  float values[48];
  memcpy(values, constants.data(), sizeof(values));
  EXPECT_EQ(std::vector<float>(values, values + 4), (std::vector<float>{1, -2, 65504, 0}));
  EXPECT_EQ(std::vector<float>(values + 16, values + 18), (std::vector<float>{0.25f, -8}));
  EXPECT_EQ(std::vector<float>(values + 32, values + 34), (std::vector<float>{1, -3}));
  EXPECT_TRUE(artifact->weights()->Get(1)->constant());
  EXPECT_EQ(artifact->weights()->Get(1)->offset(), 64u);
  EXPECT_EQ(artifact->weights()->Get(1)->size(), 8u);
}

TEST_F(ArtifactTest, LeavesNothingBehindWhenATensorIsMissing) {
  addWeight("a", "f32", 16, 16);
  tensors.tensors.erase("a");
  EXPECT_TRUE(llvm::errorToBool(write().takeError()));
  EXPECT_EQ(filesInFolder(), 0u);
}

TEST_F(ArtifactTest, LeavesAnOlderFileAloneWhenAVectorIsMissing) {
  std::ofstream(path) << "old";
  plan.constantsBytes = 64;
  plan.constants = {{"norm", 0, 3, {}}};
  EXPECT_TRUE(llvm::errorToBool(write().takeError()));
  EXPECT_EQ(filesInFolder(), 1u);
  EXPECT_EQ(std::filesystem::file_size(path), 3u);
}

TEST_F(ArtifactTest, RefusesATensorThatIsTooShort) {
  addWeight("a", "f32", 16, 16);
  tensors.tensors["a"].second.pop_back();
  std::string message = llvm::toString(write().takeError());
  EXPECT_NE(message.find("'a' has 1023 bytes"), std::string::npos) << message;
}

TEST_F(ArtifactTest, RefusesWeightsThatAreNoNumbers) {
  for (const char *format : {"f32", "f16", "bf16", "q4_0", "q4_1", "q4_k", "q6_k"}) {
    SCOPED_TRACE(format);
    plan.weights.clear();
    plan.weightsBytes = 0;
    addWeight("a", format, 16, 256);
    ASSERT_FALSE(llvm::errorToBool(write().takeError()));
    // Every bit set makes each float no number.
    Bytes &bytes = tensors.tensors["a"].second;
    std::fill(bytes.end() - findFormat(format)->blockBytes, bytes.end(), 0xff);
    std::string message = llvm::toString(write().takeError());
    EXPECT_NE(message.find("tensor 'a' holds values"), std::string::npos) << message;
  }
}

TEST_F(ArtifactTest, SaysWhichFolderCantBeWritten) {
  path = folder / "missing" / "model.izh";
  std::string message = llvm::toString(write().takeError());
  EXPECT_NE(message.find("missing/model.izh"), std::string::npos) << message;
}

} // namespace
