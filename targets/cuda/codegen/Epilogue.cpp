#include "targets/cuda/codegen/Epilogue.h"
#include "dialects/pack/ActLayout.h"

namespace izhc::cuda {

using namespace mlir;

Value actRecord(Block &block, Value act, Value row, Value rows) {
  KernelBuilder &k = block.k;
  auto type = cast<pack::ActType>(act.getType());
  Value there = k.min(row, k.add(rows, -1));
  return k.at(block.address(act), k.mul(there, pack::ActLayout(type).stride));
}

Value matmulResult(KernelBuilder &k, pack::MatmulOp op, Value y, Value up, Value place,
                   Value before) {
  Value scale = k.constFloat(k.f32(), op.getScale().convertToFloat());
  switch (op.getEpilogue()) {
  case pack::Epilogue::Store:
    return k.mul(y, scale);
  case pack::Epilogue::Add:
    return k.add(before ? before : k.load(k.f32(), place, 4), k.mul(y, scale));
  case pack::Epilogue::SiluGate:
    return k.mul(k.silu(y), up);
  case pack::Epilogue::GeluGate:
    return k.mul(k.gelu(y), up);
  case pack::Epilogue::SoftCap:
    return k.mul(scale, k.tanh(k.div(y, scale)));
  }
  return y;
}

} // namespace izhc::cuda
