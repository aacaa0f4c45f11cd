// The artifact's loader on hostile bytes: it opens or refuses them, and what it
// has opened can be asked for facts and tokens. Nothing is ever run: the code
// of a mutated file is anyone's.
//
// Sections start at multiples of 64 KiB, so nearly all of a file is padding
// that no mutation should waste itself on. An input is therefore either a file
// or, after the byte 'P', its parts: two bytes of length, then so many bytes,
// for each piece of 64 KiB; the rest of a piece is zeroes.

#include "test/fuzz/fuzz.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/exec/model.h"
#include "runtime/schema/header.h"
#include "test/unit/runtime/exec/artifact_builder.h"
#include "test/unit/runtime/text/tokenizer_builder.h"

using Bytes = std::vector<uint8_t>;

namespace {

constexpr size_t kPiece = izh::schema::kSectionAlignment;
constexpr size_t kMaxPieces = 32;
constexpr uint8_t kPacked = 'P';

void check(bool fact) {
  if (!fact)
    __builtin_trap();
}

// Where a part of a packed input lies in the input and in the file.
struct Part {
  size_t packed;
  size_t file;
  size_t size;
};

// The file that `input` stands for. Its length is that of the last part.
Bytes unpack(const uint8_t *input, size_t size, std::vector<Part> *parts) {
  if (size == 0 || input[0] != kPacked)
    return Bytes(input, input + size);
  Bytes file;
  for (size_t at = 1; at + 2 <= size && parts->size() < kMaxPieces;) {
    const size_t length = input[at] | input[at + 1] << 8;
    at += 2;
    const size_t here = std::min(length, size - at);
    const size_t start = parts->size() * kPiece;
    file.resize(start + here);
    std::copy_n(input + at, here, file.begin() + start);
    parts->push_back({at, start, here});
    at += here;
  }
  return file;
}

Bytes pack(const Bytes &file) {
  Bytes input = {kPacked};
  for (size_t start = 0; start < file.size(); start += kPiece) {
    size_t end = std::min(start + kPiece - 1, file.size());
    // Zeroes at the end of the last piece are part of the file's length.
    if (start + kPiece < file.size()) {
      while (end > start && file[end - 1] == 0)
        --end;
    }
    input.push_back(static_cast<uint8_t>(end - start));
    input.push_back(static_cast<uint8_t>((end - start) >> 8));
    input.insert(input.end(), file.begin() + start, file.begin() + end);
  }
  return input;
}

// Right sums, and most often the length that the file really has.
void repairFile(uint8_t *file, size_t size) {
  izh::schema::Header header;
  if (size < sizeof(header))
    return;
  memcpy(&header, file, sizeof(header));
  if (header.checksum % 8 != 0)
    header.file_length = size;
  memcpy(file, &header, sizeof(header));
  izh::test::repair(file, size);
}

void repairInput(uint8_t *input, size_t size) {
  std::vector<Part> parts;
  Bytes file = unpack(input, size, &parts);
  repairFile(file.data(), file.size());
  if (size == 0 || input[0] != kPacked) {
    std::copy(file.begin(), file.end(), input);
    return;
  }
  for (const Part &part : parts) {
    std::copy_n(file.begin() + part.file, part.size, input + part.packed);
  }
}

void useTokenizer(const izh_model *model) {
  const std::string text = "Hello, w\xc3\xb6rld <s>  123\n\xff";
  int32_t ids[64];
  char bytes[64];
  size_t count = 0;
  const izh_tokenize_options options = {true, true};
  izh_error error = {};
  const izh_status status =
      izh_tokenize(model, text.data(), text.size(), &options, ids, 64, &count, &error);
  check((status == IZH_OK) == (error.message[0] == 0));
  if (status != IZH_OK)
    return;
  for (size_t i = 0; i < std::min<size_t>(count, 64); ++i) {
    (void)izh_token_bytes(model, ids[i], true, bytes, sizeof(bytes), &count, nullptr);
    (void)izh_token_ends_text(model, ids[i]);
  }
  (void)izh_token_bytes(model, 5, false, bytes, 0, &count, nullptr);
  (void)izh_token_bos(model);
  (void)izh_token_eos(model);
}

void useModel(const izh_model *model) {
  izh_model_info info;
  izh_model_get_info(model, &info);
  check(strlen(info.name) < info.file_bytes && strlen(info.chat_template) < info.file_bytes);
  check(info.weight_bytes <= info.file_bytes && info.code_bytes <= info.file_bytes);
  for (uint32_t i = 0; i < info.variants; ++i) {
    const char *name = nullptr, *reason = nullptr;
    check(izh_model_variant(model, i, &name, &reason) == IZH_OK);
    check(strlen(name) < info.file_bytes && strlen(reason) < izh::kReasonBytes);
  }
  izh_error error = {};
  check((izh_model_verify(model, &error) == IZH_OK) == (error.message[0] == 0));
  useTokenizer(model);
}

Bytes artifactWith(izh_test::TokenizerBuilder tokenizer, uint32_t variants) {
  izh::test::TestArtifact artifact;
  artifact.first_section = kPiece;
  artifact.tokenizer = tokenizer.build();
  for (uint32_t i = 0; i < variants; ++i) {
    artifact.variants.push_back(
        {"other" + std::to_string(i), izh::test::testArch(), 1ull << i, 2 + i});
  }
  return artifact.build();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::vector<Part> parts;
  const Bytes file = unpack(data, size, &parts);
  // Aligned as a mapped file is, and ending where it ends, so that sanitizers
  // see the first byte beyond it.
  void *memory = nullptr;
  if (posix_memalign(&memory, 4096, std::max<size_t>(file.size(), 1)) != 0)
    return 0;
  std::copy(file.begin(), file.end(), static_cast<uint8_t *>(memory));
  izh_model *model = nullptr;
  izh_error error = {};
  const izh_status status =
      izh::model_open_memory(static_cast<uint8_t *>(memory), file.size(), "fuzz.izh", nullptr,
                             /*run=*/false, &model, &error);
  check((status == IZH_OK) == (model != nullptr) && (status == IZH_OK) == (error.message[0] == 0));
  if (model)
    useModel(model);
  izh_model_close(model);
  free(memory);
  return 0;
}

std::vector<Bytes> fuzzSeeds() {
  izh_test::TokenizerBuilder bytes = izh_test::TokenizerBuilder::bytes();
  bytes.merge("l", "l");
  bytes.merge("H", "e");
  bytes.add("<s>", izh_test::TokenType::Control);
  izh_test::TokenizerBuilder scores = izh_test::TokenizerBuilder::scores();
  scores.add("Hello", izh_test::TokenType::Normal, -1);
  // Packed three times: whole files are mostly padding.
  const Bytes first = artifactWith(bytes, 0), second = artifactWith(scores, 2);
  return {pack(first), pack(second), pack(first), first};
}

void fuzzRepair(Bytes &input) { repairInput(input.data(), input.size()); }

// libFuzzer's own way in: its mutations with repaired sums.
extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  static const std::vector<Bytes> seeds = fuzzSeeds();
  const Bytes &fresh = seeds[seed % seeds.size()];
  // The first inputs that libFuzzer makes up lead nowhere.
  if ((size < 256 || seed % 64 == 0) && fresh.size() <= most) {
    std::copy(fresh.begin(), fresh.end(), data);
    size = fresh.size();
  }
  size = LLVMFuzzerMutate(data, size, most);
  if (seed % 8 != 1)
    repairInput(data, size);
  return size;
}
