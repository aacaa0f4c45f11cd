// Filters that take lists and dicts apart.

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/interpreter.h"

namespace izh::jinja {
namespace {

Value length(Interpreter& in, const Value& input, const Arguments&) {
  switch (input.kind) {
    case Kind::kUndefined:
    case Kind::kForbidden:
      return make_int(0);
    case Kind::kString:
      return in.machine.charge(input.size / 16) ? make_int(count_characters(input.text()))
                                                : Value();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
      return make_int(input.list->size);
    case Kind::kDict:
      return make_int(input.dict->size);
    default:
      return in.machine.fail("%s has no length", kind_name(input));
  }
}

Value otherwise(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Value* given = arguments.get(0, "default_value");
  const Value* boolean = arguments.get(1, "boolean");
  const bool missing = input.is_undefined() || (boolean && truth(*boolean) && !truth(input));
  if (!missing) return input;
  return given ? *given : make_string({});
}

Value first(Interpreter& in, const Value& input, const Arguments&) {
  List items;
  if (!in.iterate(input, &items)) return {};
  return items.size ? items.items[0] : make_undefined("the first item of nothing");
}

Value last(Interpreter& in, const Value& input, const Arguments&) {
  List items;
  if (!in.iterate(input, &items)) return {};
  return items.size ? items.items[items.size - 1] : make_undefined("the last item of nothing");
}

Value list(Interpreter& in, const Value& input, const Arguments&) {
  List items;
  return in.iterate(input, &items) ? in.machine.list(items.items, items.size) : Value();
}

Value reverse(Interpreter& in, const Value& input, const Arguments&) {
  List items;
  if (!in.iterate(input, &items)) return {};
  ListBuilder out(in.machine);
  Builder text(in.machine);
  for (uint32_t i = items.size; i-- > 0 && in.machine.charge(1);) {
    if (input.is(Kind::kString)) {
      text.add(items.items[i].text());
    } else {
      out.add(items.items[i]);
    }
  }
  return input.is(Kind::kString) ? text.value() : out.value(Kind::kIterator);
}

// The attribute of an item that a filter asks for; the item itself if none.
Value part(Interpreter& in, const Value& item, const Value* attribute) {
  return attribute && !attribute->is(Kind::kNone) ? in.path(item, *attribute) : item;
}

Value join(Interpreter& in, const Value& input, const Arguments& arguments) {
  List items;
  if (!in.iterate(input, &items)) return {};
  const Value* given = arguments.get(0, "d");
  const Value separator = given ? to_string(in.machine, *given) : make_string({});
  const Value* attribute = arguments.get(1, "attribute");
  Builder out(in.machine);
  for (uint32_t i = 0; i < items.size && in.machine.charge(1); ++i) {
    if (i != 0) out.add(separator.text());
    // Making the text first keeps `out` in one piece.
    out.add(to_string(in.machine, part(in, items.items[i], attribute)).text());
  }
  return in.machine.failed() ? Value() : out.value();
}

Value items_of(Interpreter& in, const Value& input, const Arguments&) {
  if (input.is_undefined()) return in.machine.list(nullptr, 0);
  if (!input.is(Kind::kDict))
    return in.machine.fail("items takes a dict, not %s", kind_name(input));
  return call_method(in, {input, "items"}, {});
}

Value lowered(Interpreter& in, const Value& value) {
  return value.is(Kind::kString) ? call_text_method(in, value.text(), "lower", {}) : value;
}

// Sorts `count` values by the keys that follow each of them.
struct Sorting {
  bool ignore_case;
  bool reverse;
};

Value sort_by(Interpreter& in, const List& items, const Value* attribute, const Sorting& how) {
  Machine& machine = in.machine;
  Value* keys = machine.make_array<Value>(items.size);
  Value* order = machine.make_array<Value>(2 * size_t{items.size});
  if (!keys || !order) return {};
  for (uint32_t i = 0; i < items.size && machine.charge(1); ++i) {
    const Value key = part(in, items.items[i], attribute);
    keys[i] = how.ignore_case ? lowered(in, key) : key;
    order[i] = make_int(i);
  }
  if (machine.failed()) return {};
  merge_sort(machine, order, order + items.size, items.size, [&](const Value& a, const Value& b) {
    const int result = compare(machine, keys[a.integer], keys[b.integer]);
    return how.reverse ? -result : result;
  });
  ListBuilder out(machine);
  for (uint32_t i = 0; i < items.size && !machine.failed(); ++i)
    out.add(items.items[order[i].integer]);
  return out.value();
}

bool flag(const Arguments& arguments, uint32_t index, Text name) {
  const Value* value = arguments.get(index, name);
  return value && truth(*value);
}

Value sort(Interpreter& in, const Value& input, const Arguments& arguments) {
  List items;
  if (!in.iterate(input, &items)) return {};
  return sort_by(in, items, arguments.get(2, "attribute"),
                 {!flag(arguments, 1, "case_sensitive"), flag(arguments, 0, "reverse")});
}

Value dict_sort(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Value pairs = items_of(in, input, {});
  if (in.machine.failed()) return {};
  const Value* by = arguments.get(1, "by");
  const Value index = make_int(by && by->is(Kind::kString) && by->text() == Text("value"));
  return sort_by(in, *pairs.list, &index,
                 {!flag(arguments, 0, "case_sensitive"), flag(arguments, 2, "reverse")});
}

Value extreme(Interpreter& in, const Value& input, const Arguments& arguments, bool largest) {
  List items;
  if (!in.iterate(input, &items)) return {};
  const Value sorted = sort_by(in, items, arguments.get(1, "attribute"),
                               {!flag(arguments, 0, "case_sensitive"), largest});
  if (in.machine.failed()) return {};
  return sorted.list->size ? sorted.list->items[0] : make_undefined("the extreme of nothing");
}
Value smallest(Interpreter& in, const Value& input, const Arguments& arguments) {
  return extreme(in, input, arguments, false);
}
Value largest(Interpreter& in, const Value& input, const Arguments& arguments) {
  return extreme(in, input, arguments, true);
}

Value sum(Interpreter& in, const Value& input, const Arguments& arguments) {
  List items;
  if (!in.iterate(input, &items)) return {};
  const Value* start = arguments.get(1, "start");
  Value total = start ? *start : make_int(0);
  for (uint32_t i = 0; i < items.size && in.machine.charge(1); ++i) {
    total = binary(in.machine, "+", total, part(in, items.items[i], arguments.get(0, "attribute")));
  }
  return total;
}

Value unique(Interpreter& in, const Value& input, const Arguments& arguments) {
  List items;
  if (!in.iterate(input, &items)) return {};
  ListBuilder out(in.machine), seen(in.machine);
  const bool exact = flag(arguments, 0, "case_sensitive");
  for (uint32_t i = 0; i < items.size && in.machine.charge(1); ++i) {
    const Value key = part(in, items.items[i], arguments.get(1, "attribute"));
    const Value compared = exact ? key : lowered(in, key);
    bool known = false;
    for (uint32_t k = 0; k < seen.size() && !known; ++k)
      known = equal(in.machine, seen.items()[k], compared);
    if (known) continue;
    seen.add(compared);
    out.add(items.items[i]);
  }
  return out.value(Kind::kIterator);
}

// map('filter', ...) and map(attribute='name', default=...).
Value map(Interpreter& in, const Value& input, const Arguments& arguments) {
  List items;
  if (!in.iterate(input, &items)) return {};
  const Value* attribute = arguments.count == 0 ? arguments.get(0, "attribute") : nullptr;
  const Value* missing = arguments.count == 0 ? arguments.get(1, "default") : nullptr;
  if (!attribute && (arguments.count == 0 || !arguments.values[0].is(Kind::kString))) {
    return in.machine.fail("map takes the name of a filter or attribute=");
  }
  ListBuilder out(in.machine);
  for (uint32_t i = 0; i < items.size && in.machine.charge(1); ++i) {
    Value value = attribute
                      ? in.path(items.items[i], *attribute)
                      : in.filter(arguments.values[0].text(), items.items[i], arguments.from(1));
    if (missing && value.is_undefined()) value = *missing;
    out.add(value);
  }
  return in.machine.failed() ? Value() : out.value(Kind::kIterator);
}

// select, reject and, with the name of an attribute first, the same by it.
Value choose(Interpreter& in, const Value& input, const Arguments& arguments, bool wanted,
             bool by_attribute) {
  List items;
  if (!in.iterate(input, &items)) return {};
  if (by_attribute && arguments.count == 0)
    return in.machine.fail("the name of an attribute is missing");
  const Arguments rest = by_attribute ? arguments.from(1) : arguments;
  if (rest.count != 0 && !rest.values[0].is(Kind::kString)) {
    return in.machine.fail("the name of a test is a string");
  }
  ListBuilder out(in.machine);
  for (uint32_t i = 0; i < items.size && in.machine.charge(1); ++i) {
    const Value value =
        by_attribute ? in.path(items.items[i], arguments.values[0]) : items.items[i];
    const bool good =
        rest.count ? in.test(rest.values[0].text(), value, rest.from(1)) : truth(value);
    if (good == wanted) out.add(items.items[i]);
  }
  return in.machine.failed() ? Value() : out.value(Kind::kIterator);
}
Value select(Interpreter& in, const Value& input, const Arguments& arguments) {
  return choose(in, input, arguments, true, false);
}
Value reject(Interpreter& in, const Value& input, const Arguments& arguments) {
  return choose(in, input, arguments, false, false);
}
Value select_attribute(Interpreter& in, const Value& input, const Arguments& arguments) {
  return choose(in, input, arguments, true, true);
}
Value reject_attribute(Interpreter& in, const Value& input, const Arguments& arguments) {
  return choose(in, input, arguments, false, true);
}

Value attribute(Interpreter& in, const Value& input, const Arguments& arguments) {
  if (arguments.count == 0 || !arguments.values[0].is(Kind::kString)) {
    return in.machine.fail("attr takes the name of an attribute");
  }
  return in.attribute(input, arguments.values[0].text());
}

Value batch(Interpreter& in, const Value& input, const Arguments& arguments) {
  List items;
  if (!in.iterate(input, &items)) return {};
  const Value* size = arguments.get(0, "linecount");
  const Value* fill = arguments.get(1, "fill_with");
  if (!size || !size->is_integer() || size->integer < 1)
    return in.machine.fail("batch takes a size of 1 or more");
  ListBuilder out(in.machine);
  for (int64_t begin = 0; begin < items.size && in.machine.charge(1); begin += size->integer) {
    ListBuilder row(in.machine);
    for (int64_t i = begin; i < begin + size->integer && in.machine.charge(1); ++i) {
      if (i < items.size) {
        row.add(items.items[i]);
      } else if (fill) {
        row.add(*fill);
      } else {
        break;
      }
    }
    out.add(row.value());
  }
  return out.value(Kind::kIterator);
}

constexpr FilterEntry kFilters[] = {
    {"length", length},
    {"count", length},
    {"default", otherwise},
    {"d", otherwise},
    {"first", first},
    {"last", last},
    {"list", list},
    {"reverse", reverse},
    {"join", join},
    {"items", items_of},
    {"sort", sort},
    {"dictsort", dict_sort},
    {"min", smallest},
    {"max", largest},
    {"sum", sum},
    {"unique", unique},
    {"map", map},
    {"select", select},
    {"reject", reject},
    {"selectattr", select_attribute},
    {"rejectattr", reject_attribute},
    {"attr", attribute},
    {"batch", batch},
};

}  // namespace

Filter find_list_filter(Text name) {
  for (const FilterEntry& entry : kFilters) {
    if (entry.name == name) return entry.apply;
  }
  return nullptr;
}

}  // namespace izh::jinja
