// Values of templates: what Python's are, as far as templates can see. They are
// copied freely; what they point to lives in a Machine's memory and is not
// changed once it can be seen (but for namespaces and used-up iterators).

#pragma once

#include <cstdint>
#include <cstring>

namespace izh::jinja {

struct Text {
  const char* data = "";
  uint32_t size = 0;

  Text() = default;
  constexpr Text(const char* data, size_t size) : data(data), size(static_cast<uint32_t>(size)) {}
  // A literal.
  template <size_t N>
  constexpr Text(const char (&literal)[N]) : data(literal), size(N - 1) {}

  bool operator==(const Text& other) const {
    return size == other.size && memcmp(data, other.data, size) == 0;
  }
  bool starts_with(const Text& other) const {
    return size >= other.size && memcmp(data, other.data, other.size) == 0;
  }
  bool ends_with(const Text& other) const {
    return size >= other.size && memcmp(data + size - other.size, other.data, other.size) == 0;
  }
  Text from(uint32_t begin) const { return {data + begin, size - begin}; }
  Text part(uint32_t begin, uint32_t end) const { return {data + begin, end - begin}; }
};

enum class Kind : uint8_t {
  kUndefined,  // `text` is the name of what is missing
  kForbidden,  // an attribute that the sandbox hides; else like undefined
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kRange,     // a list of integers with three more behind its end: start, stop, step
  kIterator,  // a list that can be gone through once
  kDict,
  kNamespace,
  kMacro,
  kFunction,
  kMethod,
  kLoop,
};

struct List;
struct Dict;
struct Macro;
struct Method;
struct Loop;

struct Value {
  Kind kind = Kind::kUndefined;
  // Bytes of a string; the number of a function.
  uint32_t size = 0;
  union {
    int64_t integer = 0;
    double real;
    const char* chars;
    List* list;
    Dict* dict;
    const Macro* macro;
    const Method* method;
    Loop* loop;
  };

  bool is(Kind other) const { return kind == other; }
  bool is_undefined() const { return kind <= Kind::kForbidden; }
  bool is_integer() const { return kind == Kind::kInt || kind == Kind::kBool; }
  bool is_number() const { return is_integer() || kind == Kind::kFloat; }
  bool is_listlike() const { return kind >= Kind::kList && kind <= Kind::kIterator; }
  // Can be gone through again and again, by index too.
  bool is_sequence() const { return kind >= Kind::kList && kind <= Kind::kRange; }
  double number() const { return kind == Kind::kFloat ? real : static_cast<double>(integer); }
  // Of strings and undefined values.
  Text text() const { return {chars, size}; }
};

struct List {
  Value* items = nullptr;
  uint32_t size = 0;
};

struct Entry {
  Value key;
  Value value;
};

// In the order of insertion.
struct Dict {
  Entry* entries = nullptr;
  uint32_t size = 0;
  uint32_t capacity = 0;
};

// A method with the value it belongs to.
struct Method {
  Value self;
  Text name;
};

inline Value make_none() {
  Value value;
  value.kind = Kind::kNone;
  return value;
}
inline Value make_bool(bool flag) {
  Value value;
  value.kind = Kind::kBool;
  value.integer = flag;
  return value;
}
inline Value make_int(int64_t number) {
  Value value;
  value.kind = Kind::kInt;
  value.integer = number;
  return value;
}
inline Value make_float(double number) {
  Value value;
  value.kind = Kind::kFloat;
  value.real = number;
  return value;
}
// `text` must outlive the value.
inline Value make_string(Text text) {
  Value value;
  value.kind = Kind::kString;
  value.size = text.size;
  value.chars = text.data;
  return value;
}
inline Value make_undefined(Text name) {
  Value value = make_string(name);
  value.kind = Kind::kUndefined;
  return value;
}

}  // namespace izh::jinja
