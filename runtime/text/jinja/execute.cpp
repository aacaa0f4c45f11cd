// Statements.

#include "runtime/text/jinja/interpreter.h"

namespace izh::jinja {

void Interpreter::run(const Node* statements, Array<char>* output) {
  output_ = output;
  Scope top;
  execute(statements, &top);
}

void Interpreter::write(Text text) {
  if (machine.failed() || !machine.charge(text.size / 64)) return;
  if (output_->size() + text.size > machine.limits().output) {
    machine.fail_limit("bytes of output", machine.limits().output);
  } else if (!output_->append(text.data, text.size)) {
    machine.fail("no memory is left");
  }
}

Value Interpreter::capture(size_t begin) {
  const Value text = machine.string({output_->data() + begin, output_->size() - begin});
  static_cast<void>(output_->resize(begin));
  return text;
}

void Interpreter::set(Scope* scope, Text name, const Value& value) {
  if (machine.failed()) return;
  if (Value* old = scope->find(name)) {
    *old = value;
    return;
  }
  Variable* variable = machine.make<Variable>();
  if (!variable) return;
  *variable = {name, value, scope->first};
  scope->first = variable;
}

void Interpreter::assign(const Node* target, const Value& value, Scope* scope) {
  if (machine.failed()) return;
  if (target->kind == NodeKind::kName) return set(scope, target->text, value);
  if (target->kind == NodeKind::kAttribute) {
    const Value object = evaluate(target->a, scope);
    if (machine.failed()) return;
    if (!object.is(Kind::kNamespace)) {
      machine.fail("attributes can be set of namespaces only, not of %s", kind_name(object));
      return;
    }
    // The scope of a namespace is kept where others keep their list.
    return set(reinterpret_cast<Scope*>(object.list), target->text, value);
  }
  List items;
  if (!iterate(value, &items)) return;
  uint32_t at = 0;
  for (const Node* part = target->a; part; part = part->next, ++at) {
    if (at == items.size) break;
    assign(part, items.items[at], scope);
  }
  uint32_t wanted = 0;
  for (const Node* part = target->a; part; part = part->next) ++wanted;
  if (wanted != items.size) {
    machine.fail("%u values can't be given to %u names", items.size, wanted);
  }
}

Interpreter::Flow Interpreter::execute(const Node* list, Scope* scope) {
  for (; list && !machine.failed(); list = list->next) {
    const Flow flow = execute_one(list, scope);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute_one(const Node* node, Scope* scope) {
  Level level(machine);
  if (!level) return Flow::kNext;
  machine.line = node->line;
  switch (node->kind) {
    case NodeKind::kData:
      write(node->text);
      break;
    case NodeKind::kPrint: {
      const Value value = evaluate(node->a, scope);
      if (machine.failed()) break;
      machine.line = node->line;
      write(to_string(machine, value).text());
      break;
    }
    case NodeKind::kIf:
      return execute(truth(evaluate(node->a, scope)) ? node->b : node->c, scope);
    case NodeKind::kFor:
      return execute_loop(node, scope);
    case NodeKind::kSet:
    case NodeKind::kSetBlock:
    case NodeKind::kFilterBlock:
      execute_set(node, scope);
      break;
    case NodeKind::kMacro: {
      Macro* macro = machine.make<Macro>();
      if (!macro) break;
      *macro = {node, scope};
      Value value;
      value.kind = Kind::kMacro;
      value.macro = macro;
      set(scope, node->text, value);
      break;
    }
    case NodeKind::kCallBlock:
      execute_call_block(node, scope);
      break;
    case NodeKind::kWith: {
      Scope* inner = machine.make<Scope>();
      if (!inner) break;
      inner->parent = scope;
      for (const Node* one = node->a; one; one = one->next) {
        assign(one->a, evaluate(one->b, scope), inner);
      }
      return execute(node->b, inner);
    }
    case NodeKind::kScope:
      return execute(node->a, scope);
    case NodeKind::kBreak:
      return Flow::kBreak;
    case NodeKind::kContinue:
      return Flow::kContinue;
    default:
      machine.fail("this is no statement");
  }
  return Flow::kNext;
}

// A chain of filters around a missing input.
Value Interpreter::apply_filters(const Node* node, const Value& input, Scope* scope) {
  if (!node) return input;
  if (node->kind != NodeKind::kFilter) return machine.fail("only filters may stand here");
  Level level(machine);
  if (!level) return {};
  return evaluate_filter(node, apply_filters(node->a, input, scope), scope);
}

void Interpreter::execute_set(const Node* node, Scope* scope) {
  if (node->kind == NodeKind::kSet) return assign(node->a, evaluate(node->b, scope), scope);
  const bool is_filter = node->kind == NodeKind::kFilterBlock;
  const size_t begin = output_->size();
  Scope* inner = machine.make<Scope>();
  if (!inner) return;
  inner->parent = scope;
  execute(is_filter ? node->a : node->b, inner);
  const Value text = apply_filters(is_filter ? node->b : node->c, capture(begin), scope);
  if (machine.failed()) return;
  if (is_filter) {
    write(to_string(machine, text).text());
  } else {
    assign(node->a, text, scope);
  }
}

void Interpreter::execute_call_block(const Node* node, Scope* scope) {
  const Value function = evaluate(node->a->a, scope);
  Arguments arguments;
  Macro* caller = machine.make<Macro>();
  if (!caller || !evaluate_arguments(node->a->b, scope, &arguments)) return;
  *caller = {node->b, scope};
  Value value;
  value.kind = Kind::kMacro;
  value.macro = caller;
  Named* named = machine.make_array<Named>(size_t{arguments.named_count} + 1);
  if (!named) return;
  for (uint32_t i = 0; i < arguments.named_count; ++i) named[i] = arguments.named[i];
  named[arguments.named_count++] = {"caller", value};
  arguments.named = named;
  const Value text = call(function, arguments);
  if (!machine.failed()) write(to_string(machine, text).text());
}

// Keeps the items for which the filter of the loop is true.
bool Interpreter::select_items(const Node* node, Scope* scope, List* items) {
  ListBuilder kept(machine);
  for (uint32_t i = 0; i < items->size && !machine.failed(); ++i) {
    Scope* inner = machine.make<Scope>();
    if (!inner) return false;
    inner->parent = scope;
    assign(node->a, items->items[i], inner);
    if (truth(evaluate(node->e, inner))) kept.add(items->items[i]);
  }
  *items = {kept.items(), kept.size()};
  return !machine.failed();
}

Interpreter::Flow Interpreter::execute_loop(const Node* node, Scope* scope) {
  return run_loop(node, evaluate(node->b, scope), scope, 1);
}

// 'break' and 'continue' of the body end here; those of 'else' are an outer loop's.
Interpreter::Flow Interpreter::run_loop(const Node* node, const Value& iterable, Scope* scope,
                                        uint32_t depth) {
  List items;
  if (machine.failed() || !iterate(iterable, &items)) return Flow::kNext;
  if (node->e && !select_items(node, scope, &items)) return Flow::kNext;
  Loop* loop = machine.make<Loop>();
  if (!loop) return Flow::kNext;
  loop->node = node;
  loop->scope = scope;
  loop->items = items.items;
  loop->length = items.size;
  loop->depth = depth;
  Value value;
  value.kind = Kind::kLoop;
  value.loop = loop;
  bool completed = false;
  for (uint32_t i = 0; i < items.size && !machine.failed(); ++i) {
    Scope* inner = machine.make<Scope>();
    if (!inner) break;
    inner->parent = scope;
    loop->index = i;
    set(inner, "loop", value);
    assign(node->a, items.items[i], inner);
    const Flow flow = execute(node->c, inner);
    if (flow == Flow::kBreak) break;
    completed |= flow == Flow::kNext;
  }
  if (completed || !node->d || machine.failed()) return Flow::kNext;
  // 'else' is for loops no round of which came to its end.
  Scope* inner = machine.make<Scope>();
  if (!inner) return Flow::kNext;
  inner->parent = scope;
  return execute(node->d, inner);
}

Value Interpreter::call_loop(const Loop& loop, const Arguments& arguments) {
  if (!loop.node->recursive || arguments.count != 1) {
    return machine.fail("only a loop marked 'recursive' can be called, with one value");
  }
  const size_t begin = output_->size();
  run_loop(loop.node, arguments.values[0], loop.scope, loop.depth + 1);
  return capture(begin);
}

Value Interpreter::call_macro(const Macro& macro, const Arguments& arguments) {
  Level level(machine);
  Scope* scope = machine.make<Scope>();
  if (!level || !scope) return {};
  const Node* node = macro.node;
  scope->parent = macro.scope;
  uint32_t at = 0;
  for (const Node* p = node->a; p && !machine.failed(); p = p->next, ++at) {
    const Value* given = arguments.get(at, p->text);
    set(scope, p->text, given ? *given : p->a ? evaluate(p->a, scope) : make_undefined(p->text));
  }
  const Value kwargs = machine.dict();
  for (uint32_t i = 0; i < arguments.named_count && !machine.failed(); ++i) {
    const Named& named = arguments.named[i];
    bool known = false;
    for (const Node* p = node->a; p; p = p->next) known |= p->text == named.name;
    if (known) continue;
    if (named.name == Text("caller")) {
      set(scope, named.name, named.value);
    } else if (node->uses_kwargs) {
      machine.set(kwargs.dict, make_string(named.name), named.value);
    } else {
      return machine.fail("the macro '%.*s' has no parameter '%.*s'",
                          static_cast<int>(node->text.size), node->text.data,
                          static_cast<int>(named.name.size), named.name.data);
    }
  }
  if (arguments.count > at && !node->uses_varargs) {
    return machine.fail("the macro '%.*s' takes %u values, not %u",
                        static_cast<int>(node->text.size), node->text.data, at, arguments.count);
  }
  if (node->uses_kwargs) set(scope, "kwargs", kwargs);
  if (node->uses_varargs) {
    const Arguments rest = arguments.from(at);
    set(scope, "varargs", machine.list(rest.values, rest.count, Kind::kTuple));
  }
  const size_t begin = output_->size();
  execute(node->b, scope);
  return capture(begin);
}

Value Interpreter::call(const Value& function, const Arguments& arguments) {
  if (machine.failed()) return {};
  switch (function.kind) {
    case Kind::kMacro:
      return call_macro(*function.macro, arguments);
    case Kind::kLoop:
      return call_loop(*function.loop, arguments);
    case Kind::kFunction:
      return call_function(*this, function, arguments);
    case Kind::kMethod:
      return call_method(*this, *function.method, arguments);
    case Kind::kUndefined:
      return machine.fail("'%.*s' is undefined",
                          function.size > 60 ? 60 : static_cast<int>(function.size),
                          function.chars ? function.chars : "");
    case Kind::kForbidden:
      return machine.fail("'%.*s' would change a value, which templates may not",
                          static_cast<int>(function.size), function.chars);
    default:
      return machine.fail("%s can't be called", kind_name(function));
  }
}

}  // namespace izh::jinja
