// What values hold: attributes, items and what can be gone through.

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/interpreter.h"

namespace izh::jinja {
namespace {

int clip(Text text) { return text.size > 60 ? 60 : static_cast<int>(text.size); }

Value loop_attribute(const Loop& loop, Text name) {
  const int64_t index = loop.index, length = loop.length;
  if (name == Text("index")) return make_int(index + 1);
  if (name == Text("index0")) return make_int(index);
  if (name == Text("first")) return make_bool(index == 0);
  if (name == Text("last")) return make_bool(index + 1 == length);
  if (name == Text("length")) return make_int(length);
  if (name == Text("revindex")) return make_int(length - index);
  if (name == Text("revindex0")) return make_int(length - index - 1);
  if (name == Text("depth")) return make_int(loop.depth);
  if (name == Text("depth0")) return make_int(int64_t{loop.depth} - 1);
  if (name == Text("previtem") && index > 0) return loop.items[index - 1];
  if (name == Text("nextitem") && index + 1 < length) return loop.items[index + 1];
  return make_undefined(name);
}

Value undefined_object(Machine& machine, const Value& object, Text name) {
  return machine.fail("'%.*s' is undefined, so it has no '%.*s'", clip(object.text()),
                      object.chars ? object.chars : "", clip(name), name.data);
}

}  // namespace

Value Interpreter::attribute(const Value& object, Text name) {
  if (machine.failed()) return {};
  if (object.is_undefined()) return undefined_object(machine, object, name);
  if (object.is(Kind::kNamespace)) {
    const Value* found = reinterpret_cast<Scope*>(object.list)->find(name);
    return found ? *found : make_undefined(name);
  }
  // As in Python, methods come before the keys of a dict.
  const Value method = find_method(machine, object, name);
  if (!method.is(Kind::kUndefined)) return method;
  if (object.is(Kind::kLoop)) return loop_attribute(*object.loop, name);
  if (object.is(Kind::kDict)) {
    if (!machine.charge(object.dict->size / 8)) return {};
    if (const Value* found = find_key(object.dict, name)) return *found;
  }
  return make_undefined(name);
}

Value Interpreter::item(const Value& object, const Value& key) {
  if (machine.failed()) return {};
  const Text name = key.is(Kind::kString) ? key.text() : Text("item");
  if (object.is_undefined()) return undefined_object(machine, object, name);
  if (object.is(Kind::kDict)) {
    if (const Entry* found = find_entry(machine, object.dict, key)) return found->value;
  }
  if (key.is(Kind::kString)) return attribute(object, key.text());
  if (!key.is_integer()) return make_undefined(name);
  int64_t index = key.integer;
  if (object.is_sequence()) {
    index += index < 0 ? object.list->size : 0;
    if (index < 0 || index >= object.list->size) return make_undefined(name);
    return object.list->items[index];
  }
  if (object.is(Kind::kString)) {
    if (!machine.charge(object.size / 16)) return {};
    const Text text = object.text();
    index += index < 0 ? count_characters(text) : 0;
    if (index < 0 || index > UINT32_MAX) return make_undefined(name);
    const uint32_t at = character_offset(text, static_cast<uint32_t>(index));
    if (at >= text.size) return make_undefined(name);
    return make_string(text.part(at, at + character_bytes(text.data[at])));
  }
  return make_undefined(name);
}

bool Interpreter::iterate(const Value& value, List* out) {
  if (machine.failed()) return false;
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kForbidden:
      *out = {};
      return true;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
      *out = *value.list;
      return true;
    case Kind::kIterator:
      *out = *value.list;
      value.list->size = 0;
      return true;
    case Kind::kDict: {
      Value* keys = machine.make_array<Value>(value.dict->size);
      if (!keys) return false;
      for (uint32_t i = 0; i < value.dict->size; ++i) keys[i] = value.dict->entries[i].key;
      *out = {keys, value.dict->size};
      return machine.charge(value.dict->size);
    }
    case Kind::kString: {
      const Text text = value.text();
      if (!machine.charge(text.size)) return false;
      const uint32_t count = count_characters(text);
      Value* characters = machine.make_array<Value>(count);
      if (!characters) return false;
      for (uint32_t at = 0, i = 0; i < count; ++i) {
        const uint32_t bytes = character_bytes(text.data[at]);
        characters[i] = make_string(text.part(at, at + bytes));
        at += bytes;
      }
      *out = {characters, count};
      return true;
    }
    default:
      machine.fail("%s can't be gone through", kind_name(value));
      return false;
  }
}

}  // namespace izh::jinja
