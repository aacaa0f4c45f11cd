// The GGUF reader on hostile bytes: it opens or refuses them, and what it has
// opened can be read through every getter.

#include "test/fuzz/fuzz.h"
#include "test/unit/compiler/import/gguf_writer.h"

#include "compiler/import/Gguf.h"

using namespace izhc;
using izhc::test::Bytes;
using izhc::test::ByteWriter;
using izhc::test::GgufWriter;

static void check(bool fact) {
  if (!fact)
    __builtin_trap();
}

template <typename T> static void use(llvm::Expected<T> value) {
  if (!value)
    check(!llvm::toString(value.takeError()).empty());
}

static void useMetadata(const ModelSource &model) {
  for (const MetaInfo &info : model.metadata()) {
    llvm::StringRef key = info.key;
    check(model.hasKey(key) && info.value.size() < 10000);
    use(model.getUInt(key));
    use(model.getInt(key));
    use(model.getFloat(key));
    use(model.getBool(key));
    use(model.getString(key));
    use(model.getStringArray(key));
    use(model.getFloatArray(key));
    use(model.getIntArray(key));
    use(model.requireUInt(key, 1, 1000));
  }
}

// Tensors lie inside of the file, and together need no more than it has.
static void useTensors(const ModelSource &model, const uint8_t *data, size_t size) {
  uint64_t sum = 0;
  for (const TensorInfo &tensor : model.tensors()) {
    check(model.findTensor(tensor.name) == &tensor);
    check(tensor.elements() > 0);
    use(model.requireTensor(tensor.name));
    use(model.requireTensor(tensor.name, {32, 2}));
    if (!tensor.format)
      continue;
    check(tensor.data >= data && tensor.bytes <= size && tensor.data + tensor.bytes <= data + size);
    check(tensor.bytes == static_cast<uint64_t>(tensor.rows()) * tensor.rowBytes());
    sum += tensor.bytes;
  }
  check(sum <= size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto model = openGgufBytes("fuzz.gguf", {data, size});
  if (!model) {
    check(llvm::toString(model.takeError()).rfind("fuzz.gguf: ", 0) == 0);
    return 0;
  }
  useMetadata(**model);
  useTensors(**model, data, size);
  check((*model)->hash().size() == 32);
  return 0;
}

std::vector<std::vector<uint8_t>> fuzzSeeds() {
  Bytes nested = ByteWriter()
                     .put<uint32_t>(9)
                     .put<uint64_t>(1)
                     .put<uint32_t>(8)
                     .put<uint64_t>(1)
                     .string("deep")
                     .bytes;
  GgufWriter all;
  all.string("general.architecture", "llama")
      .u32("general.alignment", 64)
      .u32("llama.block_count", 1)
      .f32("llama.rope.freq_base", 10000)
      .number<double>("f64", 12, 0.5)
      .number<uint8_t>("bool", 7, 1)
      .number<int8_t>("i8", 1, -1)
      .number<uint16_t>("u16", 2, 2)
      .number<int16_t>("i16", 3, -3)
      .number<int32_t>("i32", 5, -4)
      .number<uint64_t>("u64", 10, 5)
      .number<int64_t>("i64", 11, -6)
      .strings("tokenizer.ggml.tokens", {"<s>", "", "hello", "world"})
      .array<float>("tokenizer.ggml.scores", 6, {0, -1, -2})
      .array<int32_t>("tokenizer.ggml.token_type", 5, {3, 1, 1, 1})
      .array<uint8_t>("flags", 7, {1, 0, 1})
      .key("nested", 9, nested);
  all.alignment = 64;
  uint32_t type = 0;
  for (const FormatSpec *format : allFormats())
    all.tensor("blk." + std::to_string(type++) + ".weight", {format->blockWeights, 2},
               format->ggufType, Bytes(2 * format->blockBytes, 0x35));
  all.tensor("unknown.weight", {256}, 999, Bytes(64));

  GgufWriter small;
  small.version = 2;
  small.string("general.architecture", "qwen2").tensor("w", {32, 2}, 2, Bytes(36));
  return {all.build(), small.build()};
}
