// The steps one by one; each reads the text and writes a new one.

#include "runtime/text/normalizer.h"

#include "runtime/base/status.h"
#include "runtime/text/characters.h"
#include "runtime/text/utf8.h"

namespace izh {
namespace {

bool put(uint32_t code_point, Array<uint8_t>* out) {
  uint8_t bytes[4];
  return out->append(bytes, utf8_encode(code_point, bytes));
}

// Calls `each` (bool(uint32_t code_point, Span bytes)) for every character.
template <typename Each>
bool for_characters(const Array<uint8_t>& text, const Each& each) {
  for (size_t at = 0; at < text.size();) {
    uint32_t length;
    const uint32_t c = utf8_decode(text.data() + at, &length);
    if (!each(c, Span<const uint8_t>{text.data() + at, length})) return false;
    at += length;
  }
  return true;
}

bool replace(Span<const uint8_t> from, Span<const uint8_t> to, size_t limit,
             const Array<uint8_t>& text, Array<uint8_t>* out) {
  size_t done = 0;
  while (!from.empty() && done < text.size()) {
    const void* found = memmem(text.data() + done, text.size() - done, from.data, from.size);
    if (!found) break;
    const size_t at = static_cast<size_t>(static_cast<const uint8_t*>(found) - text.data());
    if (!out->append(text.data() + done, at - done) || !out->append(to.data, to.size)) return false;
    if (out->size() > limit) return false;
    done = at + from.size;
  }
  return out->append(text.data() + done, text.size() - done);
}

bool replace_spaces(Span<const uint8_t> to, size_t limit, const Array<uint8_t>& text,
                    Array<uint8_t>* out) {
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && text[end] == ' ') ++end;
    if (end - at >= 2) {
      if (!out->append(to.data, to.size) || out->size() > limit) return false;
      at = end;
    } else if (!out->push(text[at++])) {
      return false;
    }
  }
  return true;
}

// Bytes of what is stripped at the start of `text`, or at its end.
size_t strippable(Span<const uint8_t> what, const uint8_t* text, size_t count, bool left) {
  if (count == 0) return 0;
  if (!what.empty()) {
    if (count < what.size) return 0;
    const uint8_t* place = left ? text : text + count - what.size;
    return memcmp(place, what.data, what.size) == 0 ? what.size : 0;
  }
  size_t start = left ? 0 : count - 1;
  while (!left && start > 0 && (text[start] & 0xc0) == 0x80) --start;
  uint32_t length;
  return is_white_space(utf8_decode(text + start, &length)) ? length : 0;
}

bool strip(Span<const uint8_t> what, bool left, const Array<uint8_t>& text, Array<uint8_t>* out) {
  size_t begin = 0, end = text.size();
  while (const size_t size = strippable(what, text.data() + begin, end - begin, left)) {
    (left ? begin : end) += left ? size : size_t{0} - size;
  }
  return out->append(text.data() + begin, end - begin);
}

bool clean(const Array<uint8_t>& text, Array<uint8_t>* out) {
  return for_characters(text, [out](uint32_t c, Span<const uint8_t> bytes) {
    // Of control characters only these are white space here.
    const bool kept = c == '\t' || c == '\n' || c == '\r';
    if (!kept && (c == 0xfffd || is_no_text(c))) return true;
    return is_white_space(c) ? out->push(' ') : out->append(bytes.data, bytes.size);
  });
}

// The blocks that BERT's tokenizers put spaces around, as published.
bool is_ideograph(uint32_t c) {
  constexpr uint32_t kBlocks[][2] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                     {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f},
                                     {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
  for (const auto& block : kBlocks) {
    if (c >= block[0] && c <= block[1]) return true;
  }
  return false;
}

bool run_step(const TokenizerView& view, const NormalStep& step, size_t limit,
              const Array<uint8_t>& text, Array<uint8_t>* out) {
  using Bytes = Span<const uint8_t>;
  switch (step.kind) {
    case NormalStepKind::kCompose:
    case NormalStepKind::kDecompose:
    case NormalStepKind::kCompatCompose:
    case NormalStepKind::kCompatDecompose:
      return put_normal_form(step.kind, text, out);
    case NormalStepKind::kCharsmap:
      return map_characters(view, step.from, limit, text, out);
    case NormalStepKind::kCharsmapGraphemes:
      return map_graphemes(step.from, limit, text, out);
    case NormalStepKind::kLowercase:
      return for_characters(text, [out](uint32_t c, Bytes) {
        // The only letter whose lower case is two characters.
        if (c == 0x130) return put('i', out) && put(0x307, out);
        return put(lower_case(c), out);
      });
    case NormalStepKind::kStripMarks:
    case NormalStepKind::kStripNonspacing:
      return for_characters(text, [&](uint32_t c, Bytes bytes) {
        const bool all = step.kind == NormalStepKind::kStripMarks;
        return is_mark(c, all) || out->append(bytes.data, bytes.size);
      });
    case NormalStepKind::kReplace:
      return replace(step.from, step.to, limit, text, out);
    case NormalStepKind::kReplaceSpaces:
      return replace_spaces(step.to, limit, text, out);
    case NormalStepKind::kStripLeft:
    case NormalStepKind::kStripRight:
      return strip(step.from, step.kind == NormalStepKind::kStripLeft, text, out);
    case NormalStepKind::kClean:
      return clean(text, out);
    case NormalStepKind::kBlanks:
      return for_characters(text, [out](uint32_t c, Bytes bytes) {
        return is_white_space(c) ? out->push(' ') : out->append(bytes.data, bytes.size);
      });
    case NormalStepKind::kPrepend:
      return text.empty() ||
             (out->append(step.to.data, step.to.size) && out->append(text.data(), text.size()));
    case NormalStepKind::kSpaceIdeographs:
      return for_characters(text, [out](uint32_t c, Bytes bytes) {
        const bool spaced = is_ideograph(c);
        return (!spaced || out->push(' ')) && out->append(bytes.data, bytes.size) &&
               (!spaced || out->push(' '));
      });
  }
  return true;
}

}  // namespace

bool is_white_space(uint32_t c) {
  return c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

izh_status normalize(const TokenizerView& view, StepRange steps, size_t limit, Array<uint8_t>* text,
                     izh_error* error) {
  Array<uint8_t> next;
  for (size_t i = steps.begin; i < steps.end; ++i) {
    next.clear();
    const bool done = run_step(view, view.steps[i], limit, *text, &next);
    if (!done && next.size() <= limit) {
      return fail(error, IZH_OUT_OF_MEMORY, "no memory is left to tokenize %zu bytes",
                  text->size());
    }
    if (next.size() > limit || !utf8_is_valid(next.data(), next.size())) {
      return fail(error, IZH_LIMIT,
                  "the tokenizer makes %zu bytes of a text of %zu, at most %zu of valid text can "
                  "be tokenized",
                  next.size(), text->size(), limit);
    }
    text->swap(next);
  }
  return IZH_OK;
}

}  // namespace izh
