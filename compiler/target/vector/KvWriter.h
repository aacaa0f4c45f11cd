// Writes keys and values into a page of a cache (dialects/pack/KvLayout.h).

#pragma once

#include "compiler/target/KernelBuilder.h"
#include "dialects/pack/KvLayout.h"

namespace izhc {

class KvWriter {
public:
  // `lanes` of a vector; takes stack memory of the function at hand.
  KvWriter(KernelBuilder &k, pack::KvType type, int64_t lanes);

  // The floats at `values` (which a turned cache spoils) become the key or the
  // value of `head` in `slot` of the pool at `cache`. Touches no byte of
  // another token.
  void storeKey(mlir::Value cache, mlir::Value slot, mlir::Value head, mlir::Value values);
  void storeValue(mlir::Value cache, mlir::Value slot, mlir::Value head, mlir::Value values);

private:
  using Value = mlir::Value;

  void place(Value cache, Value slot);
  void keyPairs(Value panel, Value values);
  void valueColumns(Value head, Value values);
  Value encodeBlock(Value values);
  void storeKeyBlock(Value block, Value scale);
  void storeValueBlock(Value block, Value scale);

  KernelBuilder &k;
  pack::KvType type;
  pack::KvLayout layout;
  int64_t lanes;
  Value page, token; // of the slot at hand
  Value codes;       // stack: bytes of a block
};

} // namespace izhc
