// Reading and checking fields.

#include "compiler/tokenizers/JsonFields.h"
#include "compiler/import/JsonSource.h"
#include "compiler/support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace izhc;

const Json *JsonFields::value(llvm::StringRef key) {
  known.push_back(key);
  const Json *found = object.find(key);
  return found && !found->isNull() ? found : nullptr;
}

llvm::StringRef JsonFields::text(llvm::StringRef key, llvm::StringRef otherwise) {
  const Json *found = value(key);
  if (found && !found->asString())
    expected(key, "a string");
  return found ? found->asString().value_or(otherwise) : otherwise;
}

bool JsonFields::flag(llvm::StringRef key, bool otherwise) {
  const Json *found = value(key);
  if (found && !found->asBool())
    expected(key, "true or false");
  return found ? found->asBool().value_or(otherwise) : otherwise;
}

std::optional<uint64_t> JsonFields::number(llvm::StringRef key) {
  const Json *found = value(key);
  if (found && !found->asUInt())
    expected(key, "an integer of zero or more");
  return found ? found->asUInt() : std::nullopt;
}

std::string JsonFields::problem() const {
  if (!wrong.empty())
    return wrong;
  for (size_t i = 0; i < object.items().size(); ++i)
    if (!object.items()[i].isNull() && !llvm::is_contained(known, object.key(i)))
      return "it has " + quote(object.key(i)) + ", which izh doesn't know";
  return "";
}

void JsonFields::expected(llvm::StringRef key, const char *what) {
  if (wrong.empty())
    wrong = quote(key) + " is " + jsonText(*object.find(key)) + ", expected " + what;
}
