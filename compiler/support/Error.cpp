// Escaping of foreign text in messages.

#include "compiler/support/Error.h"

#include "llvm/ADT/StringExtras.h"

std::string izhc::quote(llvm::StringRef text, size_t limit) {
  std::string result = "'";
  for (unsigned char byte : text.take_front(limit)) {
    if (llvm::isPrint(byte)) {
      result += static_cast<char>(byte);
      continue;
    }
    result += "\\x";
    result += llvm::hexdigit(byte >> 4);
    result += llvm::hexdigit(byte & 15);
  }
  result += text.size() > limit ? "...'" : "'";
  return result;
}
