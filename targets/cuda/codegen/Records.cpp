// What sums depend on is the row's width alone, not the number of threads.

#include "targets/cuda/codegen/Records.h"

namespace izhc::cuda {

using namespace mlir;

static constexpr int64_t kBlock = 32, kGroup = 256; // values that share a scale
static constexpr int64_t kFour = 4;
// Sums of squares are made of so many parts, each of the values 4 i .. 4 i + 3
// for every i-th part.
static constexpr int64_t kParts = 512;
// Runs of a warp whose loads are on their way together.
static constexpr int64_t kTogether = 4;

// Whether lanes with runs of `count` values have no others than those of the row.
bool RecordWriter::isWhole(int64_t count) const {
  return fields.padded == type.getWidth() && fields.padded % (block.threads * count) == 0;
}

Value RecordWriter::within(Value i, int64_t count, int64_t size) {
  return isWhole(count) ? i : k.min(i, k.constI64(type.getWidth() - size));
}

RecordWriter::Values RecordWriter::load(Value array, Value i, int64_t count) {
  Values result;
  if (type.getWidth() % kFour == 0) {
    for (int64_t j = 0; j < count; j += kFour) {
      Value there = within(k.add(i, j), count, kFour);
      Value four = k.load(k.vec(kFour, k.f32()), k.at(array, k.mul(there, 4)), 16);
      for (int64_t lane = 0; lane < kFour; ++lane)
        result.push_back(k.extract(four, lane));
    }
  } else {
    for (int64_t j = 0; j < count; ++j)
      result.push_back(loadFloat(k, array, within(k.add(i, j), count, 1)));
  }
  return result;
}

// What no kernel writes can be loaded before the row is there.
void RecordWriter::setNorm(Value norm, double eps) {
  this->norm = norm;
  this->eps = eps;
  int64_t each = type.getKind() == pack::ActKind::Block256 ? kGroup / kWarp : kFour;
  if (!norm || type.getWidth() % kFour != 0 || turns(each) > kTogether)
    return;
  for (int64_t turn = 0; turn < turns(each); ++turn)
    for (int64_t j = 0; j < each; j += kFour) {
      Value i = within(k.add(runOf(k.constI64(turn), each), j), each, kFour);
      for (Value word : block.fetch(k.at(norm, k.mul(i, 4)), kFour))
        normAhead.push_back(k.bitcast(word, k.f32()));
    }
}

RecordWriter::Values RecordWriter::values(Value i, int64_t turn, Values result) {
  int64_t count = result.size();
  if (norm) {
    Values weights;
    if (normAhead.empty())
      weights = load(norm, i, count);
    else
      weights.append(normAhead.begin() + turn * count, normAhead.begin() + (turn + 1) * count);
    for (auto [value, weight] : llvm::zip(result, weights))
      value = k.mul(k.mul(value, factor), weight);
  }
  for (int64_t j = 0; j < count && !isWhole(count); ++j) {
    Value there = k.less(k.add(i, j), k.constI64(type.getWidth()));
    result[j] = k.select(there, result[j], k.zero(k.f32()));
  }
  return result;
}

void RecordWriter::measure() {
  int64_t width = type.getWidth(), fours = llvm::divideCeil(width, kFour);
  int64_t parts = std::min<int64_t>(kParts, llvm::alignTo(fours, kWarp)), groups = parts / kWarp;
  Value sums = block.shared(4 * groups);
  measured.clear();
  bool isKept = parts == block.threads && width % kFour == 0 && turns(kFour) <= kTogether &&
                type.getKind() != pack::ActKind::Block256;
  for (int64_t first = 0; first < parts; first += block.threads) {
    Value part = k.add(block.thread, first), total = k.zero(k.f32());
    for (int64_t begin = 0; begin < fours; begin += kParts) {
      Value number = k.add(part, begin), i = k.mul(number, kFour);
      Values four = load(input, k.min(i, k.constI64(llvm::alignDown(width - 1, kFour))), kFour);
      if (isKept)
        measured.push_back(four);
      for (int64_t j = 0; j < kFour; ++j) {
        Value there = k.less(k.add(i, j), k.constI64(width));
        if (begin + kParts > fours || width % kFour != 0)
          four[j] = k.select(there, four[j], k.zero(k.f32()));
        total = k.mulAdd(four[j], four[j], total);
      }
    }
    total = block.warpSum(total);
    Value leaves = k.equal(block.lane, k.constI64(0));
    if (parts - first < block.threads)
      leaves = k.andBits(leaves, k.less(part, k.constI64(parts)));
    k.ifThen(leaves, [&] { storeFloat(k, total, sums, k.div(part, kWarp)); });
  }
  block.barrier();
  Value total;
  for (int64_t group = 0; group < groups; ++group) {
    Value one = k.load(k.f32(), k.at(sums, 4 * group), 4);
    total = total ? k.add(total, one) : one;
  }
  factor = normFactor(k, total, width, eps, 1);
}

int64_t RecordWriter::turns(int64_t each) const {
  return llvm::divideCeil(llvm::divideCeil(fields.padded, kWarp * each), block.warps());
}

// Where the lane's values begin when its warp takes a run for the turn-th time.
Value RecordWriter::runOf(Value turn, int64_t each) {
  Value run = k.add(k.mul(turn, block.warps()), block.warp);
  return k.add(k.mul(run, kWarp * each), k.mul(block.lane, each));
}

// Loads of some turns come before the first is used.
void RecordWriter::forRuns(int64_t each, llvm::function_ref<void(Value, int64_t, Values)> body) {
  int64_t all = turns(each), looped = all > kTogether ? llvm::alignDown(all, kTogether) : 0;
  auto together = [&](Value first, int64_t begin, int64_t count) {
    SmallVector<Values, kTogether> loaded;
    auto at = [&](int64_t i) { return runOf(k.add(first, i), each); };
    for (int64_t i = 0; i < count; ++i)
      loaded.push_back(measured.empty() ? load(input, at(i), each) : measured[begin + i]);
    for (int64_t i = 0; i < count; ++i)
      body(at(i), begin + i, loaded[i]);
  };
  if (looped)
    k.loop(k.constI64(0), k.constI64(looped), kTogether,
           [&](Value turn) { together(turn, 0, kTogether); });
  if (looped < all)
    together(k.constI64(looped), looped, all - looped);
}

void RecordWriter::inside(Value i, llvm::function_ref<void()> body) {
  k.ifThen(k.less(i, k.constI64(fields.padded)), body);
}

Value RecordWriter::magnitude(ArrayRef<Value> values) {
  Value most;
  for (Value value : values)
    most = most ? k.max(most, k.abs(value)) : k.abs(value);
  return most;
}

// The sum or maximum over `lanes` neighbouring lanes, in all of them.
Value RecordWriter::over(Value value, int64_t lanes, bool isMax) {
  for (int64_t mask = 1; mask < lanes; mask *= 2) {
    Value other = block.exchange(value, mask);
    value = isMax ? k.max(value, other) : k.add(value, other);
  }
  return value;
}

// 2^n of an i32 n, exact.
Value RecordWriter::power(Value n) { return k.bitcast(k.shl(k.add(n, 127), 23), k.f32()); }

// `value`, or 0 where amax counts as 0.
Value RecordWriter::unlessTiny(Value amax, Value value) {
  return k.select(k.less(amax, k.constFloat(k.f32(), 0x1p-100)), k.zero(k.f32()), value);
}
Value RecordWriter::stepOf(Value amax) {
  return unlessTiny(amax, k.div(amax, k.constFloat(k.f32(), 127)));
}
Value RecordWriter::perStep(Value amax) {
  return unlessTiny(amax, k.div(k.constFloat(k.f32(), 127), amax));
}

// min(15, floor(log2(amax / most))), 15 where most is 0.
Value RecordWriter::shiftOf(Value amax, Value most) {
  Value exponent = k.add(k.shrU(k.bitcast(k.div(amax, most), k.i32()), 23), -127);
  Value limit = k.constInt(k.i32(), 15);
  return k.select(k.less(k.zero(k.f32()), most), k.min(exponent, limit), limit);
}

void RecordWriter::storeWord(Value value, int64_t field, Value i) {
  k.store(value, k.at(k.at(record, field), k.mul(i, 4)), 4);
}

// The codes of the lane's values from `i` on, and what readers want to know of
// their sums.
void RecordWriter::writeCodes(Value i, ArrayRef<Value> values, Value factor, Value sumScale) {
  Value total;
  for (size_t j = 0; j < values.size(); j += kFour) {
    Value word;
    for (int64_t byte = 0; byte < kFour; ++byte) {
      Value code = block.roundToInt(k.mul(values[j + byte], factor));
      total = total ? k.add(total, code) : code;
      Value shifted = k.shl(k.andBits(code, 255), 8 * byte);
      word = word ? k.orBits(word, shifted) : shifted;
    }
    inside(i, [&] { k.store(word, k.at(k.at(record, fields.codes), k.add(i, int64_t(j))), 4); });
  }
  int64_t lanes16 = 16 / values.size();
  if (!type.getSums() && type.getCorr16().empty() && type.getCorr32().empty())
    return;
  Value half = over(total, lanes16, /*isMax=*/false);
  Value all = k.add(half, block.exchange(half, lanes16));
  auto first = [&](int64_t weights) {
    return k.andBits(k.equal(k.rem(i, weights), k.constI64(0)),
                     k.less(i, k.constI64(fields.padded)));
  };
  if (!type.getCorr16().empty())
    k.ifThen(first(16), [&] {
      for (auto [z, field] : llvm::zip(type.getCorr16(), fields.corr16))
        storeWord(k.mul(half, -z), field, k.div(i, 16));
    });
  k.ifThen(first(kBlock), [&] {
    if (type.getSums())
      storeWord(k.mul(sumScale, k.intToFloat(all)), fields.sums, k.div(i, kBlock));
    for (auto [z, field] : llvm::zip(type.getCorr32(), fields.corr32))
      storeWord(k.mul(all, -z), field, k.div(i, kBlock));
  });
}

void RecordWriter::writeBlocks32(Value i, int64_t turn, Values four) {
  four = values(i, turn, four);
  Value amax = over(magnitude(four), kBlock / kFour, /*isMax=*/true), scale = stepOf(amax);
  k.ifThen(k.equal(k.rem(block.lane, kBlock / kFour), k.constI64(0)),
           [&] { inside(i, [&] { storeWord(scale, fields.scales, k.div(i, kBlock)); }); });
  writeCodes(i, four, perStep(amax), scale);
}

// A warp has a whole group, four lanes each of its blocks.
void RecordWriter::writeBlocks256(Value i, int64_t turn, Values eight) {
  constexpr int64_t kLanes = 4;
  eight = values(i, turn, eight);
  Value most = over(magnitude(eight), kLanes, /*isMax=*/true);
  Value amax = block.warpMax(most), shift = shiftOf(amax, most), greatest = block.warpMax(shift);
  Value exponent = k.sub(greatest, shift);
  Value step = k.mul(stepOf(amax), power(k.sub(k.zero(k.i32()), greatest)));
  k.ifThen(k.equal(block.lane, k.constI64(0)),
           [&] { inside(i, [&] { storeWord(step, fields.scales, k.div(i, kGroup)); }); });
  k.ifThen(k.equal(k.rem(block.lane, kLanes), k.constI64(0)), [&] {
    inside(i, [&] { storeWord(k.shl(exponent, 23), fields.exponents, k.div(i, kBlock)); });
  });
  writeCodes(i, eight, k.mul(perStep(amax), power(shift)), power(exponent));
}

void RecordWriter::writeBlock(Value value, Value number, Value record) {
  this->record = record;
  Value amax = block.warpMax(k.abs(value)), scale = stepOf(amax);
  Value code = block.roundToInt(k.mul(value, perStep(amax)));
  Value at = k.add(k.mul(number, kBlock), block.lane);
  k.store(k.truncate(code, k.i8()), k.at(k.at(record, fields.codes), at), 1);
  Value half = over(code, kBlock / 2, /*isMax=*/false);
  Value all = k.add(half, block.exchange(half, kBlock / 2));
  if (!type.getCorr16().empty())
    k.ifThen(k.equal(k.rem(block.lane, kBlock / 2), k.constI64(0)), [&] {
      for (auto [z, field] : llvm::zip(type.getCorr16(), fields.corr16))
        storeWord(k.mul(half, -z), field, k.div(at, kBlock / 2));
    });
  k.ifThen(k.equal(block.lane, k.constI64(0)), [&] {
    storeWord(scale, fields.scales, number);
    if (type.getSums())
      storeWord(k.mul(scale, k.intToFloat(all)), fields.sums, number);
    for (auto [z, field] : llvm::zip(type.getCorr32(), fields.corr32))
      storeWord(k.mul(all, -z), field, number);
  });
}

void RecordWriter::writeFloats() {
  forRuns(kFour, [&](Value i, int64_t turn, Values four) {
    four = values(i, turn, four);
    inside(i, [&] {
      for (int64_t j = 0; j < kFour; ++j)
        storeFloat(k, four[j], record, k.add(i, j));
    });
  });
}

void RecordWriter::write(Value input, Value record) {
  this->input = input;
  this->record = record;
  if (norm)
    measure();
  if (type.getKind() == pack::ActKind::F32)
    return writeFloats();
  if (type.getKind() == pack::ActKind::Block32)
    return forRuns(kFour,
                   [&](Value i, int64_t turn, Values four) { writeBlocks32(i, turn, four); });
  forRuns(kGroup / kWarp,
          [&](Value i, int64_t turn, Values eight) { writeBlocks256(i, turn, eight); });
}

} // namespace izhc::cuda
