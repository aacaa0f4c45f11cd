// Methods of dicts, lists and loops; those of strings are in text_methods.cpp.
// What would change a value is hidden, as Python's immutable sandbox does.

#include "runtime/text/jinja/interpreter.h"

namespace izh::jinja {
namespace {

bool is_one_of(Text name, const Text* names, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == name) return true;
  }
  return false;
}

Value call_dict_method(Interpreter& in, const Dict& dict, Text name, const Arguments& arguments) {
  Machine& machine = in.machine;
  if (name == Text("get")) {
    const Value* key = arguments.get(0, "key");
    if (!key) return machine.fail("get takes a key");
    if (const Entry* found = find_entry(machine, &dict, *key)) return found->value;
    const Value* otherwise = arguments.get(1, "default");
    return otherwise ? *otherwise : make_none();
  }
  if (!machine.charge(dict.size)) return {};
  if (name == Text("copy")) {
    const Value out = machine.dict();
    for (uint32_t i = 0; i < dict.size && !machine.failed(); ++i) {
      machine.set(out.dict, dict.entries[i].key, dict.entries[i].value);
    }
    return machine.failed() ? Value() : out;
  }
  ListBuilder out(machine);
  for (uint32_t i = 0; i < dict.size && !machine.failed(); ++i) {
    const Value pair[2] = {dict.entries[i].key, dict.entries[i].value};
    if (name == Text("items")) {
      out.add(machine.list(pair, 2, Kind::kTuple));
    } else {
      out.add(pair[name == Text("values")]);
    }
  }
  return out.value();
}

Value call_list_method(Interpreter& in, const Value& self, Text name, const Arguments& arguments) {
  Machine& machine = in.machine;
  const List& list = *self.list;
  if (name == Text("copy")) return machine.list(list.items, list.size);
  const Value* wanted = arguments.get(0, "value");
  if (!wanted) return machine.fail("a value is missing");
  int64_t count = 0;
  for (uint32_t i = 0; i < list.size && machine.charge(1); ++i) {
    if (!equal(machine, list.items[i], *wanted)) continue;
    if (name == Text("index")) return make_int(i);
    ++count;
  }
  if (name == Text("index")) return machine.fail("the value is not in the list");
  return make_int(count);
}

Value call_loop_method(Interpreter& in, Loop& loop, Text name, const Arguments& arguments) {
  Machine& machine = in.machine;
  if (name == Text("cycle")) {
    if (arguments.count == 0) return machine.fail("cycle takes values");
    return arguments.values[loop.index % arguments.count];
  }
  const Value now = machine.list(arguments.values, arguments.count, Kind::kTuple);
  const bool same = loop.has_changed && equal(machine, loop.changed, now);
  loop.changed = now;
  loop.has_changed = true;
  return make_bool(!same);
}

}  // namespace

Value find_method(Machine& machine, const Value& object, Text name) {
  static constexpr Text kDict[] = {"get", "items", "keys", "values", "copy"};
  static constexpr Text kDictHidden[] = {"clear", "pop", "popitem", "setdefault", "update"};
  static constexpr Text kList[] = {"index", "count", "copy"};
  static constexpr Text kListHidden[] = {"append", "clear",  "extend",  "insert",
                                         "pop",    "remove", "reverse", "sort"};
  static constexpr Text kLoop[] = {"cycle", "changed"};
  bool known = false, hidden = false;
  if (object.is(Kind::kDict)) {
    known = is_one_of(name, kDict, 5);
    hidden = is_one_of(name, kDictHidden, 5);
  } else if (object.is(Kind::kList)) {
    known = is_one_of(name, kList, 3);
    hidden = is_one_of(name, kListHidden, 8);
  } else if (object.is(Kind::kTuple) || object.is(Kind::kRange)) {
    known = is_one_of(name, kList, 2);
  } else if (object.is(Kind::kLoop)) {
    known = is_one_of(name, kLoop, 2);
  } else if (object.is(Kind::kString)) {
    known = has_text_method(name);
  }
  Value value = make_undefined(name);
  if (hidden) value.kind = Kind::kForbidden;
  if (!known) return value;
  Method* method = machine.make<Method>();
  if (!method) return value;
  *method = {object, name};
  value.kind = Kind::kMethod;
  value.method = method;
  return value;
}

Value call_method(Interpreter& interpreter, const Method& method, const Arguments& arguments) {
  switch (method.self.kind) {
    case Kind::kDict:
      return call_dict_method(interpreter, *method.self.dict, method.name, arguments);
    case Kind::kString:
      return call_text_method(interpreter, method.self.text(), method.name, arguments);
    case Kind::kLoop:
      return call_loop_method(interpreter, *method.self.loop, method.name, arguments);
    default:
      return call_list_method(interpreter, method.self, method.name, arguments);
  }
}

}  // namespace izh::jinja
