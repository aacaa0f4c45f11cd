// Characters are UTF-8; those without a width of their own belong to the one
// before them.

#include "tools/izh-rt/LineEditor.h"

#include "runtime/text/characters.h"
#include "runtime/text/utf8.h"

#include <algorithm>
#include <cstdint>

namespace izh::rt {
namespace {

constexpr size_t kMostLines = 500, kMostEscape = 16;

bool continues(char byte) { return (byte & 0xc0) == 0x80; }

// Columns that the character at `at` takes; its bytes go to `*length`.
size_t widthAt(const std::string &text, size_t at, size_t *length) {
  // Shown as spaces.
  *length = 1;
  if (text[at] == '\t' || text[at] == '\n')
    return 1;
  auto *bytes = reinterpret_cast<const uint8_t *>(text.data()) + at;
  Utf8Step step = utf8_step(bytes, text.size() - at);
  *length = std::max<size_t>(step.length, 1);
  uint32_t size;
  return step.state == Utf8::kValid ? display_width(utf8_decode(bytes, &size)) : 1;
}

size_t widthOf(const std::string &text, size_t begin, size_t end) {
  size_t width = 0, length = 1;
  for (; begin < end; begin += length)
    width += widthAt(text, begin, &length);
  return width;
}

} // namespace

void LineEditor::begin(const std::string &text) {
  prompt = text;
  line.clear();
  pending.clear();
  pasting = false;
  cursor = 0;
  shown = history.size();
}

size_t LineEditor::before(size_t at) const {
  size_t length;
  do {
    at -= at > 0;
    while (at > 0 && continues(line[at]))
      --at;
  } while (at > 0 && widthAt(line, at, &length) == 0);
  return at;
}

size_t LineEditor::behind(size_t at) const {
  size_t length = 0;
  do {
    at = std::min(at + std::max<size_t>(length, 1), line.size());
    while (at < line.size() && continues(line[at]))
      ++at;
    length = 0;
  } while (at < line.size() && widthAt(line, at, &length) == 0);
  return at;
}

size_t LineEditor::wordBefore() const {
  size_t at = cursor;
  while (at > 0 && line[at - 1] == ' ')
    --at;
  while (at > 0 && line[at - 1] != ' ')
    --at;
  return at;
}

size_t LineEditor::wordBehind() const {
  size_t at = std::min(line.find_first_not_of(' ', cursor), line.size());
  return std::min(line.find(' ', at), line.size());
}

void LineEditor::insert(char byte) { line.insert(cursor++, 1, byte); }

// Keys have no meaning here; terminals send Enter's byte for a line feed.
void LineEditor::paste(char byte) {
  bool ends = byte == '\r' || (byte == '\n' && !afterReturn);
  afterReturn = byte == '\r';
  if (ends || byte == '\t' || (static_cast<unsigned char>(byte) >= ' ' && byte != 0x7f))
    insert(ends ? '\n' : byte);
}

void LineEditor::cut(size_t begin, size_t end) {
  line.erase(begin, end - begin);
  cursor = begin;
}

void LineEditor::recall(size_t index) {
  if (index > history.size())
    return;
  if (shown == history.size())
    fresh = line;
  shown = index;
  line = index == history.size() ? fresh : history[index];
  cursor = line.size();
}

void LineEditor::escape(const std::string &sequence) {
  auto is = [&](std::initializer_list<const char *> names) {
    return std::find(names.begin(), names.end(), sequence) != names.end();
  };
  if (pasting || is({"[200~"}))
    pasting = !is({"[201~"});
  else if (is({"[A", "OA"}))
    recall(shown - 1);
  else if (is({"[B", "OB"}))
    recall(shown + 1);
  else if (is({"[C", "OC"}))
    cursor = behind(cursor);
  else if (is({"[D", "OD"}))
    cursor = before(cursor);
  else if (is({"[1;5C", "f"}))
    cursor = wordBehind();
  else if (is({"[1;5D", "b"}))
    cursor = wordBefore();
  else if (is({"[H", "OH", "[1~", "[7~"}))
    cursor = 0;
  else if (is({"[F", "OF", "[4~", "[8~"}))
    cursor = line.size();
  else if (is({"[3~"}))
    cut(cursor, behind(cursor));
}

void LineEditor::control(char byte) {
  switch (byte) {
  case '\t':
    return insert(byte);
  case 0x7f:
  case 'H' - '@':
    return cut(before(cursor), cursor);
  case 'D' - '@':
    return cut(cursor, behind(cursor));
  case 'U' - '@':
    return cut(0, cursor);
  case 'K' - '@':
    return cut(cursor, line.size());
  case 'W' - '@':
    return cut(wordBefore(), cursor);
  case 'A' - '@':
    return escape("[H");
  case 'E' - '@':
    return escape("[F");
  case 'B' - '@':
    return escape("[D");
  case 'F' - '@':
    return escape("[C");
  case 'P' - '@':
    return escape("[A");
  case 'N' - '@':
    return escape("[B");
  default:
    return;
  }
}

LineEditor::State LineEditor::feed(char byte) {
  // Sequences are of ASCII; Enter and what else can't be part of one ends it.
  auto code = static_cast<unsigned char>(byte);
  if (code < ' ' || code >= 0x7f)
    pending.clear();
  if (!pending.empty()) {
    pending += byte;
    bool opens = pending.size() == 2 && (byte == '[' || byte == 'O');
    if (!opens && byte >= '@') {
      escape(pending.substr(1));
      pending.clear();
    } else if (pending.size() > kMostEscape) {
      pending.clear();
    }
    return State::Editing;
  }
  if (pasting && byte != 0x1b) {
    paste(byte);
    return State::Editing;
  }
  if (byte == 'D' - '@' && line.empty())
    return State::Ended;
  if (byte == '\n' || byte == '\r') {
    if (!line.empty() && (history.empty() || history.back() != line))
      history.push_back(line);
    if (history.size() > kMostLines)
      history.erase(history.begin());
    return State::Finished;
  }
  if (byte == 0x1b)
    pending = byte;
  else if (code >= ' ' && code != 0x7f)
    insert(byte);
  else
    control(byte);
  return State::Editing;
}

std::string LineEditor::show(size_t columns) const {
  size_t room = columns > prompt.size() + 2 ? columns - prompt.size() - 1 : 1;
  // From the cursor outwards, as a line may be long: as much as fits before it,
  // then behind it.
  size_t first = cursor, last = cursor, left = 0, width = 0;
  while (first > 0) {
    size_t start = before(first), more = widthOf(line, start, first);
    if (left + more >= room)
      break;
    left += more;
    first = start;
  }
  width = left;
  while (last < line.size()) {
    size_t end = behind(last);
    width += widthOf(line, last, end);
    if (width > room)
      break;
    last = end;
  }
  std::string part = line.substr(first, last - first);
  std::replace(part.begin(), part.end(), '\t', ' ');
  std::replace(part.begin(), part.end(), '\n', ' ');
  size_t column = prompt.size() + left;
  std::string out = "\r" + prompt + part + "\x1b[K\r";
  return column ? out + "\x1b[" + std::to_string(column) + "C" : out;
}

} // namespace izh::rt
