// The tokenizer of a model folder in memory: built by the compiler, used by the
// runtime.

#pragma once

#include "compiler/tokenizers/Tokenizers.h"
#include "runtime/text/tokenizer.h"
#include "test/unit/compiler/import/folder_files.h"
#include <gtest/gtest.h>

namespace izhc::test {

using Ids = std::vector<int32_t>;

// Of the files, to which a config.json is added.
class FolderTokenizer {
public:
  explicit FolderTokenizer(FolderFiles &files) {
    files.add("config.json", R"({"bos_token_id": 1})");
    auto source = llvm::cantFail(files.open());
    auto bytes = buildTokenizer(*source);
    if (!bytes) {
      refusal = llvm::toString(bytes.takeError());
      return;
    }
    section.resize((bytes->size() + 7) / 8);
    memcpy(section.data(), bytes->data(), bytes->size());
    izh_error error{};
    EXPECT_EQ(izh::Tokenizer::create(section.data(), bytes->size(), &tokenizer, &error), IZH_OK)
        << error.message;
  }
  ~FolderTokenizer() { izh::Tokenizer::destroy(tokenizer); }

  Ids encode(llvm::StringRef text, bool surround = false) const {
    izh::Array<int32_t> ids;
    izh_error error{};
    EXPECT_EQ(tokenizer->encode(text.data(), text.size(), {surround, true}, &ids, &error), IZH_OK)
        << error.message;
    return {ids.begin(), ids.end()};
  }
  std::string decode(const Ids &ids) const {
    izh::Array<char> text;
    EXPECT_TRUE(tokenizer->decode(ids.data(), ids.size(), true, &text));
    return {text.begin(), text.end()};
  }

  // What the runtime says if it can't encode the text, or "".
  std::string failure(llvm::StringRef text) const {
    izh::Array<int32_t> ids;
    izh_error error{};
    return tokenizer->encode(text.data(), text.size(), {false, true}, &ids, &error) == IZH_OK
               ? ""
               : error.message;
  }

  std::string refusal;

private:
  std::vector<uint64_t> section;
  izh::Tokenizer *tokenizer = nullptr;
};

// The same of one tokenizer.json.
inline std::string refusalOf(const std::string &json) {
  FolderFiles files;
  files.add("tokenizer.json", json);
  return FolderTokenizer(files).refusal;
}

} // namespace izhc::test
