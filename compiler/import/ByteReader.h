// Reads little-endian values one after the other and never past the end: the
// only way in which import touches bytes of a file whose sense it doesn't
// know yet.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <type_traits>

namespace izhc {

class ByteReader {
public:
  explicit ByteReader(llvm::ArrayRef<uint8_t> bytes) : bytes(bytes) {}

  uint64_t position() const { return at; }
  uint64_t left() const { return bytes.size() - at; }

  // All reads return false, and change nothing, if too little is left.
  template <typename T> [[nodiscard]] bool read(T &value) {
    static_assert(std::is_integral_v<T>);
    if (left() < sizeof(T))
      return false;
    value = decode<T>(bytes.data() + at);
    at += sizeof(T);
    return true;
  }
  // A length of 64 bits and as many bytes, which stay where they are.
  [[nodiscard]] bool readString(llvm::StringRef &value) {
    uint64_t length;
    if (left() < sizeof(length))
      return false;
    length = decode<uint64_t>(bytes.data() + at);
    if (length > left() - sizeof(length))
      return false;
    value = {reinterpret_cast<const char *>(bytes.data()) + at + sizeof(length),
             static_cast<size_t>(length)};
    at += sizeof(length) + length;
    return true;
  }
  [[nodiscard]] bool skip(uint64_t count) {
    if (left() < count)
      return false;
    at += count;
    return true;
  }

  // The value at `from`, on a machine of any byte order.
  template <typename T> static T decode(const uint8_t *from) {
    std::make_unsigned_t<T> value = 0;
    for (unsigned i = 0; i < sizeof(T); ++i)
      value |= static_cast<std::make_unsigned_t<T>>(from[i]) << 8 * i;
    return static_cast<T>(value);
  }

private:
  llvm::ArrayRef<uint8_t> bytes;
  uint64_t at = 0;
};

} // namespace izhc
