// The table of tests, and which filter a name means.

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/interpreter.h"

namespace izh::jinja {
namespace {

bool is_kind(Text name, const Value& v, bool* known) {
  *known = true;
  const auto is = [name](Text other) { return name == other; };
  if (is("defined")) return !v.is_undefined();
  if (is("undefined")) return v.is_undefined();
  if (is("none")) return v.is(Kind::kNone);
  if (is("boolean")) return v.is(Kind::kBool);
  if (is("true")) return v.is(Kind::kBool) && v.integer != 0;
  if (is("false")) return v.is(Kind::kBool) && v.integer == 0;
  if (is("integer")) return v.is(Kind::kInt);
  if (is("float")) return v.is(Kind::kFloat);
  if (is("number")) return v.is_number();
  if (is("string")) return v.is(Kind::kString);
  if (is("mapping")) return v.is(Kind::kDict);
  if (is("sequence")) {
    return v.is_undefined() || v.is(Kind::kString) || v.is_sequence() || v.is(Kind::kDict);
  }
  if (is("iterable")) {
    return v.is_undefined() || v.is(Kind::kString) || v.is_listlike() || v.is(Kind::kDict);
  }
  if (is("callable")) return v.kind >= Kind::kMacro;
  if (is("escaped")) return false;
  if (is("lower")) return v.is(Kind::kString) && is_all_of_case(v.text(), false);
  if (is("upper")) return v.is(Kind::kString) && is_all_of_case(v.text(), true);
  *known = false;
  return false;
}

bool is_comparison(Text name, Text sign, Text word, Text other) {
  return name == sign || name == word || name == other;
}

}  // namespace

bool Interpreter::test(Text name, const Value& v, const Arguments& arguments) {
  if (machine.failed()) return false;
  bool known;
  const bool result = is_kind(name, v, &known);
  if (known) return result;
  if (name == Text("odd") || name == Text("even")) {
    if (!v.is_integer()) machine.fail("only integers are odd or even, not %s", kind_name(v));
    return (v.integer & 1) == (name == Text("odd"));
  }
  if (name == Text("filter")) {
    return v.is(Kind::kString) && (find_text_filter(v.text()) || find_list_filter(v.text()));
  }
  const Value* other = arguments.get(0, "other");
  if (!other) {
    machine.fail("there is no test '%.*s' without a value", static_cast<int>(name.size), name.data);
    return false;
  }
  if (is_comparison(name, "==", "eq", "equalto")) return equal(machine, v, *other);
  if (is_comparison(name, "!=", "ne", "ne")) return !equal(machine, v, *other);
  if (is_comparison(name, "<", "lt", "lessthan")) return compare(machine, v, *other) < 0;
  if (is_comparison(name, "<=", "le", "le")) return compare(machine, v, *other) <= 0;
  if (is_comparison(name, ">", "gt", "greaterthan")) return compare(machine, v, *other) > 0;
  if (is_comparison(name, ">=", "ge", "ge")) return compare(machine, v, *other) >= 0;
  if (name == Text("in")) return contains(machine, *other, v);
  if (name == Text("sameas")) {
    const bool counted = v.is(Kind::kString) || v.is(Kind::kFloat);
    return v.kind == other->kind &&
           (counted ? equal(machine, v, *other) : v.integer == other->integer);
  }
  if (name == Text("divisibleby")) {
    if (v.is_integer() && other->is_integer() && other->integer != 0) {
      return other->integer == -1 || v.integer % other->integer == 0;
    }
    machine.fail("divisibleby takes integers other than 0");
    return false;
  }
  machine.fail("there is no test '%.*s'", static_cast<int>(name.size), name.data);
  return false;
}

Value Interpreter::filter(Text name, const Value& input, const Arguments& arguments) {
  if (machine.failed()) return {};
  Filter apply = find_text_filter(name);
  if (!apply) apply = find_list_filter(name);
  if (!apply) {
    return machine.fail("there is no filter '%.*s'",
                        name.size > 60 ? 60 : static_cast<int>(name.size), name.data);
  }
  return apply(*this, input, arguments);
}

}  // namespace izh::jinja
