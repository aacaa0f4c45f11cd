// JSON from files that may be hostile, as a tree. Depth, size and memory are
// limited while reading; asking a value for what it is not is no error but
// gives nothing.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/CachedHashString.h"
#include "llvm/ADT/DenseMap.h"
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
  // Values of all kinds; each costs 32 bytes, and its text.
  uint64_t values = 10u << 20;
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
  llvm::ArrayRef<Json> items() const {
    return inner ? llvm::ArrayRef<Json>(inner->children) : llvm::ArrayRef<Json>();
  }
  // The name of items()[index] of an object.
  llvm::StringRef key(size_t index) const { return inner->keys[index]; }
  // nullptr if this is no object or has no such key.
  const Json *find(llvm::StringRef key) const;
  // The same along a path "a.b.c".
  const Json *findPath(llvm::StringRef path) const;

private:
  friend class JsonReader;
  // Of arrays and objects that aren't empty.
  struct Inner {
    std::vector<Json> children;
    std::vector<llvm::StringRef> keys;
    // Of objects with more than a few keys; names are equal in many objects of a
    // file, which hold them together in `texts`.
    llvm::DenseMap<llvm::CachedHashStringRef, uint32_t> index;
    std::shared_ptr<const void> texts;
  };

  Kind what = Kind::Null;
  bool negative = false;
  // Bits of the bool, integer or float.
  uint64_t bits = 0;
  std::unique_ptr<std::string> text;
  std::unique_ptr<Inner> inner;
};

// Reads `bytes`; `name` is the file, for messages. Not JSON, deeper or larger
// than the limits, a key twice in one object: an error.
llvm::Expected<Json> parseJson(llvm::StringRef name, llvm::ArrayRef<uint8_t> bytes,
                               const JsonLimits &limits = {});

} // namespace izhc
