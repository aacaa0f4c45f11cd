// Keys as terminals send them, and what is shown of the line.

#include "tools/izh-rt/LineEditor.h"

#include <gtest/gtest.h>

namespace izh::rt {
namespace {

using State = LineEditor::State;

// The last state; keys behind a finished line are for the caller.
State type(LineEditor &editor, const std::string &keys) {
  State state = State::Editing;
  for (char key : keys)
    state = editor.feed(key);
  return state;
}

std::string typed(const std::string &keys) {
  LineEditor editor;
  editor.begin("> ");
  type(editor, keys);
  return editor.text();
}

TEST(LineEditorTest, MovesTheCursor) {
  EXPECT_EQ(typed("bc\x1b[Ha\x1b[Fd"), "abcd");
  EXPECT_EQ(typed("ac\x1b[Db\x1b[Cd"), "abcd");
  EXPECT_EQ(typed("c\x1bOHb\x01"
                  "a\x05"
                  "d"),
            "abcd");
  EXPECT_EQ(typed("one three\x1b"
                  "btwo \x1b[1;5D\x1b[1;5D0 "),
            "0 one two three");
  // Keys that it doesn't know change nothing.
  EXPECT_EQ(typed("a\x1b[15~\x1b[2~b"), "ab");
}

// What can be no part of a sequence is a key of its own.
TEST(LineEditorTest, LosesNoKeyBehindEscape) {
  EXPECT_EQ(typed("a\x1b\xc3\xa9"
                  "b"),
            "aéb");
  EXPECT_EQ(typed("ab\x1b[\x7f"
                  "c"),
            "ac");
  LineEditor editor;
  editor.begin("> ");
  EXPECT_EQ(type(editor, "hello\x1b\r"), State::Finished);
  EXPECT_EQ(editor.text(), "hello");
}

TEST(LineEditorTest, KeepsTabs) {
  LineEditor editor;
  editor.begin("> ");
  type(editor, "a\tb");
  EXPECT_EQ(editor.text(), "a\tb");
  EXPECT_EQ(editor.show(80), "\r> a b\x1b[K\r\x1b[5C");
}

// Of a line of a megabyte only what is near the cursor is looked at.
// Between ESC [200~ and ESC [201~ no byte is a key.
TEST(LineEditorTest, KeepsThePastedLinesTogether) {
  LineEditor editor;
  editor.begin("> ");
  EXPECT_EQ(type(editor, "a\x1b[200~b\rc\r\nd\x04\x15\x1b[Ae\x1b[201~f"), State::Editing);
  EXPECT_EQ(editor.text(), "ab\nc\ndef");
  EXPECT_EQ(editor.show(80), "\r> ab c def\x1b[K\r\x1b[10C");
  EXPECT_EQ(type(editor, "\r"), State::Finished);
  // The next line is typed again.
  editor.begin("> ");
  EXPECT_EQ(type(editor, "\x1b[200~x"), State::Editing);
  editor.begin("> ");
  EXPECT_EQ(type(editor, "y\r"), State::Finished);
}

TEST(LineEditorTest, ShowsLongLinesAtOnce) {
  LineEditor editor;
  editor.begin("> ");
  type(editor, std::string(1 << 20, 'x') + "end");
  for (int i = 0; i < 10000; ++i)
    ASSERT_EQ(editor.show(10), "\r> xxxend\x1b[K\r\x1b[8C");
}

TEST(LineEditorTest, TakesWholeCharactersAway) {
  EXPECT_EQ(typed("aä\x7f"), "a");
  EXPECT_EQ(typed("日本\x08語"), "日語");
  // With what combines with them.
  EXPECT_EQ(typed("ae\u0301\x7f"
                  "b"),
            "ab");
  EXPECT_EQ(typed("e\u0301b\x1b[D\x1b[Da"), "ae\u0301b");
  EXPECT_EQ(typed("äb\x1b[H\x1b[3~"), "b");
  EXPECT_EQ(typed("\x7f\x1b[3~a"), "a");
  EXPECT_EQ(typed("one two\x17"), "one ");
  EXPECT_EQ(typed("one two\x1b[D\x0b"), "one tw");
  EXPECT_EQ(typed("one two\x1b[D\x15"), "o");
}

TEST(LineEditorTest, RecallsTheLinesBefore) {
  LineEditor editor;
  for (const char *line : {"first\r", "second\n", "second\r", "\r"}) {
    editor.begin("> ");
    EXPECT_EQ(type(editor, line), State::Finished);
  }
  editor.begin("> ");
  type(editor, "new\x1b[A");
  EXPECT_EQ(editor.text(), "second");
  type(editor, "\x1b[A\x1b[A");
  EXPECT_EQ(editor.text(), "first");
  type(editor, "\x1b[B\x1b[B");
  EXPECT_EQ(editor.text(), "new");
  type(editor, "\x1b[B!");
  EXPECT_EQ(editor.text(), "new!");
}

TEST(LineEditorTest, EndsWithTheInput) {
  LineEditor editor;
  editor.begin("> ");
  EXPECT_EQ(type(editor, "\x04"), State::Ended);
  editor.begin("> ");
  EXPECT_EQ(type(editor, "ab\x1b[H\x04"), State::Editing);
  EXPECT_EQ(editor.text(), "b");
}

TEST(LineEditorTest, ShowsThePartAroundTheCursor) {
  LineEditor editor;
  editor.begin("> ");
  EXPECT_EQ(editor.show(80), "\r> \x1b[K\r\x1b[2C");
  type(editor, "日本a\x1b[D");
  EXPECT_EQ(editor.show(80), "\r> 日本a\x1b[K\r\x1b[6C");
  editor.begin("> ");
  type(editor, "0123456789");
  EXPECT_EQ(editor.show(10), "\r> 456789\x1b[K\r\x1b[8C");
  type(editor, "\x1b[H");
  EXPECT_EQ(editor.show(10), "\r> 0123456\x1b[K\r\x1b[2C");
}

} // namespace
} // namespace izh::rt
