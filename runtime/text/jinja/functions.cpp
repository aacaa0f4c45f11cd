// Functions that every template has.

#include "runtime/text/jinja/interpreter.h"

namespace izh::jinja {
namespace {

Value make_namespace(Interpreter& in, const Arguments& arguments) {
  Scope* scope = in.machine.make<Scope>();
  if (!scope) return {};
  const auto add = [&](Text name, const Value& value) {
    Variable* variable = in.machine.make<Variable>();
    if (!variable) return;
    *variable = {name, value, scope->first};
    scope->first = variable;
  };
  for (uint32_t i = 0; i < arguments.count; ++i) {
    if (!arguments.values[i].is(Kind::kDict))
      return in.machine.fail("namespace takes names and dicts");
    const Dict& dict = *arguments.values[i].dict;
    for (uint32_t k = 0; k < dict.size; ++k) {
      if (dict.entries[k].key.is(Kind::kString))
        add(dict.entries[k].key.text(), dict.entries[k].value);
    }
  }
  for (uint32_t i = 0; i < arguments.named_count; ++i) {
    add(arguments.named[i].name, arguments.named[i].value);
  }
  Value value;
  value.kind = Kind::kNamespace;
  value.list = reinterpret_cast<List*>(scope);
  return in.machine.failed() ? Value() : value;
}

Value raise_exception(Interpreter& in, const Arguments& arguments) {
  const Value* given = arguments.get(0, "message");
  const Value text = given ? to_string(in.machine, *given) : make_string("no reason given");
  if (in.machine.failed()) return {};
  in.machine.line = 0;
  return in.machine.fail("the template refuses this conversation: %.*s",
                         text.size > 300 ? 300 : static_cast<int>(text.size), text.chars);
}

Value range(Interpreter& in, const Arguments& arguments) {
  int64_t bounds[3] = {0, 0, 1};
  if (arguments.count < 1 || arguments.count > 3)
    return in.machine.fail("range takes 1 to 3 integers");
  for (uint32_t i = 0; i < arguments.count; ++i) {
    if (!arguments.values[i].is_integer()) {
      return in.machine.fail("range takes integers, not %s", kind_name(arguments.values[i]));
    }
    bounds[arguments.count == 1 ? 1 : i] = arguments.values[i].integer;
  }
  if (bounds[2] == 0) return in.machine.fail("the step of a range is 0");
  return make_range(in.machine, {bounds[0], bounds[1], bounds[2]});
}

Value make_dict(Interpreter& in, const Arguments& arguments) {
  const Value out = in.machine.dict();
  for (uint32_t i = 0; i < arguments.count && !in.machine.failed(); ++i) {
    const Value& given = arguments.values[i];
    if (!given.is(Kind::kDict)) return in.machine.fail("dict takes names and dicts");
    for (uint32_t k = 0; k < given.dict->size; ++k) {
      in.machine.set(out.dict, given.dict->entries[k].key, given.dict->entries[k].value);
    }
  }
  for (uint32_t i = 0; i < arguments.named_count && !in.machine.failed(); ++i) {
    in.machine.set(out.dict, make_string(arguments.named[i].name), arguments.named[i].value);
  }
  return in.machine.failed() ? Value() : out;
}

Value strftime_now(Interpreter& in, const Arguments& arguments) {
  const Value* format = arguments.get(0, "format");
  if (!format || !format->is(Kind::kString)) return in.machine.fail("strftime_now takes a format");
  return format_time(in, format->text());
}

// A filter of the same name as a function.
Value to_json(Interpreter& in, const Arguments& arguments) {
  if (arguments.count == 0) return in.machine.fail("tojson takes a value");
  return in.filter("tojson", arguments.values[0], arguments.from(1));
}

struct Function {
  Text name;
  Value (*call)(Interpreter&, const Arguments&);
};

constexpr Function kFunctions[] = {
    {"namespace", make_namespace}, {"raise_exception", raise_exception}, {"range", range},
    {"dict", make_dict},           {"strftime_now", strftime_now},       {"tojson", to_json},
};

}  // namespace

Value make_range(Machine& machine, const RangeBounds& bounds) {
  const auto [start, stop, step] = bounds;
  // The sandbox of Python has the same bound.
  constexpr uint32_t kMost = 100000;
  ListBuilder out(machine);
  for (int64_t i = start; (step > 0 ? i < stop : i > stop) && machine.charge(1);) {
    if (out.size() == kMost) return machine.fail("a range has more than %u items", kMost);
    out.add(make_int(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  const uint32_t count = out.size();
  for (const int64_t bound : {start, stop, step}) out.add(make_int(bound));
  const Value value = out.value(Kind::kRange);
  if (!machine.failed()) value.list->size = count;
  return value;
}

Value find_function(Text name) {
  for (uint32_t i = 0; i < sizeof(kFunctions) / sizeof(kFunctions[0]); ++i) {
    if (!(kFunctions[i].name == name)) continue;
    Value value;
    value.kind = Kind::kFunction;
    value.size = i;
    return value;
  }
  return {};
}

Value call_function(Interpreter& interpreter, const Value& function, const Arguments& arguments) {
  return kFunctions[function.size].call(interpreter, arguments);
}

}  // namespace izh::jinja
