// Lines, without the buffering of stdio, which would keep reading after a
// signal.

#include "tools/izh-rt/ChatInput.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sys/ioctl.h>
#include <termios.h>
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

void put(const std::string &text) { (void)!write(STDERR_FILENO, text.data(), text.size()); }

// Whether what is shown can be written over.
bool hasCursor() {
  const char *kind = getenv("TERM");
  return isatty(STDERR_FILENO) && kind && *kind && strcmp(kind, "dumb") != 0;
}

size_t columns() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

// What a signal that ends the program must give back first.
constexpr int kFatal[] = {SIGTERM, SIGHUP};
int changedFile = -1;
termios changedFrom = {};

// Asks the terminal to mark what is pasted, and no longer.
constexpr char kMarkPastes[] = "\x1b[?2004h", kLeavePastes[] = "\x1b[?2004l";

void giveBack(int number) {
  (void)!write(STDERR_FILENO, kLeavePastes, sizeof(kLeavePastes) - 1);
  tcsetattr(changedFile, TCSANOW, &changedFrom);
  signal(number, SIG_DFL);
  raise(number);
}

// As long as it lives the terminal gives each key at once and shows none. Ctrl-C
// remains an interrupt; Ctrl-Z and Ctrl-\ would leave the terminal so, and are no
// more.
class EachKey {
public:
  explicit EachKey(int file) : file(file), changed(tcgetattr(file, &before) == 0) {
    termios keys = before;
    keys.c_lflag &= ~tcflag_t(ICANON | ECHO | IEXTEN);
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    keys.c_cc[VSUSP] = keys.c_cc[VQUIT] = _POSIX_VDISABLE;
    if (!changed)
      return;
    changedFile = file;
    changedFrom = before;
    for (size_t i = 0; i < std::size(kFatal); ++i)
      handlers[i] = signal(kFatal[i], giveBack);
    changed = tcsetattr(file, TCSANOW, &keys) == 0;
    put(kMarkPastes);
  }
  ~EachKey() {
    if (!changed)
      return;
    put(kLeavePastes);
    tcsetattr(file, TCSANOW, &before);
    for (size_t i = 0; i < std::size(kFatal); ++i)
      signal(kFatal[i], handlers[i]);
  }
  EachKey(const EachKey &) = delete;
  EachKey &operator=(const EachKey &) = delete;

private:
  int file;
  termios before = {};
  bool changed;
  void (*handlers[std::size(kFatal)])(int) = {};
};

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
    std::string line;
    if (!readLine(first ? "> " : "... ", &line)) {
      if (interrupted)
        return Got::Nothing;
      if (first)
        return Got::End;
      break;
    }
    // What was pasted as several lines is a message as it is.
    if (first && line.find('\n') != std::string::npos) {
      *message = std::move(line);
      return Got::Message;
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

bool ChatInput::readMore() {
  char piece[4096];
  for (;;) {
    ssize_t count = ended || waiting.size() > kMostBytes ? 0 : read(file, piece, sizeof(piece));
    if (count < 0 && errno == EINTR && !interrupted)
      continue;
    if (count > 0)
      waiting.append(piece, size_t(count));
    else if (count < 0 && interrupted)
      waiting.clear();
    else
      ended = true;
    return count > 0;
  }
}

bool ChatInput::readLine(const char *prompt, std::string *line) {
  if (terminal && hasCursor())
    return editLine(prompt, line);
  if (terminal)
    put(prompt);
  for (;;) {
    size_t end = waiting.find('\n');
    if (end != std::string::npos) {
      *line = waiting.substr(0, end);
      waiting.erase(0, end + 1);
      if (!line->empty() && line->back() == '\r')
        line->pop_back();
      return true;
    }
    if (readMore())
      continue;
    *line = std::move(waiting);
    waiting.clear();
    return !line->empty();
  }
}

bool ChatInput::editLine(const char *prompt, std::string *line) {
  EachKey keys(file);
  editor.begin(prompt);
  for (;;) {
    LineEditor::State state = LineEditor::State::Editing;
    size_t taken = 0;
    while (taken < waiting.size() && state == LineEditor::State::Editing)
      state = editor.feed(waiting[taken++]);
    waiting.erase(0, taken);
    put(editor.show(columns()));
    if (state == LineEditor::State::Finished) {
      put("\n");
      *line = editor.text();
      return true;
    }
    if (state == LineEditor::State::Ended || !readMore())
      return false;
  }
}

} // namespace izh::rt
