// Recipes and choices on a model in memory: which tensors change, what their
// rows become, and what is refused.

#include "compiler/formats/Encode.h"
#include "compiler/import/QuantizedSource.h"
#include "test/unit/compiler/import/open.h"

#include <cmath>
#include <fstream>

using namespace izhc;
using namespace izhc::test;

static const char *const kMatrices[] = {"blk.0.attn_v.weight", "blk.0.attn_q.weight"};

static float weight(int64_t i) { return std::sin(0.37f * i); }

// `odd` is one of the weights.
static GgufWriter model(uint32_t type = 0, float odd = 0) {
  GgufWriter writer;
  writer.string("general.architecture", "test").u32("general.file_type", 0);
  Bytes content;
  ByteWriter floats;
  for (int64_t i = 0; i < 4 * 256; ++i)
    floats.put(i == 300 && odd != 0 ? odd : weight(i));
  // 4 rows of blocks are shorter; what they hold is of no matter.
  content = type == 0 ? floats.bytes : Bytes(4 * 8 * (type == 8 ? 34 : 18), 0);
  for (const char *name : kMatrices)
    writer.tensor(name, {256, 4}, type, content);
  writer.tensor("blk.0.attn_norm.weight", {4}, 0, Bytes(16));
  return writer;
}

namespace {
// Keeps the bytes that the source reads.
struct Quantized {
  Bytes bytes;
  llvm::Expected<QuantizedModel> source;

  Quantized(const GgufWriter &writer, const QuantizeOptions &options)
      : bytes(writer.build()), source(open(options)) {}
  ~Quantized() {
    if (!source)
      llvm::consumeError(source.takeError());
  }
  std::string message() { return source ? "" : llvm::toString(source.takeError()); }
  ModelSource *operator->() { return source->source.get(); }
  unsigned encodedTwice() { return source->encodedTwice; }

private:
  llvm::Expected<QuantizedModel> open(const QuantizeOptions &options) {
    auto model = openGgufBytes("test.gguf", bytes);
    if (!model)
      return model.takeError();
    return quantizeSource(std::move(*model), options);
  }
};
} // namespace

TEST(QuantizedSourceTest, EncodesTheRowsOfMatrices) {
  Quantized model(::model(), {"q4_0", {}, ""});
  const TensorInfo *tensor = model->findTensor("blk.0.attn_q.weight");
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor->format->name, "q4_0");
  EXPECT_EQ(tensor->bytes, 4u * 8 * 18);
  Bytes got(2 * 8 * 18), block(18);
  tensor->readRows(1, 2, got.data());
  for (int64_t i = 0; i < 16; ++i) {
    float values[32];
    for (int64_t k = 0; k < 32; ++k)
      values[k] = weight(256 + 32 * i + k);
    encodeBlocks(*tensor->format, values, nullptr, 1, block.data());
    EXPECT_TRUE(std::equal(block.begin(), block.end(), got.begin() + 18 * i)) << i;
  }
  EXPECT_EQ(model->findTensor("blk.0.attn_norm.weight")->format->name, "f32");
}

TEST(QuantizedSourceTest, TakesTheLastChoiceThatMatches) {
  Quantized model(::model(), {"", {"attn_[qv]=q8_0", "attn_v=q6_k"}, ""});
  EXPECT_EQ(model->findTensor(kMatrices[0])->format->name, "q6_k");
  EXPECT_EQ(model->findTensor(kMatrices[1])->format->name, "q8_0");
}

// 2 matrices of 1024 weights and a vector of 4, which keeps its 32 bits.
TEST(QuantizedSourceTest, SpendsNoMoreThanTheBitsItHas) {
  double before = 0;
  for (double bits : {3.5, 4.6, 5.6, 9.0}) {
    Quantized model(::model(), {"", {}, "", bits});
    double spent = 0, weights = 0;
    for (const TensorInfo &tensor : model->tensors()) {
      spent += 8.0 * tensor.bytes;
      weights += tensor.elements();
    }
    EXPECT_LE(spent, bits * weights) << bits;
    EXPECT_GT(spent, before) << bits;
    before = spent;
  }
}

// Matrices that have no more bits than there are lose nothing.
TEST(QuantizedSourceTest, KeepsWhatTheBitsSufficeFor) {
  EXPECT_NE(Quantized(model(), {"", {}, "", 32}).message().find("would change no tensor"),
            std::string::npos);
  // One of two float32 matrices of 1024 weights, and the vector of 4.
  Quantized model(::model(), {"", {}, "", 24});
  EXPECT_EQ(std::count_if(model->tensors().begin(), model->tensors().end(),
                          [](const TensorInfo &t) { return t.format->name == "f32"; }),
            2);
}

// A pattern for all names is one for all matrices.
TEST(QuantizedSourceTest, LeavesVectorsAsTheyAre) {
  Quantized model(::model(), {"", {".*=q8_0"}, ""});
  EXPECT_EQ(model->findTensor("blk.0.attn_q.weight")->format->name, "q8_0");
  EXPECT_EQ(model->findTensor("blk.0.attn_norm.weight")->format->name, "f32");
}

// Types 0, 2 and 8 are f32, q4_0 and q8_0.
TEST(QuantizedSourceTest, CountsWhatWasQuantizedBefore) {
  EXPECT_EQ(Quantized(model(0), {"", {"attn_q=iq4_nl"}, ""}).encodedTwice(), 0u);
  EXPECT_EQ(Quantized(model(8), {"", {"attn_q=iq4_nl"}, ""}).encodedTwice(), 0u);
  EXPECT_EQ(Quantized(model(2), {"", {"attn_q=iq4_nl"}, ""}).encodedTwice(), 1u);
}

TEST(QuantizedSourceTest, CountsOnlyWhatLosesMuchAgain) {
  for (const char *type : {"f16", "bf16", "f32", "q8_0"})
    EXPECT_EQ(Quantized(model(2), {"", {std::string("attn_q=") + type}, ""}).encodedTwice(), 0u)
        << type;
}

// A pattern that keeps everything is the reason, not the recipe.
TEST(QuantizedSourceTest, TellsWhyNothingChanges) {
  std::string message = Quantized(model(), {"q8_0", {".*=f32"}, ""}).message();
  EXPECT_NE(message.find("2 of 2 matrices have the type already that --tensor-type names"),
            std::string::npos)
      << message;
  EXPECT_EQ(message.find("--quant"), std::string::npos) << message;
}

TEST(QuantizedSourceTest, RefusesPatternsThatTakeAllMemory) {
  std::string many;
  for (int i = 0; i < 100000; ++i)
    many += "(a)";
  for (const std::string &pattern : {std::string("((((a{1,200}){1,200}){1,200}){1,200})"),
                                     std::string("(((a{200}){200}){200,})"), many})
    EXPECT_NE(Quantized(model(), {"", {pattern + "=q8_0"}, ""}).message().find("times its counts"),
              std::string::npos);
  EXPECT_EQ(Quantized(model(), {"", {"blk\\.[0-9]{1,3}\\.attn_[qv]{1,2}.*=q8_0"}, ""}).message(),
            "");
}

// No type that is smaller than float32 has halves and codes for 1e30.
TEST(QuantizedSourceTest, SpendsBitsOnTypesThatHoldTheWeights) {
  Quantized model(::model(0, 1e30f), {"", {"attn_v=q4_0"}, "", 20});
  EXPECT_EQ(model->findTensor("blk.0.attn_q.weight")->format->name, "f32");
}

TEST(QuantizedSourceTest, TellsWhatTypeTheFileIs) {
  Quantized model(::model(), {"q8_0", {}, ""});
  std::map<std::string, std::vector<uint8_t>> keys;
  for (ExportKey &key : model->exportKeys())
    keys[key.name.str()] = key.value;
  EXPECT_EQ(keys["general.file_type"], (std::vector<uint8_t>{4, 0, 0, 0, 7, 0, 0, 0}));
  EXPECT_EQ(keys["general.quantization_version"], (std::vector<uint8_t>{4, 0, 0, 0, 2, 0, 0, 0}));
  EXPECT_EQ(keys["general.architecture"][0], 8);
}

TEST(QuantizedSourceTest, RefusesWhatCannotBe) {
  auto refusal = [](const QuantizeOptions &options, uint32_t type = 0) {
    return Quantized(model(type), options).message();
  };
  EXPECT_NE(refusal({"q9", {}, ""}).find("there is no recipe 'q9'"), std::string::npos);
  EXPECT_NE(refusal({"", {"attn"}, ""}).find("a regular expression"), std::string::npos);
  EXPECT_NE(refusal({"", {"attn=q9"}, ""}).find("'q9'"), std::string::npos);
  EXPECT_NE(refusal({"", {"(=q8_0"}, ""}).find("no regular expression"), std::string::npos);
  EXPECT_NE(refusal({"", {"ffn=q8_0"}, ""}).find("no tensor of test.gguf"), std::string::npos);
  EXPECT_NE(refusal({"", {"norm=q8_0"}, ""}).find("are vectors only"), std::string::npos);
  EXPECT_NE(refusal({"q8_0", {}, ""}, 2).find("would change no tensor"), std::string::npos);
  EXPECT_NE(refusal({"q8_0", {}, "no_such_file"}).find("no_such_file"), std::string::npos);
}

// The largest scale of q8_0 is 65504, its largest code 127.
TEST(QuantizedSourceTest, TellsWeightsThatTheTypeCannotHoldFromDamage) {
  auto problem = [](float odd) {
    Quantized model(::model(0, odd), {"q8_0", {}, ""});
    const TensorInfo *tensor = model->findTensor("blk.0.attn_q.weight");
    Bytes rows(4 * 8 * 34);
    tensor->readRows(0, 4, rows.data());
    // Block 9 has the weight; its scale is no number where it can't be encoded.
    bool finite = (rows[9 * 34 + 1] & 0x7c) != 0x7c;
    return (finite ? "finite" : "") + tensor->reader->problem();
  };
  EXPECT_EQ(problem(8.3e6f), "finite");
  EXPECT_NE(problem(-8.4e6f).find("holds weights above 8319008 in magnitude, which q8_0"),
            std::string::npos)
      << problem(-8.4e6f);
  EXPECT_EQ(problem(NAN), "");
}

// q2_k has 2.625 bits; the vector of 4 weights keeps 32 each, which makes 2.68.
TEST(QuantizedSourceTest, RefusesFewerBitsThanTheSmallestTypesHave) {
  EXPECT_NE(Quantized(model(), {"", {}, "", 2.6}).message().find("has 2.69 bits a weight"),
            std::string::npos);
  EXPECT_EQ(Quantized(model(), {"", {}, "", 2.69}).message(), "");
}

TEST(QuantizedSourceTest, RefusesBitsThatAreNoNumberOrOutOfRange) {
  for (double bits : {double(NAN), double(INFINITY), -1.0, 1.9, 32.5})
    EXPECT_NE(Quantized(model(), {"", {}, "", bits}).message().find("--target-bpw"),
              std::string::npos)
        << bits;
}

TEST(QuantizedSourceTest, RefusesTheImportanceOfAnotherModel) {
  auto with = [](const std::string &name, uint64_t columns) {
    GgufWriter file;
    ByteWriter sums;
    for (uint64_t i = 0; i < columns; ++i)
      sums.put(1.0f);
    file.tensor(name + ".in_sum2", {columns}, 0, sums.bytes);
    file.tensor(name + ".counts", {1}, 0, ByteWriter().put(1.0f).bytes);
    std::string path = testing::TempDir() + "izh_importance.gguf";
    Bytes bytes = file.build();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    return Quantized(model(), {"q4_0", {}, path}).message();
  };
  EXPECT_EQ(with("blk.0.attn_q.weight", 256), "");
  EXPECT_NE(with("blk.0.attn_q.weight", 128).find("has 128 values"), std::string::npos);
  EXPECT_NE(with("blk.9.attn_q.weight", 256).find("no entry is of a tensor"), std::string::npos);
}
