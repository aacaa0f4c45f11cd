// The tree is built from the library's events, which come without recursion;
// so limits hold before memory is spent.

#include "compiler/support/Json.h"

#include "compiler/support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/StringSaver.h"

#include <bit>
#include <nlohmann/json.hpp>

namespace izhc {

Json Json::of(bool value) {
  Json json;
  json.what = Kind::Bool;
  json.bits = value;
  return json;
}

Json Json::of(int64_t value) {
  Json json;
  json.what = Kind::Integer;
  json.bits = uint64_t(value);
  json.negative = value < 0;
  return json;
}

Json Json::of(double value) {
  Json json;
  json.what = Kind::Float;
  json.bits = std::bit_cast<uint64_t>(value);
  return json;
}

Json Json::of(llvm::StringRef value) {
  Json json;
  json.what = Kind::String;
  json.text = std::make_unique<std::string>(value.str());
  return json;
}

Json Json::of(std::vector<Json> items) {
  Json json;
  json.what = Kind::Array;
  json.inner = std::make_unique<Inner>();
  json.inner->children = std::move(items);
  return json;
}

std::optional<bool> Json::asBool() const {
  return what == Kind::Bool ? std::optional<bool>(bits != 0) : std::nullopt;
}

std::optional<int64_t> Json::asInt() const {
  if (what != Kind::Integer || (!negative && bits > uint64_t(INT64_MAX)))
    return std::nullopt;
  return int64_t(bits);
}

std::optional<uint64_t> Json::asUInt() const {
  if (what != Kind::Integer || negative)
    return std::nullopt;
  return bits;
}

std::optional<double> Json::asNumber() const {
  if (what == Kind::Float)
    return std::bit_cast<double>(bits);
  if (what == Kind::Integer)
    return negative ? double(int64_t(bits)) : double(bits);
  return std::nullopt;
}

std::optional<llvm::StringRef> Json::asString() const {
  return what == Kind::String ? std::optional<llvm::StringRef>(*text) : std::nullopt;
}

const Json *Json::find(llvm::StringRef key) const {
  if (!isObject() || !inner)
    return nullptr;
  if (!inner->index.empty()) {
    auto found = inner->index.find(llvm::CachedHashStringRef(key));
    return found == inner->index.end() ? nullptr : &inner->children[found->second];
  }
  auto found = llvm::find(inner->keys, key);
  return found == inner->keys.end() ? nullptr : &inner->children[found - inner->keys.begin()];
}

const Json *Json::findPath(llvm::StringRef path) const {
  const Json *value = this;
  while (value && !path.empty()) {
    auto [first, rest] = path.split('.');
    value = value->find(first);
    path = rest;
  }
  return value;
}

// Receives the library's events. `open` are the arrays and objects around the
// value that comes next.
class JsonReader {
public:
  using Text = std::string;
  using Binary = nlohmann::json::binary_t;

  JsonReader(llvm::StringRef name, const JsonLimits &limits) : name(name), limits(limits) {}

  llvm::Expected<Json> run(llvm::ArrayRef<uint8_t> bytes) {
    bool good = nlohmann::json::sax_parse(bytes.begin(), bytes.end(), this,
                                          nlohmann::json::input_format_t::json);
    if (good)
      return std::move(root);
    return makeError("{0}: {1}", name, problem.empty() ? "this is no valid JSON" : problem);
  }

  bool null() { return add(Json::Kind::Null) != nullptr; }
  bool boolean(bool value) { return number(Json::Kind::Bool, value); }
  bool number_integer(int64_t value) {
    Json *added = add(Json::Kind::Integer);
    if (!added)
      return false;
    added->bits = uint64_t(value);
    added->negative = value < 0;
    return true;
  }
  bool number_unsigned(uint64_t value) { return number(Json::Kind::Integer, value); }
  bool number_float(double value, const Text &) {
    return number(Json::Kind::Float, std::bit_cast<uint64_t>(value));
  }
  bool string(Text &value) {
    Json *added = add(Json::Kind::String);
    if (!added)
      return false;
    added->text = std::make_unique<std::string>(std::move(value));
    return true;
  }
  bool binary(Binary &) { return fail("this is no text"); }
  bool start_object(size_t) { return begin(Json::Kind::Object); }
  bool key(Text &value) {
    Json &object = *open.back();
    if (object.find(value))
      return fail("the key " + quote(value) + " appears twice in one object");
    Json::Inner &inner = innerOf(object);
    inner.texts = texts;
    inner.keys.push_back(texts->saver.save(llvm::StringRef(value)));
    auto add = [&](size_t i) {
      inner.index.try_emplace(llvm::CachedHashStringRef(inner.keys[i]), uint32_t(i));
    };
    if (inner.keys.size() > kFewKeys)
      add(inner.keys.size() - 1);
    for (size_t i = 0; inner.keys.size() == kFewKeys + 1 && i < kFewKeys; ++i)
      add(i);
    return true;
  }
  bool end_object() { return end(); }
  bool start_array(size_t) { return begin(Json::Kind::Array); }
  bool end_array() { return end(); }
  bool parse_error(size_t position, const Text &, const nlohmann::json::exception &) {
    return fail("this is no valid JSON near byte " + std::to_string(position));
  }

private:
  bool fail(std::string what) {
    if (problem.empty())
      problem = std::move(what);
    return false;
  }

  Json *add(Json::Kind kind) {
    if (++count > limits.values) {
      fail("this JSON has more than " + std::to_string(limits.values) + " values");
      return nullptr;
    }
    Json *place = &root;
    if (!open.empty()) {
      // The parent is the only one on the stack whose children may move.
      std::vector<Json> &children = innerOf(*open.back()).children;
      children.emplace_back();
      place = &children.back();
    }
    place->what = kind;
    return place;
  }

  static Json::Inner &innerOf(Json &json) {
    if (!json.inner)
      json.inner = std::make_unique<Json::Inner>();
    return *json.inner;
  }

  bool number(Json::Kind kind, uint64_t bits) {
    Json *added = add(kind);
    if (added)
      added->bits = bits;
    return added != nullptr;
  }

  bool begin(Json::Kind kind) {
    if (open.size() >= limits.depth)
      return fail("this JSON is nested deeper than " + std::to_string(limits.depth) + " levels");
    Json *added = add(kind);
    if (added)
      open.push_back(added);
    return added != nullptr;
  }

  bool end() {
    open.pop_back();
    return true;
  }

  struct Texts {
    llvm::BumpPtrAllocator memory;
    llvm::UniqueStringSaver saver{memory};
  };
  // Objects with no more keys are looked through one by one.
  static constexpr size_t kFewKeys = 16;

  llvm::StringRef name;
  const JsonLimits &limits;
  std::shared_ptr<Texts> texts = std::make_shared<Texts>();
  Json root;
  std::vector<Json *> open;
  uint64_t count = 0;
  std::string problem;
};

llvm::Expected<Json> parseJson(llvm::StringRef name, llvm::ArrayRef<uint8_t> bytes,
                               const JsonLimits &limits) {
  return JsonReader(name, limits).run(bytes);
}

} // namespace izhc
