// PCRE2 is shown every character once, in order, and says which runs match: so
// what a property or class holds is never a second opinion.

#include "compiler/tokenizers/CharacterSets.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ConvertUTF.h"
#include <map>
#include <mutex>

#define PCRE2_CODE_UNIT_WIDTH 8
#define PCRE2_STATIC
#include <pcre2.h>

using namespace izhc;

namespace {

constexpr uint32_t kCodePoints = 0x110000;

bool isSurrogate(uint32_t codePoint) { return codePoint >= 0xd800 && codePoint < 0xe000; }

// All characters in UTF-8.
const std::string &everyCharacter() {
  static const std::string all = [] {
    std::string text;
    for (uint32_t c = 0; c < kCodePoints; ++c) {
      char bytes[4], *end = bytes;
      if (!isSurrogate(c) && llvm::ConvertCodePointToUTF8(c, end))
        text.append(bytes, end);
    }
    return text;
  }();
  return all;
}

// The character that begins at byte `offset` there.
uint32_t characterAt(size_t offset) {
  constexpr size_t k2 = 0x80, k3 = k2 + 2 * (0x800 - 0x80), surrogates = k3 + 3 * (0xd800 - 0x800),
                   k4 = k3 + 3 * (0x10000 - 0x800 - 0x800);
  if (offset < k2)
    return uint32_t(offset);
  if (offset < k3)
    return uint32_t(0x80 + (offset - k2) / 2);
  if (offset < surrogates)
    return uint32_t(0x800 + (offset - k3) / 3);
  if (offset < k4)
    return uint32_t(0xe000 + (offset - surrogates) / 3);
  return uint32_t(0x10000 + (offset - k4) / 4);
}

struct Runs {
  pcre2_code *code = nullptr;
  pcre2_match_data *data = nullptr;
  ~Runs() {
    pcre2_match_data_free(data);
    pcre2_code_free(code);
  }
};

std::optional<CharacterSet> askPcre2(const std::string &pattern) {
  std::string repeated = "(?:" + pattern + ")++";
  int wrong;
  PCRE2_SIZE where;
  Runs runs;
  runs.code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(repeated.data()), repeated.size(),
                            PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &wrong, &where, nullptr);
  if (!runs.code)
    return std::nullopt;
  // Several times as fast, where the system allows it.
  pcre2_jit_compile(runs.code, PCRE2_JIT_COMPLETE);
  runs.data = pcre2_match_data_create(1, nullptr);
  const std::string &text = everyCharacter();
  CharacterSet set;
  for (size_t at = 0; at < text.size();) {
    int found = pcre2_match(runs.code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                            PCRE2_NO_UTF_CHECK, runs.data, nullptr);
    if (found == PCRE2_ERROR_NOMATCH)
      break;
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(runs.data);
    if (found < 0 || range[1] <= range[0])
      return std::nullopt;
    at = range[1];
    set.emplace_back(characterAt(range[0]), at == text.size() ? kCodePoints : characterAt(at));
  }
  return set;
}

// An answer takes up to a tenth of a second, and patterns have much in common.
constexpr size_t kMaxKnown = 256;

} // namespace

std::optional<CharacterSet> izhc::charactersOf(const std::string &pattern) {
  // Most are letters of a word.
  if (pattern.size() == 1 && llvm::isAlnum(pattern[0]))
    return CharacterSet{{uint32_t(pattern[0]), uint32_t(pattern[0]) + 1}};
  static std::mutex mutex;
  static std::map<std::string, std::optional<CharacterSet>> known;
  std::lock_guard lock(mutex);
  if (auto found = known.find(pattern); found != known.end())
    return found->second;
  if (known.size() >= kMaxKnown)
    known.clear();
  return known[pattern] = askPcre2(pattern);
}

std::optional<CharacterClasses> izhc::classify(llvm::ArrayRef<CharacterSet> sets, unsigned most) {
  // Where membership of any set changes.
  std::map<uint32_t, uint64_t> changes{{0, 0}};
  for (auto [index, set] : llvm::enumerate(sets))
    for (auto [first, second] : set)
      for (uint32_t border : {first, second})
        changes[border] ^= uint64_t(1) << index;
  CharacterClasses result;
  std::map<uint64_t, unsigned> numbers;
  std::vector<uint8_t> flat(kCodePoints);
  uint64_t members = 0;
  for (auto it = changes.begin(); it != changes.end() && it->first < kCodePoints; ++it) {
    members ^= it->second;
    auto [found, added] = numbers.try_emplace(members, result.count);
    if (added) {
      if (++result.count > most)
        return std::nullopt;
      result.members.push_back(members);
    }
    uint32_t end = std::next(it) == changes.end() ? kCodePoints : std::next(it)->first;
    std::fill(flat.begin() + it->first, flat.begin() + std::min(end, kCodePoints),
              uint8_t(found->second));
  }
  llvm::StringMap<uint16_t> pages;
  for (uint32_t begin = 0; begin < kCodePoints; begin += CharacterClasses::kPage) {
    llvm::StringRef page(reinterpret_cast<const char *>(flat.data()) + begin,
                         CharacterClasses::kPage);
    auto [found, added] = pages.try_emplace(page, uint16_t(pages.size()));
    if (added)
      result.classes.insert(result.classes.end(), page.bytes_begin(), page.bytes_end());
    result.pages.push_back(found->second);
  }
  return result;
}
