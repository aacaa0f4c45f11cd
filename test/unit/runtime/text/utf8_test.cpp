// UTF-8: the table of well-formed sequences, and the stream of whole characters.

#include "runtime/text/utf8.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/include/izh/izh.h"

namespace {

const std::string kReplacement = "\xef\xbf\xbd";

izh::Utf8 state(const std::string& bytes) {
  return izh::utf8_step(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()).state;
}

// Feeds the text in pieces of `size` bytes.
std::string stream(const std::string& text, size_t size) {
  izh_utf8_stream s{};
  std::string out;
  for (size_t i = 0; i < text.size(); i += size) {
    const std::string piece = text.substr(i, size);
    std::string room(3 * (piece.size() + 4), 0);
    out += room.substr(0, izh_utf8_feed(&s, piece.data(), piece.size(), room.data()));
  }
  char rest[12];
  return out + std::string(rest, izh_utf8_finish(&s, rest));
}

TEST(Utf8Test, AcceptsTheFirstAndLastOfEachLength) {
  for (const char* text :
       {"\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(state(text), izh::Utf8::kValid) << text;
  }
}

TEST(Utf8Test, RefusesOverlongFormsSurrogatesAndWhatIsPastTheLast) {
  for (const char* text : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                           "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    EXPECT_EQ(state(text), izh::Utf8::kInvalid) << text;
  }
}

TEST(Utf8Test, SaysWhenMoreBytesCouldHelp) {
  EXPECT_EQ(state("\xe2\x82"), izh::Utf8::kIncomplete);
  EXPECT_EQ(state("\xf0\x9f\x98"), izh::Utf8::kIncomplete);
}

TEST(Utf8StreamTest, HoldsBackPartsOfCharacters) {
  izh_utf8_stream s{};
  char out[32];
  EXPECT_EQ(izh_utf8_feed(&s, "a\xf0\x9f", 3, out), 1u);
  EXPECT_EQ(izh_utf8_feed(&s, "\x98", 1, out), 0u);
  EXPECT_EQ(izh_utf8_feed(&s, "\x80z", 2, out), 5u);
  EXPECT_EQ(std::string(out, 5), "\xf0\x9f\x98\x80z");
  EXPECT_EQ(izh_utf8_finish(&s, out), 0u);
}

TEST(Utf8StreamTest, GivesTheSameTextInPiecesOfAnySize) {
  const std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \xff\xe2\x82z\xc3\xc3\xa9";
  const std::string expected = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 " + kReplacement +
                               kReplacement + "z" + kReplacement + "\xc3\xa9";
  for (size_t size = 1; size <= text.size(); ++size) EXPECT_EQ(stream(text, size), expected);
}

TEST(Utf8StreamTest, ReplacesACharacterThatNeverEnds) {
  EXPECT_EQ(stream("x\xe2\x82", 1), "x" + kReplacement);
}

}  // namespace
