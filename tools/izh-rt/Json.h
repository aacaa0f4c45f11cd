// The little JSON that izh-rt speaks: objects written field by field, and
// lists of integers read.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace izh::rt {

// `text` as a JSON string with its quotes. Bytes that are not UTF-8 become
// U+FFFD.
std::string jsonString(const std::string &text);
// A finite number with up to `digits` significant digits; null otherwise.
std::string jsonNumber(double value, int digits = 6);
std::string jsonIds(const std::vector<int32_t> &ids);

// Builds `{"a": 1, "b": ...}`; values are JSON already.
class JsonObject {
public:
  JsonObject &add(const char *key, const std::string &json);
  JsonObject &text(const char *key, const std::string &value) {
    return add(key, jsonString(value));
  }
  JsonObject &number(const char *key, double value, int digits = 6) {
    return add(key, jsonNumber(value, digits));
  }
  JsonObject &count(const char *key, uint64_t value) { return add(key, std::to_string(value)); }
  std::string str() const { return "{" + fields + "}"; }

private:
  std::string fields;
};

std::string jsonList(const std::vector<std::string> &items);

// Parses a list of integers of 32 bits. On failure returns false and `*error`
// says at which byte what was found.
bool parseIds(const std::string &json, std::vector<int32_t> *ids, std::string *error);

} // namespace izh::rt
