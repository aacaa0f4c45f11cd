// Two passes: one walk over the text says which special tokens occur at all
// (usually few of hundreds), then each of those is cut out of what is left.

#include "runtime/text/specials.h"

#include <algorithm>

namespace izh {

void SpecialFinder::create(const TokenizerView* view) {
  view_ = view;
  uint32_t index = 0;
  const Span<const uint32_t> specials = view->specials;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    first_[byte] = index;
    while (index < specials.size && view->token_text(specials[index])[0] == byte) ++index;
  }
  first_[256] = index;
}

bool SpecialFinder::find_present(const uint8_t* text, uint32_t bytes, bool parse_control,
                                 Array<uint32_t>* present) const {
  const Span<const uint32_t> specials = view_->specials;
  Array<uint8_t> seen;
  if (!seen.resize(specials.size)) return false;
  for (uint32_t at = 0; at < bytes; ++at) {
    uint32_t low = first_[text[at]], high = first_[text[at] + 1];
    // All of low..high start with the `depth` bytes from `at` on; a text that
    // ends there comes first.
    for (uint32_t depth = 1; low < high; ++depth) {
      if (view_->token_text(specials[low]).size == depth) {
        const bool counts =
            parse_control || view_->token_type(specials[low]) == TokenType::kUserDefined;
        if (counts && !seen[low]) {
          seen[low] = 1;
          if (!present->push(low)) return false;
        }
        ++low;
      }
      if (at + depth >= bytes) break;
      const uint8_t next = text[at + depth];
      const uint32_t* all = specials.data;
      const uint32_t* begin = std::partition_point(
          all + low, all + high, [&](uint32_t id) { return view_->token_text(id)[depth] < next; });
      const uint32_t* end = std::partition_point(
          begin, all + high, [&](uint32_t id) { return view_->token_text(id)[depth] == next; });
      low = static_cast<uint32_t>(begin - all);
      high = static_cast<uint32_t>(end - all);
    }
  }
  return true;
}

// Splits every raw fragment of `from` at the occurrences of `needle`.
static bool cut_one(const uint8_t* text, Span<const uint8_t> needle, int32_t token, uint8_t strips,
                    const Array<Fragment>& from, Array<Fragment>* to) {
  to->clear();
  for (const Fragment& fragment : from) {
    uint32_t begin = fragment.begin;
    const uint32_t size = static_cast<uint32_t>(needle.size);
    for (uint32_t at = begin; fragment.token < 0 && fragment.end - at >= size;) {
      const void* found = memmem(text + at, fragment.end - at, needle.data, size);
      if (!found) break;
      at = static_cast<uint32_t>(static_cast<const uint8_t*>(found) - text);
      if (at > begin && !to->push({begin, at, -1, 0})) return false;
      if (!to->push({at, at + size, token, strips})) return false;
      begin = at = at + size;
    }
    if (begin == fragment.end) continue;
    if (!to->push({begin, fragment.end, fragment.token, fragment.strips})) return false;
  }
  return true;
}

static bool is_blank(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

// Takes the blanks beside special tokens away from the text there.
static void strip_blanks(const uint8_t* text, Array<Fragment>* fragments) {
  Array<Fragment>& all = *fragments;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].token >= 0) continue;
    Fragment& part = all[i];
    if (i > 0 && (all[i - 1].strips & TokenizerView::kStripsRight)) {
      while (part.begin < part.end && is_blank(text[part.begin])) ++part.begin;
    }
    if (i + 1 < all.size() && (all[i + 1].strips & TokenizerView::kStripsLeft)) {
      while (part.begin < part.end && is_blank(text[part.end - 1])) --part.end;
    }
  }
  size_t kept = 0;
  for (const Fragment& part : all) {
    if (part.begin < part.end) all[kept++] = part;
  }
  static_cast<void>(all.resize(kept));
}

bool SpecialFinder::cut(const uint8_t* text, uint32_t bytes, bool parse_control,
                        Array<Fragment>* fragments) const {
  fragments->clear();
  if (bytes == 0) return true;
  if (!fragments->push({0, bytes, -1, 0})) return false;
  Array<uint32_t> present;
  if (!find_present(text, bytes, parse_control, &present)) return false;
  const Span<const uint32_t> specials = view_->specials;
  std::sort(present.begin(), present.end(), [&](uint32_t a, uint32_t b) {
    const size_t size_a = view_->token_text(specials[a]).size;
    const size_t size_b = view_->token_text(specials[b]).size;
    return size_a != size_b ? size_a > size_b : specials[a] < specials[b];
  });
  Array<Fragment> next;
  for (const uint32_t index : present) {
    const uint32_t id = specials[index];
    const uint8_t strips = view_->strips.empty() ? 0 : view_->strips[index];
    if (!cut_one(text, view_->token_text(id), static_cast<int32_t>(id), strips, *fragments,
                 &next)) {
      return false;
    }
    fragments->swap(next);
  }
  if (!view_->strips.empty()) strip_blanks(text, fragments);
  return true;
}

}  // namespace izh
