// The fields of one object of tokenizer.json. A field of the wrong kind, or one
// that nobody asked for, may change what comes out of the tokenizer, so neither
// is passed over.

#pragma once

#include "compiler/support/Json.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace izhc {

// The object must outlive this. Fields that are null count as absent.
class JsonFields {
public:
  explicit JsonFields(const Json &object) : object(object) {
    if (!object.isObject())
      wrong = "it is no object";
  }

  // Each names a field that may be there; nullptr and `otherwise` if it isn't.
  const Json *value(llvm::StringRef key);
  llvm::StringRef text(llvm::StringRef key, llvm::StringRef otherwise = "");
  bool flag(llvm::StringRef key, bool otherwise);
  std::optional<uint64_t> number(llvm::StringRef key);
  // Fields that change nothing.
  void ignore(std::initializer_list<llvm::StringRef> keys) {
    known.append(keys.begin(), keys.end());
  }

  // The first field of the wrong kind, as a sentence; "" if there is none.
  const std::string &wrongKind() const { return wrong; }
  // The same, or a field that was not named. Call it once all are.
  std::string problem() const;

private:
  void expected(llvm::StringRef key, const char *what);

  const Json &object;
  llvm::SmallVector<llvm::StringRef, 16> known;
  std::string wrong;
};

} // namespace izhc
