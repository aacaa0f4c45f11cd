// Comparisons. Strings are UTF-8, whose bytes sort as code points do.

#include "runtime/text/jinja/compare.h"

namespace izh::jinja {
namespace {

int compare_text(Text a, Text b) {
  const uint32_t shorter = a.size < b.size ? a.size : b.size;
  const int order = memcmp(a.data, b.data, shorter);
  if (order != 0) return order;
  return a.size < b.size ? -1 : a.size > b.size;
}

bool equal_lists(Machine& machine, const List& a, const List& b) {
  if (a.size != b.size) return false;
  for (uint32_t i = 0; i < a.size && !machine.failed(); ++i) {
    if (!equal(machine, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool equal_dicts(Machine& machine, const Dict& a, const Dict& b) {
  if (a.size != b.size) return false;
  for (uint32_t i = 0; i < a.size && !machine.failed(); ++i) {
    const Entry* other = find_entry(machine, &b, a.entries[i].key);
    if (!other || !equal(machine, a.entries[i].value, other->value)) return false;
  }
  return true;
}

}  // namespace

bool equal(Machine& machine, const Value& a, const Value& b) {
  Level level(machine);
  if (!level) return false;
  if (a.is_number() && b.is_number()) {
    return a.is_integer() && b.is_integer() ? a.integer == b.integer : a.number() == b.number();
  }
  if (a.is_undefined() && b.is_undefined()) return true;
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kNone:
      return true;
    case Kind::kString:
      return machine.charge(a.size / 64) && a.text() == b.text();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
      return a.list == b.list || equal_lists(machine, *a.list, *b.list);
    case Kind::kDict:
      return a.dict == b.dict || equal_dicts(machine, *a.dict, *b.dict);
    default:
      return a.integer == b.integer;
  }
}

int compare(Machine& machine, const Value& a, const Value& b) {
  Level level(machine);
  if (!level) return 0;
  if (a.is_integer() && b.is_integer()) return a.integer < b.integer ? -1 : a.integer > b.integer;
  if (a.is_number() && b.is_number()) return a.number() < b.number() ? -1 : a.number() > b.number();
  if (a.is(Kind::kString) && b.is(Kind::kString)) {
    const uint32_t shorter = a.size < b.size ? a.size : b.size;
    return machine.charge(shorter / 64) ? compare_text(a.text(), b.text()) : 0;
  }
  if (a.kind == b.kind && (a.is(Kind::kList) || a.is(Kind::kTuple))) {
    for (uint32_t i = 0; i < a.list->size && i < b.list->size; ++i) {
      if (equal(machine, a.list->items[i], b.list->items[i])) continue;
      return compare(machine, a.list->items[i], b.list->items[i]);
    }
    return a.list->size < b.list->size ? -1 : a.list->size > b.list->size;
  }
  machine.fail("%s and %s have no order", kind_name(a), kind_name(b));
  return 0;
}

bool contains(Machine& machine, const Value& container, const Value& item) {
  if (container.is(Kind::kString)) {
    if (!item.is(Kind::kString)) {
      machine.fail("only a string can be 'in' a string, not %s", kind_name(item));
      return false;
    }
    if (!machine.charge(container.size / 8)) return false;
    return memmem(container.chars, container.size, item.chars, item.size) != nullptr;
  }
  if (container.is(Kind::kDict)) return find_entry(machine, container.dict, item) != nullptr;
  if (container.is_listlike()) {
    for (uint32_t i = 0; i < container.list->size && !machine.failed(); ++i) {
      if (equal(machine, container.list->items[i], item)) return true;
    }
    return false;
  }
  if (!container.is_undefined()) {
    machine.fail("%s holds nothing that could be 'in' it", kind_name(container));
  }
  return false;
}

bool truth(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kForbidden:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.integer != 0;
    case Kind::kFloat:
      return value.real != 0;
    case Kind::kString:
      return value.size != 0;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
      return value.list->size != 0;
    case Kind::kDict:
      return value.dict->size != 0;
    default:
      return true;
  }
}

Entry* find_entry(Machine& machine, const Dict* dict, const Value& key) {
  const bool is_text = key.is(Kind::kString);
  if (!machine.charge(dict->size / 8 * (is_text ? 1 + key.size / 512 : 1) +
                      (is_text ? key.size / 64 : 0))) {
    return nullptr;
  }
  for (uint32_t i = 0; i < dict->size; ++i) {
    Entry& entry = dict->entries[i];
    if (is_text ? entry.key.is(Kind::kString) && entry.key.text() == key.text()
                : !entry.key.is(Kind::kString) && equal(machine, entry.key, key)) {
      return &entry;
    }
  }
  return nullptr;
}

const Value* find_key(const Dict* dict, Text key) {
  for (uint32_t i = 0; i < dict->size; ++i) {
    const Entry& entry = dict->entries[i];
    if (entry.key.is(Kind::kString) && entry.key.text() == key) return &entry.value;
  }
  return nullptr;
}

const char* kind_name(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kForbidden:
      return "an undefined value";
    case Kind::kNone:
      return "none";
    case Kind::kBool:
      return "a bool";
    case Kind::kInt:
      return "an integer";
    case Kind::kFloat:
      return "a float";
    case Kind::kString:
      return "a string";
    case Kind::kList:
      return "a list";
    case Kind::kTuple:
      return "a tuple";
    case Kind::kRange:
      return "a range";
    case Kind::kIterator:
      return "an iterator";
    case Kind::kDict:
      return "a dict";
    case Kind::kNamespace:
      return "a namespace";
    default:
      return "a function";
  }
}

}  // namespace izh::jinja
