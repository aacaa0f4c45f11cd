// Chat templates and contexts that nobody vouches for: before the first zero
// byte the template, behind it the context.

#include <cstring>

#include "runtime/text/jinja/render.h"
#include "runtime/text/utf8.h"
#include "test/fuzz/fuzz.h"

using namespace izh;

static void check(bool fact) {
  if (!fact)
    __builtin_trap();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const auto *zero = static_cast<const uint8_t *>(size ? memchr(data, 0, size) : nullptr);
  const size_t source = zero ? static_cast<size_t>(zero - data) : size;
  const size_t context = zero ? source + 1 : size;
  // Small, so that many inputs are tried.
  jinja::Limits limits;
  limits.steps = 200'000;
  limits.memory = 16 << 20;
  limits.output = 1 << 20;
  limits.depth = 200;
  Array<char> out;
  izh_error error = {};
  const auto *text = reinterpret_cast<const char *>(data);
  const izh_status status =
      jinja::render({{text, source}, {text + context, size - context}}, limits, &out, &error);
  check(out.size() <= limits.output);
  if (status == IZH_OK) {
    check(utf8_is_valid(reinterpret_cast<const uint8_t *>(out.data()), out.size()));
  } else {
    check(error.message[0] != 0);
  }
  return 0;
}

std::vector<std::vector<uint8_t>> fuzzSeeds() {
  const char *const sources[] = {
      "{{- bos_token }}{% for m in messages %}{% if m.role == 'user' and loop.first %}<|{{ "
      "m['role'] "
      "}}|>\n{{ m.content | trim }}{% elif not loop.last %}{{ m | tojson(indent=2) }}{% else %}{% "
      "break "
      "%}{% endif %}{% endfor %}{%- if add_generation_prompt -%} {{ 'a' }} {%- endif %}",
      "{% macro f(a, b=[1, 2], c={'k': none}) %}{{ varargs }}{{ a[1:-1:2] }}{{ b | "
      "sort(reverse=true) "
      "| join(', ') }}{% endmacro %}{% set ns = namespace(x=0.5) %}{% set ns.x = ns.x * 2 ** 3 // "
      "-1 % 7 "
      "%}{{ f('äbc', *[1]) ~ ns.x }}{% call(q) f(1) %}{{ q }}{% endcall %}",
      "{% filter upper %}{{ '%5.2f|%-4s' | format(1.5, 'x') }}{{ '{:>{}}'.format(1) }}{{ "
      "'{0:^9,}'.format("
      "12345) }}{% endfilter %}{{ messages | selectattr('role', 'in', ['user']) | "
      "map(attribute='content') "
      "| list | string }}{{ 'a b'.split() | batch(2, 'f') | list }}{{ strftime_now('%Y-%j') }}{% "
      "raw %}{{ "
      "{% endraw %}{# #}{% for x in [[1, [2]]] recursive %}{{ loop(x) if x is iterable else x }}{% "
      "endfor %}",
  };
  const char context[] = "{\"now\": \"2024-01-02\", \"messages\": [{\"role\": \"user\", "
                         "\"content\": \"\\u00e9 <b>\\n\"}, "
                         "{\"role\": \"assistant\", \"content\": null, \"n\": [1, -2.5e3, true]}]}";
  std::vector<std::vector<uint8_t>> seeds;
  for (const char *source : sources) {
    std::vector<uint8_t> seed(source, source + strlen(source) + 1);
    seed.insert(seed.end(), context, context + strlen(context));
    seeds.push_back(std::move(seed));
  }
  return seeds;
}
