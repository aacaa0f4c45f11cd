// The runtime's reader, in the compiler's types.

#include "tools/izhc/InputText.h"

#include "compiler/support/Error.h"
#include "runtime/platform/input_text.h"

llvm::Expected<std::string> izhc::tool::readText(llvm::StringRef path) {
  izh::Array<char> text;
  izh_error error = {};
  if (izh::read_input(path.str().c_str(), &text, &error) != IZH_OK)
    return makeError("{0}", error.message);
  return std::string(text.data(), text.size());
}
