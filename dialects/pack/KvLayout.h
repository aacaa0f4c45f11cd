// Byte offsets inside a page of a `!pack.kv` cache.
//
// Keys and values lie in panels of 16 lanes, whose rows are pairs of what
// products sum over: a key panel has 16 tokens in lanes and pairs of a key's
// values in rows, a value panel has 16 columns in lanes and pairs of tokens in
// rows. Element (lane, 2 row + i) of a panel is number 32 row + 2 lane + i.
//
//   keys    [heads][page / 16 panels]
//     16 bits  float16 [rows][16][2]; an odd last value has a zero beside it
//     8, 4     for each block of 32 values: float16 scales[16 tokens],
//              8: int8 [16 rows][16][2]
//              4: bytes [8 rows][16][2]: row r in the low, row r + 8 in the high
//                 bits, value = scale * (code - 8)
//   values  [heads]
//     16 bits  [panels] of float16 [page / 2 rows][16][2]
//     8, 4     for each block of 32 columns: float16 scales[page],
//              8: two panels of int8 [page / 2][16][2]
//              4: bytes [page / 2][16][2]: the first panel in the low bits

#pragma once

#include "dialects/pack/Pack.h"

namespace izhc::pack {

struct KvLayout {
  static constexpr int64_t kLanes = 16;
  static constexpr int64_t kBlock = 32; // values that share a scale
  static constexpr int64_t kSpan = 256; // keys of a softmax of its own

  explicit KvLayout(KvType type);

  int64_t bits, page;
  int64_t keyPairs = 0;      // rows of a key panel
  int64_t keyPanelBytes = 0; // all blocks of it
  int64_t keyHeadBytes = 0;
  int64_t valuePanels = 0;
  int64_t valuePanelBytes = 0; // 16 bits: of a panel; else of a block's two
  int64_t valueHeadBytes = 0;
  int64_t valuesOffset = 0; // of the first head's values in the page
  int64_t pageBytes = 0;

  // Bytes of a block of 32 values of 16 tokens.
  int64_t keyBlockBytes() const { return 2 * kLanes + kLanes * kBlock * bits / 8; }

  // What one head of one row leaves of a span: float maximum, float sum, and
  // from kPartialValues on the weighted values in whole panels.
  static constexpr int64_t kPartialValues = 64;
  int64_t partialBytes() const { return kPartialValues + 4 * kLanes * valuePanels; }
};

} // namespace izhc::pack
