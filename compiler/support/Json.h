// JSON from files that may be hostile, as a tree. Depth, size and memory are
// limited while reading; asking a value for what it is not is no error but
// gives nothing.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace izhc {

struct JsonLimits {
  unsigned depth = 64;
  // Values of all kinds; each costs about 50 bytes.
  uint64_t values = 16u << 20;
};

class Json {
public:
  enum class Kind : uint8_t { Null, Bool, Integer, Float, String, Array, Object };

  // Values that no file holds.
  static Json of(bool value);
  static Json of(int64_t value);
  static Json of(double value);
  static Json of(llvm::StringRef value);
  static Json of(std::vector<Json> items);

  Kind kind() const { return what; }
  bool isNull() const { return what == Kind::Null; }
  bool isArray() const { return what == Kind::Array; }
  bool isObject() const { return what == Kind::Object; }

  std::optional<bool> asBool() const;
  // Integers of 64 bits; floats never count as integers.
  std::optional<int64_t> asInt() const;
  std::optional<uint64_t> asUInt() const;
  // All numbers.
  std::optional<double> asNumber() const;
  std::optional<llvm::StringRef> asString() const;

  // The elements of an array, or the values of an object in the file's order;
  // otherwise empty.
  llvm::ArrayRef<Json> items() const { return children; }
  // The name of items()[index] of an object.
  llvm::StringRef key(size_t index) const { return names->keys[index]; }
  // nullptr if this is no object or has no such key.
  const Json *find(llvm::StringRef key) const;
  // The same along a path "a.b.c".
  const Json *findPath(llvm::StringRef path) const;

private:
  friend class JsonReader;
  struct Names {
    std::vector<std::string> keys;
    llvm::StringMap<uint32_t> index;
  };

  Kind what = Kind::Null;
  bool negative = false;
  // Bits of the bool, integer or float.
  uint64_t bits = 0;
  std::unique_ptr<std::string> text;
  std::unique_ptr<Names> names;
  std::vector<Json> children;
};

// Reads `bytes`; `name` is the file, for messages. Not JSON, deeper or larger
// than the limits, a key twice in one object: an error.
llvm::Expected<Json> parseJson(llvm::StringRef name, llvm::ArrayRef<uint8_t> bytes,
                               const JsonLimits &limits = {});

} // namespace izhc
