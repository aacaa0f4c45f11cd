// A paged cache as the tests see it: single keys and values, at the places that
// dialects/pack/KvLayout.h tells, worked out here anew.

#pragma once

#include "compiler/formats/Format.h"
#include "test/conformance/harness.h"
#include <cmath>

namespace izhc::conformance {

constexpr int64_t kPage = 64;

struct KvShape {
  int64_t heads, dim, values; // values: of a value head
  int64_t bits = 16;

  std::string type() const {
    return "!pack.kv<" + number(heads) + " x " + number(dim) + ", page 64, values " +
           number(values) + ", bits " + number(bits) + ">";
  }
  // Bytes: of 16 tokens' keys; of a panel of values or a block of two; of all.
  int64_t keyPanel() const { return bits == 16 ? (dim + 1) / 2 * 64 : dim / 32 * (32 + 64 * bits); }
  int64_t valuePanel() const { return bits == 16 ? 2048 : 128 + 256 * bits; }
  int64_t keyHead() const { return 4 * keyPanel(); }
  int64_t valueHead() const {
    return (bits == 16 ? (values + 15) / 16 : values / 32) * valuePanel();
  }
  int64_t pageBytes() const { return heads * (keyHead() + valueHead()); }

  // Byte of a float16.
  int64_t key16(int64_t head, int64_t token, int64_t i) const {
    return head * keyHead() + token / 16 * keyPanel() + 2 * (i / 2 * 32 + token % 16 * 2 + i % 2);
  }
  int64_t value16(int64_t head, int64_t token, int64_t i) const {
    return heads * keyHead() + head * valueHead() + i / 16 * valuePanel() +
           2 * (token / 2 * 32 + i % 16 * 2 + token % 2);
  }

  // Value `i` of a key or value in a page of blocks, as stored: turned.
  double keyCode(const uint8_t *page, int64_t head, int64_t token, int64_t i) const {
    const uint8_t *block =
        page + head * keyHead() + token / 16 * keyPanel() + i / 32 * (32 + 64 * bits);
    int64_t in = bits == 8 ? i % 32 : i % 16;
    return code(block + token % 16 * 2, block[32 + in / 2 * 32 + token % 16 * 2 + i % 2],
                i % 32 >= 16);
  }
  double valueCode(const uint8_t *page, int64_t head, int64_t token, int64_t i) const {
    const uint8_t *block = page + heads * keyHead() + head * valueHead() + i / 32 * valuePanel();
    int64_t panel = bits == 8 && i % 32 >= 16 ? 1024 : 0;
    return code(block + token * 2, block[128 + panel + token / 2 * 32 + i % 16 * 2 + token % 2],
                i % 32 >= 16);
  }

private:
  double code(const uint8_t *scale, uint8_t byte, bool high) const {
    uint16_t half = uint16_t(scale[0] | scale[1] << 8);
    int64_t value = bits == 8 ? int8_t(byte) : (high ? byte >> 4 : byte & 15) - 8;
    return value * double(halfToFloat(half));
  }
};

// v times the Hadamard matrix of the largest power of two that divides its
// size, run by run: entry (i, j) is the parity of i & j.
inline std::vector<double> turned(const std::vector<double> &v) {
  size_t n = v.size() & -v.size();
  std::vector<double> result(v.size());
  for (size_t i = 0; i < v.size(); ++i)
    for (size_t j = 0; j < n; ++j)
      result[i] += (__builtin_popcountll(i % n & j) % 2 ? -1 : 1) * v[i / n * n + j] / std::sqrt(n);
  return result;
}

} // namespace izhc::conformance
