// The lexer works on a copy with newlines made equal.

#include "runtime/text/jinja/lexer.h"

#include "runtime/text/jinja/characters.h"

namespace izh::jinja {
namespace {

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}
bool is_number_char(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  Lexer(Machine& machine, Text source, Array<Token>* tokens)
      : machine_(machine), s_(source), tokens_(tokens) {}

  bool run() {
    while (at_ < s_.size && !machine_.failed()) text();
    machine_.line = line_;
    push(TokenKind::kEnd, {});
    return !machine_.failed();
  }

 private:
  void push(TokenKind kind, Text text) {
    if (machine_.charge(1) && !tokens_->push({kind, line_, text}))
      machine_.fail("no memory is left");
  }
  bool at(uint32_t where, Text what) const {
    return where <= s_.size && s_.from(where).starts_with(what);
  }
  // Moves on, counting lines.
  void advance(uint32_t to) {
    for (; at_ < to && at_ < s_.size; ++at_) {
      line_ += s_.data[at_] == '\n';
      line_start_ = s_.data[at_] == '\n';
    }
  }
  void skip_blanks() {
    uint32_t to = at_;
    while (to < s_.size && is_blank(s_.data[to])) ++to;
    advance(to);
  }
  uint32_t find(Text what, uint32_t from) const {
    const void* found =
        from <= s_.size ? memmem(s_.data + from, s_.size - from, what.data, what.size) : nullptr;
    return found ? static_cast<uint32_t>(static_cast<const char*>(found) - s_.data) : UINT32_MAX;
  }

  // Text up to what opens next, then that.
  void text() {
    uint32_t open = at_;
    while (open < s_.size &&
           !(s_.data[open] == '{' && open + 1 < s_.size && memchr("{%#", s_.data[open + 1], 3))) {
      ++open;
    }
    if (open == s_.size) {
      emit_data(s_.part(at_, open), 0, 0);
      return advance(open);
    }
    const char kind = s_.data[open + 1];
    const char sign = open + 2 < s_.size ? s_.data[open + 2] : 0;
    emit_data(s_.part(at_, open), kind, sign);
    advance(open);
    machine_.line = line_;
    if (kind == '#') return comment();
    if (kind == '%' && raw()) return;
    advance(open + 2 + (sign == '-' || sign == '+'));
    push(kind == '%' ? TokenKind::kBlockBegin : TokenKind::kVariableBegin, {});
    inside(kind == '%');
  }

  // `sign` follows the mark that ends the text: '-' strips, '+' keeps, and
  // blocks and comments take the blanks of their line.
  void emit_data(Text data, char kind, char sign) {
    if (sign == '-' && kind != 0) {
      data = strip(data, nullptr, false, true);
    } else if (sign != '+' && (kind == '%' || kind == '#')) {
      uint32_t line = data.size;
      while (line > 0 && data.data[line - 1] != '\n') --line;
      bool blank = line > 0 || line_start_;
      for (uint32_t i = line; i < data.size; ++i) blank &= is_blank(data.data[i]);
      if (blank) data.size = line;
    }
    if (data.size != 0) push(TokenKind::kData, data);
  }

  // After the end of a block or comment.
  void after_block(char sign) {
    if (sign == '-') return skip_blanks();
    if (sign != '+' && at_ < s_.size && s_.data[at_] == '\n') advance(at_ + 1);
  }

  void comment() {
    const uint32_t end = find("#}", at_ + 2);
    if (end == UINT32_MAX) {
      machine_.fail("the comment is never closed");
      return;
    }
    const char sign = end > at_ + 2 ? s_.data[end - 1] : 0;
    advance(end + 2);
    line_start_ = false;
    after_block(sign);
  }

  // {% raw %}...{% endraw %}; false if this is another block.
  bool raw() {
    uint32_t to = at_ + 2;
    const auto blanks = [&] {
      while (to < s_.size && is_blank(s_.data[to])) ++to;
    };
    if (at(to, "-") || at(to, "+")) ++to;
    blanks();
    if (!at(to, "raw")) return false;
    to += 3;
    blanks();
    const bool strips = at(to, "-%}");
    if (!strips && !at(to, "%}")) return false;
    advance(to + (strips ? 3 : 2));
    line_start_ = false;
    if (strips) skip_blanks();
    for (uint32_t open = find("{%", at_); open != UINT32_MAX; open = find("{%", open + 2)) {
      to = open + 2;
      const char sign = to < s_.size ? s_.data[to] : 0;
      if (sign == '-' || sign == '+') ++to;
      blanks();
      if (!at(to, "endraw")) continue;
      to += 6;
      blanks();
      const char end = to < s_.size ? s_.data[to] : 0;
      if (end == '-' || end == '+') ++to;
      if (!at(to, "%}")) continue;
      emit_data(s_.part(at_, open), '%', sign);
      advance(to + 2);
      line_start_ = false;
      after_block(end);
      return true;
    }
    machine_.fail("'raw' is never closed");
    return true;
  }

  // Tokens up to the end of a block or variable.
  void inside(bool block) {
    uint32_t open_brackets = 0;
    const Text close = block ? Text("%}") : Text("}}");
    for (;;) {
      skip_blanks();
      machine_.line = line_;
      if (at_ >= s_.size) {
        machine_.fail("'%s' is never closed", block ? "{%" : "{{");
        return;
      }
      const char c = s_.data[at_];
      const bool sign = (c == '-' || (c == '+' && block)) && at(at_ + 1, close);
      if (open_brackets == 0 && (sign || at(at_, close))) {
        push(block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd, {});
        advance(at_ + (sign ? 3 : 2));
        line_start_ = false;
        if (block) {
          after_block(sign ? c : 0);
        } else if (sign) {
          skip_blanks();
        }
        return;
      }
      if (c == '(' || c == '[' || c == '{') ++open_brackets;
      if (c == ')' || c == ']' || c == '}') open_brackets -= open_brackets > 0;
      if (!token(c) || machine_.failed()) return;
    }
  }

  bool token(char c) {
    if (is_name_start(c)) {
      uint32_t end = at_;
      while (end < s_.size && (is_name_start(s_.data[end]) || is_number_char(s_.data[end]))) ++end;
      push(TokenKind::kName, s_.part(at_, end));
      advance(end);
      return true;
    }
    if (is_number_char(c)) return number();
    if (c == '"' || c == '\'') return string(c);
    static constexpr Text kOperators[] = {"==", "!=", "<=", ">=", "//", "**"};
    for (Text two : kOperators) {
      if (at(at_, two)) {
        push(TokenKind::kOperator, s_.part(at_, at_ + 2));
        advance(at_ + 2);
        return true;
      }
    }
    if (!memchr("+-*/%~<>=.:,|()[]{};", c, 20)) {
      machine_.fail("the character '%c' has no meaning here", c);
      return false;
    }
    push(TokenKind::kOperator, s_.part(at_, at_ + 1));
    advance(at_ + 1);
    return true;
  }

  bool number() {
    uint32_t end = at_;
    bool is_float = false;
    const auto digits = [&] {
      while (end < s_.size && (is_number_char(s_.data[end]) || s_.data[end] == '_')) ++end;
    };
    digits();
    if (end + 1 < s_.size && s_.data[end] == '.' && is_number_char(s_.data[end + 1])) {
      is_float = true;
      ++end;
      digits();
    }
    if (end + 1 < s_.size && (s_.data[end] | 32) == 'e') {
      uint32_t exponent = end + 1;
      if (s_.data[exponent] == '+' || s_.data[exponent] == '-') ++exponent;
      if (exponent < s_.size && is_number_char(s_.data[exponent])) {
        is_float = true;
        end = exponent;
        digits();
      }
    }
    push(is_float ? TokenKind::kFloat : TokenKind::kInteger, s_.part(at_, end));
    advance(end);
    return true;
  }

  bool string(char quote) {
    uint32_t end = at_ + 1;
    bool plain = true;
    while (end < s_.size && s_.data[end] != quote) {
      if (s_.data[end] == '\\') {
        plain = false;
        ++end;
      }
      ++end;
    }
    if (end >= s_.size) {
      machine_.fail("a string is never closed");
      return false;
    }
    const Text inner = s_.part(at_ + 1, end);
    push(TokenKind::kString, plain ? inner : unescape(inner));
    advance(end + 1);
    return true;
  }

  Text unescape(Text text) {
    Builder out(machine_);
    for (uint32_t i = 0; i < text.size; ++i) {
      if (text.data[i] != '\\' || i + 1 == text.size) {
        out.add(text.data[i]);
        continue;
      }
      const char c = text.data[++i];
      static constexpr char kNames[] = "ntrabfv\\'\"", kMeaning[] = "\n\t\r\a\b\f\v\\'\"";
      if (c == '\n') continue;
      if (const void* found = memchr(kNames, c, sizeof(kNames) - 1)) {
        out.add(kMeaning[static_cast<const char*>(found) - kNames]);
        continue;
      }
      const uint32_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
      uint32_t point = 0;
      if (digits != 0 && hexadecimal(text.from(i + 1), digits, &point)) {
        i += digits;
        out.add_point(point > 0x10ffff || (point >= 0xd800 && point < 0xe000) ? 0xfffd : point);
      } else if (c >= '0' && c <= '7') {
        for (uint32_t n = 0; n < 3 && i < text.size && text.data[i] >= '0' && text.data[i] <= '7';
             ++n) {
          point = point * 8 + static_cast<uint32_t>(text.data[i++] - '0');
        }
        --i;
        out.add_point(point);
      } else {
        out.add('\\');
        out.add(c);
      }
    }
    return out.text();
  }

  static bool hexadecimal(Text text, uint32_t digits, uint32_t* value) {
    if (text.size < digits) return false;
    for (uint32_t i = 0; i < digits; ++i) {
      const char c = text.data[i];
      const int lower = c | 32;
      const int digit = is_number_char(c)              ? c - '0'
                        : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                                       : -1;
      if (digit < 0) return false;
      *value = *value << 4 | static_cast<uint32_t>(digit);
    }
    return true;
  }

  Machine& machine_;
  Text s_;
  Array<Token>* tokens_;
  uint32_t at_ = 0;
  uint32_t line_ = 1;
  // Whether what was read last ended a line.
  bool line_start_ = true;
};

}  // namespace

bool tokenize_template(Machine& machine, Text source, Array<Token>* tokens) {
  Builder copy(machine);
  for (uint32_t begin = 0, i = 0; i <= source.size; ++i) {
    if (i != source.size && source.data[i] != '\r') continue;
    copy.add(source.part(begin, i));
    if (i == source.size) break;
    if (i + 1 == source.size || source.data[i + 1] != '\n') copy.add('\n');
    begin = i + 1;
  }
  if (machine.failed()) return false;
  Text text = copy.text();
  if (text.ends_with("\n")) --text.size;
  return Lexer(machine, text, tokens).run();
}

}  // namespace izh::jinja
