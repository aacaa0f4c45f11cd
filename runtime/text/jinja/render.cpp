// Puts context, parser and interpreter together.

#include "runtime/text/jinja/render.h"

#include "runtime/base/status.h"
#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/json_reader.h"
#include "runtime/text/utf8.h"

namespace izh::jinja {
namespace {

constexpr size_t kMostSource = 8 << 20;
constexpr size_t kMostContext = 256 << 20;

izh_status check(Text text, size_t most, const char* what, izh_error* error) {
  if (text.size > most) {
    return fail(error, IZH_LIMIT, "%s has %u bytes, but at most %zu are allowed", what, text.size,
                most);
  }
  if (!utf8_is_valid(reinterpret_cast<const uint8_t*>(text.data), text.size)) {
    return fail(error, IZH_INVALID_ARGUMENT, "%s is not UTF-8", what);
  }
  return IZH_OK;
}

void add_default(Machine& machine, Dict* globals, Text name, const Value& value) {
  if (!find_key(globals, name)) machine.set(globals, make_string(name), value);
}

}  // namespace

izh_status render(const RenderInput& input, const Limits& limits, Array<char>* out,
                  izh_error* error) {
  IZH_TRY(check(input.source, kMostSource, "the template", error));
  IZH_TRY(check(input.context, kMostContext, "the context", error));
  out->clear();
  Machine machine(limits, error);
  const Value context = read_json(machine, input.context);
  if (machine.failed()) return machine.status();
  if (!context.is(Kind::kDict)) {
    return fail(error, IZH_INVALID_ARGUMENT,
                "the context is no JSON object; it holds what the template reads, as "
                "{\"messages\": [{\"role\": \"user\", \"content\": \"...\"}]}");
  }
  Dict* globals = context.dict;
  add_default(machine, globals, "tools", make_none());
  add_default(machine, globals, "add_generation_prompt", make_bool(true));
  if (input.bos_token.data)
    add_default(machine, globals, "bos_token", make_string(input.bos_token));
  if (input.eos_token.data)
    add_default(machine, globals, "eos_token", make_string(input.eos_token));
  const Node* tree = parse_template(machine, input.source);
  if (machine.failed()) return machine.status();
  const Value* now = find_key(globals, "now");
  Interpreter interpreter(machine, globals, now && now->is(Kind::kString) ? now->text() : Text());
  interpreter.run(tree, out);
  return machine.status();
}

}  // namespace izh::jinja
