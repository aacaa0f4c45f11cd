// What to use instead of a command that there isn't: what others call the same,
// what izh-rt does, or a word that is spelled alike.

#include "tools/izhc/Commands.h"
#include "llvm/ADT/StringRef.h"
#include <utility>

namespace izhc::tool {

std::string suggestCommand(const std::string &given, const std::vector<std::string> &commands) {
  constexpr std::pair<llvm::StringRef, llvm::StringRef> kElsewhere[] = {
      {"quantize", "izhc compile MODEL --quant RECIPE"},
      {"quant", "izhc compile MODEL --quant RECIPE"},
      {"convert", "izhc compile MODEL"},
      {"build", "izhc compile MODEL"},
      {"info", "izhc inspect FILE"},
      {"run", "izh-rt run FILE"},
      {"chat", "izh-rt chat FILE"},
      {"bench", "izh-rt bench FILE"},
      {"logits", "izh-rt logits FILE"},
      {"perplexity", "izh-rt perplexity FILE"},
      {"verify", "izh-rt verify FILE"},
      {"devices", "izh-rt devices"},
  };
  llvm::StringRef word = given;
  for (auto [name, use] : kElsewhere)
    if (word == name)
      return ": use '" + use.str() + "'";
  constexpr unsigned kMostEdits = 2;
  for (const std::string &command : commands)
    if (word.edit_distance(command, /*AllowReplacements=*/true, kMostEdits) <= kMostEdits)
      return ": did you mean '" + command + "'?";
  return "";
}

} // namespace izhc::tool
