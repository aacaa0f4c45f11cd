// strftime, in English.

#include <cstdio>

#include "runtime/platform/clock.h"
#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/interpreter.h"

namespace izh::jinja {
namespace {

constexpr const char* kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                 "Thursday", "Friday", "Saturday"};
constexpr const char* kMonths[] = {"January",   "February", "March",    "April",
                                   "May",       "June",     "July",     "August",
                                   "September", "October",  "November", "December"};

bool leap(int year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

int days_before(int year, int month) {
  static constexpr int kBefore[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  return kBefore[month - 1] + (month > 2 && leap(year));
}

// Days since a Monday, the first of January of year 1.
int day_number(int year, int month, int day) {
  const int before = year - 1;
  return before * 365 + before / 4 - before / 100 + before / 400 + days_before(year, month) + day -
         1;
}

// "2026-11-30", "2026-11-30T12:00:00" and more behind it.
bool parse(Text text, CalendarTime* out) {
  char copy[20] = {};
  memcpy(copy, text.data, text.size < 19 ? text.size : 19);
  CalendarTime t = {};
  const int count = sscanf(copy, "%4d-%2d-%2d%*1[T ]%2d:%2d:%2d", &t.year, &t.month, &t.day,
                           &t.hour, &t.minute, &t.second);
  const bool good = count >= 3 && t.year >= 1 && t.month >= 1 && t.month <= 12 && t.day >= 1 &&
                    t.day <= 31 && t.hour >= 0 && t.hour < 24 && t.minute >= 0 && t.minute < 60 &&
                    t.second >= 0 && t.second < 61;
  if (good) *out = t;
  return good;
}

void write_field(const CalendarTime& t, char field, bool padded, Builder* out) {
  const int weekday = (day_number(t.year, t.month, t.day) + 1) % 7;
  const int hour12 = t.hour % 12 == 0 ? 12 : t.hour % 12;
  const auto number = [&](int value, int width) {
    out->format(padded ? "%0*d" : "%*d", padded ? width : 0, value);
  };
  switch (field) {
    case 'Y':
      return number(t.year, 4);
    case 'y':
      return number(t.year % 100, 2);
    case 'm':
      return number(t.month, 2);
    case 'd':
      return number(t.day, 2);
    case 'e':
      return out->format("%2d", t.day);
    case 'H':
      return number(t.hour, 2);
    case 'I':
      return number(hour12, 2);
    case 'M':
      return number(t.minute, 2);
    case 'S':
      return number(t.second, 2);
    case 'j':
      return number(days_before(t.year, t.month) + t.day, 3);
    case 'p':
      return out->add(t.hour < 12 ? Text("AM") : Text("PM"));
    case 'A':
      return out->format("%s", kDays[weekday]);
    case 'a':
      return out->format("%.3s", kDays[weekday]);
    case 'B':
      return out->format("%s", kMonths[t.month - 1]);
    case 'b':
    case 'h':
      return out->format("%.3s", kMonths[t.month - 1]);
    case 'w':
      return number(weekday, 1);
    case 'u':
      return number(weekday == 0 ? 7 : weekday, 1);
    case 'F':
      return out->format("%04d-%02d-%02d", t.year, t.month, t.day);
    case 'T':
      return out->format("%02d:%02d:%02d", t.hour, t.minute, t.second);
    case 'R':
      return out->format("%02d:%02d", t.hour, t.minute);
    case 'D':
      return out->format("%02d/%02d/%02d", t.month, t.day, t.year % 100);
    case 'n':
      return out->add('\n');
    case '%':
      return out->add('%');
    case 'Z':
    case 'z':
      // Times without a zone have none.
      return;
    default:
      out->add('%');
      out->add(field);
  }
}

}  // namespace

Value format_time(Interpreter& interpreter, Text format) {
  Machine& machine = interpreter.machine;
  CalendarTime time = {};
  if (interpreter.now.size == 0) {
    clock_calendar(&time);
  } else if (!parse(interpreter.now, &time)) {
    return machine.fail("'now' is no time like 2026-01-31T12:00:00");
  }
  Builder out(machine);
  for (uint32_t i = 0; i < format.size && machine.charge(1); ++i) {
    if (format.data[i] != '%' || i + 1 == format.size) {
      out.add(format.data[i]);
      continue;
    }
    const bool plain = format.data[i + 1] == '-' && i + 2 < format.size;
    i += plain ? 2 : 1;
    write_field(time, format.data[i], !plain, &out);
  }
  return machine.failed() ? Value() : out.value();
}

}  // namespace izh::jinja
