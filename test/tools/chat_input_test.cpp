// Lines as people type them, through a pipe.

#include "tools/izh-rt/ChatInput.h"

#include <gtest/gtest.h>

#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace izh::rt {
namespace {

using Got = ChatInput::Got;
using Event = std::pair<Got, std::string>;

// All that comes of `typed` before its end.
std::vector<Event> read(const std::string &typed) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  EXPECT_EQ(write(ends[1], typed.data(), typed.size()), ssize_t(typed.size()));
  close(ends[1]);
  volatile bool interrupted = false;
  ChatInput input(ends[0], /*terminal=*/false, interrupted);
  std::vector<Event> events;
  std::string text;
  for (;;) {
    Got got = input.next(&text);
    if (got == Got::End)
      break;
    events.emplace_back(got, text);
  }
  close(ends[0]);
  return events;
}

std::vector<Event> message(const std::string &text) { return {{Got::Message, text}}; }

TEST(ChatInputTest, TakesALineAsAMessage) {
  EXPECT_EQ(read("hello\nyou\r\n"),
            (std::vector<Event>{{Got::Message, "hello"}, {Got::Message, "you"}}));
  EXPECT_EQ(read("no line feed"), message("no line feed"));
  EXPECT_EQ(read("\n"), (std::vector<Event>{{Got::Nothing, ""}}));
}

TEST(ChatInputTest, GoesOnBehindABackslash) { EXPECT_EQ(read("a\\\nb\n"), message("a\nb")); }

TEST(ChatInputTest, TakesTextBesideTheQuotesOfABlock) {
  EXPECT_EQ(read("\"\"\"\na\n\nb\n\"\"\"\n"), message("a\n\nb"));
  EXPECT_EQ(read("\"\"\"a\nb\"\"\"\n"), message("a\nb"));
  EXPECT_EQ(read("\"\"\"a\nb\n\"\"\"  \n"), message("a\nb"));
  EXPECT_EQ(read("\"\"\"a b\"\"\"\n"), message("a b"));
  EXPECT_EQ(read("a \"\"\" b\n"), message("a \"\"\" b"));
}

TEST(ChatInputTest, EndsABlockWithTheInput) {
  EXPECT_EQ(read("\"\"\"\na\n"), message("a"));
  EXPECT_EQ(read("\"\"\"\n"), (std::vector<Event>{{Got::Nothing, ""}}));
}

TEST(ChatInputTest, KnowsCommandsWithBlanksAndCapitals) {
  EXPECT_EQ(read("/exit\nmore\n"), std::vector<Event>());
  EXPECT_EQ(read("/EXIT \t\nmore\n"), std::vector<Event>());
  EXPECT_EQ(read("/Clear \n"), (std::vector<Event>{{Got::Clear, "/Clear"}}));
}

TEST(ChatInputTest, TakesNoUnknownCommandAsAMessage) {
  EXPECT_EQ(read("/quit\n"), (std::vector<Event>{{Got::Unknown, "/quit"}}));
  EXPECT_EQ(read("/exit now\n"), (std::vector<Event>{{Got::Unknown, "/exit now"}}));
  EXPECT_EQ(read("\"\"\"/quit\"\"\"\n"), message("/quit"));
  EXPECT_EQ(read("\"\"\"\n/exit\n\"\"\"\n"), message("/exit"));
}

} // namespace
} // namespace izh::rt
