// SentencePiece's precompiled maps: four bytes that say how long a double array
// is, the array (a trie over the bytes of what is replaced), then replacements
// that end with a zero byte. Of all entries that a text starts with the longest
// one counts.

#include "runtime/text/characters.h"
#include "runtime/text/normalizer.h"
#include "runtime/text/piece_finder.h"
#include "runtime/text/utf8.h"

namespace izh {
namespace {

uint32_t read_u32(const uint8_t* bytes) {
  return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | static_cast<uint32_t>(bytes[3]) << 24;
}

struct Map {
  Span<const uint8_t> units;  // of four bytes
  Span<const uint8_t> texts;

  explicit Map(Span<const uint8_t> all) {
    if (all.size < 4) return;
    const uint32_t bytes = read_u32(all.data);
    if (bytes > all.size - 4) return;
    units = {all.data + 4, bytes / 4 * 4};
    texts = {all.data + 4 + bytes, all.size - 4 - bytes};
  }

  // False beyond the end.
  bool unit(uint32_t index, uint32_t* out) const {
    if (index >= units.size / 4) return false;
    *out = read_u32(units.data + size_t{index} * 4);
    return true;
  }

  // Bytes at the start of `text` that are replaced, 0: none. Of several entries
  // the longest one or the first.
  size_t find(const uint8_t* text, size_t count, bool first,
              Span<const uint8_t>* replacement) const {
    uint32_t node;
    if (!unit(0, &node)) return 0;
    size_t found = 0;
    // A unit: offset of the children from bit 10 on (times 256 if bit 9 is set),
    // whether a value follows in bit 8, the byte that leads here below.
    uint32_t place = (node >> 10) << ((node >> 6) & 8);
    const size_t most = count < schema::kMaxMapDepth ? count : schema::kMaxMapDepth;
    for (size_t i = 0; i < most && text[i] != 0; ++i) {
      place ^= text[i];
      if (!unit(place, &node) || (node & 0x800000ffu) != text[i]) break;
      place ^= (node >> 10) << ((node >> 6) & 8);
      uint32_t value;
      if (!(node >> 8 & 1) || !unit(place, &value)) continue;
      value &= 0x7fffffffu;
      if (value >= texts.size) continue;
      const size_t left = texts.size - value;
      const size_t longest = left < schema::kMaxMapText ? left : schema::kMaxMapText;
      const void* end = memchr(texts.data + value, 0, longest);
      if (!end) continue;
      found = i + 1;
      const auto* begin = texts.data + value;
      *replacement = {begin, static_cast<size_t>(static_cast<const uint8_t*>(end) - begin)};
      if (first) break;
    }
    return found;
  }
};

// Bytes of the user-defined token at the start of `text`, the longest one.
size_t user_defined(const TokenizerView& view, const uint8_t* text, size_t count) {
  size_t found = 0;
  find_pieces(view, text, count, [&](size_t bytes, int32_t id) {
    if (view.token_type(static_cast<uint32_t>(id)) == TokenType::kUserDefined) found = bytes;
  });
  return found;
}

}  // namespace

bool map_characters(const TokenizerView& view, Span<const uint8_t> bytes, size_t limit,
                    const Array<uint8_t>& text, Array<uint8_t>* out) {
  const Map map(bytes);
  for (size_t at = 0; at < text.size();) {
    const uint8_t* here = text.data() + at;
    const size_t left = text.size() - at;
    size_t taken = view.user_defined_inside ? user_defined(view, here, left) : 0;
    Span<const uint8_t> replacement = {here, taken};
    if (taken == 0) taken = map.find(here, left, false, &replacement);
    // What cuts a character is no map of characters.
    if (taken == 0 || (taken < left && (here[taken] & 0xc0) == 0x80) ||
        !utf8_is_valid(replacement.data, replacement.size)) {
      taken = utf8_step(here, left).length;
      replacement = {here, taken};
    }
    if (!out->append(replacement.data, replacement.size) || out->size() > limit) return false;
    at += taken;
  }
  return true;
}

// Longer graphemes are mapped by the character.
static constexpr size_t kShortGrapheme = 6;

bool map_graphemes(Span<const uint8_t> bytes, size_t limit, const Array<uint8_t>& text,
                   Array<uint8_t>* out) {
  const Map map(bytes);
  Span<const uint8_t> replacement;
  // False if nothing is known of the part.
  const auto maps = [&](size_t begin, size_t end) {
    return map.find(text.data() + begin, end - begin, true, &replacement) > 0 &&
           utf8_is_valid(replacement.data, replacement.size);
  };
  int32_t state = 0;
  for (size_t begin = 0; begin < text.size();) {
    if (out->size() > limit) return false;
    uint32_t length;
    uint32_t last = utf8_decode(text.data() + begin, &length);
    size_t end = begin + length;
    while (end < text.size()) {
      const uint32_t next = utf8_decode(text.data() + end, &length);
      if (grapheme_ends(last, next, &state)) break;
      last = next;
      end += length;
    }
    if (end - begin < kShortGrapheme && maps(begin, end)) {
      if (!out->append(replacement.data, replacement.size)) return false;
      begin = end;
      continue;
    }
    for (; begin < end; begin += length) {
      utf8_decode(text.data() + begin, &length);
      if (!maps(begin, begin + length)) replacement = {text.data() + begin, length};
      if (!out->append(replacement.data, replacement.size)) return false;
    }
  }
  return true;
}

}  // namespace izh
