// A tokenizer that the compiler built, used by the runtime.

#pragma once

#include "runtime/text/tokenizer.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstring>
#include <gtest/gtest.h>

namespace izhc::test {

using Ids = std::vector<int32_t>;

class BuiltTokenizer {
public:
  BuiltTokenizer() = default;
  BuiltTokenizer(const BuiltTokenizer &) = delete;
  ~BuiltTokenizer() { izh::Tokenizer::destroy(tokenizer); }

  // What the runtime says of the section, or "". Call it once, before the rest.
  std::string open(llvm::ArrayRef<uint8_t> bytes) {
    section.resize((bytes.size() + 7) / 8);
    memcpy(section.data(), bytes.data(), bytes.size());
    izh_error error{};
    return izh::Tokenizer::create(section.data(), bytes.size(), &tokenizer, &error) == IZH_OK
               ? ""
               : error.message;
  }

  Ids encode(llvm::StringRef text, bool surround, bool special) const {
    izh::Array<int32_t> ids;
    izh_error error{};
    EXPECT_EQ(tokenizer->encode(text.data(), text.size(), {surround, special}, &ids, &error),
              IZH_OK)
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

private:
  std::vector<uint64_t> section;
  izh::Tokenizer *tokenizer = nullptr;
};

} // namespace izhc::test
