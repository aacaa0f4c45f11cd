// UTF-8 by its table, and the C API's stream of whole characters.

#include "runtime/text/utf8.h"

#include <cstring>

#include "runtime/include/izh/izh.h"

namespace izh {
namespace {

constexpr char kReplacement[] = "\xef\xbf\xbd";

// Bytes of a character that starts with `lead`, and the range of its second
// byte; 0 if none does.
uint8_t lead_length(uint8_t lead, uint8_t* low, uint8_t* high) {
  *low = 0x80;
  *high = 0xbf;
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) {
    if (lead == 0xe0) *low = 0xa0;
    if (lead == 0xed) *high = 0x9f;
    return 3;
  }
  if (lead > 0xf4) return 0;
  if (lead == 0xf0) *low = 0x90;
  if (lead == 0xf4) *high = 0x8f;
  return 4;
}

}  // namespace

Utf8Step utf8_step(const uint8_t* bytes, size_t count) {
  uint8_t low, high;
  const uint8_t length = lead_length(bytes[0], &low, &high);
  if (length == 0) return {Utf8::kInvalid, 1};
  for (uint8_t i = 1; i < length; ++i) {
    if (i == count) return {Utf8::kIncomplete, i};
    if (bytes[i] < low || bytes[i] > high) return {Utf8::kInvalid, i};
    low = 0x80;
    high = 0xbf;
  }
  return {Utf8::kValid, length};
}

bool utf8_is_valid(const uint8_t* bytes, size_t count) {
  size_t i = 0;
  while (i < count) {
    uint64_t word;
    // Most text is ASCII.
    while (count - i >= 8 && (memcpy(&word, bytes + i, 8), (word & 0x8080808080808080u) == 0)) {
      i += 8;
    }
    if (i == count) break;
    const Utf8Step step = utf8_step(bytes + i, count - i);
    if (step.state != Utf8::kValid) return false;
    i += step.length;
  }
  return true;
}

bool utf8_repair(const uint8_t* bytes, size_t count, Array<uint8_t>* out) {
  for (size_t i = 0; i < count;) {
    const Utf8Step step = utf8_step(bytes + i, count - i);
    if (step.state == Utf8::kValid) {
      if (!out->append(bytes + i, step.length)) return false;
      i += step.length;
    } else {
      if (!out->append(reinterpret_cast<const uint8_t*>(kReplacement), 3)) return false;
      ++i;
    }
  }
  return true;
}

}  // namespace izh

using izh::Utf8;
using izh::Utf8Step;

size_t izh_utf8_feed(izh_utf8_stream* stream, const char* bytes, size_t count, char* out) {
  size_t written = 0;
  for (size_t i = 0; i < count; ++i) {
    stream->pending[stream->count++] = static_cast<uint8_t>(bytes[i]);
    while (stream->count > 0) {
      const Utf8Step step = izh::utf8_step(stream->pending, stream->count);
      if (step.state == Utf8::kIncomplete) break;
      if (step.state == Utf8::kValid) {
        memcpy(out + written, stream->pending, step.length);
        written += step.length;
      } else {
        memcpy(out + written, izh::kReplacement, 3);
        written += 3;
      }
      // After an invalid start the byte that broke it is still to be looked at.
      stream->count = static_cast<uint8_t>(stream->count - step.length);
      memmove(stream->pending, stream->pending + step.length, stream->count);
    }
  }
  return written;
}

size_t izh_utf8_finish(izh_utf8_stream* stream, char* out) {
  if (stream->count == 0) return 0;
  stream->count = 0;
  memcpy(out, izh::kReplacement, 3);
  return 3;
}
