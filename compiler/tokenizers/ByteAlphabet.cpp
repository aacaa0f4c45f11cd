// Printable bytes of Latin-1 stand for themselves; the other 68 are numbered
// from U+0100 on, in order.

#include "compiler/tokenizers/ByteAlphabet.h"
#include <array>

using namespace izhc;

static bool isPrintable(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

static const std::array<uint16_t, 256> &codePoints() {
  static const std::array<uint16_t, 256> table = [] {
    std::array<uint16_t, 256> points{};
    uint16_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte)
      points[byte] = isPrintable(byte) ? uint16_t(byte) : next++;
    return points;
  }();
  return table;
}

std::string izhc::byteCharacter(uint8_t byte) {
  unsigned point = codePoints()[byte];
  if (point < 0x80)
    return std::string(1, char(point));
  return {char(0xc0 | point >> 6), char(0x80 | (point & 0x3f))};
}

std::optional<std::string> izhc::decodeByteText(llvm::StringRef text) {
  static const std::array<int16_t, 0x200> bytes = [] {
    std::array<int16_t, 0x200> table;
    table.fill(-1);
    for (unsigned byte = 0; byte < 256; ++byte)
      table[codePoints()[byte]] = int16_t(byte);
    return table;
  }();
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned point = uint8_t(text[i]);
    // All characters of the alphabet have one or two bytes.
    if (point >= 0x80) {
      if (point < 0xc2 || point > 0xc7 || i + 1 == text.size() ||
          (uint8_t(text[i + 1]) & 0xc0) != 0x80)
        return std::nullopt;
      point = (point & 0x1f) << 6 | (uint8_t(text[++i]) & 0x3f);
    }
    if (bytes[point] < 0)
      return std::nullopt;
    out += char(bytes[point]);
  }
  return out;
}
