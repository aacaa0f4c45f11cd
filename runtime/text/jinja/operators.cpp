// Arithmetic as Python has it. Integers of more than 64 bits are an error.

#include <cmath>

#include "runtime/text/jinja/interpreter.h"

namespace izh::jinja {
namespace {

Value too_large(Machine& machine) { return machine.fail("an integer leaves the range of 64 bits"); }

Value mismatch(Machine& machine, Text op, const Value& a, const Value& b) {
  return machine.fail("'%.*s' means nothing between %s and %s", static_cast<int>(op.size), op.data,
                      kind_name(a), kind_name(b));
}

int64_t floor_divide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
}

Value power(Machine& machine, const Value& a, const Value& b) {
  if (!a.is_integer() || !b.is_integer() || b.integer < 0) {
    return make_float(std::pow(a.number(), b.number()));
  }
  int64_t result = 1, base = a.integer;
  for (int64_t exponent = b.integer; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) return too_large(machine);
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) return too_large(machine);
  }
  return make_int(result);
}

Value divide(Machine& machine, Text op, const Value& a, const Value& b) {
  if (b.number() == 0) return machine.fail("division by zero");
  const bool modulo = op == Text("%");
  if (op == Text("/")) return make_float(a.number() / b.number());
  if (a.is_integer() && b.is_integer()) {
    if (b.integer == -1) return modulo ? make_int(0) : negate(machine, a);
    const int64_t quotient = floor_divide(a.integer, b.integer);
    return make_int(modulo ? a.integer - quotient * b.integer : quotient);
  }
  const double quotient = std::floor(a.number() / b.number());
  return make_float(modulo ? a.number() - quotient * b.number() : quotient);
}

Value arithmetic(Machine& machine, Text op, const Value& a, const Value& b) {
  if (op == Text("**")) return power(machine, a, b);
  if (op.data[0] == '/' || op.data[0] == '%') return divide(machine, op, a, b);
  if (!a.is_integer() || !b.is_integer()) {
    const double x = a.number(), y = b.number();
    return make_float(op.data[0] == '+' ? x + y : op.data[0] == '-' ? x - y : x * y);
  }
  int64_t result;
  const bool overflow = op.data[0] == '+'   ? __builtin_add_overflow(a.integer, b.integer, &result)
                        : op.data[0] == '-' ? __builtin_sub_overflow(a.integer, b.integer, &result)
                                            : __builtin_mul_overflow(a.integer, b.integer, &result);
  return overflow ? too_large(machine) : make_int(result);
}

// A string or list, several times.
Value repeat(Machine& machine, const Value& what, int64_t times) {
  const uint64_t count = times < 0 ? 0 : static_cast<uint64_t>(times);
  const uint64_t size = what.is(Kind::kString) ? what.size : what.list->size;
  const uint64_t bytes = what.is(Kind::kString) ? size : size * sizeof(Value);
  if (bytes != 0 && count > machine.limits().memory / bytes) {
    return machine.fail_limit("bytes of memory", machine.limits().memory);
  }
  if (!machine.charge(count * (size / 64 + 1))) return {};
  if (what.is(Kind::kString)) {
    Builder out(machine);
    for (uint64_t i = 0; i < count && size != 0 && !machine.failed(); ++i) out.add(what.text());
    return out.value();
  }
  ListBuilder out(machine);
  for (uint64_t i = 0; i < count; ++i) {
    for (uint32_t k = 0; k < what.list->size && !machine.failed(); ++k)
      out.add(what.list->items[k]);
  }
  return out.value(what.kind);
}

Value join_lists(Machine& machine, const Value& a, const Value& b) {
  ListBuilder out(machine);
  if (!machine.charge((a.list->size + b.list->size) / 8)) return {};
  for (uint32_t i = 0; i < a.list->size; ++i) out.add(a.list->items[i]);
  for (uint32_t i = 0; i < b.list->size; ++i) out.add(b.list->items[i]);
  return out.value(a.kind);
}

}  // namespace

Value binary(Machine& machine, Text op, const Value& a, const Value& b) {
  if (op == Text("~")) {
    const Value left = to_string(machine, a), right = to_string(machine, b);
    return machine.failed() ? Value() : machine.concat(left.text(), right.text());
  }
  if (a.is_number() && b.is_number()) return arithmetic(machine, op, a, b);
  const bool sequence = a.is(Kind::kString) || a.is(Kind::kList) || a.is(Kind::kTuple);
  if (op == Text("+") && sequence && a.kind == b.kind) {
    return a.is(Kind::kString) ? machine.concat(a.text(), b.text()) : join_lists(machine, a, b);
  }
  if (op == Text("*") && sequence && b.is_integer()) return repeat(machine, a, b.integer);
  if (op == Text("*") && a.is_integer() &&
      (b.is(Kind::kString) || b.is(Kind::kList) || b.is(Kind::kTuple))) {
    return repeat(machine, b, a.integer);
  }
  for (const Value* side : {&a, &b}) {
    if (side->is_undefined()) {
      return machine.fail("'%.*s' is undefined",
                          side->size > 60 ? 60 : static_cast<int>(side->size),
                          side->chars ? side->chars : "");
    }
  }
  return mismatch(machine, op, a, b);
}

Value negate(Machine& machine, const Value& value) {
  if (value.is(Kind::kFloat)) return make_float(-value.real);
  if (!value.is_integer()) return machine.fail("'-' means nothing before %s", kind_name(value));
  int64_t result;
  if (__builtin_sub_overflow(int64_t{0}, value.integer, &result)) return too_large(machine);
  return make_int(result);
}

}  // namespace izh::jinja
