// Unicode by utf8proc. Normal forms are made run by run of characters beyond
// ASCII, so that plain text is only copied.

#include "runtime/text/characters.h"

#define UTF8PROC_STATIC
#include <utf8proc.h>

#include "runtime/text/normalizer.h"
#include "runtime/text/utf8.h"

namespace izh {
namespace {

// Sorting marks takes the square of their number: runs without a border are
// cut after so many characters.
constexpr size_t kMaxRun = 2048;
// From there on a run ends at the next border.
constexpr size_t kLongRun = 256;

// Whether nothing before `c` changes it or is changed by it.
bool is_border(uint32_t c) {
  // Jamo, and narrow forms of them and of Japanese voicing marks.
  if ((c >= 0x1160 && c <= 0x11ff) || (c >= 0xff9e && c <= 0xffdf)) return false;
  return !is_mark(c, true);
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
    const auto option = static_cast<utf8proc_option_t>(options_);
    if (!points_.resize(count + 64)) return false;
    utf8proc_ssize_t points = decompose(text, count, option);
    if (points > static_cast<utf8proc_ssize_t>(points_.size())) {
      if (!points_.resize(static_cast<size_t>(points) + 1)) return false;
      points = decompose(text, count, option);
    }
    if (points >= 0) points = utf8proc_normalize_utf32(points_.data(), points, option);
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
  utf8proc_ssize_t decompose(const uint8_t* text, size_t count, utf8proc_option_t option) {
    return utf8proc_decompose(text, static_cast<utf8proc_ssize_t>(count), points_.data(),
                              static_cast<utf8proc_ssize_t>(points_.size()), option);
  }

  int options_;
  Array<uint8_t>* out_;
  Array<utf8proc_int32_t> points_;
};

// End of the run at `at`: the next ASCII character, or a border far enough.
size_t run_end(const Array<uint8_t>& text, size_t at) {
  size_t count = 0;
  while (at < text.size() && (text[at] >= 0x80 || count == 0)) {
    uint32_t length;
    const uint32_t c = utf8_decode(text.data() + at, &length);
    if (count >= kMaxRun || (count >= kLongRun && is_border(c))) break;
    ++count;
    at += length;
  }
  return at;
}

// Characters below U+0300 are composed already.
bool is_composed(const uint8_t* text, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (text[i] >= 0xcc) return false;
  }
  return true;
}

}  // namespace

uint32_t lower_case(uint32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  return static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

bool is_mark(uint32_t c, bool all) {
  if (c < 0x300) return false;
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  if (category == UTF8PROC_CATEGORY_MN) return true;
  return all && (category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME);
}

bool grapheme_ends(uint32_t before, uint32_t behind, int32_t* state) {
  return utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before),
                                          static_cast<utf8proc_int32_t>(behind), state);
}

bool is_no_text(uint32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CO || category == UTF8PROC_CATEGORY_CS;
}

bool put_normal_form(NormalStepKind form, const Array<uint8_t>& text, Array<uint8_t>* out) {
  FormWriter writer(form, out);
  for (size_t at = 0; at < text.size();) {
    size_t start = at;
    while (start < text.size() && text[start] < 0x80) ++start;
    // What follows may combine with the character before it.
    if (start > at && start < text.size()) --start;
    if (!out->append(text.data() + at, start - at)) return false;
    const size_t end = run_end(text, start);
    const bool done =
        form == NormalStepKind::kCompose && is_composed(text.data() + start, end - start)
            ? out->append(text.data() + start, end - start)
            : writer.put_run(text.data() + start, end - start);
    if (!done) return false;
    at = end;
  }
  return true;
}

}  // namespace izh
