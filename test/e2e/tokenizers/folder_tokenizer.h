// The tokenizer of a model folder in memory: built by the compiler, used by the
// runtime.

#pragma once

#include "compiler/tokenizers/Tokenizers.h"
#include "test/e2e/tokenizers/built_tokenizer.h"
#include "test/unit/compiler/import/folder_files.h"
#include "tools/izhc/ChangedText.h"

namespace izhc::test {

// Of the files, to which a config.json is added.
class FolderTokenizer : public BuiltTokenizer {
public:
  explicit FolderTokenizer(FolderFiles &files) {
    files.add("config.json", R"({"bos_token_id": 1})");
    auto source = llvm::cantFail(files.open());
    auto bytes = buildTokenizer(*source, tool::changeText);
    if (bytes)
      EXPECT_EQ(open(*bytes), "");
    else
      refusal = llvm::toString(bytes.takeError());
  }

  Ids encode(llvm::StringRef text, bool surround = false) const {
    return BuiltTokenizer::encode(text, surround, true);
  }

  std::string refusal;
};

// The same of one tokenizer.json.
inline std::string refusalOf(const std::string &json) {
  FolderFiles files;
  files.add("tokenizer.json", json);
  return FolderTokenizer(files).refusal;
}

} // namespace izhc::test
