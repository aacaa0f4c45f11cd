// `quantize`: a record of activations for each row.

#include "dialects/pack/RoutesLayout.h"
#include "targets/cuda/codegen/Lowering.h"
#include "targets/cuda/codegen/Quantizer.h"

namespace izhc::cuda {

using namespace mlir;

// The row that record `number` is made of.
static Value sourceOf(Block &block, pack::QuantizeOp op, Value number) {
  KernelBuilder &k = block.k;
  Value indices = op.getIndices();
  if (!indices)
    return number;
  Value table = block.address(indices);
  auto routes = dyn_cast<pack::RoutesType>(indices.getType());
  if (!routes)
    return loadIndex(k, table, number);
  pack::RoutesLayout layout(routes);
  Value pair = k.mul(number, layout.kPairBytes);
  return loadIndex(k, k.at(k.at(table, layout.pairs()), pair), k.constI64(0));
}

Quantizer::Quantizer(Block &block, pack::QuantizeOp op, pack::ActType type)
    : block(block), op(op), type(type), writer(block, type) {
  if (op.getNorm())
    writer.setNorm(block.address(op.getNorm()), op.getEps().convertToFloat());
}

void Quantizer::write(Value number, Value record) {
  KernelBuilder &k = block.k;
  Value row = k.mul(sourceOf(block, op, number), 4 * type.getWidth());
  writer.write(k.at(block.address(op.getInput()), row), record);
}

LogicalResult emitQuantize(Block &block, pack::QuantizeOp op) {
  KernelBuilder &k = block.k;
  auto type = cast<pack::ActType>(op.getInto().getType());
  Quantizer quantizer(block, op, type);
  block.awaitInputs();
  Value offset = k.mul(block.unit, pack::ActLayout(type).stride);
  quantizer.write(block.unit, k.at(block.address(op.getInto()), offset));
  return success();
}

} // namespace izhc::cuda
