// The printable characters by which byte-level vocabularies write bytes.

#pragma once

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace izhc {

// The character of `byte`, in UTF-8.
std::string byteCharacter(uint8_t byte);
// The bytes that `text` stands for; std::nullopt if a character of it stands
// for none.
std::optional<std::string> decodeByteText(llvm::StringRef text);

} // namespace izhc
