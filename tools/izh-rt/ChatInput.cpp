// Lines, without the buffering of stdio, which would keep reading after a
// signal.

#include "tools/izh-rt/ChatInput.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace izh::rt {
namespace {

constexpr size_t kMostBytes = size_t(64) << 20;
constexpr char kQuotes[] = "\"\"\"";
constexpr size_t kQuotesLength = sizeof(kQuotes) - 1;

void trimEnd(std::string *text) { text->erase(text->find_last_not_of(" \t") + 1); }

ChatInput::Got readCommand(std::string *line) {
  trimEnd(line);
  std::string name = *line;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(tolower(c)); });
  if (name == "/exit")
    return ChatInput::Got::End;
  return name == "/clear" ? ChatInput::Got::Clear : ChatInput::Got::Unknown;
}

// Whether """ ends the line, which then loses it.
bool takeClosing(std::string *line) {
  std::string trimmed = *line;
  trimEnd(&trimmed);
  if (!trimmed.ends_with(kQuotes))
    return false;
  *line = trimmed.substr(0, trimmed.size() - kQuotesLength);
  return true;
}

} // namespace

ChatInput::Got ChatInput::next(std::string *message) {
  message->clear();
  bool block = false, more = true, begun = false;
  for (bool first = true; more; first = false) {
    prompt(first ? "> " : "... ");
    std::string line;
    if (!readLine(&line)) {
      if (interrupted)
        return Got::Nothing;
      if (first)
        return Got::End;
      break;
    }
    if (first && line.starts_with('/')) {
      *message = std::move(line);
      return readCommand(message);
    }
    // A line of """ alone is no line of the message.
    bool marked = !block && line.starts_with(kQuotes);
    if (marked) {
      block = true;
      line.erase(0, kQuotesLength);
    }
    if (block) {
      bool closed = takeClosing(&line);
      more = !closed;
      marked |= closed;
    } else {
      more = line.ends_with('\\');
      if (more)
        line.pop_back();
    }
    if (marked && line.find_first_not_of(" \t") == std::string::npos)
      continue;
    *message += (begun ? "\n" : "") + line;
    begun = true;
  }
  return message->empty() ? Got::Nothing : Got::Message;
}

void ChatInput::prompt(const char *text) {
  if (terminal)
    (void)!write(STDERR_FILENO, text, strlen(text));
}

bool ChatInput::readLine(std::string *line) {
  for (;;) {
    size_t end = waiting.find('\n');
    if (end != std::string::npos) {
      *line = waiting.substr(0, end);
      waiting.erase(0, end + 1);
      if (!line->empty() && line->back() == '\r')
        line->pop_back();
      return true;
    }
    char piece[4096];
    ssize_t count = ended || waiting.size() > kMostBytes ? 0 : read(file, piece, sizeof(piece));
    if (count < 0 && errno == EINTR && !interrupted)
      continue;
    if (count < 0 && interrupted) {
      waiting.clear();
      return false;
    }
    if (count > 0) {
      waiting.append(piece, size_t(count));
      continue;
    }
    ended = true;
    *line = std::move(waiting);
    waiting.clear();
    return !line->empty();
  }
}

} // namespace izh::rt
