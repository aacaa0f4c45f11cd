// Unicode by utf8proc. Normal forms are made run by run of characters that they
// may change; what lies between those is copied.

#include "runtime/text/characters.h"

#include <algorithm>
#include <iterator>

#define UTF8PROC_STATIC
#include <utf8proc.h>

#include "runtime/text/normalizer.h"
#include "runtime/text/utf8.h"

namespace izh {
namespace {

// From there on a run ends at the next border.
constexpr size_t kLongRun = 256;

utf8proc_category_t category_of(uint32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

// Whether nothing before `c` changes it or is changed by it.
bool is_border(uint32_t c) {
  // Jamo, and narrow forms of them and of Japanese voicing marks.
  if ((c >= 0x1160 && c <= 0x11ff) || (c >= 0xff9e && c <= 0xffdf)) return false;
  return !is_mark(c, true);
}

bool is_hangul(uint32_t c) { return c >= 0xac00 && c <= 0xd7a3; }

const utf8proc_property_t& property_of(uint32_t c) {
  return *utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
}

// Whether `c` stays as it is, if nothing that follows combines with it.
bool is_inert(uint32_t c) {
  if (c < 0x80) return true;
  // No sequence: there is nothing that it decomposes into.
  return property_of(c).decomp_seqindex == UINT16_MAX && !is_hangul(c) && is_border(c);
}

int options_of(NormalStepKind form) {
  switch (form) {
    case NormalStepKind::kCompose:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    case NormalStepKind::kCompatCompose:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case NormalStepKind::kCompatDecompose:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
    default:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
  }
}

class FormWriter {
 public:
  FormWriter(NormalStepKind form, Array<uint8_t>* out) : options_(options_of(form)), out_(out) {}

  bool put_run(const uint8_t* text, size_t count) {
    points_.clear();
    for (size_t at = 0; at < count;) {
      uint32_t length;
      if (!put_decomposed(utf8_decode(text + at, &length))) return false;
      at += length;
    }
    if (!order_marks()) return false;
    const utf8proc_ssize_t points =
        utf8proc_normalize_utf32(points_.data(), static_cast<utf8proc_ssize_t>(points_.size()),
                                 static_cast<utf8proc_option_t>(options_));
    // There is no such text that is UTF-8.
    if (points < 0) return out_->append(text, count);
    for (utf8proc_ssize_t i = 0; i < points; ++i) {
      utf8proc_uint8_t bytes[4];
      const auto size = utf8proc_encode_char(points_[static_cast<size_t>(i)], bytes);
      if (!out_->append(bytes, static_cast<size_t>(size))) return false;
    }
    return true;
  }

 private:
  bool put_decomposed(uint32_t c) {
    const auto option = static_cast<utf8proc_option_t>(options_);
    utf8proc_int32_t points[32];
    int boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), points,
                                               std::size(points), option, &boundary);
    if (count < 0 || count > static_cast<utf8proc_ssize_t>(std::size(points))) {
      return points_.push(static_cast<utf8proc_int32_t>(c));
    }
    return points_.append(points, static_cast<size_t>(count));
  }

  // The canonical order: marks that follow each other are sorted by their class,
  // those of one class stay in order. The library's own way takes the square of
  // their number.
  bool order_marks() {
    for (size_t begin = 0; begin < points_.size();) {
      size_t end = begin;
      while (end < points_.size() && class_of(points_[end]) != 0) ++end;
      if (end - begin > 1 && !sort_by_class(begin, end)) return false;
      begin = end + 1;
    }
    return true;
  }

  bool sort_by_class(size_t begin, size_t end) {
    // Where the next mark of each class goes.
    uint32_t next[257] = {};
    for (size_t i = begin; i < end; ++i) ++next[class_of(points_[i]) + 1];
    for (size_t i = 1; i < 257; ++i) next[i] += next[i - 1];
    if (!sorted_.resize(end - begin)) return false;
    for (size_t i = begin; i < end; ++i) sorted_[next[class_of(points_[i])]++] = points_[i];
    std::copy(sorted_.begin(), sorted_.end(), points_.begin() + begin);
    return true;
  }

  static uint8_t class_of(utf8proc_int32_t c) {
    return static_cast<uint8_t>(property_of(static_cast<uint32_t>(c)).combining_class);
  }

  int options_;
  Array<uint8_t>* out_;
  Array<utf8proc_int32_t> points_, sorted_;
};

// End of the run at `at`: the next character that stays as it is, unless what
// follows combines with it, or a border far enough.
size_t run_end(const Array<uint8_t>& text, size_t at) {
  size_t count = 0;
  for (; at < text.size(); ++count) {
    uint32_t length;
    const uint32_t c = utf8_decode(text.data() + at, &length);
    if (count > 0 && (is_inert(c) || (count >= kLongRun && is_border(c)))) break;
    at += length;
  }
  return at;
}

}  // namespace

uint32_t lower_case(uint32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  return static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

bool is_mark(uint32_t c, bool all) {
  if (c < 0x300) return false;
  const auto category = category_of(c);
  if (category == UTF8PROC_CATEGORY_MN) return true;
  return all && (category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME);
}

bool grapheme_ends(uint32_t before, uint32_t behind, int32_t* state) {
  return utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before),
                                          static_cast<utf8proc_int32_t>(behind), state);
}

bool is_letter(uint32_t c) {
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(uint32_t c) { return category_of(c) == UTF8PROC_CATEGORY_ND; }

bool is_number(uint32_t c) {
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool is_word(uint32_t c) {
  // Symbols that are letters in circles and squares.
  constexpr uint32_t kLetters[][2] = {
      {0x24b6, 0x24e9}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
  const auto category = category_of(c);
  if (category == UTF8PROC_CATEGORY_SO) {
    return std::any_of(std::begin(kLetters), std::end(kLetters),
                       [c](const auto& range) { return c >= range[0] && c <= range[1]; });
  }
  // Letters, marks, Nd and Nl.
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) ||
         category == UTF8PROC_CATEGORY_PC || c == 0x200c || c == 0x200d;
}

uint32_t display_width(uint32_t c) {
  const int width = utf8proc_charwidth(static_cast<utf8proc_int32_t>(c));
  return width < 0 ? 0 : static_cast<uint32_t>(width);
}

bool is_visible(uint32_t c) {
  const auto category = category_of(c);
  return category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS;
}

bool is_no_text(uint32_t c) {
  const auto category = category_of(c);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CO || category == UTF8PROC_CATEGORY_CS;
}

bool put_normal_form(NormalStepKind form, const Array<uint8_t>& text, Array<uint8_t>* out) {
  FormWriter writer(form, out);
  for (size_t at = 0; at < text.size();) {
    size_t start = at, last = at;
    while (start < text.size()) {
      uint32_t length;
      if (!is_inert(utf8_decode(text.data() + start, &length))) break;
      last = start;
      start += length;
    }
    // What follows may combine with the character before it.
    if (start < text.size()) start = last;
    if (!out->append(text.data() + at, start - at)) return false;
    const size_t end = run_end(text, start);
    if (!writer.put_run(text.data() + start, end - start)) return false;
    at = end;
  }
  return true;
}

}  // namespace izh
