// Error messages: formatted into the fixed buffer of izh_error.

#include "runtime/base/status.h"

#include <cstdio>

namespace izh {

void set_error_v(izh_error* error, const char* format, va_list arguments) {
  if (!error) return;
  if (vsnprintf(error->message, sizeof(error->message), format, arguments) < 0) {
    error->message[0] = 0;
  }
  for (char* c = error->message; *c; ++c) {
    const unsigned char byte = static_cast<unsigned char>(*c);
    if (byte < 0x20 || byte == 0x7f) *c = '?';
  }
}

void set_error(izh_error* error, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  set_error_v(error, format, arguments);
  va_end(arguments);
}

izh_status fail(izh_error* error, izh_status status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  set_error_v(error, format, arguments);
  va_end(arguments);
  return status;
}

}  // namespace izh
