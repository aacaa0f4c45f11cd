// utf8proc has the mappings of one character to one, and full case folding, from
// which the other full mappings follow.

#include "runtime/text/letter_case.h"

#include <iterator>

#define UTF8PROC_STATIC
#include <utf8proc.h>

namespace izh {
namespace {

constexpr uint32_t kSharpS = 0xdf, kDottedI = 0x130, kIota = 0x3b9, kIotaBelow = 0x345;

struct Range {
  uint32_t first, last;
};

// Other_Lowercase and Other_Uppercase of PropList.txt, without those that have a
// mapping.
constexpr Range kOtherLower[] = {
    {0xaa, 0xaa},       {0xba, 0xba},       {0x2b0, 0x2b8},     {0x2c0, 0x2c1},
    {0x2e0, 0x2e4},     {0x37a, 0x37a},     {0x1d2c, 0x1d6a},   {0x1d78, 0x1d78},
    {0x1d9b, 0x1dbf},   {0x2071, 0x2071},   {0x207f, 0x207f},   {0x2090, 0x209c},
    {0x2c7c, 0x2c7d},   {0xa69c, 0xa69d},   {0xa770, 0xa770},   {0xa7f8, 0xa7f9},
    {0xab5c, 0xab5f},   {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107b0},
    {0x107b2, 0x107ba},
};
constexpr Range kOtherUpper[] = {{0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};

template <size_t N>
bool is_in(const Range (&ranges)[N], uint32_t c) {
  for (const Range& range : ranges) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

utf8proc_category_t category_of(uint32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}
uint32_t upper_of(uint32_t c) {
  return static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}
uint32_t lower_of(uint32_t c) {
  return static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}
uint32_t title_of(uint32_t c) {
  return static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
}

CaseMapping fold(uint32_t c) {
  utf8proc_int32_t points[4];
  int boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), points,
                                             std::size(points), UTF8PROC_CASEFOLD, &boundary);
  CaseMapping mapping = {{c}, 1};
  if (count < 1 || count > static_cast<utf8proc_ssize_t>(std::size(points))) return mapping;
  mapping.count = static_cast<uint32_t>(count);
  for (uint32_t i = 0; i < mapping.count; ++i) {
    mapping.points[i] = static_cast<uint32_t>(points[i]);
  }
  return mapping;
}

// `folded` is of several characters: the first letter of them is a capital.
CaseMapping title_of_many(CaseMapping folded) {
  for (uint32_t i = 0; i < folded.count; ++i) {
    const uint32_t title = title_of(folded.points[i]);
    if (title == folded.points[i]) continue;
    folded.points[i] = title;
    break;
  }
  // An iota below a letter stays there.
  uint32_t* last = &folded.points[folded.count - 1];
  if (*last == kIota) *last = kIotaBelow;
  return folded;
}

}  // namespace

CaseMapping map_case(uint32_t c, LetterCase to) {
  if (c < 0x80) {
    const bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
    const bool capital = to == LetterCase::kUpper || to == LetterCase::kTitle;
    return {{!letter ? c : capital ? c & ~32u : c | 32u}, 1};
  }
  const CaseMapping folded = fold(c);
  const bool many = folded.count > 1;
  switch (to) {
    case LetterCase::kFolded:
      return folded;
    case LetterCase::kLower:
      return c == kDottedI ? folded : CaseMapping{{lower_of(c)}, 1};
    case LetterCase::kUpper: {
      // Capitals that fold into several are capitals all the same.
      if (!many || category_of(c) == UTF8PROC_CATEGORY_LU) return {{upper_of(c)}, 1};
      CaseMapping upper = folded;
      for (uint32_t i = 0; i < upper.count; ++i) upper.points[i] = upper_of(upper.points[i]);
      return upper;
    }
    case LetterCase::kTitle:
      break;
  }
  // The library gives sharp s a capital of its own, which words don't begin with.
  const bool splits =
      many && category_of(c) == UTF8PROC_CATEGORY_LL && (title_of(c) == c || c == kSharpS);
  return splits ? title_of_many(folded) : CaseMapping{{title_of(c)}, 1};
}

bool is_title_case(uint32_t c) { return category_of(c) == UTF8PROC_CATEGORY_LT; }
bool is_upper_case(uint32_t c) {
  return category_of(c) == UTF8PROC_CATEGORY_LU || (lower_of(c) != c && !is_title_case(c)) ||
         is_in(kOtherUpper, c);
}
bool is_lower_case(uint32_t c) {
  return category_of(c) == UTF8PROC_CATEGORY_LL || (upper_of(c) != c && !is_title_case(c)) ||
         is_in(kOtherLower, c);
}
bool is_cased(uint32_t c) { return is_upper_case(c) || is_lower_case(c) || is_title_case(c); }

bool is_case_ignorable(uint32_t c) {
  switch (category_of(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      break;
  }
  // Of Word_Break MidLetter, MidNumLet and Single_Quote.
  constexpr uint32_t kInWords[] = {'\'',   '.',    ':',    0xb7,   0x387,  0x55f,
                                   0x5f4,  0x2018, 0x2019, 0x2024, 0x2027, 0xfe13,
                                   0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a};
  for (const uint32_t known : kInWords) {
    if (c == known) return true;
  }
  return false;
}

}  // namespace izh
