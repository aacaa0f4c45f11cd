// Keys and values of a cache's page (dialects/pack/KvLayout.h), read one by one
// and written by a warp that has a whole head in shared memory.

#pragma once

#include "dialects/pack/KvLayout.h"
#include "targets/cuda/codegen/Block.h"
#include <utility>

namespace izhc::cuda {

// Element i of each run of n floats times the Hadamard matrix, n the largest power
// of two that divides `count`.
mlir::Value hadamardOf(KernelBuilder &k, mlir::Value values, int64_t count, mlir::Value i);

class Cache {
public:
  using Value = mlir::Value;

  Cache(Block &block, pack::KvType type) : type(type), layout(type), block(block), k(block.k) {}

  pack::KvType type;
  pack::KvLayout layout;

  // Where page `number` of the pool at `base` begins.
  Value page(Value base, Value number) { return k.at(base, k.mul(number, layout.pageBytes)); }

  // Value `i` of a head's key or value; token: its place in the page.
  Value key(Value page, Value head, Value token, Value i) {
    return read(keyCell(page, head, token, i));
  }
  Value value(Value page, Value head, Value token, Value i) {
    return read(valueCell(page, head, token, i));
  }

  // Where 16 bytes of a cache of 16 bits lie: values i and i + 1 of four keys
  // (i even), values i .. i + 3 of two tokens (token even); of four and of two
  // at multiples of these.
  Value keyWords(Value page, Value head, Value token, Value i) {
    return keyCell(page, head, token, i).half;
  }
  Value valueWords(Value page, Value head, Value token, Value i) {
    return valueCell(page, head, token, i).half;
  }

  // Values i and i + 1 of a key (i even), and values i of tokens `token` and
  // `token` + 1 (token even): where they have 16 bits they share a word.
  std::pair<Value, Value> keyPair(Value page, Value head, Value token, Value i);
  std::pair<Value, Value> valuePair(Value page, Value head, Value token, Value i);

  // Writes the floats at `values` to slot `slot` of the pool at `base`; the
  // lanes of a warp call it together, after they have written `values`.
  void store(bool isKey, Value base, Value head, Value slot, Value values);
  // Element i of `values` (`count` floats) times the cache's Hadamard matrix; of
  // itself where the cache isn't turned.
  Value turned(Value values, int64_t count, Value i);

private:
  // Where a value lies: its float16, or its block's scale and its byte. `high`:
  // it is in the upper half of the byte.
  struct Cell {
    Value half, scale, code, high;
  };
  Cell keyCell(Value page, Value head, Value token, Value i);
  Cell valueCell(Value page, Value head, Value token, Value i);
  Value read(const Cell &cell);
  std::pair<Value, Value> readWord(Value address);
  void storeBlock(Value v, const Cell &cell);

  Block &block;
  KernelBuilder &k;
};

} // namespace izhc::cuda
