// WordPiece: each word is cut into the longest tokens from left to right, and is
// unknown as a whole if that fails somewhere. Tokens that begin a word start
// with a mark.

#include "runtime/base/status.h"
#include "runtime/text/encode.h"
#include "runtime/text/normalizer.h"
#include "runtime/text/piece_finder.h"
#include "runtime/text/utf8.h"

namespace izh {
namespace {

Span<const uint8_t> mark_of(const TokenizerView& view) {
  static constexpr uint8_t kByte[1] = {static_cast<uint8_t>(schema::kWordMark)};
  static constexpr uint8_t kCharacter[3] = {0xe2, 0x96, 0x81};
  return view.byte_marks ? Span<const uint8_t>{kByte, 1} : Span<const uint8_t>{kCharacter, 3};
}

// `word` starts with the mark. False if there is no memory.
bool encode_word(const TokenizerView& view, const Array<uint8_t>& word, bool control,
                 Array<int32_t>* ids) {
  const size_t before = ids->size(), mark = mark_of(view).size;
  uint32_t characters = 0;
  for (size_t i = mark; i < word.size(); ++i) characters += (word[i] & 0xc0) != 0x80;
  bool known = characters <= view.longest_word;
  for (size_t at = 0; known && at < word.size();) {
    // Inside of a word the character is no mark of a beginning.
    if (at > 0 && word.size() - at >= mark && memcmp(word.data() + at, word.data(), mark) == 0) {
      known = false;
      break;
    }
    size_t longest = 0;
    int32_t found = -1;
    find_pieces(view, word.data() + at, word.size() - at, [&](size_t size, int32_t id) {
      if (!control && view.token_type(static_cast<uint32_t>(id)) == TokenType::kControl) return;
      longest = size;
      found = id;
    });
    known = found >= 0;
    if (known && !ids->push(found)) return false;
    at += longest;
  }
  return known || (ids->resize(before) && ids->push(view.unk));
}

}  // namespace

izh_status encode_word_piece(const TokenizerView& view, const Splitter& splitter,
                             const uint8_t* text, uint32_t bytes, EncodeScratch* scratch,
                             Array<int32_t>* ids, izh_error* error) {
  IZH_TRY(splitter.split(text, bytes, &scratch->splitter, &scratch->words, error));
  scratch->cache.prepare(bytes);
  Array<uint8_t>& word = scratch->text;
  uint32_t begin = 0;
  for (const uint32_t end : scratch->words) {
    const auto encode = [&] {
      word.clear();
      const Span<const uint8_t> mark = mark_of(view);
      return word.append(mark.data, mark.size) && word.append(text + begin, end - begin) &&
             encode_word(view, word, scratch->control, ids);
    };
    uint32_t length;
    // Blanks only part words.
    const bool blank = is_white_space(utf8_decode(text + begin, &length));
    if (!blank && !encode_cached(text, begin, end, scratch, ids, encode)) {
      return fail(error, IZH_OUT_OF_MEMORY, "no memory is left to tokenize %u bytes", bytes);
    }
    begin = end;
  }
  return IZH_OK;
}

}  // namespace izh
