// One line that is edited at a terminal: cursor keys, Home and End, words, and
// the lines before it. What is pasted may have several lines, which stay one line
// here, with line feeds in it. Takes bytes and says what to show; knows no terminal.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace izh::rt {

class LineEditor {
public:
  // Editing goes on, the line is finished, or the input is at its end (Ctrl-D in
  // an empty line).
  enum class State { Editing, Finished, Ended };

  // Empties the line, which is shown behind `prompt` (of ASCII).
  void begin(const std::string &prompt);
  // Takes one byte of a key. A finished line goes to the lines before.
  State feed(char byte);
  const std::string &text() const { return line; }
  // Bytes that show the line and its cursor on a terminal of so many columns, of a
  // long line the part around the cursor.
  std::string show(size_t columns) const;

private:
  void control(char byte);
  void escape(const std::string &sequence);
  void insert(char byte);
  void paste(char byte);
  void cut(size_t begin, size_t end);
  void recall(size_t index);
  // Where the character (with what combines with it) or the word before or behind
  // the byte ends.
  size_t before(size_t at) const;
  size_t behind(size_t at) const;
  size_t wordBefore() const;
  size_t wordBehind() const;

  std::string prompt, line;
  size_t cursor = 0; // in bytes
  // An escape sequence that is not complete.
  std::string pending;
  // Whether a terminal that marks what is pasted is in it.
  bool pasting = false, afterReturn = false;
  std::vector<std::string> history;
  // The line of `history` that is shown; history.size(): the new one, which is
  // kept here while it is not.
  size_t shown = 0;
  std::string fresh;
};

} // namespace izh::rt
