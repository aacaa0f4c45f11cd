// Lookups without a shuffle of bytes: bit b of the index chooses between
// neighbours, so that 16 constants become 8 vectors, then 4, 2 and 1.

#include "compiler/target/vector/Lookups.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace izhc {

using namespace mlir;

static Value tableVector(KernelBuilder &k, VectorType type, llvm::ArrayRef<int8_t> table) {
  llvm::SmallVector<int8_t, 64> bytes;
  for (int64_t i = 0; i < type.getDimSize(0); ++i)
    bytes.push_back(table[i % 16]);
  return arith::ConstantOp::create(k.builder, k.loc, DenseElementsAttr::get(type, ArrayRef(bytes)));
}

// All bits of a byte set where bit `bit` of it is set.
static Value maskOf(KernelBuilder &k, Value indices, int64_t bit) {
  Type type = indices.getType();
  // Shifts of 16-bit lanes: what comes from the neighbour is masked off.
  Type words = k.vec(cast<VectorType>(type).getDimSize(0) / 2, k.i16());
  Value low = k.andBits(k.bitcast(k.shrU(k.bitcast(indices, words), bit), type), 1);
  return k.sub(k.zero(type), low);
}

static Value select(KernelBuilder &k, Value indices, llvm::ArrayRef<int8_t> table) {
  Type type = indices.getType();
  auto xored = [&](Value a, Value b) -> Value {
    return arith::XOrIOp::create(k.builder, k.loc, a, b);
  };
  llvm::SmallVector<Value> values;
  Value mask = maskOf(k, indices, 0);
  for (size_t i = 0; i < 16; i += 2) {
    Value differ = k.constInt(type, int8_t(table[i] ^ table[i + 1]));
    values.push_back(xored(k.andBits(mask, differ), k.constInt(type, table[i])));
  }
  for (int64_t bit = 1; bit < 4; ++bit) {
    mask = maskOf(k, indices, bit);
    for (size_t i = 0; i < values.size() / 2; ++i) {
      Value even = values[2 * i], odd = values[2 * i + 1];
      values[i] = xored(k.andBits(mask, xored(even, odd)), even);
    }
    values.resize(values.size() / 2);
  }
  return values[0];
}

void replaceLookups(ModuleOp module,
                    llvm::function_ref<Value(KernelBuilder &, Value, Value)> shuffle) {
  llvm::SmallVector<pack::LookupOp> lookups;
  module.walk([&](pack::LookupOp op) { lookups.push_back(op); });
  for (pack::LookupOp op : lookups) {
    OpBuilder builder(op);
    KernelBuilder k(builder, op.getLoc(), {});
    Value result;
    if (shuffle)
      result = shuffle(k, tableVector(k, cast<VectorType>(op.getType()), op.getTable()),
                       op.getIndices());
    else
      result = select(k, op.getIndices(), op.getTable());
    op.getResult().replaceAllUsesWith(result);
    op->erase();
  }
}

} // namespace izhc
