// Methods of strings.

#include "runtime/text/characters.h"
#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/words.h"
#include "runtime/text/letter_case.h"

namespace izh::jinja {
namespace {

constexpr uint32_t kNowhere = UINT32_MAX;

// Where `what` begins in `text` from `from` on.
uint32_t find_text(Text text, Text what, uint32_t from) {
  const void* found = memmem(text.data + from, text.size - from, what.data, what.size);
  return found ? static_cast<uint32_t>(static_cast<const char*>(found) - text.data) : kNowhere;
}

uint32_t find_last(Machine& machine, Text text, Text what) {
  if (!machine.charge(uint64_t{text.size} / 16 * (1 + what.size / 64))) return kNowhere;
  for (uint32_t at = text.size - what.size + 1; what.size <= text.size && at-- > 0;) {
    if (memcmp(text.data + at, what.data, what.size) == 0) return at;
  }
  return kNowhere;
}

// A string argument; false after a failure.
bool take(Machine& machine, const Arguments& arguments, uint32_t index, Text name, Text* out) {
  const Value* value = arguments.get(index, name);
  if (!value || !value->is(Kind::kString)) {
    machine.fail("a string is expected, not %s", value ? kind_name(*value) : "nothing");
    return false;
  }
  *out = value->text();
  return true;
}

Value change_case(Machine& machine, Text text, Text name) {
  Builder out(machine);
  if (name == Text("upper") || name == Text("casefold")) {
    add_in_case(machine, text, name == Text("upper") ? LetterCase::kUpper : LetterCase::kFolded,
                &out);
    return out.value();
  }
  if (name == Text("lower")) {
    add_in_case(machine, text, LetterCase::kLower, &out);
    return out.value();
  }
  const bool title = name == Text("title"), swap = name == Text("swapcase");
  bool begins = true;
  for (uint32_t at = 0; at < text.size && machine.charge(character_bytes(text.data[at]));) {
    const uint32_t c = character_at(text, at);
    LetterCase to = begins ? LetterCase::kTitle : LetterCase::kLower;
    if (swap) to = is_lower_case(c) ? LetterCase::kUpper : LetterCase::kLower;
    add_in_case(text, at, to, &out);
    at += character_bytes(text.data[at]);
    begins = title && !is_cased(c);
  }
  return out.value();
}

Value split_blanks(Machine& machine, Text text, int64_t most) {
  ListBuilder out(machine);
  text = strip(text, nullptr, true, false);
  while (text.size != 0 && machine.charge(1)) {
    if (most >= 0 && out.size() >= most) {
      out.add(make_string(strip(text, nullptr, false, true)));
      break;
    }
    uint32_t end = 0;
    while (end < text.size && !is_space(character_at(text, end))) {
      end += character_bytes(text.data[end]);
    }
    out.add(make_string(text.part(0, end)));
    text = strip(text.from(end), nullptr, true, false);
  }
  return out.value();
}

Value split(Machine& machine, Text text, const Arguments& arguments, bool from_right) {
  const Value* limit = arguments.get(1, "maxsplit");
  const int64_t most = limit && limit->is_integer() ? limit->integer : -1;
  const Value* given = arguments.get(0, "sep");
  if (!machine.charge(text.size / 16)) return {};
  if (!given || given->is(Kind::kNone)) return split_blanks(machine, text, from_right ? -1 : most);
  Text separator;
  if (!take(machine, arguments, 0, "sep", &separator)) return {};
  if (separator.size == 0) return machine.fail("the separator of split is empty");
  ListBuilder out(machine);
  if (from_right && most >= 0) {
    uint32_t at;
    while (out.size() < most && (at = find_last(machine, text, separator)) != kNowhere &&
           machine.charge(1)) {
      out.add(make_string(text.from(at + separator.size)));
      text.size = at;
    }
    out.add(make_string(text));
    for (uint32_t i = 0; i < out.size() / 2; ++i) {
      const Value other = out.items()[i];
      out.items()[i] = out.items()[out.size() - 1 - i];
      out.items()[out.size() - 1 - i] = other;
    }
    return out.value();
  }
  uint32_t begin = 0, at;
  while ((most < 0 || out.size() < most) && (at = find_text(text, separator, begin)) != kNowhere &&
         machine.charge(1)) {
    out.add(make_string(text.part(begin, at)));
    begin = at + separator.size;
  }
  out.add(make_string(text.from(begin)));
  return out.value();
}

Value split_lines(Machine& machine, Text text, const Arguments& arguments) {
  const Value* given = arguments.get(0, "keepends");
  const bool keep = given && truth(*given);
  ListBuilder out(machine);
  uint32_t begin = 0;
  for (uint32_t at = 0; at < text.size && machine.charge(1);) {
    const uint32_t c = character_at(text, at);
    uint32_t end = at + character_bytes(text.data[at]);
    const bool breaks =
        (c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (c == '\r' && end < text.size && text.data[end] == '\n') ++end;
    if (breaks) {
      out.add(make_string(text.part(begin, keep ? end : at)));
      begin = end;
    }
    at = end;
  }
  if (begin < text.size) out.add(make_string(text.from(begin)));
  return out.value();
}

Value replace(Machine& machine, Text text, const Arguments& arguments) {
  Text old, fresh;
  if (!take(machine, arguments, 0, "old", &old) || !take(machine, arguments, 1, "new", &fresh))
    return {};
  const Value* limit = arguments.get(2, "count");
  int64_t left = limit && limit->is_integer() && limit->integer >= 0 ? limit->integer : INT64_MAX;
  Builder out(machine);
  uint32_t at = 0;
  if (!machine.charge(text.size / 16)) return {};
  while (left-- > 0 && machine.charge(1)) {
    const uint32_t found = find_text(text, old, at);
    if (found == kNowhere) break;
    out.add(text.part(at, found));
    out.add(fresh);
    at = found + old.size;
    if (old.size != 0) continue;
    // An empty string is found before each character and at the end.
    if (at == text.size) return out.value();
    const uint32_t bytes = character_bytes(text.data[at]);
    out.add(text.part(at, at + bytes));
    at += bytes;
  }
  out.add(text.from(at));
  return out.value();
}

Value has_ends(Machine& machine, Text text, const Arguments& arguments, bool start) {
  const Value* given = arguments.get(0, "prefix");
  List ends = {const_cast<Value*>(given), given ? 1u : 0u};
  if (given && given->is(Kind::kTuple)) ends = *given->list;
  for (uint32_t i = 0; i < ends.size; ++i) {
    if (!ends.items[i].is(Kind::kString)) {
      return machine.fail("a string is expected, not %s", kind_name(ends.items[i]));
    }
    const Text end = ends.items[i].text();
    if (!machine.charge(1 + end.size / 64)) return {};
    if (start ? text.starts_with(end) : text.ends_with(end)) return make_bool(true);
  }
  if (!given) return machine.fail("a string is missing");
  return make_bool(false);
}

Value find_index(Machine& machine, Text text, Text name, const Arguments& arguments) {
  Text what;
  if (!take(machine, arguments, 0, "sub", &what) || !machine.charge(text.size / 8)) return {};
  if (name == Text("count")) {
    int64_t count = 0;
    uint32_t at = 0;
    while (what.size != 0 && (at = find_text(text, what, at)) != kNowhere && machine.charge(1)) {
      at += what.size;
      ++count;
    }
    return make_int(what.size != 0 ? count : count_characters(text) + int64_t{1});
  }
  const bool last = name.data[0] == 'r';
  const uint32_t at = last ? find_last(machine, text, what) : find_text(text, what, 0);
  if (at == kNowhere && name.ends_with("index")) return machine.fail("the string is not found");
  return make_int(at == kNowhere ? -1 : int64_t{count_characters(text.part(0, at))});
}

Value is_all(Machine& machine, Text text, Text name) {
  if (name == Text("islower") || name == Text("isupper")) {
    return machine.charge(text.size) ? make_bool(is_all_of_case(text, name == Text("isupper")))
                                     : Value();
  }
  for (uint32_t at = 0; at < text.size && machine.charge(1); at += character_bytes(text.data[at])) {
    const uint32_t c = character_at(text, at);
    const bool good = name == Text("isspace")     ? is_space(c)
                      : name == Text("isalpha")   ? is_letter(c)
                      : name == Text("isalnum")   ? is_letter(c) || is_number(c)
                      : name == Text("isnumeric") ? is_number(c)
                                                  : is_decimal(c);
    if (!good) return make_bool(false);
  }
  return make_bool(text.size != 0);
}

Value pad(Machine& machine, Text text, Text name, const Arguments& arguments) {
  const Value* width = arguments.get(0, "width");
  if (!width || !width->is_integer()) return machine.fail("a width is missing");
  const Value* given = arguments.get(1, "fillchar");
  const Text fill = name == Text("zfill")               ? Text("0")
                    : given && given->is(Kind::kString) ? given->text()
                                                        : Text(" ");
  const int64_t missing = width->integer - count_characters(text);
  const int64_t left = missing <= 0             ? 0
                       : name == Text("ljust")  ? 0
                       : name == Text("center") ? missing / 2 + (missing & width->integer & 1)
                                                : missing;
  Builder out(machine);
  const bool sign =
      name == Text("zfill") && text.size != 0 && (text.data[0] == '-' || text.data[0] == '+');
  if (sign) out.add(text.part(0, 1));
  for (int64_t i = 0; i < left && machine.charge(1); ++i) out.add(fill);
  out.add(text.from(sign));
  for (int64_t i = left; i < missing && machine.charge(1); ++i) out.add(fill);
  return out.value();
}

Value join(Interpreter& in, Text text, const Arguments& arguments) {
  List items;
  if (arguments.count != 1) return in.machine.fail("join takes a list");
  if (!in.iterate(arguments.values[0], &items)) return {};
  Builder out(in.machine);
  for (uint32_t i = 0; i < items.size && !in.machine.failed(); ++i) {
    if (!items.items[i].is(Kind::kString)) {
      return in.machine.fail("join takes strings, not %s", kind_name(items.items[i]));
    }
    if (i != 0) out.add(text);
    out.add(items.items[i].text());
  }
  return out.value();
}

Value partition(Machine& machine, Text text, const Arguments& arguments, bool last) {
  Text separator;
  if (!take(machine, arguments, 0, "sep", &separator)) return {};
  if (separator.size == 0) return machine.fail("the separator is empty");
  const uint32_t at = last ? find_last(machine, text, separator) : find_text(text, separator, 0);
  Value parts[3] = {make_string(text), make_string({}), make_string({})};
  if (at != kNowhere) {
    parts[0] = make_string(text.part(0, at));
    parts[1] = make_string(separator);
    parts[2] = make_string(text.from(at + separator.size));
  } else if (last) {
    parts[2] = parts[0];
    parts[0] = make_string({});
  }
  return machine.list(parts, 3, Kind::kTuple);
}

constexpr Text kMethods[] = {
    "upper",        "lower",        "title",    "capitalize", "swapcase",   "casefold",
    "split",        "rsplit",       "strip",    "lstrip",     "rstrip",     "splitlines",
    "replace",      "startswith",   "endswith", "find",       "rfind",      "index",
    "rindex",       "count",        "isdigit",  "isnumeric",  "isdecimal",  "isalpha",
    "isalnum",      "isspace",      "islower",  "isupper",    "zfill",      "ljust",
    "rjust",        "center",       "join",     "partition",  "rpartition", "format",
    "removeprefix", "removesuffix",
};

}  // namespace

bool has_text_method(Text name) {
  for (const Text& method : kMethods) {
    if (method == name) return true;
  }
  return false;
}

Value call_text_method(Interpreter& interpreter, Text self, Text name, const Arguments& arguments) {
  Machine& machine = interpreter.machine;
  const auto is = [name](Text other) { return name == other; };
  if (is("upper") || is("lower") || is("title") || is("capitalize") || is("swapcase") ||
      is("casefold")) {
    return change_case(machine, self, name);
  }
  if (name.ends_with("strip")) {
    const Value* given = arguments.get(0, "chars");
    const Text set = given && given->is(Kind::kString) ? given->text() : Text();
    const bool blanks = !given || given->is(Kind::kNone);
    if (!blanks && !given->is(Kind::kString)) return machine.fail("strip takes a string");
    // Each character at an end is looked for in the set.
    const uint64_t looks = blanks ? 0 : given->size / 8;
    if (!machine.charge(self.size / 4 * looks)) return {};
    const Text kept = strip(self, blanks ? nullptr : &set, !is("rstrip"), !is("lstrip"));
    machine.charge((self.size - kept.size) / 4);
    return make_string(kept);
  }
  if (is("split") || is("rsplit")) return split(machine, self, arguments, is("rsplit"));
  if (is("splitlines")) return split_lines(machine, self, arguments);
  if (is("replace")) return replace(machine, self, arguments);
  if (is("startswith") || is("endswith"))
    return has_ends(machine, self, arguments, is("startswith"));
  if (is("find") || is("rfind") || is("index") || is("rindex") || is("count")) {
    return find_index(machine, self, name, arguments);
  }
  if (name.starts_with("is")) return is_all(machine, self, name);
  if (is("zfill") || is("ljust") || is("rjust") || is("center"))
    return pad(machine, self, name, arguments);
  if (is("join")) return join(interpreter, self, arguments);
  if (name.ends_with("partition")) return partition(machine, self, arguments, is("rpartition"));
  if (is("format")) return format_braces(interpreter, self, arguments);
  Text end;
  if (!take(machine, arguments, 0, "prefix", &end)) return {};
  if (is("removeprefix") && self.starts_with(end)) self = self.from(end.size);
  if (is("removesuffix") && self.ends_with(end)) self.size -= end.size;
  return make_string(self);
}

}  // namespace izh::jinja
