// Byte offsets in the table of a `!pack.routes`.
//
//   int32 active              how many experts have pairs
//   from kExperts on, for each of these, in ascending order, kExpertBytes:
//     int32 expert | int32 first pair | int32 pairs | unused
//   from pairs() on, kPairBytes each, as many as rows of the step times the
//   experts chosen:
//     int32 row and float weight of the pair | int32 expert and float weight
//     of choice number i, where row t's choices are t * chosen and following
//
// Pairs are grouped by expert; choices are in the order in which they were made.

#pragma once

#include "dialects/pack/Pack.h"

namespace izhc::pack {

struct RoutesLayout {
  static constexpr int64_t kExperts = 64;
  static constexpr int64_t kExpertBytes = 16;
  static constexpr int64_t kFirst = 4, kCount = 8;
  static constexpr int64_t kPairBytes = 16;
  static constexpr int64_t kWeight = 4, kChoice = 8, kChoiceWeight = 12;

  explicit RoutesLayout(RoutesType type) : type(type) {}

  int64_t pairs() const { return kExperts + kExpertBytes * type.getExperts(); }
  // Of the whole table for a step of `rows` rows.
  int64_t bytes(int64_t rows) const { return pairs() + kPairBytes * rows * type.getChosen(); }

  RoutesType type;
};

} // namespace izhc::pack
