// Ops that work on one row at a time: `embed`, `rope_table` and `quantize`.

#include "targets/reference/codegen/Lowering.h"
#include "targets/reference/codegen/Weights.h"

namespace izhc::reference {

using namespace mlir;

LogicalResult emitEmbed(KernelFrameBase &frame, pack::EmbedOp op) {
  KernelBuilder &k = frame.k;
  auto weights = Weights::of(op, k, op.getWeight().getType());
  if (!weights)
    return failure();
  Value scale = k.constFloat(k.f32(), op.getScale().convertToFloat());
  k.loop(frame.begin, frame.end, 1, [&](Value token) {
    Value id = loadIndex(k, frame.address(op.getIds()), token);
    Value out = k.at(frame.address(op.getInto()), k.mul(token, rowBytes(op.getInto())));
    weights->forEach(weights->row(frame.address(op.getWeight()), id),
                     [&](Value i, Value weight) { storeFloat(k, k.mul(weight, scale), out, i); });
  });
  return success();
}

LogicalResult emitRopeTable(KernelFrameBase &frame, pack::RopeTableOp op) {
  KernelBuilder &k = frame.k;
  int64_t count = cast<MemRefType>(op.getFrequencies().getType()).getDimSize(0);
  k.loop(frame.begin, frame.end, 1, [&](Value token) {
    Value at = k.at(frame.address(op.getPositions()), k.mul(token, 4));
    Value number = k.load(k.i32(), at, 4), position = k.intToFloat(number);
    Value periods = k.intToFloat(k.div(number, int64_t(op.getPeriod())));
    Value growth = k.mul(k.constFloat(k.f32(), op.getGrowth().convertToFloat()),
                         k.log(k.add(periods, k.constFloat(k.f32(), 1.0))));
    Value magnitude = k.mul(k.constFloat(k.f32(), op.getMagnitude().convertToFloat()),
                            k.add(growth, k.constFloat(k.f32(), 1.0)));
    Value out = k.at(frame.address(op.getInto()), k.mul(token, rowBytes(op.getInto())));
    k.loop(k.constI64(0), k.constI64(count), 1, [&](Value i) {
      Value angle = k.mul(position, loadFloat(k, frame.address(op.getFrequencies()), i));
      Value cosine, sine;
      k.cosSin(angle, cosine, sine);
      storeFloat(k, k.mul(magnitude, cosine), out, i);
      storeFloat(k, k.mul(magnitude, sine), out, k.add(i, count));
    });
  });
  return success();
}

namespace {

// Writes the record of one row.
struct RecordEmitter {
  KernelBuilder &k;
  pack::ActType type;
  pack::ActLayout fields;
  Value input, norm, factor; // norm and factor are null without a norm
  Value record;

  // Element i of the (normalized) row; zero beyond its width.
  Value value(Value i) {
    bool padded = fields.padded != type.getWidth();
    Value inside = padded ? k.less(i, k.constI64(type.getWidth())) : Value();
    Value index = padded ? k.min(i, k.constI64(type.getWidth() - 1)) : i;
    Value v = loadFloat(k, input, index);
    if (norm)
      v = k.mul(k.mul(v, factor), loadFloat(k, norm, index));
    return padded ? k.select(inside, v, k.zero(k.f32())) : v;
  }

  Value largest(Value first, int64_t count) {
    return k.loop(k.constI64(0), k.constI64(count), k.constI64(1), {k.zero(k.f32())},
                  [&](Value i, llvm::ArrayRef<Value> carried) {
                    return KernelBuilder::Values{k.max(carried[0], k.abs(value(k.add(first, i))))};
                  })[0];
  }

  // 2^n of an i32 n, exact.
  Value power(Value n) { return k.bitcast(k.shl(k.add(n, 127), 23), k.f32()); }

  // `value`, or 0 where amax counts as 0.
  Value unlessTiny(Value amax, Value value) {
    Value tiny = k.less(amax, k.constFloat(k.f32(), 0x1p-100));
    return k.select(tiny, k.zero(k.f32()), value);
  }
  Value stepOf(Value amax) { return unlessTiny(amax, k.div(amax, k.constFloat(k.f32(), 127))); }
  Value perStep(Value amax) { return unlessTiny(amax, k.div(k.constFloat(k.f32(), 127), amax)); }

  void storeInt(Value value, int64_t field, Value i) {
    k.store(value, k.at(record, k.add(k.mul(i, 4), field)), 4);
  }

  // The codes of a block of 32 and all that readers want to know of their sums.
  void emitCodes(Value block, Value factor, Value sumScale) {
    Value all = sum(k, k.i32(), k.constI64(2), [&](Value half) {
      Value first = k.add(k.mul(block, 32), k.mul(half, 16));
      Value codes = sum(k, k.i32(), k.constI64(16), [&](Value i) {
        Value at = k.add(first, i);
        Value code = k.roundToInt(k.mul(value(at), factor));
        k.store(k.truncate(code, k.i8()), k.at(record, k.add(at, fields.codes)), 1);
        return code;
      });
      for (auto [z, field] : llvm::zip(type.getCorr16(), fields.corr16))
        storeInt(k.mul(codes, -z), field, k.add(k.mul(block, 2), half));
      return codes;
    });
    if (type.getSums())
      storeFloat(k, k.mul(sumScale, k.intToFloat(all)), k.at(record, fields.sums), block);
    for (auto [z, field] : llvm::zip(type.getCorr32(), fields.corr32))
      storeInt(k.mul(all, -z), field, block);
  }

  void emitFloats() {
    k.loop(k.constI64(0), k.constI64(fields.padded), 1,
           [&](Value i) { storeFloat(k, value(i), record, i); });
  }

  void emitBlocks32() {
    k.loop(k.constI64(0), k.constI64(fields.padded / 32), 1, [&](Value block) {
      Value amax = largest(k.mul(block, 32), 32);
      Value scale = stepOf(amax);
      storeFloat(k, scale, k.at(record, fields.scales), block);
      emitCodes(block, perStep(amax), scale);
    });
  }

  // min(15, floor(log2(amax / m))), 15 where m is 0.
  Value shiftOf(Value amax, Value m) {
    Value exponent = k.add(k.shrU(k.bitcast(k.div(amax, m), k.i32()), 23), -127);
    Value most = k.constInt(k.i32(), 15);
    return k.select(k.less(k.zero(k.f32()), m), k.min(exponent, most), most);
  }

  void emitBlocks256() {
    Value zero = k.constI64(0), eight = k.constI64(8);
    k.loop(zero, k.constI64(fields.padded / 256), 1, [&](Value group) {
      Value firstBlock = k.mul(group, 8);
      Value amax = largest(k.mul(group, 256), 256);
      auto shift = [&](Value b) {
        return shiftOf(amax, largest(k.mul(k.add(firstBlock, b), 32), 32));
      };
      Value most = k.loop(zero, eight, k.constI64(1), {k.zero(k.i32())},
                          [&](Value b, llvm::ArrayRef<Value> carried) {
                            return KernelBuilder::Values{k.max(carried[0], shift(b))};
                          })[0];
      Value step = k.mul(stepOf(amax), power(k.sub(k.zero(k.i32()), most)));
      storeFloat(k, step, k.at(record, fields.scales), group);
      k.loop(zero, eight, 1, [&](Value b) {
        Value block = k.add(firstBlock, b);
        Value n = shift(b);
        Value exponent = k.sub(most, n);
        storeInt(k.shl(exponent, 23), fields.exponents, block);
        emitCodes(block, k.mul(perStep(amax), power(n)), power(exponent));
      });
    });
  }
};

} // namespace

LogicalResult emitQuantize(KernelFrameBase &frame, pack::QuantizeOp op) {
  KernelBuilder &k = frame.k;
  auto type = cast<pack::ActType>(op.getInto().getType());
  k.loop(frame.begin, frame.end, 1, [&](Value row) {
    Value source = row;
    if (op.getIndices()) {
      auto routes = dyn_cast<pack::RoutesType>(op.getIndices().getType());
      Value indices = frame.address(op.getIndices());
      source = routes ? pairRow(k, indices, routes, row) : loadIndex(k, indices, row);
    }
    RecordEmitter emitter{k, type, pack::ActLayout(type), {}, {}, {}, {}};
    emitter.input = k.at(frame.address(op.getInput()), k.mul(source, 4 * type.getWidth()));
    emitter.record = k.at(frame.address(op.getInto()), k.mul(row, emitter.fields.stride));
    if (op.getNorm()) {
      Value squares = sum(k, k.f32(), k.constI64(type.getWidth()), [&](Value i) {
        Value x = loadFloat(k, emitter.input, i);
        return k.mul(x, x);
      });
      Value mean = k.div(squares, k.constFloat(k.f32(), double(type.getWidth())));
      Value root = k.sqrt(k.add(mean, k.constFloat(k.f32(), op.getEps().convertToFloat())));
      emitter.norm = frame.address(op.getNorm());
      emitter.factor = k.div(k.constFloat(k.f32(), 1), root);
    }
    if (type.getKind() == pack::ActKind::F32)
      emitter.emitFloats();
    else if (type.getKind() == pack::ActKind::Block32)
      emitter.emitBlocks32();
    else
      emitter.emitBlocks256();
  });
  return success();
}

} // namespace izhc::reference
