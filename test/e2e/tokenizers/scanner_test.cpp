// The tables that the compiler makes of patterns against PCRE2 on the same
// patterns: the words must be the same for every text.

#include "compiler/tokenizers/PatternScanner.h"
#include "compiler/tokenizers/PreTokenizer.h"
#include "runtime/text/splitter.h"
#include <gtest/gtest.h>
#include <optional>
#include <random>

using namespace izhc;

namespace {

using Random = std::mt19937;
using Ends = std::vector<uint32_t>;

size_t below(Random &random, size_t limit) { return random() % limit; }

void appendUtf8(uint32_t c, std::string &out) {
  if (c < 0x80) {
    out += char(c);
  } else if (c < 0x800) {
    out += {char(0xc0 | c >> 6), char(0x80 | (c & 63))};
  } else if (c < 0x10000) {
    out += {char(0xe0 | c >> 12), char(0x80 | (c >> 6 & 63)), char(0x80 | (c & 63))};
  } else {
    out += {char(0xf0 | c >> 18), char(0x80 | (c >> 12 & 63)), char(0x80 | (c >> 6 & 63)),
            char(0x80 | (c & 63))};
  }
}

// Mostly what patterns tell apart, in short runs; now and then any character.
std::string randomText(Random &random) {
  static const char32_t known[] =
      U"aZstveTLDM'’09½²٣ \t\n\r\u0085\u00a0\u2003\u3000\u180e.,!-_/()$+<=>|`~^。，、।"
      U"éßſKǅʰªאش你好ヒｱ가힣ก\u0e31\u0301\u20dd\u200d🌍🏽\u00ad\ufeff\U00010330\U000e0041\0";
  static const uint32_t ranges[][2] = {
      {0, 0x80}, {0x80, 0x800}, {0x800, 0xd800}, {0xe000, 0x110000}};
  std::string text;
  for (size_t runs = below(random, 40); runs > 0; --runs) {
    uint32_t c = known[below(random, std::size(known) - 1)];
    if (below(random, 8) == 0) {
      const uint32_t *range = ranges[below(random, 4)];
      c = range[0] + uint32_t(below(random, range[1] - range[0]));
    }
    for (size_t count = below(random, 4) ? 1 : 1 + below(random, 6); count > 0; --count)
      appendUtf8(c, text);
  }
  return text;
}

// Words by the tables, or by PCRE2.
class Words {
public:
  Words(const std::vector<std::string> &patterns, bool tables) : scanners(buildScanners(patterns)) {
    classes = {{scanners.classes.pages.data(), scanners.classes.pages.size()},
               {scanners.classes.classes.data(), scanners.classes.classes.size()},
               scanners.symbols()};
    izh::PatternList list;
    for (const std::string &pattern : patterns) {
      list.items[list.count] = {pattern.data(), pattern.size()};
      const std::vector<uint16_t> &table = scanners.tables[list.count];
      if (tables && !table.empty())
        list.scanners[list.count] = izh::Scanner(&classes, {table.data(), table.size()});
      ++list.count;
    }
    izh_error error = {};
    EXPECT_EQ(splitter.create(list, &error), IZH_OK) << error.message;
  }

  // Nothing if they give up.
  std::optional<Ends> of(const std::string &text) {
    izh::Array<uint32_t> ends;
    izh_error error = {};
    if (splitter.split(reinterpret_cast<const uint8_t *>(text.data()), uint32_t(text.size()),
                       &scratch, &ends, &error) != IZH_OK)
      return std::nullopt;
    return Ends(ends.begin(), ends.end());
  }

  PatternScanners scanners;

private:
  izh::CharacterClasses classes;
  izh::Splitter splitter;
  izh::Splitter::Scratch scratch;
};

void compare(const std::vector<std::string> &patterns, Random &random, int texts) {
  Words tables(patterns, true), pcre2(patterns, false);
  for (int i = 0; i < texts; ++i) {
    std::string text = randomText(random);
    std::optional<Ends> found = tables.of(text), expected = pcre2.of(text);
    // PCRE2 tries some patterns in more ways than it allows itself.
    if (!expected)
      break;
    ASSERT_TRUE(found.has_value());
    ASSERT_EQ(*found, *expected) << "'" << text << "' by " << patterns.back();
  }
}

TEST(ScannerTest, SplitsAsPcre2DoesForEveryPreTokenizer) {
  Random random(1);
  for (const PreTokenizer &entry : preTokenizers()) {
    std::vector<std::string> patterns;
    for (const char *pattern : entry.patterns)
      patterns.push_back(toPcre2(pattern));
    SCOPED_TRACE(entry.names[0]);
    compare(patterns, random, 500);
    PatternScanners scanners = buildScanners(patterns);
    for (const std::vector<uint16_t> &table : scanners.tables)
      EXPECT_FALSE(table.empty());
  }
}

// What files of other models have in their patterns.
TEST(ScannerTest, SplitsAsPcre2DoesForOtherSyntax) {
  Random random(2);
  for (const char *pattern :
       {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s+$|\s+)",
        R"(\p{L}+?\d|a*?b|(?:aZ|a)(?:Z|s)?)", R"([]'[:alpha:]\]-]+|[^]a]{2})", R"(.{2,}$|(?=a).+)",
        R"(\x{e9}+|[\x{0}-\x{1f}]+)", R"(()|a)", R"((a|aZ)(Zs|s)?|(?:a|\s(?!a))+t)",
        R"(\.|\$\+|\/|\-|\p{^Lu}|\PL)", R"(Z{2}|Z{0,1}s)", R"(\n$|\s*$|a$)",
        R"([^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s+)",
        R"(a*+b|\p{L}{2,4}+Z|a?+a|s{2}+t|[aZ]{1,}+s)"}) {
    SCOPED_TRACE(pattern);
    compare({pattern}, random, 2000);
    EXPECT_FALSE(buildScanners({pattern}).tables[0].empty());
  }
}

// Runs that matches look through in vain, from several places.
TEST(ScannerTest, SplitsAsPcre2DoesWhereMatchesLookFar) {
  Random random(4);
  for (const char *pattern : {"a*b|a", "(?:a|aZ)*b|aZ|a|Z", "a{3,}t|aa|a", "[a\u00e9]*b|.",
                              R"((?:aa)*b|(?:aaa)*s|a)", "a+Z+b|Z*s|a|Z"}) {
    SCOPED_TRACE(pattern);
    Words tables({pattern}, true), pcre2({pattern}, false);
    for (int i = 0; i < 40; ++i) {
      std::string text;
      for (size_t runs = 1 + below(random, 8); runs > 0; --runs) {
        text += std::string(below(random, 900), 'a');
        static const char *const between[] = {"b", "s", "t", "Z", "ZZb", "\u00e9", "aZaZ", "\n"};
        text += between[below(random, std::size(between))];
      }
      std::optional<Ends> found = tables.of(text), expected = pcre2.of(text);
      ASSERT_TRUE(found && expected);
      ASSERT_EQ(*found, *expected) << text;
    }
  }
}

std::string randomPattern(Random &random, int depth) {
  static const char *atoms[] = {"a",     "s",     "'",        " ",        R"(\s)",
                                R"(\S)", R"(\n)", R"(\p{L})", R"(\p{N})", R"([^\s\p{L}])",
                                "[aZ]",  "[^a]",  "."};
  static const char *counts[] = {"",    "",      "",     "?",  "*",  "+",
                                 "{2}", "{1,3}", "{2,}", "??", "*?", "+?"};
  std::string out;
  for (size_t parts = 1 + below(random, 3); parts > 0; --parts) {
    if (depth > 0 && below(random, 3) == 0)
      out += "(?:" + randomPattern(random, depth - 1) + ")";
    else
      out += atoms[below(random, std::size(atoms))];
    out += counts[below(random, std::size(counts))];
    if (below(random, 10) == 0)
      out += R"((?!\S))";
  }
  if (depth > 0 && below(random, 2) == 0)
    out += "|" + randomPattern(random, depth - 1);
  return out;
}

TEST(ScannerTest, SplitsAsPcre2DoesForRandomPatterns) {
  Random random(3);
  int made = 0;
  for (int i = 0; i < 120; ++i) {
    std::vector<std::string> patterns = {randomPattern(random, 2)};
    made += !buildScanners(patterns).tables[0].empty();
    compare(patterns, random, 50);
  }
  // Loops around what may be empty are left to PCRE2.
  EXPECT_GT(made, 60);
}

TEST(ScannerTest, LeavesWhatTablesCannotDoToPcre2) {
  for (const char *pattern :
       {R"((a)\1)", R"(\bword)", R"((?<=a)b)", "(?:a?)*", "(?:ab)++", "a{,2}", R"(\xe9)", "^a",
        R"(\X)", "(?!ab)a", "((((((((((a{64}){64}){64}){64}){64}))))))"})
    EXPECT_TRUE(buildScanners({pattern}).tables[0].empty()) << pattern;
}

} // namespace
