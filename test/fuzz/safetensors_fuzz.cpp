// Model folders on hostile bytes: a safetensors file with a config.json behind
// it, as they are and as an architecture sees them. The last four bytes are the
// length of config.json.

#include "test/fuzz/fuzz.h"
#include "test/unit/compiler/import/folder_files.h"

#include <cstring>

using namespace izhc;
using namespace izhc::test;

static void check(bool fact) {
  if (!fact)
    __builtin_trap();
}

static llvm::Expected<std::vector<int64_t>> backwards(const FolderSource &, int64_t count) {
  std::vector<int64_t> order(std::min<int64_t>(count, 1000));
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = int64_t(order.size() - 1 - i);
  return order;
}

static constexpr TensorRule kRules[] = {
    {"norm", "norm", Change::PlusOne},
    {"exps.*", "l.*.experts.#.w"},
    {"turned", "turned", Change::Transpose, backwards, backwards},
    {"", "old.**"},
};
static constexpr llvm::StringRef kTypes[] = {"toy"};
static void keys(FolderKeys &keys) {
  keys.copyCount("width", "hidden_size");
  keys.set("windows", keys.equals("layer_types", "sliding"));
}
static const FolderMap kMap = {kTypes, "toy", kRules, nullptr, keys};

static void useTensors(const ModelSource &model) {
  for (const TensorInfo &tensor : model.tensors()) {
    check(model.findTensor(tensor.name) != nullptr && tensor.elements() > 0);
    if (!tensor.format || tensor.bytes > 1 << 20)
      continue;
    std::vector<uint8_t> rows(tensor.bytes);
    tensor.readRows(0, tensor.rows(), rows.data());
    if (tensor.reader)
      tensor.reader->release(0, tensor.rows());
  }
  for (const MetaInfo &info : model.metadata())
    check(info.value.size() < 10000);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t config = 0;
  if (size >= 4)
    memcpy(&config, data + (size -= 4), 4);
  config = std::min<size_t>(config, size);
  std::vector<FolderFile> files;
  files.push_back({"model.safetensors", nullptr, {data, size - config}});
  files.push_back({"config.json", nullptr, {data + size - config, config}});
  auto source = FolderSource::open("fuzz", std::move(files));
  if (!source) {
    check(llvm::toString(source.takeError()).rfind("fuzz", 0) == 0);
    return 0;
  }
  useTensors(**source);
  auto model = FolderModel::create(std::move(*source), kMap);
  if (model)
    useTensors(**model);
  else
    check(!llvm::toString(model.takeError()).empty());
  return 0;
}

std::vector<std::vector<uint8_t>> fuzzSeeds() {
  SafetensorsWriter all;
  all.floats("norm", "[2]", {0, 1})
      .floats("l.0.experts.0.w", "[2, 2]", {1, 2, 3, 4})
      .floats("l.0.experts.1.w", "[2, 2]", {5, 6, 7, 8})
      .floats("turned", "[2, 2, 3]", std::vector<float>(12, 1.5f))
      .floats("old.thing", "[]", {1})
      .add("h", "F16", "[4]", Bytes(8))
      .floats("q.weight_scale_inv", "[2, 1]", {1, 2})
      .add("q.weight", "F8_E4M3", "[130, 3]", Bytes(390))
      .add("e_blocks", "U8", "[2, 2, 16]", Bytes(64))
      .add("e_scales", "U8", "[2, 2]", Bytes(4))
      .add("strange", "F4", "[16]", Bytes(8));
  Bytes seed = all.build();
  std::string config = R"({"hidden_size": 8, "tie_word_embeddings": true, "a": {"b": [1, null]},
    "text_config": {"layer_types": ["sliding", "full"], "num_hidden_layers": 2},
    "quantization_config": {"weight_block_size": [128, 128]}})";
  seed.insert(seed.end(), config.begin(), config.end());
  uint32_t length = uint32_t(config.size());
  for (int i = 0; i < 4; ++i)
    seed.push_back(uint8_t(length >> 8 * i));
  return {seed};
}
