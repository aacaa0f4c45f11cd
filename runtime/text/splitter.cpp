// Patterns with a scanner are split by it, the others by PCRE2's interpreter:
// its machine code would need memory that is writable and executable.

#include "runtime/text/splitter.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#define PCRE2_STATIC
#include <pcre2.h>

#include "runtime/base/status.h"
#include "runtime/text/utf8.h"

namespace izh {
namespace {

void* allocate(PCRE2_SIZE bytes, void*) { return heap_alloc(bytes); }
void release(void* block, void*) { heap_free(block); }

// Less than a second. Beyond it there was no memory to see what leads nowhere.
constexpr uint64_t kMaxSteps = uint64_t{1} << 28;

pcre2_code* code_of(void* code) { return static_cast<pcre2_code*>(code); }

izh_status no_memory(izh_error* error) {
  return fail(error, IZH_OUT_OF_MEMORY, "no memory is left to split the text into words");
}

}  // namespace

Splitter::~Splitter() {
  for (size_t i = 0; i < count_; ++i) pcre2_code_free(code_of(codes_[i]));
  pcre2_general_context_free(static_cast<pcre2_general_context*>(general_));
}

izh_status Splitter::create(const PatternList& patterns, izh_error* error) {
  general_ = pcre2_general_context_create(allocate, release, nullptr);
  if (!general_) return no_memory(error);
  auto* context = pcre2_compile_context_create(static_cast<pcre2_general_context*>(general_));
  if (!context) return no_memory(error);
  for (size_t i = 0; i < patterns.count; ++i) {
    count_ = i + 1;
    scanners_[i] = patterns.scanners[i];
    if (scanners_[i].exists()) continue;
    int code = 0;
    PCRE2_SIZE offset = 0;
    codes_[i] =
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(patterns.items[i].text), patterns.items[i].bytes,
                      PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &offset, context);
    if (!codes_[i]) {
      pcre2_compile_context_free(context);
      char reason[120] = "";
      pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(reason), sizeof(reason));
      return fail(error, IZH_BAD_ARTIFACT,
                  "pattern %zu of the artifact's tokenizer can't be used (%s at byte %zu); "
                  "compile the model again",
                  i, reason, static_cast<size_t>(offset));
    }
  }
  pcre2_compile_context_free(context);
  return IZH_OK;
}

Splitter::Scratch::~Scratch() {
  pcre2_match_data_free(static_cast<pcre2_match_data*>(match_data));
  pcre2_match_context_free(static_cast<pcre2_match_context*>(match_context));
}

izh_status Splitter::prepare(uint32_t bytes, Scratch* scratch, izh_error* error) const {
  auto* general = static_cast<pcre2_general_context*>(general_);
  if (!scratch->match_data) {
    scratch->match_data = pcre2_match_data_create(1, general);
    if (!scratch->match_data) return no_memory(error);
    scratch->match_context = pcre2_match_context_create(general);
    if (!scratch->match_context) return no_memory(error);
  }
  auto* context = static_cast<pcre2_match_context*>(scratch->match_context);
  // Sensible patterns go back over a piece a few times at most.
  const uint64_t limit = 10'000'000 + uint64_t{bytes} * 16;
  pcre2_set_match_limit(context, limit > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(limit));
  return IZH_OK;
}

izh_status Splitter::scan_piece(size_t pattern, const uint8_t* text, uint32_t begin, uint32_t end,
                                DeadEnds* dead, uint64_t* steps, Array<uint32_t>* ends,
                                izh_error* error) const {
  const Scanner& scanner = scanners_[pattern];
  // What was cut off so far.
  uint32_t done = begin;
  for (uint32_t at = scanner.find_start(text, begin, end); at < end;
       at = scanner.find_start(text, at, end)) {
    const Scanner::Match match = scanner.match(text, at, end, dead);
    *steps += match.seen - at;
    if (*steps > kMaxSteps + uint64_t{end} * 2 * DeadEnds::kBlock) {
      return fail(error, IZH_LIMIT,
                  "pattern %zu of the artifact's tokenizer gave up on the text, at which it looks "
                  "again and again; compile the model again",
                  pattern);
    }
    if (match.end <= at) {
      at += utf8_step(text + at, end - at).length;
      continue;
    }
    if (at > done && !ends->push(at)) return no_memory(error);
    if (!ends->push(match.end)) return no_memory(error);
    done = at = match.end;
  }
  if (done < end && !ends->push(end)) return no_memory(error);
  return IZH_OK;
}

izh_status Splitter::split_piece(size_t pattern, const uint8_t* text, uint32_t begin, uint32_t end,
                                 Scratch* scratch, Array<uint32_t>* ends, izh_error* error) const {
  const pcre2_code* code = code_of(codes_[pattern]);
  auto* data = static_cast<pcre2_match_data*>(scratch->match_data);
  auto* context = static_cast<pcre2_match_context*>(scratch->match_context);
  const PCRE2_SPTR subject = text + begin;
  const PCRE2_SIZE length = end - begin;
  const PCRE2_SIZE* found = pcre2_get_ovector_pointer(data);
  // What was cut off so far, and where to look for the next match.
  PCRE2_SIZE done = 0, from = 0;
  while (from < length) {
    const int result = pcre2_match(code, subject, length, from, PCRE2_NO_UTF_CHECK, data, context);
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result == PCRE2_ERROR_NOMEMORY || result == PCRE2_ERROR_HEAPLIMIT) return no_memory(error);
    if (result < 0) {
      return fail(error, IZH_LIMIT,
                  "pattern %zu of the artifact's tokenizer gave up on the text (PCRE2 error %d); "
                  "compile the model again",
                  pattern, result);
    }
    const PCRE2_SIZE start = found[0], stop = found[1];
    // A match of nothing, or one that \K turned around, splits nothing.
    if (stop <= start || start < from) {
      from += utf8_step(subject + from, length - from).length;
      continue;
    }
    if (start > done && !ends->push(static_cast<uint32_t>(begin + start))) return no_memory(error);
    if (!ends->push(static_cast<uint32_t>(begin + stop))) return no_memory(error);
    done = from = stop;
  }
  if (done < length && !ends->push(end)) return no_memory(error);
  return IZH_OK;
}

izh_status Splitter::split(const uint8_t* text, uint32_t bytes, Scratch* scratch,
                           Array<uint32_t>* ends, izh_error* error) const {
  ends->clear();
  if (bytes == 0) return IZH_OK;
  if (!ends->push(bytes)) return no_memory(error);
  IZH_TRY(prepare(bytes, scratch, error));
  for (size_t i = 0; i < count_; ++i) {
    scratch->pieces.swap(*ends);
    ends->clear();
    uint32_t begin = 0;
    uint64_t steps = 0;
    if (scanners_[i].exists()) scratch->dead.start(bytes, scanners_[i].states());
    for (const uint32_t end : scratch->pieces) {
      IZH_TRY(scanners_[i].exists()
                  ? scan_piece(i, text, begin, end, &scratch->dead, &steps, ends, error)
                  : split_piece(i, text, begin, end, scratch, ends, error));
      begin = end;
    }
  }
  return IZH_OK;
}

}  // namespace izh
