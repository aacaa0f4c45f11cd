// Single keys and values of a cache's page, as dialects/pack/KvLayout.h says.

#pragma once

#include "compiler/target/KernelBuilder.h"
#include "dialects/pack/KvLayout.h"

namespace izhc::reference {

// Multiplies each run of n floats with the Hadamard matrix, n the largest power of
// two that divides `count`.
void multiplyHadamard(KernelBuilder &k, mlir::Value values, int64_t count);

struct KvCells {
  using Value = mlir::Value;

  KernelBuilder &k;
  pack::KvType type;
  pack::KvLayout layout;

  KvCells(KernelBuilder &k, pack::KvType type) : k(k), type(type), layout(type) {}

  // Value `i` of a head's key or value; `page` is the page's address.
  Value key(Value page, Value head, Value token, Value i) {
    return read(keyCell(page, head, token, i));
  }
  Value value(Value page, Value head, Value token, Value i) {
    return read(valueCell(page, head, token, i));
  }
  // All floats at `values` (spoilt by a turned cache).
  void storeKey(Value page, Value head, Value token, Value values);
  void storeValue(Value page, Value head, Value token, Value values);
  // multiplyHadamard, if the cache is turned.
  void turn(Value values, int64_t count) {
    if (type.isTurned())
      multiplyHadamard(k, values, count);
  }

private:
  // Where a value lies: its float16, or its block's scale and its byte. `high`:
  // it is in the upper half of the byte.
  struct Cell {
    Value half, scale, code, high;
  };
  Cell keyCell(Value page, Value head, Value token, Value i);
  Cell valueCell(Value page, Value head, Value token, Value i);
  Value read(const Cell &cell);
  void store(Value values, int64_t count, llvm::function_ref<Cell(Value i)> cellOf);
  void storeBlock(Value values, Value first, llvm::function_ref<Cell(Value i)> cellOf);
};

} // namespace izhc::reference
