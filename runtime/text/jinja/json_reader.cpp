// A strict reader; of two equal keys the last one counts, as in Python.

#include "runtime/text/jinja/json_reader.h"

#include <cstdlib>

namespace izh::jinja {
namespace {

class Reader {
 public:
  Reader(Machine& machine, Text text) : machine_(machine), s_(text) {}

  Value run() {
    const Value value = read();
    blanks();
    if (at_ != s_.size) return bad("the end");
    return machine_.failed() ? Value() : value;
  }

 private:
  Value bad(const char* expected) {
    return machine_.fail("the context is no valid JSON: at byte %u %s is expected", at_, expected);
  }
  char peek() const { return at_ < s_.size ? s_.data[at_] : 0; }
  void blanks() {
    while (at_ < s_.size && (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r'))
      ++at_;
  }
  bool take(Text word) {
    if (!s_.from(at_).starts_with(word)) return false;
    at_ += word.size;
    return true;
  }

  Value read() {
    Level level(machine_);
    if (!level) return {};
    blanks();
    const char c = peek();
    if (c == '{') return object();
    if (c == '[') return array();
    if (c == '"') return string();
    if (take("null")) return make_none();
    if (take("true")) return make_bool(true);
    if (take("false")) return make_bool(false);
    if (c == '-' || (c >= '0' && c <= '9')) return number();
    return bad("a value");
  }

  Value object() {
    const Value out = machine_.dict();
    ++at_;
    blanks();
    if (take("}")) return out;
    while (!machine_.failed()) {
      blanks();
      if (peek() != '"') return bad("a key");
      const Value key = string();
      blanks();
      if (!take(":")) return bad("':'");
      const Value value = read();
      if (!machine_.failed()) machine_.set(out.dict, key, value);
      blanks();
      if (take("}")) break;
      if (!take(",")) return bad("',' or '}'");
    }
    return out;
  }

  Value array() {
    ListBuilder out(machine_);
    ++at_;
    blanks();
    if (take("]")) return out.value();
    while (!machine_.failed()) {
      out.add(read());
      blanks();
      if (take("]")) break;
      if (!take(",")) return bad("',' or ']'");
    }
    return out.value();
  }

  Value number() {
    const uint32_t begin = at_;
    bool real = false;
    while (at_ < s_.size && memchr("+-0123456789.eE", peek(), 15)) {
      real |= peek() == '.' || peek() == 'e' || peek() == 'E';
      ++at_;
    }
    char digits[64], *end;
    const uint32_t size = at_ - begin;
    if (size >= sizeof(digits)) return bad("a shorter number");
    memcpy(digits, s_.data + begin, size);
    digits[size] = 0;
    // Integers of more than 18 digits lose their last ones.
    const bool whole = !real && size <= 18;
    const Value value =
        whole ? make_int(strtoll(digits, &end, 10)) : make_float(strtod(digits, &end));
    return *end == 0 && end != digits ? value : bad("a number");
  }

  int hexadecimal() {
    int value = 0;
    for (int i = 0; i < 4; ++i) {
      if (at_ == s_.size) return -1;
      const char c = s_.data[at_++];
      const int lower = c | 32;
      if (c >= '0' && c <= '9') {
        value = value * 16 + (c - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        value = value * 16 + (lower - 'a' + 10);
      } else {
        return -1;
      }
    }
    return value;
  }

  bool escape(Builder* out) {
    static constexpr char kNames[] = "ntrbf\"\\/", kMeaning[] = "\n\t\r\b\f\"\\/";
    if (at_ == s_.size) return false;
    const char c = s_.data[at_++];
    if (const void* found = c ? memchr(kNames, c, sizeof(kNames) - 1) : nullptr) {
      out->add(kMeaning[static_cast<const char*>(found) - kNames]);
      return true;
    }
    if (c != 'u') return false;
    int unit = hexadecimal();
    if (unit < 0) return false;
    uint32_t point = static_cast<uint32_t>(unit);
    if (unit >= 0xd800 && unit < 0xdc00 && take("\\u")) {
      const int low = hexadecimal();
      if (low < 0) return false;
      const bool pair = low >= 0xdc00 && low < 0xe000;
      point =
          pair ? 0x10000 + ((point & 0x3ff) << 10) + (static_cast<uint32_t>(low) & 0x3ff) : 0xfffd;
    }
    // Halves of a pair are no characters.
    out->add_point(point >= 0xd800 && point < 0xe000 ? 0xfffd : point);
    return true;
  }

  Value string() {
    const uint32_t begin = ++at_;
    while (at_ < s_.size && peek() != '"' && peek() != '\\' && static_cast<uint8_t>(peek()) >= 0x20)
      ++at_;
    if (peek() == '"') return make_string(s_.part(begin, at_++));
    Builder out(machine_);
    out.add(s_.part(begin, at_));
    while (at_ < s_.size && !machine_.failed()) {
      const char c = s_.data[at_];
      if (c == '"') {
        ++at_;
        return out.value();
      }
      if (static_cast<uint8_t>(c) < 0x20) break;
      ++at_;
      if (c != '\\') {
        out.add(c);
      } else if (!escape(&out)) {
        return bad("an escape");
      }
    }
    return bad("the rest of a string");
  }

  Machine& machine_;
  Text s_;
  uint32_t at_ = 0;
};

}  // namespace

Value read_json(Machine& machine, Text json) { return Reader(machine, json).run(); }

}  // namespace izh::jinja
