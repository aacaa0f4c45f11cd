// Builds small GGUF files in memory for tests and fuzzers. Writes what it is
// told, sense or nonsense.

#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace izhc::test {

using Bytes = std::vector<uint8_t>;

// Little-endian pieces of a file.
class ByteWriter {
public:
  template <typename T> ByteWriter &put(T value) {
    static_assert(std::is_arithmetic_v<T>);
    uint8_t raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes.insert(bytes.end(), raw, raw + sizeof(T));
    return *this;
  }
  ByteWriter &string(const std::string &text) {
    put<uint64_t>(text.size());
    bytes.insert(bytes.end(), text.begin(), text.end());
    return *this;
  }
  Bytes bytes;
};

struct GgufWriter {
  // The magic, read as a number.
  uint32_t magic = 0x46554747;
  uint32_t version = 3;
  uint64_t alignment = 32;
  uint64_t keyCount = 0, tensorCount = 0;
  ByteWriter keys, tensors;
  Bytes data;

  // A key whose value is `payload`; types are numbered as in the file.
  GgufWriter &key(const std::string &name, uint32_t type, const Bytes &payload) {
    keys.string(name).put(type);
    keys.bytes.insert(keys.bytes.end(), payload.begin(), payload.end());
    ++keyCount;
    return *this;
  }
  template <typename T> GgufWriter &number(const std::string &name, uint32_t type, T value) {
    return key(name, type, ByteWriter().put(value).bytes);
  }
  GgufWriter &u32(const std::string &name, uint32_t value) { return number(name, 4, value); }
  GgufWriter &f32(const std::string &name, float value) { return number(name, 6, value); }
  GgufWriter &string(const std::string &name, const std::string &value) {
    return key(name, 8, ByteWriter().string(value).bytes);
  }
  GgufWriter &strings(const std::string &name, const std::vector<std::string> &values) {
    ByteWriter payload;
    payload.put<uint32_t>(8).put<uint64_t>(values.size());
    for (const std::string &value : values)
      payload.string(value);
    return key(name, 9, payload.bytes);
  }
  template <typename T>
  GgufWriter &array(const std::string &name, uint32_t type, const std::vector<T> &values) {
    ByteWriter payload;
    payload.put(type).put<uint64_t>(values.size());
    for (T value : values)
      payload.put(value);
    return key(name, 9, payload.bytes);
  }

  // A tensor at an offset of its own.
  GgufWriter &tensorAt(const std::string &name, const std::vector<uint64_t> &shape, uint32_t type,
                       uint64_t offset) {
    tensors.string(name).put<uint32_t>(static_cast<uint32_t>(shape.size()));
    for (uint64_t size : shape)
      tensors.put(size);
    tensors.put(type).put(offset);
    ++tensorCount;
    return *this;
  }
  // A tensor behind the others.
  GgufWriter &tensor(const std::string &name, const std::vector<uint64_t> &shape, uint32_t type,
                     const Bytes &content) {
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    tensorAt(name, shape, type, data.size());
    data.insert(data.end(), content.begin(), content.end());
    return *this;
  }

  Bytes build() const {
    ByteWriter file;
    file.put(magic).put(version).put(tensorCount).put(keyCount);
    for (const Bytes *part : {&keys.bytes, &tensors.bytes})
      file.bytes.insert(file.bytes.end(), part->begin(), part->end());
    if (tensorCount == 0)
      return file.bytes;
    file.bytes.resize((file.bytes.size() + alignment - 1) / alignment * alignment);
    file.bytes.insert(file.bytes.end(), data.begin(), data.end());
    return file.bytes;
  }
};

} // namespace izhc::test
