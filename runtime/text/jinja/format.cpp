// str.format() and the '%' of strings: numbers and strings with width,
// alignment and precision.

#include <cmath>
#include <cstdio>

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/interpreter.h"

namespace izh::jinja {
namespace {

constexpr uint32_t kMostWidth = 10000;

struct Spec {
  Text fill = " ";
  char align = 0;
  char sign = '-';
  bool comma = false;
  uint32_t width = 0;
  int precision = -1;
  char type = 0;
};

bool take_number(Text* text, uint32_t* out) {
  bool any = false;
  while (text->size != 0 && is_digit(static_cast<uint8_t>(text->data[0])) && *out <= kMostWidth) {
    *out = *out * 10 + static_cast<uint32_t>(text->data[0] - '0');
    *text = text->from(1);
    any = true;
  }
  return any;
}

// [[fill]align][sign][0][width][,][.precision][type]
bool read_spec(Text text, Spec* spec) {
  const uint32_t first = text.size ? character_bytes(text.data[0]) : 0;
  if (first < text.size && memchr("<>^", text.data[first], 3)) {
    spec->fill = text.part(0, first);
    spec->align = text.data[first];
    text = text.from(first + 1);
  } else if (text.size != 0 && memchr("<>^", text.data[0], 3)) {
    spec->align = text.data[0];
    text = text.from(1);
  }
  if (text.size != 0 && memchr("+- ", text.data[0], 3)) {
    spec->sign = text.data[0];
    text = text.from(1);
  }
  if (text.size != 0 && text.data[0] == '0') {
    spec->fill = "0";
    if (!spec->align) spec->align = '=';
    text = text.from(1);
  }
  take_number(&text, &spec->width);
  if (text.size != 0 && text.data[0] == ',') {
    spec->comma = true;
    text = text.from(1);
  }
  if (text.size != 0 && text.data[0] == '.') {
    text = text.from(1);
    uint32_t precision = 0;
    if (!take_number(&text, &precision) || precision > 300) return false;
    spec->precision = static_cast<int>(precision);
  }
  if (text.size != 0) {
    spec->type = text.data[0];
    text = text.from(1);
  }
  return text.size == 0 && spec->width <= kMostWidth;
}

void write_padded(Machine& machine, Text sign, Text body, const Spec& spec, char align,
                  Builder* out) {
  const uint32_t size = sign.size + count_characters(body);
  const uint32_t missing = spec.width > size ? spec.width - size : 0;
  if (!machine.charge(missing)) return;
  const uint32_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  const auto fill = [&](uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) out->add(spec.fill);
  };
  fill(left);
  out->add(sign);
  if (align == '=') fill(missing);
  out->add(body);
  if (align != '=') fill(missing - left);
}

void write_number(Machine& machine, const Value& value, const Spec& spec, Builder* out) {
  char digits[400];
  const bool negative = value.number() < 0;
  const char type = spec.type ? spec.type : value.is(Kind::kFloat) ? 'g' : 'd';
  const int64_t integer = value.is(Kind::kFloat) ? 0 : value.integer;
  const uint64_t magnitude =
      integer < 0 ? 0 - static_cast<uint64_t>(integer) : static_cast<uint64_t>(integer);
  const double real = value.number() < 0 ? -value.number() : value.number();
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  if (memchr("dxXo", type, 4) && value.is(Kind::kFloat)) {
    machine.fail("the format '%c' takes an integer", type);
    return;
  }
  Builder plain(machine);
  if (type == 'g' && spec.precision < 0 && !spec.type) {
    write_float(real, &plain);
  } else if (type == 'd' || type == 'x' || type == 'X' || type == 'o') {
    snprintf(digits, sizeof(digits),
             type == 'd'   ? "%llu"
             : type == 'x' ? "%llx"
             : type == 'X' ? "%llX"
                           : "%llo",
             static_cast<unsigned long long>(magnitude));
    plain.add(Text(digits, strlen(digits)));
  } else if (type == 'f' || type == 'F' || type == 'e' || type == 'g' || type == '%') {
    const double shown = type == '%' ? real * 100 : real;
    const int size = snprintf(digits, sizeof(digits),
                              type == 'e'   ? "%.*e"
                              : type == 'g' ? "%.*g"
                                            : "%.*f",
                              precision, shown);
    if (size < 0 || size >= static_cast<int>(sizeof(digits))) {
      machine.fail("a number is too long to be written");
      return;
    }
    plain.add(Text(digits, static_cast<size_t>(size)));
    if (type == '%') plain.add('%');
  } else {
    machine.fail("there is no format '%c' of numbers", type);
    return;
  }
  const Text text = plain.text();
  Builder grouped(machine);
  uint32_t whole = 0;
  while (whole < text.size && is_digit(static_cast<uint8_t>(text.data[whole]))) ++whole;
  for (uint32_t i = 0; i < text.size; ++i) {
    if (spec.comma && i > 0 && i < whole && (whole - i) % 3 == 0) grouped.add(',');
    grouped.add(text.data[i]);
  }
  const char plus[2] = {spec.sign, 0};
  const Text sign = negative ? Text("-") : spec.sign == '-' ? Text() : Text(plus, 1);
  write_padded(machine, sign, grouped.text(), spec, spec.align ? spec.align : '>', out);
}

void write_value(Machine& machine, const Value& value, const Spec& spec, Builder* out) {
  if (value.is_number() && !(value.is(Kind::kBool) && !spec.type) && spec.type != 's') {
    return write_number(machine, value, spec, out);
  }
  if (spec.type && spec.type != 's') {
    machine.fail("the format '%c' takes a number, not %s", spec.type, kind_name(value));
    return;
  }
  Text text = to_string(machine, value).text();
  if (spec.precision >= 0)
    text.size = character_offset(text, static_cast<uint32_t>(spec.precision));
  const char align = spec.align && spec.align != '=' ? spec.align : '<';
  write_padded(machine, {}, text, spec, align, out);
}

class BraceFormatter {
 public:
  BraceFormatter(Interpreter& in, const Arguments& arguments)
      : in_(in), machine_(in.machine), arguments_(arguments), out_(in.machine) {}

  Value run(Text format) {
    for (uint32_t at = 0; at < format.size && machine_.charge(1);) {
      const char c = format.data[at];
      const bool doubled = at + 1 < format.size && format.data[at + 1] == c;
      if (c != '{' && c != '}') {
        out_.add(c);
        ++at;
      } else if (doubled) {
        out_.add(c);
        at += 2;
      } else if (c == '}') {
        return machine_.fail("a format has a single '}'");
      } else {
        uint32_t end = at + 1;
        while (end < format.size && format.data[end] != '}' && format.data[end] != '{') ++end;
        if (end == format.size || format.data[end] != '}')
          return machine_.fail("a format can't be read");
        field(format.part(at + 1, end));
        at = end + 1;
      }
    }
    return machine_.failed() ? Value() : out_.value();
  }

 private:
  // NAME[!s|!r][:SPEC]
  void field(Text text) {
    Text spec_text;
    for (uint32_t i = 0; i < text.size; ++i) {
      if (text.data[i] != ':') continue;
      spec_text = text.from(i + 1);
      text = text.part(0, i);
      break;
    }
    const bool repr = text.ends_with("!r");
    if (repr || text.ends_with("!s")) text.size -= 2;
    Value value = find(text);
    Spec spec;
    if (machine_.failed()) return;
    if (!read_spec(spec_text, &spec)) {
      machine_.fail("a format can't be read");
      return;
    }
    if (repr) {
      Builder shown(machine_);
      write_repr(machine_, value, &shown);
      value = shown.value();
    }
    write_value(machine_, value, spec, &out_);
  }

  Value find(Text name) {
    uint32_t end = 0;
    while (end < name.size && name.data[end] != '.' && name.data[end] != '[') ++end;
    Text rest = name.from(end);
    name = name.part(0, end);
    uint32_t index = 0;
    Text digits = name;
    const bool numbered = take_number(&digits, &index) && digits.size == 0;
    if (name.size == 0) index = next_++;
    const Value* found = name.size == 0 || numbered
                             ? (index < arguments_.count ? &arguments_.values[index] : nullptr)
                             : arguments_.get(UINT32_MAX, name);
    if (!found) return machine_.fail("a format asks for more values than there are");
    Value value = *found;
    while (rest.size != 0 && !machine_.failed()) {
      const bool bracket = rest.data[0] == '[';
      uint32_t stop = 1;
      while (stop < rest.size &&
             (bracket ? rest.data[stop] != ']' : rest.data[stop] != '.' && rest.data[stop] != '['))
        ++stop;
      const Text part = rest.part(1, stop);
      value = bracket ? in_.path(value, make_string(part)) : in_.attribute(value, part);
      rest = rest.from(stop + (bracket && stop < rest.size));
    }
    return value;
  }

  Interpreter& in_;
  Machine& machine_;
  const Arguments& arguments_;
  Builder out_;
  uint32_t next_ = 0;
};

}  // namespace

Value format_braces(Interpreter& interpreter, Text format, const Arguments& arguments) {
  return BraceFormatter(interpreter, arguments).run(format);
}

Value format_percent(Interpreter& interpreter, Text format, const Value& values) {
  Machine& machine = interpreter.machine;
  Builder out(machine);
  uint32_t next = 0;
  if (machine.failed()) return {};
  for (uint32_t at = 0; at < format.size && machine.charge(1); ++at) {
    if (format.data[at] != '%') {
      out.add(format.data[at]);
      continue;
    }
    const uint32_t begin = ++at;
    while (at < format.size && memchr("+- 0123456789.", format.data[at], 14)) ++at;
    if (at == format.size) return machine.fail("a format ends after '%%'");
    if (format.data[at] == '%') {
      out.add('%');
      continue;
    }
    if (next == values.list->size)
      return machine.fail("a format asks for more values than there are");
    Text flags = format.part(begin, at);
    Spec spec;
    const bool left = flags.size != 0 && flags.data[0] == '-';
    if (left) flags = flags.from(1);
    if (!read_spec(flags, &spec)) return machine.fail("a format can't be read");
    spec.align = left ? '<' : spec.align ? spec.align : '>';
    spec.type = format.data[at] == 'i' ? 'd' : format.data[at];
    Value value = values.list->items[next++];
    if (spec.type == 'r') {
      Builder shown(machine);
      write_repr(machine, value, &shown);
      value = shown.value();
      spec.type = 's';
    }
    if (spec.type == 'd' && value.is(Kind::kFloat) && std::fabs(value.real) < 9e18)
      value = make_int(static_cast<int64_t>(value.real));
    write_value(machine, value, spec, &out);
  }
  if (next != values.list->size)
    return machine.fail("a format has fewer places than there are values");
  return out.value();
}

}  // namespace izh::jinja
