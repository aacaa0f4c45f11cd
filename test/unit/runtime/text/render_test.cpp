// Chat templates. What they give is what Python's jinja2 gives with
// trim_blocks and lstrip_blocks, in its immutable sandbox.

#include "runtime/text/jinja/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace izh::jinja {
namespace {

using testing::HasSubstr;

constexpr char kContext[] = R"({"n": 5, "s": "Grüße, <you> ", "list": [3, 1, 2], "none": null,
  "rows": [{"k": "b", "v": 2}, {"k": "A", "v": 1}], "d": {"x": 1.0, "y": [true, "it's"]},
  "now": "2024-02-29T07:05:09", "messages": [{"role": "user", "content": "Hi"}]})";

// The text, or the sentence of the failure in angle brackets.
std::string render_text(const std::string& source, const std::string& context = kContext,
                        const Limits& limits = {}) {
  Array<char> out;
  izh_error error = {};
  const RenderInput input = {{source.data(), source.size()}, {context.data(), context.size()}};
  if (render(input, limits, &out, &error) != IZH_OK) return std::string("<") + error.message + ">";
  return {out.data(), out.size()};
}

TEST(RenderTest, KeepsAndStripsWhiteSpaceAsJinjaDoes) {
  EXPECT_EQ(render_text("a\n  {% if n %}\n  b\n  {% endif %}\nc\n"), "a\n  b\nc");
  EXPECT_EQ(render_text("a  {{- n -}}  b {{ n }}\n c"), "a5b 5\n c");
  EXPECT_EQ(render_text(" {%+ if n %}x{% endif +%}\ny"), " x\ny");
  EXPECT_EQ(render_text("a {#- note #}\nb"), "ab");
  EXPECT_EQ(render_text("{% raw %}{{ n }}{% endraw %}"), "{{ n }}");
  EXPECT_EQ(render_text("a\r\nb"), "a\nb");
}

TEST(RenderTest, EvaluatesExpressions) {
  EXPECT_EQ(render_text("{{ 7 // -2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 }} {{ 1 ~ 2 + '3' }}"),
            "-4 2 3.5 8 123");
  EXPECT_EQ(render_text("{{ 1 < 2 < 3 }} {{ 'x' in 'xyz' }} {{ 4 not in list }}"),
            "True True True");
  EXPECT_EQ(render_text("{{ s[0] }}{{ s[-2] }}{{ list[1:] }}{{ s[2:4] }}{{ list[::-1] }}"),
            "G>[1, 2]üß[2, 1, 3]");
  EXPECT_EQ(render_text("{{ none or n and 'y' }} {{ missing }}|{{ 'a' if missing }}|"), "y ||");
  EXPECT_EQ(render_text("{{ d }}"), "{'x': 1.0, 'y': [True, \"it's\"]}");
}

TEST(RenderTest, AppliesFiltersTestsAndMethods) {
  EXPECT_EQ(render_text("{{ s | trim | upper }}{{ list | sort | join('-') }}{{ list | length }}"),
            "GRÜSSE, <YOU>1-2-33");
  EXPECT_EQ(render_text("{{ rows | selectattr('v', 'gt', 1) | map(attribute='k') | list }}"),
            "['b']");
  EXPECT_EQ(render_text("{{ rows | sort(attribute='k') | map(attribute='v') | join(',') }}"),
            "1,2");
  EXPECT_EQ(render_text("{{ d | tojson }}{{ {'a': [1]} | tojson(indent=1) }}"),
            "{\"x\": 1.0, \"y\": [true, \"it's\"]}{\n \"a\": [\n  1\n ]\n}");
  EXPECT_EQ(render_text("{{ 'a,b'.split(',') }}{{ '{}-{:>3}'.format(1, 'x') }}"),
            "['a', 'b']1-  x");
  EXPECT_EQ(render_text("{{ d is mapping }}{{ n is odd }}{{ missing is defined }}"),
            "TrueTrueFalse");
}

TEST(RenderTest, ChangesTheCaseOfAllScripts) {
  const std::string words =
      R"({"s": "ΟΔΟΣ ΑΣ.Β Σ", "t": "straße ŉa ﬁn it's ǆ", "u": "ԱԲ ᏸ ﬀ ᾳ İ ẞ", "v": "中a ªb"})";
  EXPECT_EQ(render_text("{{ s | lower }}|{{ s.lower() }}|{{ s | title }}", words),
            "οδος ασ.β σ|οδος ασ.β σ|Οδος Ασ.β Σ");
  EXPECT_EQ(
      render_text("{{ t | upper }}|{{ t | title }}|{{ t.title() }}|{{ t | capitalize }}", words),
      "STRASSE ʼNA FIN IT'S Ǆ|Straße ʼNa FIn It's Ǆ|Straße ʼNa Fin It'S ǅ|Straße ŉa ﬁn it's ǆ");
  EXPECT_EQ(
      render_text("{{ u | upper }}|{{ u | lower }}|{{ u.swapcase() }}|{{ u.casefold() }}", words),
      "ԱԲ Ᏸ FF ΑΙ İ ẞ|աբ ᏸ ﬀ ᾳ i̇ ß|աբ Ᏸ FF ΑΙ i̇ ß|աբ Ᏸ ff αι i̇ ss");
  EXPECT_EQ(
      render_text("{{ v.title() }}|{{ v | title }}|{{ v.isalpha() }}|{{ 'ⅷ' is lower }}", words),
      "中A ªb|中a ªb|False|True");
  EXPECT_EQ(render_text("{{ 'x-ray (of) a'|title }} {{ 'a-b c_d é' | wordcount }}"),
            "X-Ray (Of) A 4");
}

TEST(RenderTest, RoundsAsPythonDoes) {
  EXPECT_EQ(
      render_text("{{ 2.675 | round(2) }} {{ 2.5 | round }} {{ -0.4 | round }} {{ 42 | round }} "
                  "{{ 0.15 | round(1) }} {{ 1e300 | round(2) }} {{ true | round }}"),
      "2.67 2.0 -0.0 42 0.1 1e+300 1");
  EXPECT_EQ(render_text("{{ 1250 | round(-2) }} {{ 1350 | round(-2) }} {{ -1250 | round(-2) }} "
                        "{{ 1250.0 | round(-2) }} {{ 60.0 | round(-2) }} {{ 50.0 | round(-2) }} "
                        "{{ 9 | round(-20) }}"),
            "1200 1400 -1200 1200.0 100.0 0.0 0");
  EXPECT_EQ(render_text("{{ 2.1 | round(1, 'ceil') }} {{ 2.129 | round(2, 'floor') }} "
                        "{{ 7 | round(1, 'ceil') }} {{ 1234 | round(-2, 'ceil') }}"),
            "2.1 2.12 7.0 1300.0");
  EXPECT_THAT(render_text("{{ 1 | round(1, 'up') }}"), HasSubstr("common, ceil or floor"));
  EXPECT_THAT(render_text("{{ 1 | round(1.5) }}"), HasSubstr("an integer as its precision"));
}

TEST(RenderTest, KeepsRangesAsWhatTheyAre) {
  EXPECT_EQ(
      render_text("{{ range(3) }} {{ range(1, 9, 2) }} {{ [range(0)] }} {{ 'a' ~ range(2) }}"),
      "range(0, 3) range(1, 9, 2) [range(0, 0)] arange(0, 2)");
  EXPECT_EQ(render_text("{{ range(1, 9, 2)[1:] }} {{ range(9)[::-2] }} {{ range(9)[:-3] }} "
                        "{{ range(5, 0, -2) }} {{ range(5, 0, -2)[::-1] }}"),
            "range(3, 9, 2) range(8, -1, -2) range(0, 6) range(5, 0, -2) range(1, 7, 2)");
  EXPECT_EQ(render_text("{{ range(3) | list }} {{ range(3)[-1] }} {{ range(3) | length }} "
                        "{{ 2 in range(3) }} {{ range(3) == range(0, 3, 1) }} "
                        "{{ range(3) == [0, 1, 2] }} {{ range(3) is sequence }} "
                        "{{ range(3).index(2) }} {{ 'y' if range(0) else 'n' }}"),
            "[0, 1, 2] 2 3 True True False True 2 n");
  EXPECT_THAT(render_text("{{ range(3) + [1] }}"), HasSubstr("a range and a list"));
  EXPECT_THAT(render_text("{{ range(3) | tojson }}"), HasSubstr("a range can't be written"));
  EXPECT_THAT(render_text("{{ range(0, 100, 10)[::999999999999999999] }}"), HasSubstr("64 bits"));
}

TEST(RenderTest, ScopesVariablesOfLoopsAndMacros) {
  EXPECT_EQ(render_text("{% set x = 1 %}{% for i in list %}{% set x = i %}{% endfor %}{{ x }}"),
            "1");
  EXPECT_EQ(render_text("{% set a = namespace(t=0) %}{% for i in list %}{% set a.t = a.t + i %}"
                        "{% endfor %}{{ a.t }}"),
            "6");
  EXPECT_EQ(render_text("{% macro m(a, b='z') %}[{{ a }}{{ b }}]{% endmacro %}{{ m(1) ~ m(b=2) }}"),
            "[1z][2]");
  EXPECT_EQ(render_text("{% for i in list if i > 1 %}{{ loop.index }}{{ i }}{{ loop.last }};"
                        "{% else %}none{% endfor %}"),
            "13False;22True;");
  EXPECT_EQ(render_text(
                "{% for i in range(9) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}"),
            "012");
}

// As jinja2 has it: 'else' is run where no round came to its end.
TEST(RenderTest, LoopsWithoutAWholeRoundHaveAnElse) {
  EXPECT_EQ(render_text("{% for i in list %}{% continue %}{% else %}e{% endfor %}"), "e");
  EXPECT_EQ(render_text("{% for i in list %}{% break %}{% else %}e{% endfor %}"), "e");
  EXPECT_EQ(render_text("{% for i in [1, 2] %}{{ i }}{% if i == 2 %}{% continue %}{% endif %}"
                        "{% else %}e{% endfor %}"),
            "12");
  EXPECT_EQ(render_text("{% set i = 5 %}{% for i in list %}{% continue %}{% else %}{{ i }}"
                        "{% endfor %}"),
            "5");
  EXPECT_EQ(render_text("{% for j in [1, 2] %}{{ j }}{% for i in list %}{% continue %}{% else %}"
                        "{% break %}{% endfor %}!{% endfor %}"),
            "1");
}

TEST(RenderTest, KnowsWhatChatTemplatesAskFor) {
  EXPECT_EQ(render_text("{{ strftime_now('%d %b %Y, %H:%M %A') }}"), "29 Feb 2024, 07:05 Thursday");
  EXPECT_EQ(
      render_text("{% generation %}x{% endgeneration %}{{ add_generation_prompt }}{{ tools }}"),
      "xTrueNone");
  EXPECT_THAT(render_text("{{ raise_exception('only users') }}"), HasSubstr("only users"));
}

TEST(RenderTest, SaysWhereATemplateFails) {
  EXPECT_THAT(render_text("a\n{{ missing.x }}"), HasSubstr("line 2"));
  EXPECT_THAT(render_text("{{ 'a' + 1 }}"), HasSubstr("between a string and an integer"));
  EXPECT_THAT(render_text("{{ 100000000000000000000 }}\n\n\n{{ n }}"),
              AllOf(HasSubstr("line 1"), HasSubstr("is too large")));
  EXPECT_THAT(render_text("{{ n | nothing }}"), HasSubstr("no filter 'nothing'"));
  EXPECT_THAT(render_text("{% if n %}"), HasSubstr("inside of a block"));
  EXPECT_THAT(render_text("{% include 'file' %}"), HasSubstr("include"));
  EXPECT_THAT(render_text("{{ list.append(1) }}"), HasSubstr("would change"));
  EXPECT_THAT(render_text("{{ ''.__class__.__mro__ }}"), HasSubstr("undefined"));
  EXPECT_THAT(render_text("{{ 1 }}", "[1"), HasSubstr("no valid JSON"));
  EXPECT_THAT(render_text("{{ 1 }}", "[1]"), HasSubstr("no JSON object"));
  EXPECT_THAT(render_text("\xff"), HasSubstr("not UTF-8"));
}

TEST(RenderTest, EndsWhatWouldNotEnd) {
  EXPECT_THAT(
      render_text("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"),
      HasSubstr("allowed"));
  EXPECT_THAT(render_text("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
              HasSubstr("levels of nesting"));
  EXPECT_THAT(render_text("{{ 'x' * 99999999999 }}"), HasSubstr("allowed"));
  EXPECT_THAT(render_text("{% set a = namespace(s='x') %}{% for i in range(99) %}"
                          "{% set a.s = a.s + a.s %}{% endfor %}"),
              HasSubstr("allowed"));
  EXPECT_THAT(render_text("{% set a = namespace(l=[1]) %}{% for i in range(9999) %}"
                          "{% set a.l = [a.l] %}{% endfor %}{{ a.l }}"),
              HasSubstr("levels of nesting"));
  EXPECT_THAT(render_text("{{ " + std::string(9999, '(') + "1" + std::string(9999, ')') + " }}"),
              HasSubstr("levels of nesting"));
  EXPECT_THAT(render_text("{}", std::string(100000, '[')), HasSubstr("levels of nesting"));
  Limits small;
  small.output = 10;
  EXPECT_THAT(render_text("01234567890", kContext, small), HasSubstr("bytes of output"));
}

// Of work that one expression does on long texts, all must be counted: hundreds
// of millions of bytes are looked at, and that is not done in 200 000 steps.
TEST(RenderTest, CountsTheWorkInsideOfExpressions) {
  Limits few;
  few.steps = 200'000;
  const auto text = [](const char* name, const std::string& begin, char c, const char* end) {
    std::string letters;
    for (int i = 0; i < 100'000; ++i) (letters += c == '"' ? "\\" : "") += c;
    return std::string("\"") + name + "\": \"" + begin + letters + end + "\", ";
  };
  const std::string context = "{" + text("a", "", 'a', "") + text("b", "", 'a', "b") +
                              text("c", "", 'a', "c") + text("n", "b", 'a', "") +
                              text("q", "", '"', "") + text("w", "", ' ', "") +
                              text("z", "", '<', "") + "\"now\": \"2024-02-29\"}";
  EXPECT_EQ(render_text("{% for i in range(3000) %}{% set x = a %}{% endfor %}", context, few), "");
  for (const char* expression : {"a.startswith(a)",
                                 "a.endswith(a)",
                                 "a.startswith((b, c, a))",
                                 "b < c",
                                 "[b, c] | sort",
                                 "b == c",
                                 "n in a",
                                 "a.find(n)",
                                 "a.rfind(n)",
                                 "a.count('b')",
                                 "a.index('a' * 999999)",
                                 "{b: 1}[b]",
                                 "{b: 1, c: 2}[c]",
                                 "q | tojson",
                                 "[q] | string",
                                 "w | trim",
                                 "w.strip()",
                                 "w.lstrip('cd ')",
                                 "a.lstrip(q)",
                                 "w.split()",
                                 "a.split('b')",
                                 "a | upper",
                                 "a | title",
                                 "a | replace('a', 'b')",
                                 "a | replace('b', '')",
                                 "z | e",
                                 "a[::-1]",
                                 "a | length",
                                 "a ~ a",
                                 "a | list",
                                 "range(100000) | join(',')",
                                 "range(100000) | list | sort",
                                 "range(99999) | map('string') | list",
                                 "-1 in range(100000)",
                                 "[0] * 100000",
                                 "range(100000) | select('odd') | list",
                                 "range(100000) | sum",
                                 "w | wordcount",
                                 "(1 / 3) | string * 99999",
                                 "strftime_now('%A ' * 100000)",
                                 "q | indent(9)"}) {
    const std::string source =
        "{% for i in range(3000) %}{% set x = " + std::string(expression) + " %}{% endfor %}";
    EXPECT_THAT(render_text(source, context, few), HasSubstr("steps")) << expression;
  }
}

}  // namespace
}  // namespace izh::jinja
