// Expressions.

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/interpreter.h"

namespace izh::jinja {

Value Interpreter::lookup(Text name, Scope* scope) {
  for (; scope; scope = scope->parent) {
    if (const Value* found = scope->find(name)) return *found;
  }
  if (const Value* found = find_key(globals_, name)) return *found;
  const Value function = find_function(name);
  return function.is_undefined() ? make_undefined(name) : function;
}

Value Interpreter::evaluate(const Node* node, Scope* scope) {
  Level level(machine);
  if (!level) return {};
  machine.line = node->line;
  switch (node->kind) {
    case NodeKind::kConstant:
      return node->value;
    case NodeKind::kName:
      return lookup(node->text, scope);
    case NodeKind::kList:
      return evaluate_items(node, scope, Kind::kList);
    case NodeKind::kTuple:
      return evaluate_items(node, scope, Kind::kTuple);
    case NodeKind::kDict:
      return evaluate_dict(node, scope);
    case NodeKind::kAttribute:
      return attribute(evaluate(node->a, scope), node->text);
    case NodeKind::kItem: {
      const Value object = evaluate(node->a, scope);
      return item(object, evaluate(node->b, scope));
    }
    case NodeKind::kSlice:
      return evaluate_slice(node, scope);
    case NodeKind::kCall:
      return evaluate_call(node, scope);
    case NodeKind::kFilter:
      return evaluate_filter(node, evaluate(node->a, scope), scope);
    case NodeKind::kTest: {
      const Value input = evaluate(node->a, scope);
      Arguments arguments;
      if (!evaluate_arguments(node->b, scope, &arguments)) return {};
      machine.line = node->line;
      return make_bool(test(node->text, input, arguments));
    }
    case NodeKind::kNot:
      return make_bool(!truth(evaluate(node->a, scope)));
    case NodeKind::kNegative:
      return negate(machine, evaluate(node->a, scope));
    case NodeKind::kPositive:
      return evaluate(node->a, scope);
    case NodeKind::kAnd: {
      const Value left = evaluate(node->a, scope);
      return truth(left) ? evaluate(node->b, scope) : left;
    }
    case NodeKind::kOr: {
      const Value left = evaluate(node->a, scope);
      return truth(left) ? left : evaluate(node->b, scope);
    }
    case NodeKind::kBinary: {
      const Value left = evaluate(node->a, scope);
      const Value right = evaluate(node->b, scope);
      machine.line = node->line;
      if (machine.failed()) return {};
      if (left.is(Kind::kString) && node->text == Text("%")) {
        return format_percent(
            *this, left.text(),
            right.is(Kind::kTuple) ? right : machine.list(&right, 1, Kind::kTuple));
      }
      return binary(machine, node->text, left, right);
    }
    case NodeKind::kCompare:
      return evaluate_compare(node, scope);
    case NodeKind::kConditional:
      if (truth(evaluate(node->b, scope))) return evaluate(node->a, scope);
      return node->c ? evaluate(node->c, scope) : Value();
    default:
      return machine.fail("this is no expression");
  }
}

Value Interpreter::evaluate_items(const Node* node, Scope* scope, Kind kind) {
  ListBuilder out(machine);
  for (const Node* item = node->a; item && !machine.failed(); item = item->next) {
    out.add(evaluate(item, scope));
  }
  return out.value(kind);
}

Value Interpreter::evaluate_dict(const Node* node, Scope* scope) {
  const Value out = machine.dict();
  for (const Node* pair = node->a; pair && !machine.failed(); pair = pair->next) {
    const Value key = evaluate(pair->a, scope);
    if (key.is_listlike() || key.is(Kind::kDict)) {
      return machine.fail("%s can't be the key of a dict", kind_name(key));
    }
    machine.set(out.dict, key, evaluate(pair->b, scope));
  }
  return machine.failed() ? Value() : out;
}

Value Interpreter::evaluate_compare(const Node* node, Scope* scope) {
  Value left = evaluate(node->a, scope);
  for (const Node* operand = node->b; operand; operand = operand->next) {
    const Value right = evaluate(operand->a, scope);
    if (machine.failed()) return {};
    machine.line = node->line;
    const Text op = operand->text;
    bool good;
    if (op == Text("==")) {
      good = equal(machine, left, right);
    } else if (op == Text("!=")) {
      good = !equal(machine, left, right);
    } else if (op == Text("in")) {
      good = contains(machine, right, left);
    } else if (op == Text("not in")) {
      good = !contains(machine, right, left);
    } else {
      const int order = compare(machine, left, right);
      const bool equals = op.size == 2;
      good = op.data[0] == '<' ? order < 0 || (equals && order == 0)
                               : order > 0 || (equals && order == 0);
      // Nothing compares with what is not a number.
      if (left.is_number() && right.is_number()) {
        good = good && left.number() == left.number() && right.number() == right.number();
      }
    }
    if (!good || machine.failed()) return make_bool(false);
    left = right;
  }
  return make_bool(true);
}

// `places`: which items of the range.
static Value slice_range(Machine& machine, const List& range, const RangeBounds& places) {
  const int64_t start = range.items[range.size].integer, step = range.items[range.size + 2].integer;
  RangeBounds out;
  const auto item = [start, step](int64_t place, int64_t* out) {
    return !__builtin_mul_overflow(place, step, out) && !__builtin_add_overflow(*out, start, out);
  };
  if (!item(places.start, &out.start) || !item(places.stop, &out.stop) ||
      __builtin_mul_overflow(places.step, step, &out.step)) {
    return machine.fail("an integer leaves the range of 64 bits");
  }
  return make_range(machine, out);
}

Value Interpreter::evaluate_slice(const Node* node, Scope* scope) {
  const Value object = evaluate(node->a, scope);
  const Node* parts[] = {node->b, node->c, node->d};
  Value bounds[3];
  for (int i = 0; i < 3 && !machine.failed(); ++i) {
    bounds[i] = parts[i] ? evaluate(parts[i], scope) : make_none();
    if (!bounds[i].is(Kind::kNone) && !bounds[i].is_integer()) {
      return machine.fail("a slice goes by integers, not by %s", kind_name(bounds[i]));
    }
  }
  const bool is_text = object.is(Kind::kString);
  if (!is_text && !object.is_sequence()) {
    return machine.fail("%s can't be sliced", kind_name(object));
  }
  if (is_text && !machine.charge(object.size / 16)) return {};
  const int64_t size = is_text ? count_characters(object.text()) : object.list->size;
  const int64_t step = bounds[2].is(Kind::kNone) ? 1 : bounds[2].integer;
  if (step == 0) return machine.fail("the step of a slice is 0");
  const auto clamp = [&](const Value& bound, int64_t otherwise) {
    if (bound.is(Kind::kNone)) return otherwise;
    int64_t at = bound.integer < 0 ? bound.integer + size : bound.integer;
    const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
    return at < low ? low : at > high ? high : at;
  };
  const int64_t begin = clamp(bounds[0], step < 0 ? size - 1 : 0);
  const int64_t end = clamp(bounds[1], step < 0 ? -1 : size);
  if (is_text && step == 1) {
    if (begin >= end) return make_string({});
    const Text rest =
        object.text().from(character_offset(object.text(), static_cast<uint32_t>(begin)));
    return make_string(rest.part(0, character_offset(rest, static_cast<uint32_t>(end - begin))));
  }
  if (object.is(Kind::kRange)) {
    return slice_range(machine, *object.list, {begin, end, step});
  }
  List items;
  if (!iterate(object, &items)) return {};
  ListBuilder list(machine);
  Builder text(machine);
  for (int64_t i = begin; step < 0 ? i > end : i < end;) {
    if (!machine.charge(1)) return {};
    if (is_text) {
      text.add(items.items[i].text());
    } else {
      list.add(items.items[i]);
    }
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return is_text ? text.value() : list.value(object.kind);
}

bool Interpreter::unpack_argument(const Node* node, const Value& value, ListBuilder* values,
                                  ListBuilder* names) {
  if (node->text == Text("*")) {
    List items;
    if (!iterate(value, &items)) return false;
    for (uint32_t i = 0; i < items.size; ++i) values->add(items.items[i]);
    return !machine.failed();
  }
  if (!value.is(Kind::kDict)) {
    machine.fail("only a dict can follow '**', not %s", kind_name(value));
    return false;
  }
  for (uint32_t i = 0; i < value.dict->size; ++i) {
    if (!value.dict->entries[i].key.is(Kind::kString)) {
      machine.fail("the names of arguments are strings");
      return false;
    }
    names->add(value.dict->entries[i].key);
    names->add(value.dict->entries[i].value);
  }
  return !machine.failed();
}

bool Interpreter::evaluate_arguments(const Node* list, Scope* scope, Arguments* out) {
  ListBuilder values(machine), names(machine);
  for (; list && !machine.failed(); list = list->next) {
    const Value value = evaluate(list->a, scope);
    if (list->text.size == 0) {
      values.add(value);
    } else if (list->text.data[0] == '*') {
      if (!unpack_argument(list, value, &values, &names)) return false;
    } else {
      names.add(make_string(list->text));
      names.add(value);
    }
  }
  const uint32_t count = names.size() / 2;
  Named* named = machine.make_array<Named>(count);
  if (!named) return false;
  for (uint32_t i = 0; i < count; ++i) {
    named[i] = {names.items()[2 * i].text(), names.items()[2 * i + 1]};
  }
  *out = {values.items(), values.size(), named, count};
  return !machine.failed();
}

Value Interpreter::evaluate_call(const Node* node, Scope* scope) {
  const Value function = evaluate(node->a, scope);
  Arguments arguments;
  if (!evaluate_arguments(node->b, scope, &arguments)) return {};
  machine.line = node->line;
  return call(function, arguments);
}

Value Interpreter::evaluate_filter(const Node* node, const Value& input, Scope* scope) {
  Arguments arguments;
  if (!evaluate_arguments(node->b, scope, &arguments)) return {};
  machine.line = node->line;
  return filter(node->text, input, arguments);
}

Value Interpreter::path(const Value& object, const Value& path) {
  if (path.is_integer()) return item(object, path);
  if (!path.is(Kind::kString)) return machine.fail("an attribute is named by a string");
  Value at = object;
  for (Text rest = path.text(); rest.size != 0 && !machine.failed();) {
    const void* dot = memchr(rest.data, '.', rest.size);
    const uint32_t end =
        dot ? static_cast<uint32_t>(static_cast<const char*>(dot) - rest.data) : rest.size;
    const Text name = rest.part(0, end);
    bool number = end != 0 && end < 10;
    int64_t index = 0;
    for (uint32_t i = 0; i < end; ++i) {
      number = number && is_digit(static_cast<uint8_t>(name.data[i]));
      index = index * 10 + (name.data[i] - '0');
    }
    at = item(at, number ? make_int(index) : make_string(name));
    rest = rest.from(dot ? end + 1 : end);
  }
  return at;
}

}  // namespace izh::jinja
