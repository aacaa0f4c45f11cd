// Escaping, numbers and the parser for lists of ids.

#include "tools/izh-rt/Json.h"

#include "runtime/include/izh/izh.h"

#include <cmath>
#include <cstdio>

namespace izh::rt {

std::string jsonString(const std::string &text) {
  std::string valid(3 * (text.size() + 8), '\0');
  izh_utf8_stream stream = {};
  size_t length = izh_utf8_feed(&stream, text.data(), text.size(), valid.data());
  length += izh_utf8_finish(&stream, valid.data() + length);
  valid.resize(length);
  std::string out = "\"";
  for (char c : valid) {
    char escape[8];
    switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\t':
      out += "\\t";
      break;
    case '\r':
      out += "\\r";
      break;
    default:
      if (static_cast<unsigned char>(c) >= 0x20) {
        out += c;
        break;
      }
      snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned char>(c));
      out += escape;
    }
  }
  return out + "\"";
}

std::string jsonNumber(double value, int digits) {
  if (!std::isfinite(value))
    return "null";
  char text[40];
  snprintf(text, sizeof(text), "%.*g", digits, value);
  return text;
}

std::string jsonIds(const std::vector<int32_t> &ids) {
  std::string out = "[";
  for (size_t i = 0; i < ids.size(); ++i)
    out += (i ? ", " : "") + std::to_string(ids[i]);
  return out + "]";
}

JsonObject &JsonObject::add(const char *key, const std::string &json) {
  fields += (fields.empty() ? "" : ", ") + jsonString(key) + ": " + json;
  return *this;
}

std::string jsonList(const std::vector<std::string> &items) {
  std::string out = "[";
  for (size_t i = 0; i < items.size(); ++i)
    out += (i ? ", " : "") + items[i];
  return out + "]";
}

namespace {

// A position in the text; every step looks at the length first.
struct Cursor {
  const std::string &text;
  size_t at = 0;

  char peek() const { return at < text.size() ? text[at] : '\0'; }
  bool skip(char c) {
    if (peek() != c)
      return false;
    ++at;
    return true;
  }
  void skipSpace() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r')
      ++at;
  }
  bool integer(int32_t *out) {
    bool negative = skip('-');
    if (peek() < '0' || peek() > '9')
      return false;
    int64_t value = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at) {
      value = value * 10 + (peek() - '0');
      if (value > int64_t(INT32_MAX) + 1)
        return false;
    }
    value = negative ? -value : value;
    if (value > INT32_MAX)
      return false;
    *out = static_cast<int32_t>(value);
    return true;
  }
};

} // namespace

bool parseIds(const std::string &json, std::vector<int32_t> *ids, std::string *error) {
  Cursor cursor{json};
  auto expected = [&](const char *what) {
    *error = std::string("expected ") + what + " at byte " + std::to_string(cursor.at);
    return false;
  };
  ids->clear();
  cursor.skipSpace();
  if (!cursor.skip('['))
    return expected("a list '[' of token ids");
  cursor.skipSpace();
  if (!cursor.skip(']')) {
    for (bool more = true; more;) {
      int32_t id;
      cursor.skipSpace();
      if (!cursor.integer(&id))
        return expected("an integer of 32 bits");
      ids->push_back(id);
      cursor.skipSpace();
      more = cursor.skip(',');
    }
    if (!cursor.skip(']'))
      return expected("',' or ']'");
  }
  cursor.skipSpace();
  if (cursor.at != json.size())
    return expected("the end of the file");
  return true;
}

} // namespace izh::rt
