// A model in memory, whose keys and tensors tests may change one by one.

#pragma once

#include "compiler/import/ModelSource.h"
#include "compiler/models/Model.h"
#include "compiler/support/Error.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <map>

namespace izhc::test {

class FakeSource : public ModelSource {
public:
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> strings;
  std::map<std::string, std::vector<int64_t>> arrays;
  std::map<std::string, bool> flags;
  std::optional<std::vector<llvm::StringRef>> tokens;

  // `shape` as in files: columns first.
  void addTensor(const std::string &name, llvm::ArrayRef<int64_t> shape,
                 llvm::StringRef format = "f32", const void *data = nullptr) {
    names.push_back(std::make_unique<std::string>(name));
    TensorInfo info;
    info.name = *names.back();
    info.shape.assign(shape.begin(), shape.end());
    info.format = findFormat(format);
    info.data = static_cast<const uint8_t *>(data);
    all.push_back(info);
  }
  void removeTensor(const std::string &name) {
    std::erase_if(all, [&](const TensorInfo &info) { return info.name == name; });
  }

  llvm::StringRef fileName() const override { return "fake.gguf"; }
  std::string kindName() const override { return "fake"; }
  uint64_t fileBytes() const override { return 0; }
  std::vector<MetaInfo> metadata() const override { return {}; }
  bool hasKey(llvm::StringRef key) const override {
    return numbers.count(key.str()) || strings.count(key.str()) || arrays.count(key.str());
  }
  llvm::Expected<std::optional<uint64_t>> getUInt(llvm::StringRef key) const override {
    return number<uint64_t>(key);
  }
  llvm::Expected<std::optional<int64_t>> getInt(llvm::StringRef key) const override {
    return number<int64_t>(key);
  }
  llvm::Expected<std::optional<double>> getFloat(llvm::StringRef key) const override {
    return number<double>(key);
  }
  llvm::Expected<std::optional<bool>> getBool(llvm::StringRef key) const override {
    auto found = flags.find(key.str());
    return found == flags.end() ? std::optional<bool>() : std::optional<bool>(found->second);
  }
  llvm::Expected<std::optional<llvm::StringRef>> getString(llvm::StringRef key) const override {
    auto found = strings.find(key.str());
    return found == strings.end() ? std::optional<llvm::StringRef>()
                                  : std::optional<llvm::StringRef>(found->second);
  }
  llvm::Expected<std::optional<std::vector<llvm::StringRef>>>
  getStringArray(llvm::StringRef key) const override {
    return key == "tokenizer.ggml.tokens" ? tokens : std::nullopt;
  }
  llvm::Expected<std::optional<std::vector<float>>> getFloatArray(llvm::StringRef) const override {
    return std::optional<std::vector<float>>();
  }
  llvm::Expected<std::optional<std::vector<int64_t>>>
  getIntArray(llvm::StringRef key) const override {
    auto found = arrays.find(key.str());
    return found == arrays.end() ? std::optional<std::vector<int64_t>>()
                                 : std::optional<std::vector<int64_t>>(found->second);
  }
  bool isArray(llvm::StringRef key) const override { return arrays.count(key.str()); }
  llvm::ArrayRef<TensorInfo> tensors() const override { return all; }
  const TensorInfo *findTensor(llvm::StringRef name) const override {
    for (const TensorInfo &info : all)
      if (info.name == name)
        return &info;
    return nullptr;
  }
  void release(const uint8_t *, uint64_t) const override {}
  std::string hash() const override { return ""; }

private:
  template <typename T> llvm::Expected<std::optional<T>> number(llvm::StringRef key) const {
    auto found = numbers.find(key.str());
    return found == numbers.end() ? std::optional<T>() : std::optional<T>(T(found->second));
  }

  std::vector<std::unique_ptr<std::string>> names;
  std::vector<TensorInfo> all;
};

// One layer: 8 wide, 2 heads and 1 key head of 4, feed-forward 16, 10 tokens.
inline void fillDecoder(FakeSource &source, const std::string &architecture) {
  source.strings["general.architecture"] = architecture;
  const std::string prefix = architecture + ".";
  source.numbers = {{prefix + "context_length", 512},
                    {prefix + "embedding_length", 8},
                    {prefix + "block_count", 1},
                    {prefix + "feed_forward_length", 16},
                    {prefix + "attention.head_count", 2},
                    {prefix + "attention.head_count_kv", 1},
                    {prefix + "attention.layer_norm_rms_epsilon", 1e-5}};
  source.addTensor("token_embd.weight", {8, 10}, "f16");
  source.addTensor("blk.0.attn_norm.weight", {8});
  source.addTensor("blk.0.attn_q.weight", {8, 8}, "f16");
  source.addTensor("blk.0.attn_k.weight", {8, 4}, "f16");
  source.addTensor("blk.0.attn_v.weight", {8, 4}, "f16");
  source.addTensor("blk.0.attn_output.weight", {8, 8}, "f16");
  source.addTensor("blk.0.ffn_norm.weight", {8});
  source.addTensor("blk.0.ffn_gate.weight", {8, 16}, "f16");
  source.addTensor("blk.0.ffn_up.weight", {8, 16}, "f16");
  source.addTensor("blk.0.ffn_down.weight", {16, 8}, "f16");
  source.addTensor("output_norm.weight", {8});
  source.addTensor("output.weight", {8, 10}, "bf16");
}

// The IR as text, or "error: " and the sentence.
inline std::string buildText(const FakeSource &source, ModelFacts *facts = nullptr,
                             uint32_t tokens = 0) {
  mlir::MLIRContext context;
  llvm::Expected<Model> model = buildModel(source, context, tokens);
  if (!model)
    return "error: " + llvm::toString(model.takeError());
  if (facts)
    *facts = model->facts;
  std::string text;
  llvm::raw_string_ostream stream(text);
  model->module->print(stream);
  return text;
}

inline testing::AssertionResult contains(llvm::StringRef text, llvm::StringRef part) {
  if (text.contains(part))
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << '"' << part.str() << "\" is not in\n" << text.str();
}

} // namespace izhc::test
