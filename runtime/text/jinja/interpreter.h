// Runs a template's tree. Internal to jinja.

#pragma once

#include "runtime/base/array.h"
#include "runtime/text/jinja/compare.h"
#include "runtime/text/jinja/syntax.h"

namespace izh::jinja {

struct Variable {
  Text name;
  Value value;
  Variable* next;
};

// Variables of a template, a macro or one round of a loop. Also what a
// namespace holds.
struct Scope {
  Scope* parent = nullptr;
  Variable* first = nullptr;

  // Of this scope alone; nullptr if there is none.
  Value* find(Text name) {
    for (Variable* v = first; v; v = v->next) {
      if (v->name == name) return &v->value;
    }
    return nullptr;
  }
};

struct Macro {
  const Node* node;
  Scope* scope;  // where it was defined
};

struct Loop {
  const Node* node = nullptr;
  Scope* scope = nullptr;
  const Value* items = nullptr;
  uint32_t index = 0;
  uint32_t length = 0;
  uint32_t depth = 1;
  Value changed;
  bool has_changed = false;
};

struct Named {
  Text name;
  Value value;
};

// What a call passes.
struct Arguments {
  const Value* values = nullptr;
  uint32_t count = 0;
  const Named* named = nullptr;
  uint32_t named_count = 0;

  // The argument at `index` or of this name; nullptr if there is neither.
  const Value* get(uint32_t index, Text name) const {
    if (index < count) return &values[index];
    for (uint32_t i = 0; i < named_count; ++i) {
      if (named[i].name == name) return &named[i].value;
    }
    return nullptr;
  }
  Arguments from(uint32_t first) const {
    const uint32_t skip = first < count ? first : count;
    return {values + skip, count - skip, named, named_count};
  }
};

class Interpreter {
 public:
  // `now` is an ISO time for strftime_now, or empty: the clock's.
  Interpreter(Machine& machine, Dict* globals, Text now)
      : machine(machine), now(now), globals_(globals) {}

  // Runs `statements` and leaves the text in `output`.
  void run(const Node* statements, Array<char>* output);

  // What a, or what is behind it, does as a function.
  Value call(const Value& function, const Arguments& arguments);
  Value attribute(const Value& object, Text name);
  Value item(const Value& object, const Value& key);
  // The items of a list, the characters of a string, the keys of a dict. False
  // after a failure, which kinds that can't be gone through are.
  bool iterate(const Value& value, List* out);
  // "a.b.0" for filters with attribute=.
  Value path(const Value& object, const Value& path);
  Value filter(Text name, const Value& input, const Arguments& arguments);
  bool test(Text name, const Value& input, const Arguments& arguments);

  Machine& machine;
  const Text now;

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue };

  Value evaluate(const Node* node, Scope* scope);
  Value evaluate_items(const Node* node, Scope* scope, Kind kind);
  Value evaluate_dict(const Node* node, Scope* scope);
  Value evaluate_compare(const Node* node, Scope* scope);
  Value evaluate_slice(const Node* node, Scope* scope);
  Value evaluate_call(const Node* node, Scope* scope);
  Value evaluate_filter(const Node* node, const Value& input, Scope* scope);
  bool evaluate_arguments(const Node* list, Scope* scope, Arguments* out);
  bool unpack_argument(const Node* node, const Value& value, ListBuilder* values,
                       ListBuilder* names);
  Value lookup(Text name, Scope* scope);

  Flow execute(const Node* list, Scope* scope);
  Flow execute_one(const Node* node, Scope* scope);
  Flow execute_loop(const Node* node, Scope* scope);
  Flow run_loop(const Node* node, const Value& iterable, Scope* scope, uint32_t depth);
  bool select_items(const Node* node, Scope* scope, List* items);
  void execute_set(const Node* node, Scope* scope);
  void execute_call_block(const Node* node, Scope* scope);
  void assign(const Node* target, const Value& value, Scope* scope);
  void set(Scope* scope, Text name, const Value& value);
  Value apply_filters(const Node* node, const Value& input, Scope* scope);
  Value call_macro(const Macro& macro, const Arguments& arguments);
  Value call_loop(const Loop& loop, const Arguments& arguments);
  void write(Text text);
  // What was written since `begin`, which is taken back.
  Value capture(size_t begin);

  Dict* globals_;
  Array<char>* output_ = nullptr;
};

// functions.cpp
struct RangeBounds {
  int64_t start, stop, step;
};
Value make_range(Machine& machine, const RangeBounds& bounds);

// operators.cpp
Value binary(Machine& machine, Text op, const Value& a, const Value& b);
Value negate(Machine& machine, const Value& value);

// stringify.cpp
// str() and repr() of Python; a string is its own text.
Value to_string(Machine& machine, const Value& value);
void write_string(Machine& machine, const Value& value, Builder* out);
void write_repr(Machine& machine, const Value& value, Builder* out);
void write_float(double value, Builder* out);
struct JsonStyle {
  bool ascii = false;
  bool sort_keys = false;
  Text indent;  // of one level; data of nullptr: all in one line
  Text item_separator = ", ";
  Text key_separator = ": ";
};
void write_json(Machine& machine, const Value& value, const JsonStyle& style, Builder* out);

Value find_function(Text name);  // undefined if there is none
Value call_function(Interpreter& interpreter, const Value& function, const Arguments& arguments);
// methods.cpp: the method `name` of `object` as a value, or undefined.
Value find_method(Machine& machine, const Value& object, Text name);
Value call_method(Interpreter& interpreter, const Method& method, const Arguments& arguments);
// text_methods.cpp
bool has_text_method(Text name);
Value call_text_method(Interpreter& interpreter, Text self, Text name, const Arguments& arguments);
// format.cpp
Value format_braces(Interpreter& interpreter, Text format, const Arguments& arguments);
Value format_percent(Interpreter& interpreter, Text format, const Value& values);
// time.cpp
Value format_time(Interpreter& interpreter, Text format);

// filters_*.cpp
using Filter = Value (*)(Interpreter&, const Value& input, const Arguments&);
struct FilterEntry {
  Text name;
  Filter apply;
};
Filter find_text_filter(Text name);  // nullptr if there is none
Filter find_list_filter(Text name);

}  // namespace izh::jinja
