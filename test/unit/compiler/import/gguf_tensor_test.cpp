// Tensors: their places in the file, shapes, types and names.

#include "test/unit/compiler/import/open.h"

using namespace izhc;
using namespace izhc::test;

TEST(GgufTensorTest, PointsIntoTheFile) {
  OpenedModel model = open(
      GgufWriter().tensor("a", {2, 1}, 0, Bytes(8, 0x11)).tensor("b", {32, 3}, 2, Bytes(54, 0x22)));
  ASSERT_EQ(model->tensors().size(), 2u);
  const TensorInfo *b = model->findTensor("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b, &model->tensors()[1]);
  EXPECT_EQ(b->name, "b");
  EXPECT_EQ(b->cols(), 32);
  EXPECT_EQ(b->rows(), 3);
  EXPECT_EQ(b->elements(), 96);
  EXPECT_EQ(b->rowBytes(), 18u);
  EXPECT_EQ(b->bytes, 54u);
  EXPECT_EQ(b->format->name, "q4_0");
  EXPECT_EQ(b->data + 54, model.bytes.data() + model.bytes.size());
  EXPECT_EQ(b->data[0], 0x22);
  EXPECT_EQ(model->findTensor("c"), nullptr);
}

TEST(GgufTensorTest, FollowsTheAlignmentKey) {
  for (uint32_t alignment : {8u, 64u, 4096u}) {
    GgufWriter writer;
    writer.alignment = alignment;
    writer.u32("general.alignment", alignment).tensor("a", {4}, 0, Bytes(16, 0x33));
    OpenedModel model = open(writer);
    EXPECT_EQ(model->tensors()[0].data - model.bytes.data(),
              static_cast<ptrdiff_t>(model.bytes.size() - 16));
    EXPECT_EQ(model->tensors()[0].data[0], 0x33);
  }
}

TEST(GgufTensorTest, HigherRanksCountAsRows) {
  OpenedModel model = open(GgufWriter().tensor("a", {2, 3, 4, 5}, 0, Bytes(480)));
  EXPECT_EQ(model->tensors()[0].cols(), 2);
  EXPECT_EQ(model->tensors()[0].rows(), 60);
}

TEST(GgufTensorTest, TypesThatCannotBeCompiledAreNamed) {
  OpenedModel model = open(GgufWriter().tensor("a", {256}, 15, Bytes(292)));
  std::string text = message(model->requireTensor("a"));
  EXPECT_NE(text.find("'a' is of type q8_k, which can't be compiled yet"), std::string::npos)
      << text;
  EXPECT_NE(text.find("q4_0"), std::string::npos) << text;
}

// Types to come must not keep anyone from reading the rest of the file.
TEST(GgufTensorTest, UnknownTypesFailOnlyWhenTheTensorIsNeeded) {
  OpenedModel model = open(GgufWriter().tensor("a", {4}, 777, Bytes(16)));
  const TensorInfo *tensor = model->findTensor("a");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->ggufType, 777u);
  EXPECT_EQ(tensor->format, nullptr);
  EXPECT_EQ(tensor->data, nullptr);
  std::string text = message(model->requireTensor("a"));
  EXPECT_NE(text.find("'a' has type number 777"), std::string::npos) << text;
}

TEST(GgufTensorTest, RequiredTensorsMustBeThereInTheirShape) {
  OpenedModel model = open(GgufWriter().tensor("a", {4, 2, 1}, 0, Bytes(32)));
  EXPECT_EQ(llvm::cantFail(model->requireTensor("a")), &model->tensors()[0]);
  EXPECT_EQ(llvm::cantFail(model->requireTensor("a", {4, 2})), &model->tensors()[0]);
  EXPECT_EQ(message(model->requireTensor("a", {2, 4})),
            "test.gguf: the tensor 'a' is 4 x 2 x 1, but its configuration asks for 2 x 4 "
            "(columns first)");
  EXPECT_NE(message(model->requireTensor("z")).find("'z' is missing"), std::string::npos);
}
