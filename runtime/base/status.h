// Status helpers: propagating failures and writing the sentence that goes with
// them into the caller's izh_error.

#pragma once

#include <cstdarg>

#include "runtime/include/izh/izh.h"

// Returns from the enclosing function if `expression` is not IZH_OK.
#define IZH_TRY(expression)                              \
  do {                                                   \
    const izh_status izh_try_status = (expression);      \
    if (izh_try_status != IZH_OK) return izh_try_status; \
  } while (0)

namespace izh {

// Writes a printf-style message into `error`, cut to its size; NULL is allowed.
// Bytes below 0x20 become '?': names come from files that nobody vouches for.
void set_error(izh_error* error, const char* format, ...) __attribute__((format(printf, 2, 3)));
void set_error_v(izh_error* error, const char* format, va_list arguments);

// set_error, then returns `status`: `return fail(error, IZH_IO, "...", ...);`
[[nodiscard]] izh_status fail(izh_error* error, izh_status status, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

}  // namespace izh
