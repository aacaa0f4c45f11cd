// Filters that make strings and numbers.

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "runtime/text/characters.h"
#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/words.h"

namespace izh::jinja {
namespace {

bool flag(const Arguments& arguments, uint32_t index, Text name, bool otherwise) {
  const Value* value = arguments.get(index, name);
  return value ? truth(*value) : otherwise;
}

Value to_json(Interpreter& in, const Value& input, const Arguments& arguments) {
  JsonStyle style;
  style.ascii = flag(arguments, 0, "ensure_ascii", false);
  style.sort_keys = flag(arguments, 3, "sort_keys", false);
  style.indent.data = nullptr;
  const Value* indent = arguments.get(1, "indent");
  if (indent && indent->is(Kind::kString)) style.indent = indent->text();
  if (indent && indent->is_integer()) {
    if (indent->integer > 64) return in.machine.fail("tojson indents by at most 64");
    static constexpr char kBlanks[65] =
        "                                                                ";
    style.indent = {kBlanks, indent->integer < 0 ? 0 : static_cast<size_t>(indent->integer)};
  }
  if (style.indent.data) style.item_separator = ",";
  const Value* separators = arguments.get(2, "separators");
  if (separators && separators->is_listlike() && separators->list->size == 2 &&
      separators->list->items[0].is(Kind::kString) &&
      separators->list->items[1].is(Kind::kString)) {
    style.item_separator = separators->list->items[0].text();
    style.key_separator = separators->list->items[1].text();
  }
  Builder out(in.machine);
  write_json(in.machine, input, style, &out);
  return in.machine.failed() ? Value() : out.value();
}

// A method of strings, of the value's text.
Value method(Interpreter& in, const Value& input, Text name, const Arguments& arguments) {
  const Value text = to_string(in.machine, input);
  return in.machine.failed() ? Value() : call_text_method(in, text.text(), name, arguments);
}
Value upper(Interpreter& in, const Value& input, const Arguments&) {
  return method(in, input, "upper", {});
}
Value lower(Interpreter& in, const Value& input, const Arguments&) {
  return method(in, input, "lower", {});
}
// Words begin behind white space and these.
bool is_gap(uint32_t c) {
  return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}
// Other than the method: a word goes on behind an apostrophe.
Value title(Interpreter& in, const Value& input, const Arguments&) {
  const Text text = to_string(in.machine, input).text();
  Builder out(in.machine);
  for (uint32_t at = 0, end; at < text.size && in.machine.charge(1); at = end) {
    end = at + character_bytes(text.data[at]);
    const bool gap = is_gap(character_at(text, at));
    add_in_case(in.machine, text.part(at, end), LetterCase::kUpper, &out);
    if (gap) continue;
    const uint32_t rest = end;
    while (end < text.size && !is_gap(character_at(text, end))) {
      end += character_bytes(text.data[end]);
    }
    add_in_case(in.machine, text.part(rest, end), LetterCase::kLower, &out);
  }
  return out.value();
}
Value capitalize(Interpreter& in, const Value& input, const Arguments&) {
  return method(in, input, "capitalize", {});
}
Value trim(Interpreter& in, const Value& input, const Arguments& arguments) {
  return method(in, input, "strip", arguments);
}
Value replace(Interpreter& in, const Value& input, const Arguments& arguments) {
  return method(in, input, "replace", arguments);
}
Value center(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Value width = make_int(80);
  return method(in, input, "center", arguments.count ? arguments : Arguments{&width, 1});
}

Value string(Interpreter& in, const Value& input, const Arguments&) {
  return to_string(in.machine, input);
}

Value format(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Value text = to_string(in.machine, input);
  return format_percent(in, text.text(),
                        in.machine.list(arguments.values, arguments.count, Kind::kTuple));
}

Value escape(Interpreter& in, const Value& input, const Arguments&) {
  const Text text = to_string(in.machine, input).text();
  Builder out(in.machine);
  for (uint32_t i = 0; i < text.size && in.machine.charge(1); ++i) {
    switch (text.data[i]) {
      case '&':
        out.add("&amp;");
        break;
      case '<':
        out.add("&lt;");
        break;
      case '>':
        out.add("&gt;");
        break;
      case '"':
        out.add("&#34;");
        break;
      case '\'':
        out.add("&#39;");
        break;
      default:
        out.add(text.data[i]);
    }
  }
  return out.value();
}

Value indent(Interpreter& in, const Value& input, const Arguments& arguments) {
  Machine& machine = in.machine;
  const Text text = to_string(machine, input).text();
  const Value* width = arguments.get(0, "width");
  Builder blanks(machine);
  if (width && width->is(Kind::kString)) {
    blanks.add(width->text());
  } else {
    const int64_t count = width && width->is_integer() ? width->integer : 4;
    for (int64_t i = 0; i < count && machine.charge(1); ++i) blanks.add(' ');
  }
  const bool first = flag(arguments, 1, "first", false), blank = flag(arguments, 2, "blank", false);
  Builder out(machine);
  for (uint32_t begin = 0; begin <= text.size && !machine.failed();) {
    const void* found = memchr(text.data + begin, '\n', text.size - begin);
    const uint32_t end =
        found ? static_cast<uint32_t>(static_cast<const char*>(found) - text.data) : text.size;
    if (begin == 0 ? first : blank || end > begin) out.add(blanks.text());
    out.add(text.part(begin, end));
    if (end < text.size) out.add('\n');
    begin = end + 1;
  }
  return out.value();
}

Value word_count(Interpreter& in, const Value& input, const Arguments&) {
  const Text text = to_string(in.machine, input).text();
  int64_t count = 0;
  bool inside = false;
  for (uint32_t at = 0; at < text.size && in.machine.charge(1);
       at += character_bytes(text.data[at])) {
    const uint32_t c = character_at(text, at);
    const bool word = c == '_' || is_letter(c) || is_number(c);
    count += word && !inside;
    inside = word;
  }
  return make_int(count);
}

Value truncate(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Text text = to_string(in.machine, input).text();
  const Value* given = arguments.get(0, "length");
  const Value* ending = arguments.get(2, "end");
  const int64_t length = given && given->is_integer() ? given->integer : 255;
  const Text end = ending && ending->is(Kind::kString) ? ending->text() : Text("...");
  const Value* leeway = arguments.get(3, "leeway");
  const int64_t spare = leeway && leeway->is_integer() ? leeway->integer : 5;
  if (!in.machine.charge(text.size / 16)) return {};
  if (count_characters(text) <= length + spare) return make_string(text);
  const int64_t kept = length - count_characters(end);
  if (kept < 0) return in.machine.fail("truncate is to keep less than its own end");
  Text cut = text.part(0, character_offset(text, static_cast<uint32_t>(kept)));
  if (!flag(arguments, 1, "killwords", false)) {
    uint32_t space = cut.size;
    while (space > 0 && cut.data[space - 1] != ' ') --space;
    if (space > 0) cut.size = space - 1;
  }
  return in.machine.concat(cut, end);
}

Value to_int(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Value* given = arguments.get(0, "default");
  const Value otherwise = given ? *given : make_int(0);
  if (input.is_integer()) return make_int(input.integer);
  if (input.is(Kind::kFloat)) {
    return std::fabs(input.real) < 9e18 ? make_int(static_cast<int64_t>(input.real)) : otherwise;
  }
  if (!input.is(Kind::kString)) return otherwise;
  const Value* radix = arguments.get(1, "base");
  const int base = radix && radix->is_integer() && radix->integer >= 2 && radix->integer <= 36
                       ? static_cast<int>(radix->integer)
                       : 10;
  char digits[64];
  const Text text = strip(input.text(), nullptr, true, true);
  if (text.size == 0 || text.size >= sizeof(digits)) return otherwise;
  memcpy(digits, text.data, text.size);
  digits[text.size] = 0;
  char* end;
  const int64_t number = strtoll(digits, &end, base);
  if (*end == 0) return make_int(number);
  const double real = strtod(digits, &end);
  return *end == 0 && std::fabs(real) < 9e18 ? make_int(static_cast<int64_t>(real)) : otherwise;
}

Value to_float(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Value* given = arguments.get(0, "default");
  const Value otherwise = given ? *given : make_float(0);
  if (input.is_number()) return make_float(input.number());
  char digits[64], *end;
  const Text text = input.is(Kind::kString) ? strip(input.text(), nullptr, true, true) : Text();
  if (text.size == 0 || text.size >= sizeof(digits)) return otherwise;
  memcpy(digits, text.data, text.size);
  digits[text.size] = 0;
  const double number = strtod(digits, &end);
  return *end == 0 ? make_float(number) : otherwise;
}

Value absolute(Interpreter& in, const Value& input, const Arguments&) {
  if (!input.is_number()) return in.machine.fail("abs takes a number, not %s", kind_name(input));
  return input.number() < 0 ? negate(in.machine, input) : input;
}

// The double nearest to the decimal number of so many places that is nearest to
// `value`, the even one of two: what Python's round() gives. The product with a
// power of ten would be rounded before that.
double round_half_even(double value, int64_t places) {
  // The least bit of a double has less places; the largest double has 309 digits.
  if (!std::isfinite(value) || value == 0 || places > 1074) return value;
  if (places < -309) return std::copysign(0.0, value);
  char digits[1440];
  if (places >= 0) {
    snprintf(digits, sizeof(digits), "%.*f", static_cast<int>(places), value);
    return strtod(digits, nullptr);
  }
  snprintf(digits, sizeof(digits), "%.17e", value);
  // Digits that are kept of those before the point.
  const int64_t kept = atoi(strchr(digits, 'e') + 1) + 1 + places;
  if (kept > 0) {
    snprintf(digits, sizeof(digits), "%.*e", static_cast<int>(kept - 1), value);
    return strtod(digits, nullptr);
  }
  snprintf(digits, sizeof(digits), "5e%d", static_cast<int>(-places - 1));
  const bool up = kept == 0 && std::fabs(value) > strtod(digits, nullptr);
  snprintf(digits, sizeof(digits), "1e%d", static_cast<int>(-places));
  return std::copysign(up ? strtod(digits, nullptr) : 0.0, value);
}

// The same of an integer, whose `places` are before the point.
Value round_integer(Machine& machine, int64_t value, int64_t places) {
  // Half of 10^19 is more than 64 bits hold.
  if (places < -18) {
    return places < -19 || (value <= 5000000000000000000 && value >= -5000000000000000000)
               ? make_int(0)
               : machine.fail("an integer leaves the range of 64 bits");
  }
  int64_t unit = 1;
  for (int64_t i = places; i < 0; ++i) unit *= 10;
  const int64_t rest = value % unit, whole = value - rest;
  const int64_t part = rest < 0 ? -rest : rest;
  const bool odd = (whole / unit) % 2 != 0;
  const bool away = part > unit / 2 || (part == unit / 2 && odd);
  int64_t result = whole;
  if (away && __builtin_add_overflow(whole, rest < 0 ? -unit : unit, &result))
    return machine.fail("an integer leaves the range of 64 bits");
  return make_int(result);
}

Value round_number(Interpreter& in, const Value& input, const Arguments& arguments) {
  if (!input.is_number()) return in.machine.fail("round takes a number, not %s", kind_name(input));
  const Value* given = arguments.get(0, "precision");
  if (given && !given->is_integer())
    return in.machine.fail("round takes an integer as its precision, not %s", kind_name(*given));
  const int64_t places = given ? given->integer : 0;
  const Value* method = arguments.get(1, "method");
  const Text how = method && method->is(Kind::kString) ? method->text() : Text("common");
  if (how == Text("common")) {
    if (!input.is_integer()) {
      // The digits take as long as many steps.
      return in.machine.charge(100) ? make_float(round_half_even(input.real, places)) : Value();
    }
    return places >= 0 ? make_int(input.integer) : round_integer(in.machine, input.integer, places);
  }
  const bool up = how == Text("ceil");
  if (!up && !(how == Text("floor"))) return in.machine.fail("round goes by common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(places));
  const double scaled = input.number() * scale;
  if (!std::isfinite(scaled) || scale == 0) return in.machine.fail("round has too many places");
  return make_float((up ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

constexpr FilterEntry kFilters[] = {
    {"tojson", to_json},       {"upper", upper},           {"lower", lower},
    {"title", title},          {"capitalize", capitalize}, {"trim", trim},
    {"replace", replace},      {"center", center},         {"string", string},
    {"safe", string},          {"format", format},         {"e", escape},
    {"escape", escape},        {"forceescape", escape},    {"indent", indent},
    {"wordcount", word_count}, {"truncate", truncate},     {"int", to_int},
    {"float", to_float},       {"abs", absolute},          {"round", round_number},
};

}  // namespace

Filter find_text_filter(Text name) {
  for (const FilterEntry& entry : kFilters) {
    if (entry.name == name) return entry.apply;
  }
  return nullptr;
}

}  // namespace izh::jinja
