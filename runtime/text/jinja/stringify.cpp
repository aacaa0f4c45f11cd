// Values as text: str(), repr() and json.dumps() of Python.

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/interpreter.h"

namespace izh::jinja {
namespace {

void write_repr_text(Text text, Builder* out) {
  const bool single = memchr(text.data, '\'', text.size) != nullptr;
  const bool both = single && memchr(text.data, '"', text.size) != nullptr;
  const char quote = single && !both ? '"' : '\'';
  out->add(quote);
  for (uint32_t at = 0, bytes; at < text.size; at += bytes) {
    bytes = character_bytes(text.data[at]);
    const uint32_t c = character_at(text, at);
    if (c == '\\' || c == static_cast<uint8_t>(quote)) {
      out->add('\\');
      out->add(static_cast<char>(c));
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out->add(c == '\n' ? Text("\\n") : c == '\r' ? Text("\\r") : Text("\\t"));
    } else if (is_printable(c)) {
      out->add(text.part(at, at + bytes));
    } else {
      out->format(c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
    }
  }
  out->add(quote);
}

void write_items(Machine& machine, const Value& value, Builder* out) {
  const bool tuple = value.is(Kind::kTuple);
  out->add(tuple ? '(' : '[');
  for (uint32_t i = 0; i < value.list->size && !machine.failed(); ++i) {
    if (i != 0) out->add(", ");
    write_repr(machine, value.list->items[i], out);
  }
  if (tuple && value.list->size == 1) out->add(',');
  out->add(tuple ? ')' : ']');
}

// `bounds`: start, stop and step.
void write_range(const Value* bounds, Builder* out) {
  const auto number = [bounds](int i) { return static_cast<long long>(bounds[i].integer); };
  out->format("range(%lld, %lld", number(0), number(1));
  if (number(2) != 1) out->format(", %lld", number(2));
  out->add(')');
}

void write_entries(Machine& machine, const Dict& dict, Builder* out) {
  out->add('{');
  for (uint32_t i = 0; i < dict.size && !machine.failed(); ++i) {
    if (i != 0) out->add(", ");
    write_repr(machine, dict.entries[i].key, out);
    out->add(": ");
    write_repr(machine, dict.entries[i].value, out);
  }
  out->add('}');
}

// A string of JSON.
void write_json_text(Text text, bool ascii, Builder* out) {
  out->add('"');
  uint32_t plain = 0;
  for (uint32_t at = 0, bytes; at < text.size; at += bytes) {
    bytes = character_bytes(text.data[at]);
    const auto c = static_cast<uint8_t>(text.data[at]);
    if (c >= 0x20 && c != '"' && c != '\\' && !(ascii && c >= 0x7f && bytes > 1)) continue;
    out->add(text.part(plain, at));
    plain = at + bytes;
    static constexpr char kNames[] = "nrtbf\"\\", kMeaning[] = "\n\r\t\b\f\"\\";
    if (const void* found = bytes == 1 ? memchr(kMeaning, c, sizeof(kMeaning) - 1) : nullptr) {
      out->add('\\');
      out->add(kNames[static_cast<const char*>(found) - kMeaning]);
      continue;
    }
    const uint32_t point = character_at(text, at);
    if (point < 0x10000) {
      out->format("\\u%04x", point);
    } else {
      out->format("\\u%04x\\u%04x", 0xd800 + ((point - 0x10000) >> 10), 0xdc00 + (point & 0x3ff));
    }
  }
  out->add(text.from(plain));
  out->add('"');
}

class JsonWriter {
 public:
  JsonWriter(Machine& machine, const JsonStyle& style, Builder* out)
      : machine_(machine), style_(style), out_(out) {}

  void write(const Value& value) {
    Level level(machine_);
    if (!level) return;
    switch (value.kind) {
      case Kind::kNone:
        return out_->add("null");
      case Kind::kBool:
        return out_->add(value.integer ? Text("true") : Text("false"));
      case Kind::kInt:
        return out_->format("%lld", static_cast<long long>(value.integer));
      case Kind::kFloat:
        if (std::isnan(value.real)) return out_->add("NaN");
        if (std::isinf(value.real))
          return out_->add(value.real > 0 ? Text("Infinity") : Text("-Infinity"));
        return write_float(value.real, out_);
      case Kind::kString:
        return write_json_text(value.text(), style_.ascii, out_);
      case Kind::kList:
      case Kind::kTuple:
        return write_list(*value.list);
      case Kind::kDict:
        return write_dict(*value.dict);
      default:
        machine_.fail("%s can't be written as JSON", kind_name(value));
    }
  }

 private:
  void new_line() {
    if (!style_.indent.data) return;
    out_->add('\n');
    for (uint32_t i = 0; i < depth_ && machine_.charge(1); ++i) out_->add(style_.indent);
  }

  void write_list(const List& list) {
    out_->add('[');
    ++depth_;
    for (uint32_t i = 0; i < list.size && !machine_.failed(); ++i) {
      if (i != 0) out_->add(style_.item_separator);
      new_line();
      write(list.items[i]);
    }
    --depth_;
    if (list.size != 0) new_line();
    out_->add(']');
  }

  void write_dict(const Dict& dict) {
    Value* order = machine_.make_array<Value>(2 * size_t{dict.size});
    if (!order) return;
    for (uint32_t i = 0; i < dict.size; ++i) order[i] = make_int(i);
    if (style_.sort_keys) {
      merge_sort(
          machine_, order, order + dict.size, dict.size, [&](const Value& a, const Value& b) {
            return compare(machine_, dict.entries[a.integer].key, dict.entries[b.integer].key);
          });
    }
    out_->add('{');
    ++depth_;
    for (uint32_t i = 0; i < dict.size && !machine_.failed(); ++i) {
      const Entry& entry = dict.entries[order[i].integer];
      if (i != 0) out_->add(style_.item_separator);
      new_line();
      write_key(entry.key);
      out_->add(style_.key_separator);
      write(entry.value);
    }
    --depth_;
    if (dict.size != 0) new_line();
    out_->add('}');
  }

  void write_key(const Value& key) {
    if (key.is(Kind::kString)) return write(key);
    if (!key.is_number() && !key.is(Kind::kNone)) {
      machine_.fail("%s can't be a key in JSON", kind_name(key));
      return;
    }
    out_->add('"');
    write(key);
    out_->add('"');
  }

  Machine& machine_;
  const JsonStyle& style_;
  Builder* out_;
  uint32_t depth_ = 0;
};

}  // namespace

// The fewest digits that read back as the same value.
void write_float(double value, Builder* out) {
  if (std::isnan(value)) return out->add("nan");
  if (std::isinf(value)) return out->add(value > 0 ? Text("inf") : Text("-inf"));
  // Whatever reads back with 15 digits has no shorter form but without zeros.
  char digits[40];
  int precision = 15;
  for (;; ++precision) {
    snprintf(digits, sizeof(digits), "%.*e", precision - 1, value);
    if (precision == 17 || strtod(digits, nullptr) == value) break;
  }
  const char* last = strchr(digits, 'e') - 1;
  while (precision > 1 && *last == '0') {
    --precision;
    --last;
  }
  snprintf(digits, sizeof(digits), "%.*e", precision - 1, value);
  const int exponent = atoi(strchr(digits, 'e') + 1);
  if (exponent < -4 || exponent >= 16) {
    out->add(Text(digits, strlen(digits)));
    return;
  }
  const int decimals = precision - 1 - exponent;
  out->format("%.*f", decimals > 1 ? decimals : 1, value);
}

void write_repr(Machine& machine, const Value& value, Builder* out) {
  if (value.is(Kind::kString)) return write_repr_text(value.text(), out);
  if (value.is_undefined()) return out->add("Undefined");
  write_string(machine, value, out);
}

void write_string(Machine& machine, const Value& value, Builder* out) {
  Level level(machine);
  if (!level) return;
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kForbidden:
      return;
    case Kind::kNone:
      return out->add("None");
    case Kind::kBool:
      return out->add(value.integer ? Text("True") : Text("False"));
    case Kind::kInt:
      return out->format("%lld", static_cast<long long>(value.integer));
    case Kind::kFloat:
      // Formatting takes as long as many steps.
      return machine.charge(60) ? write_float(value.real, out) : void();
    case Kind::kString:
      return out->add(value.text());
    case Kind::kList:
    case Kind::kTuple:
      return write_items(machine, value, out);
    case Kind::kRange:
      return write_range(value.list->items + value.list->size, out);
    case Kind::kDict:
      return write_entries(machine, *value.dict, out);
    default:
      machine.fail("%s has no text", kind_name(value));
  }
}

Value to_string(Machine& machine, const Value& value) {
  if (value.is(Kind::kString)) return value;
  Builder out(machine);
  write_string(machine, value, &out);
  return machine.failed() ? Value() : out.value();
}

void write_json(Machine& machine, const Value& value, const JsonStyle& style, Builder* out) {
  JsonWriter(machine, style, out).write(value);
}

}  // namespace izh::jinja
