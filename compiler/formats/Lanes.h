// Vectors of sixteen lanes, each with a group of weights of its own: no sum
// goes across lanes, so results depend neither on the registers that a machine
// has nor on what the other lanes hold. Only for this folder.

#pragma once

#include <cstdint>

namespace izhc::formats {

constexpr int kLanes = 16;
// The most weights that a group has.
constexpr int kMostGroup = 32;

typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef double Doubles __attribute__((vector_size(8 * kLanes)));
typedef int64_t Longs __attribute__((vector_size(8 * kLanes)));
typedef uint8_t Bytes __attribute__((vector_size(kLanes)));

// How vectors go by value depends on the machine that is compiled for, so only
// functions that are inlined take and return them; others do by reference.
#define IZH_ALWAYS_INLINE __attribute__((always_inline))
#define IZH_INLINE static inline IZH_ALWAYS_INLINE

// Defines void `name` as a call of name##Body, whose callees are all inlined:
// for any machine, and for those with registers of eight and of sixteen lanes,
// if the build knows what they are called.
#ifdef IZH_WIDE_CPU
#define IZH_CLONES(name, parameters, arguments)                                                    \
  __attribute__((target(IZH_WIDEST_CPU))) static void name##Widest parameters {                    \
    name##Body arguments;                                                                          \
  }                                                                                                \
  __attribute__((target(IZH_WIDE_CPU))) static void name##Wide parameters {                        \
    name##Body arguments;                                                                          \
  }                                                                                                \
  static void name##Plain parameters { name##Body arguments; }                                     \
  void formats::name parameters {                                                                  \
    static const auto best = __builtin_cpu_supports(IZH_WIDEST_CPU) ? name##Widest                 \
                             : __builtin_cpu_supports(IZH_WIDE_CPU) ? name##Wide                   \
                                                                    : name##Plain;                 \
    best arguments;                                                                                \
  }
#else
#define IZH_CLONES(name, parameters, arguments)                                                    \
  void formats::name parameters { name##Body arguments; }
#endif

IZH_INLINE Floats splat(float value) { return value - (Floats){}; }

IZH_INLINE Doubles wide(Floats value) { return __builtin_convertvector(value, Doubles); }
IZH_INLINE Floats narrow(Doubles value) { return __builtin_convertvector(value, Floats); }

// `b` where one is no number: one instruction, which the standard's minimum and
// maximum are not.
IZH_INLINE Floats lesser(Floats a, Floats b) { return a < b ? a : b; }
IZH_INLINE Floats greater(Floats a, Floats b) { return a > b ? a : b; }

IZH_INLINE Floats clamped(Floats v, float low, float high) {
  return lesser(greater(v, splat(low)), splat(high));
}

// Halves to even; |v| < 2^22.
IZH_INLINE Floats rounded(Floats v) {
  Floats magic = splat(12582912.0f);
  return (v + magic) - magic;
}

// `value` where the mask is set, else 0.
IZH_INLINE Floats where(Ints mask, Floats value) { return (Floats)(mask & (Ints)value); }

IZH_INLINE bool any(Ints mask) { return __builtin_reduce_or(mask) != 0; }

} // namespace izhc::formats
