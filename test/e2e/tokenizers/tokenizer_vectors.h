// A tokenizer with texts and the ids that the library it comes from gave
// (vectors/, written by make_vectors.py).

#pragma once

#include "compiler/tokenizers/Tokenizers.h"
#include "test/e2e/tokenizers/built_tokenizer.h"
#include "test/unit/compiler/import/folder_files.h"
#include "tools/izhc/ChangedText.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

namespace izhc::test {

struct TokenizerVectors {
  // Fails the test where it can't be read.
  explicit TokenizerVectors(llvm::StringRef name) {
    std::string path =
        (llvm::Twine(IZH_SOURCE_DIR "/test/e2e/tokenizers/vectors/") + name + ".json").str();
    auto file = llvm::MemoryBuffer::getFile(path);
    if (!file) {
      ADD_FAILURE() << path;
      abort();
    }
    auto parsed = llvm::cantFail(llvm::json::parse((*file)->getBuffer()));
    const llvm::json::Object &root = *parsed.getAsObject();
    FolderFiles files;
    files.add("config.json", "{}");
    for (const auto &[name, content] : *root.getObject("files")) {
      llvm::StringRef text = *content.getAsString();
      std::vector<char> bytes(text.begin(), text.end());
      if (name == "tokenizer.model")
        llvm::cantFail(llvm::decodeBase64(text, bytes));
      files.add(llvm::StringRef(name).str(), Bytes(bytes.begin(), bytes.end()));
    }
    // One library looks for special tokens in a text, the other doesn't.
    special = root.getObject("files")->get("tokenizer.json") != nullptr;
    for (const llvm::json::Value &text : *root.getArray("texts"))
      texts.push_back(text.getAsString()->str());
    for (const llvm::json::Value &list : *root.getArray("ids"))
      for (ids.emplace_back(); const llvm::json::Value &id : *list.getAsArray())
        ids.back().push_back(int32_t(*id.getAsInteger()));
    EXPECT_EQ(texts.size(), ids.size());
    section = llvm::cantFail(buildTokenizer(*llvm::cantFail(files.open()), tool::changeText));
  }

  bool special = false;
  std::vector<std::string> texts;
  std::vector<Ids> ids;
  std::vector<uint8_t> section;
};

} // namespace izhc::test
