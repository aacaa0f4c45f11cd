// `izhc tokenize`: builds the tokenizer section that compile would write, and
// encodes with the runtime's own code.

#include "tools/izhc/Report.h"
#include "compiler/support/Error.h"

namespace izhc::tool {

int tokenize(const TokenizeArguments &arguments) {
  return report(makeError("tokenize is not available yet"));
}

} // namespace izhc::tool
