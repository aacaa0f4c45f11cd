// What people type in a conversation: messages and commands.
//
// A line is a message; one that ends with a backslash goes on in the next
// line, and so does all from """ at the beginning of a line to """ at the end
// of one. A message that begins with / is a command.

#pragma once

#include "tools/izh-rt/LineEditor.h"

#include <string>

namespace izh::rt {

// Told at a terminal, and to who asks for a command that there isn't.
inline constexpr char kChatCommands[] = "/clear forgets the conversation, /exit ends";

class ChatInput {
public:
  // Reads from the descriptor `file` until `interrupted` is set. At a
  // `terminal` it asks for input, and lines can be edited.
  ChatInput(int file, bool terminal, const volatile bool &interrupted)
      : file(file), terminal(terminal), interrupted(interrupted) {}

  // Nothing: an empty message, or an interrupt.
  enum class Got { Message, Nothing, Clear, Unknown, End };

  // `*message` is the text of a message, or the command that is unknown.
  Got next(std::string *message);

private:
  // Both ask by `prompt`; false without a line, at the end or after an interrupt.
  bool readLine(const char *prompt, std::string *line);
  bool editLine(const char *prompt, std::string *line);
  // More bytes in `waiting`; false if there are none.
  bool readMore();

  int file;
  bool terminal, ended = false;
  const volatile bool &interrupted;
  std::string waiting;
  LineEditor editor;
};

} // namespace izh::rt
