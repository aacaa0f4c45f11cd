// `quantize`: records of activations, a warp for each block of 32 values or
// group of 256.

#include "dialects/pack/ActLayout.h"
#include "dialects/pack/RoutesLayout.h"
#include "targets/cuda/codegen/Lowering.h"

namespace izhc::cuda {

using namespace mlir;

namespace {

constexpr int64_t kBlock = 32, kBlocks = 8; // values of a block, blocks of a group

struct RecordEmitter {
  Block &block;
  pack::ActType type;
  KernelBuilder &k;
  pack::ActLayout fields;
  Value input, record;
  Value norm, factor; // null without a norm

  RecordEmitter(Block &block, pack::ActType type)
      : block(block), type(type), k(block.k), fields(type) {}

  // Element i of the (normalized) row; zero beyond its width.
  Value value(Value i) {
    bool padded = fields.padded != type.getWidth();
    Value index = padded ? k.min(i, k.constI64(type.getWidth() - 1)) : i;
    Value v = loadFloat(k, input, index);
    if (norm)
      v = k.mul(k.mul(v, factor), loadFloat(k, norm, index));
    return padded ? k.select(k.less(i, k.constI64(type.getWidth())), v, k.zero(k.f32())) : v;
  }

  // The factor of the norm; all threads call it.
  void measure(double eps) {
    int64_t width = type.getWidth();
    Value squares = k.loop(block.thread, k.constI64(width), k.constI64(block.threads),
                           {k.zero(k.f32())}, [&](Value i, ArrayRef<Value> carried) {
                             Value x = loadFloat(k, input, i);
                             return Block::Values{k.mulAdd(x, x, carried[0])};
                           })[0];
    factor = normFactor(k, block.blockSum(squares), width, eps, 1);
  }

  // 2^n of an i32 n, exact.
  Value power(Value n) { return k.bitcast(k.shl(k.add(n, 127), 23), k.f32()); }

  // `value`, or 0 where amax counts as 0.
  Value unlessTiny(Value amax, Value value) {
    return k.select(k.less(amax, k.constFloat(k.f32(), 0x1p-100)), k.zero(k.f32()), value);
  }
  Value stepOf(Value amax) { return unlessTiny(amax, k.div(amax, k.constFloat(k.f32(), 127))); }
  Value perStep(Value amax) { return unlessTiny(amax, k.div(k.constFloat(k.f32(), 127), amax)); }

  void storeWord(Value value, int64_t field, Value i) {
    k.store(value, k.at(k.at(record, field), k.mul(i, 4)), 4);
  }

  // The codes of the warp's block, its lane's value being `v`, and what readers
  // want to know of their sums.
  void emitCodes(Value number, Value v, Value factor, Value sumScale) {
    Value code = block.roundToInt(k.mul(v, factor));
    Value at = k.add(k.mul(number, kBlock), block.lane);
    k.store(k.truncate(code, k.i8()), k.at(k.at(record, fields.codes), at), 1);
    Value half = code;
    for (int64_t mask : {8, 4, 2, 1})
      half = k.add(half, block.exchange(half, mask));
    Value all = k.add(half, block.exchange(half, 16));
    k.ifThen(k.equal(k.rem(block.lane, 16), k.constI64(0)), [&] {
      Value place = k.add(k.mul(number, 2), k.div(block.lane, 16));
      for (auto [z, field] : llvm::zip(type.getCorr16(), fields.corr16))
        storeWord(k.mul(half, -z), field, place);
    });
    forOne([&] {
      if (type.getSums())
        storeWord(k.mul(sumScale, k.intToFloat(all)), fields.sums, number);
      for (auto [z, field] : llvm::zip(type.getCorr32(), fields.corr32))
        storeWord(k.mul(all, -z), field, number);
    });
  }

  void forOne(llvm::function_ref<void()> body) {
    k.ifThen(k.equal(block.lane, k.constI64(0)), body);
  }

  void emitFloats() {
    block.forThreads(fields.padded, [&](Value i) { storeFloat(k, value(i), record, i); });
  }

  void emitBlocks32() {
    k.loop(block.warp, k.constI64(fields.padded / kBlock), block.warps(), [&](Value number) {
      Value v = value(k.add(k.mul(number, kBlock), block.lane));
      Value amax = block.warpMax(k.abs(v)), scale = stepOf(amax);
      forOne([&] { storeWord(scale, fields.scales, number); });
      emitCodes(number, v, perStep(amax), scale);
    });
  }

  // min(15, floor(log2(amax / m))), 15 where m is 0.
  Value shiftOf(Value amax, Value m) {
    Value exponent = k.add(k.shrU(k.bitcast(k.div(amax, m), k.i32()), 23), -127);
    Value most = k.constInt(k.i32(), 15);
    return k.select(k.less(k.zero(k.f32()), m), k.min(exponent, most), most);
  }

  void emitBlocks256() {
    k.loop(block.warp, k.constI64(fields.padded / (kBlock * kBlocks)), block.warps(),
           [&](Value group) { emitGroup(group); });
  }

  void emitGroup(Value group) {
    Value values[kBlocks], maxima[kBlocks], shifts[kBlocks];
    Value amax, most;
    for (int64_t b = 0; b < kBlocks; ++b) {
      Value first = k.add(k.mul(group, kBlock * kBlocks), b * kBlock);
      values[b] = value(k.add(first, block.lane));
      maxima[b] = block.warpMax(k.abs(values[b]));
      amax = amax ? k.max(amax, maxima[b]) : maxima[b];
    }
    for (int64_t b = 0; b < kBlocks; ++b) {
      shifts[b] = shiftOf(amax, maxima[b]);
      most = most ? k.max(most, shifts[b]) : shifts[b];
    }
    Value step = k.mul(stepOf(amax), power(k.sub(k.zero(k.i32()), most)));
    forOne([&] { storeWord(step, fields.scales, group); });
    for (int64_t b = 0; b < kBlocks; ++b) {
      Value number = k.add(k.mul(group, kBlocks), b), exponent = k.sub(most, shifts[b]);
      forOne([&] { storeWord(k.shl(exponent, 23), fields.exponents, number); });
      emitCodes(number, values[b], k.mul(perStep(amax), power(shifts[b])), power(exponent));
    }
  }
};

} // namespace

LogicalResult emitQuantize(Block &block, pack::QuantizeOp op) {
  KernelBuilder &k = block.k;
  auto type = cast<pack::ActType>(op.getInto().getType());
  Value source = block.unit;
  if (Value indices = op.getIndices()) {
    Value table = block.address(indices);
    if (auto routes = dyn_cast<pack::RoutesType>(indices.getType())) {
      pack::RoutesLayout layout(routes);
      Value pair = k.mul(block.unit, layout.kPairBytes);
      source = loadIndex(k, k.at(k.at(table, layout.pairs()), pair), k.constI64(0));
    } else {
      source = loadIndex(k, table, block.unit);
    }
  }
  RecordEmitter emitter(block, type);
  emitter.input = k.at(block.address(op.getInput()), k.mul(source, 4 * type.getWidth()));
  emitter.record = k.at(block.address(op.getInto()), k.mul(block.unit, emitter.fields.stride));
  if (op.getNorm()) {
    emitter.measure(op.getEps().convertToFloat());
    emitter.norm = block.address(op.getNorm());
  }
  if (type.getKind() == pack::ActKind::F32)
    emitter.emitFloats();
  else if (type.getKind() == pack::ActKind::Block32)
    emitter.emitBlocks32();
  else
    emitter.emitBlocks256();
  return success();
}

} // namespace izhc::cuda
