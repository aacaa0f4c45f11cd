// Executes kernels: all threads of a block in one process thread, each until it
// has to wait for others.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "test/ptx/copies.h"
#include "test/ptx/gates.h"
#include "test/ptx/program.h"

namespace izh::ptx {
namespace {

float half_to_float(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16, exponent = (bits >> 10) & 31;
  const uint32_t fraction = bits & 1023;
  if (exponent == 0) {
    const float value = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -value : value;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = (bits >> 16) & 0x8000;
  if (std::isnan(value))
    return static_cast<uint16_t>(sign | 0x7e00);
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f)
    return static_cast<uint16_t>(sign | 0x7c00);
  // Adding a number whose last place is float16's rounds to nearest even.
  int exponent;
  std::frexp(magnitude, &exponent);
  const int last = std::max(exponent - 11, -24);
  const double steps = std::nearbyint(std::ldexp(static_cast<double>(magnitude), -last));
  const double rounded = std::ldexp(steps, last);
  if (rounded < 0x1p-14)
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(rounded * 0x1p24));
  std::frexp(rounded, &exponent);
  const uint32_t fraction = static_cast<uint32_t>(std::ldexp(rounded, 11 - exponent)) & 1023;
  return static_cast<uint16_t>(sign | static_cast<uint32_t>(exponent + 14) << 10 | fraction);
}

uint64_t mask_of(unsigned bytes) {
  return bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * bytes) - 1;
}

int64_t extend(uint64_t value, unsigned bytes) {
  const unsigned unused = 64 - 8 * bytes;
  return static_cast<int64_t>(value << unused) >> unused;
}

bool is_float(Type type) { return type == Type::F32 || type == Type::F64 || type == Type::F16; }

double number_of(uint64_t bits, Type type) {
  switch (type) {
  case Type::F64:
    return std::bit_cast<double>(bits);
  case Type::F32:
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  case Type::F16:
    return half_to_float(static_cast<uint16_t>(bits));
  default:
    break;
  }
  const unsigned bytes = size_of(type);
  return is_signed(type) ? static_cast<double>(extend(bits, bytes))
                         : static_cast<double>(bits & mask_of(bytes));
}

float single(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
uint64_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }
uint64_t bits_of(double value) { return std::bit_cast<uint64_t>(value); }

template <typename Float> bool compare_floats(Test test, Float x, Float y) {
  const bool unordered = std::isnan(x) || std::isnan(y);
  switch (test) {
  case Test::Eq:
    return x == y;
  case Test::Ne:
    return !unordered && x != y;
  case Test::Lt:
    return x < y;
  case Test::Le:
    return x <= y;
  case Test::Gt:
    return x > y;
  case Test::Ge:
    return x >= y;
  case Test::Ltu:
    return unordered || x < y;
  case Test::Leu:
    return unordered || x <= y;
  case Test::Gtu:
    return unordered || x > y;
  case Test::Geu:
    return unordered || x >= y;
  case Test::Equ:
    return unordered || x == y;
  case Test::Neu:
    return unordered || x != y;
  case Test::Num:
    return !unordered;
  case Test::Nan:
    return unordered;
  }
  return false;
}

template <typename Integer> bool compare_integers(Test test, Integer x, Integer y) {
  switch (test) {
  case Test::Eq:
    return x == y;
  case Test::Ne:
    return x != y;
  case Test::Lt:
    return x < y;
  case Test::Le:
    return x <= y;
  case Test::Gt:
    return x > y;
  default:
    return x >= y;
  }
}

uint64_t convert(const Instruction &one, uint64_t bits) {
  if (!is_float(one.from) && !is_float(one.type)) {
    const unsigned from = size_of(one.from);
    const uint64_t wide =
        is_signed(one.from) ? static_cast<uint64_t>(extend(bits, from)) : bits & mask_of(from);
    // Results narrower than a register are extended by their own sign.
    return is_signed(one.type) ? static_cast<uint64_t>(extend(wide, size_of(one.type)))
                               : wide & mask_of(size_of(one.type));
  }
  double value = number_of(bits, one.from);
  switch (one.rounding) {
  case Rounding::NearestInt:
    value = std::nearbyint(value);
    break;
  case Rounding::ZeroInt:
    value = std::trunc(value);
    break;
  case Rounding::MinusInt:
    value = std::floor(value);
    break;
  case Rounding::PlusInt:
    value = std::ceil(value);
    break;
  case Rounding::None:
    break;
  }
  switch (one.type) {
  case Type::F64:
    return bits_of(value);
  case Type::F32:
    // From 64-bit integers directly: twice rounded is not the same.
    if (one.from == Type::S64)
      return bits_of(static_cast<float>(static_cast<int64_t>(bits)));
    if (one.from == Type::U64)
      return bits_of(static_cast<float>(bits));
    return bits_of(static_cast<float>(value));
  case Type::F16:
    return float_to_half(static_cast<float>(value));
  default:
    break;
  }
  // Integers saturate; what is no number gives 0.
  const unsigned width = 8 * size_of(one.type);
  if (std::isnan(value))
    return 0;
  if (is_signed(one.type)) {
    const double limit = std::ldexp(1.0, static_cast<int>(width) - 1);
    if (value >= limit)
      return (uint64_t{1} << (width - 1)) - 1;
    if (value < -limit)
      return uint64_t{1} << (width - 1);
    return static_cast<uint64_t>(static_cast<int64_t>(value)) & mask_of(width / 8);
  }
  if (value <= 0)
    return 0;
  if (value >= std::ldexp(1.0, static_cast<int>(width)))
    return mask_of(width / 8);
  return static_cast<uint64_t>(value);
}

template <typename Float>
uint64_t float_operation(const Instruction &one, Float x, Float y, Float z) {
  switch (one.op) {
  case Op::Add:
    return bits_of(x + y);
  case Op::Sub:
    return bits_of(x - y);
  case Op::Mul:
    return bits_of(x * y);
  case Op::Div:
    return bits_of(x / y);
  case Op::Fma:
    return bits_of(std::fma(x, y, z));
  case Op::Neg:
    return bits_of(-x);
  case Op::Abs:
    return bits_of(std::fabs(x));
  case Op::Min:
    return bits_of(std::fmin(x, y));
  case Op::Max:
    return bits_of(std::fmax(x, y));
  case Op::Sqrt:
    return bits_of(std::sqrt(x));
  case Op::Rcp:
    return bits_of(Float{1} / x);
  case Op::Ex2:
    return bits_of(std::exp2(x));
  default:
    return bits_of(std::copysign(y, x));
  }
}

uint64_t integer_operation(const Instruction &one, uint64_t x, uint64_t y, uint64_t z) {
  const unsigned bytes = size_of(one.type);
  const bool sign = is_signed(one.type);
  const int64_t sx = extend(x, bytes), sy = extend(y, bytes);
  const uint64_t ux = x & mask_of(bytes), uy = y & mask_of(bytes);
  switch (one.op) {
  case Op::Add:
    return x + y;
  case Op::Sub:
    return x - y;
  case Op::Mul:
    return x * y;
  case Op::Mad:
    return x * y + z;
  case Op::Div:
    if (uy == 0)
      return ~uint64_t{0};
    return sign ? static_cast<uint64_t>(sx / sy) : ux / uy;
  case Op::Rem:
    if (uy == 0)
      return ux;
    return sign ? static_cast<uint64_t>(sx % sy) : ux % uy;
  case Op::MulHigh: {
    const __int128 product = sign ? static_cast<__int128>(sx) * sy
                                  : static_cast<__int128>(static_cast<unsigned __int128>(ux) * uy);
    return static_cast<uint64_t>(product >> 8 * bytes);
  }
  case Op::Neg:
    return -x;
  case Op::Abs:
    return static_cast<uint64_t>(sx < 0 ? -sx : sx);
  case Op::Min:
    return sign ? static_cast<uint64_t>(std::min(sx, sy)) : std::min(ux, uy);
  case Op::Max:
    return sign ? static_cast<uint64_t>(std::max(sx, sy)) : std::max(ux, uy);
  case Op::And:
    return x & y;
  case Op::Or:
    return x | y;
  case Op::Xor:
    return x ^ y;
  case Op::Not:
    return one.type == Type::Pred ? !x : ~x;
  case Op::Shl: {
    const uint64_t by = y & 0xffffffff;
    return by >= 8 * bytes ? 0 : ux << by;
  }
  case Op::Shr: {
    const uint64_t by = std::min<uint64_t>(y & 0xffffffff, 8 * bytes);
    if (sign)
      return static_cast<uint64_t>(sx >> std::min<uint64_t>(by, 63));
    return by >= 8 * bytes ? 0 : ux >> by;
  }
  case Op::Popc:
    return static_cast<uint64_t>(std::popcount(ux));
  default:
    return static_cast<uint64_t>(std::countl_zero(ux)) - (64 - 8 * bytes);
  }
}

uint64_t dot4(const Instruction &one, uint64_t x, uint64_t y, uint64_t acc) {
  int64_t sum = static_cast<int32_t>(acc);
  for (int i = 0; i < 4; ++i) {
    const uint64_t a = (x >> 8 * i) & 255, b = (y >> 8 * i) & 255;
    sum += (one.type == Type::S32 ? extend(a, 1) : static_cast<int64_t>(a)) *
           (one.from == Type::S32 ? extend(b, 1) : static_cast<int64_t>(b));
  }
  return static_cast<uint64_t>(sum) & 0xffffffff;
}

uint64_t permute(uint64_t low, uint64_t high, uint64_t selector) {
  const uint64_t bytes = (low & 0xffffffff) | high << 32;
  uint64_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint64_t nibble = (selector >> 4 * i) & 15;
    uint64_t byte = (bytes >> 8 * (nibble & 7)) & 255;
    if (nibble & 8)
      byte = byte & 128 ? 255 : 0;
    result |= byte << 8 * i;
  }
  return result;
}

uint64_t bit_field(const Instruction &one, uint64_t x, uint64_t from, uint64_t count) {
  const unsigned width = 8 * size_of(one.type);
  from &= 255;
  count &= 255;
  if (count == 0)
    return 0;
  const uint64_t moved = from >= width ? 0 : (x & mask_of(width / 8)) >> from;
  const uint64_t kept = count >= 64 ? moved : moved & ((uint64_t{1} << count) - 1);
  const uint64_t top = (x >> std::min<uint64_t>(from + count - 1, width - 1)) & 1;
  if (!is_signed(one.type) || !top || count >= width)
    return kept;
  return kept | ~((uint64_t{1} << count) - 1);
}

uint64_t bit_insert(uint64_t piece, uint64_t into, uint64_t at, uint64_t count) {
  at &= 255;
  count &= 255;
  if (at > 63 || count == 0)
    return into;
  const uint64_t mask = (count > 63 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << at;
  return (into & ~mask) | (piece << at & mask);
}

uint64_t look_up3(uint64_t a, uint64_t b, uint64_t c, uint64_t table) {
  uint64_t result = 0;
  for (int i = 0; i < 32; ++i) {
    const uint64_t index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
    result |= (table >> index & 1) << i;
  }
  return result;
}

bool compare(const Instruction &one, uint64_t x, uint64_t y) {
  const unsigned bytes = size_of(one.type);
  if (one.type == Type::F32)
    return compare_floats(one.test, single(x), single(y));
  if (is_float(one.type))
    return compare_floats(one.test, number_of(x, one.type), number_of(y, one.type));
  if (is_signed(one.type))
    return compare_integers(one.test, extend(x, bytes), extend(y, bytes));
  return compare_integers(one.test, x & mask_of(bytes), y & mask_of(bytes));
}

// Of two numbers, with twice as many bits, plus `more`.
uint64_t multiply_wide(const Instruction &one, uint64_t x, uint64_t y, uint64_t more) {
  const unsigned bytes = size_of(one.type);
  const uint64_t product = is_signed(one.type)
                               ? static_cast<uint64_t>(extend(x, bytes) * extend(y, bytes))
                               : (x & mask_of(bytes)) * (y & mask_of(bytes));
  return (product + more) & mask_of(2 * bytes);
}

class BlockRun {
public:
  BlockRun(const Kernel &kernel, uint32_t threads, const std::vector<uint64_t> &arguments,
           const Memory &memory, uint32_t launch_bytes, std::string *error)
      : kernel_(kernel), arguments_(arguments), memory_(memory), error_(error), threads_(threads),
        shared_(kernel.shared_bytes), launched_(launch_bytes) {}

  bool run(uint32_t block, uint32_t blocks) {
    // What an earlier block left in shared memory must not help.
    std::fill(shared_.begin(), shared_.end(), uint8_t{0xEE});
    std::fill(launched_.begin(), launched_.end(), uint8_t{0xEE});
    for (uint32_t i = 0; i < threads_.size(); ++i) {
      Thread &thread = threads_[i];
      thread.at = 0;
      thread.state = State::Ready;
      thread.awaited = !kernel_.overlaps;
      thread.slots = kernel_.slots;
      thread.slots[kTid] = i;
      thread.slots[kCtaid] = block;
      thread.slots[kNtid] = threads_.size();
      thread.slots[kNctaid] = blocks;
      thread.slots[kLaneid] = i % 32;
      thread.local.assign(kernel_.local_bytes, 0xEE);
      thread.copies = {};
    }
    gates_ = {};
    for (;;) {
      bool done = true, moved = false;
      for (size_t i = 0; i < threads_.size(); ++i) {
        Thread &thread = threads_[block % 2 ? threads_.size() - 1 - i : i];
        if (thread.state == State::Ready) {
          if (!advance(thread))
            return false;
          moved = true;
        }
        done &= thread.state == State::Done;
      }
      if (done)
        return true;
      if (meet_warps())
        moved = true;
      if (failed_)
        return false;
      if (meet_block())
        moved = true;
      if (!moved) {
        *error_ = kernel_.name + ": threads wait for each other forever";
        return false;
      }
    }
  }

private:
  enum class State : uint8_t { Ready, InWarp, AtBarrier, Done };
  struct Thread {
    size_t at = 0;
    State state = State::Ready;
    bool awaited = false; // what comes before the kernel has ended
    std::vector<uint64_t> slots;
    std::vector<uint8_t> local;
    Copies copies;
  };

  // Shuffles and warp barriers where all lanes that go on have arrived.
  bool meet_warps() {
    bool moved = false;
    for (size_t first = 0; first < threads_.size(); first += 32) {
      const size_t end = std::min(first + 32, threads_.size());
      size_t at = SIZE_MAX;
      bool all = true;
      for (size_t i = first; i < end; ++i) {
        const Thread &thread = threads_[i];
        if (thread.state == State::Done)
          continue;
        all &= thread.state == State::InWarp && (at == SIZE_MAX || at == thread.at);
        at = thread.at;
      }
      if (!all || at == SIZE_MAX)
        continue;
      if (!exchange(first, end, kernel_.code[at])) {
        failed_ = true;
        return false;
      }
      moved = true;
    }
    return moved;
  }

  // What the lanes do together; they go on then.
  bool exchange(size_t first, size_t end, const Instruction &one) {
    const bool matrices = one.op == Op::LoadMatrices || one.op == Op::MultiplyMatrices;
    if (matrices && end - first < 32)
      return fail(one, "lanes that are missing");
    uint64_t values[32] = {};
    if (one.op == Op::Shuffle)
      for (size_t i = first; i < end; ++i)
        values[i - first] = threads_[i].slots[one.a[0]];
    if (one.op == Op::LoadMatrices && !load_matrices(&threads_[first], one))
      return false;
    if (one.op == Op::MultiplyMatrices)
      multiply_matrices(&threads_[first], one);
    for (size_t i = first; i < end; ++i) {
      Thread &thread = threads_[i];
      if (thread.state == State::Done) {
        if (matrices)
          return fail(one, "lanes that have ended");
        continue;
      }
      if (one.op == Op::Shuffle)
        thread.slots[one.to[0]] = values[((i - first) ^ thread.slots[one.a[1]]) & 31];
      thread.state = State::Ready;
      ++thread.at;
    }
    return true;
  }

  // Matrix m has its rows at the addresses of lanes 8m and following; lane l
  // gets word l % 4 of row l / 4.
  bool load_matrices(Thread *lanes, const Instruction &one) {
    for (unsigned matrix = 0; matrix < 4; ++matrix) {
      for (unsigned row = 0; row < 8; ++row) {
        Thread &giver = lanes[8 * matrix + row];
        const uint64_t address = giver.slots[one.a[0]] + static_cast<uint64_t>(one.offset);
        const uint8_t *memory = place(giver, address, 16);
        if (!memory || address % 16 != 0 || address < kSharedBase || address >= kLocalBase)
          return fail(one, "an address that isn't the block's, or isn't aligned");
        for (unsigned word = 0; word < 4; ++word) {
          uint32_t value;
          memcpy(&value, memory + 4 * word, 4);
          lanes[4 * row + word].slots[one.to[matrix]] = value;
        }
      }
    }
    return true;
  }

  // Words of the left matrix: rows 0..7, then 8..15, of columns 0..15, then the
  // same of 16..31; of the right one columns 0..7 of rows 0..15, then of 16..31.
  void multiply_matrices(Thread *lanes, const Instruction &one) {
    auto byte = [](uint64_t word, unsigned i) { return extend(word >> 8 * i & 255, 1); };
    int32_t results[16][8];
    for (unsigned row = 0; row < 16; ++row) {
      for (unsigned column = 0; column < 8; ++column) {
        const Thread &owner = lanes[4 * (row % 8) + column / 2];
        const uint64_t start = owner.slots[one.added[2 * (row / 8) + column % 2]];
        int64_t sum = static_cast<int32_t>(start);
        for (unsigned k = 0; k < one.depth; ++k) {
          const unsigned lane = k % 16 / 4, half = k / 16;
          const uint64_t a = lanes[4 * (row % 8) + lane].slots[one.left[2 * half + row / 8]];
          const uint64_t b = lanes[4 * column + lane].slots[one.right[half]];
          sum += byte(a, k % 4) * byte(b, k % 4);
        }
        results[row][column] = static_cast<int32_t>(sum);
      }
    }
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned i = 0; i < 4; ++i)
        lanes[lane].slots[one.to[i]] =
            static_cast<uint32_t>(results[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2]);
  }

  bool meet_block() {
    bool any = false;
    for (const Thread &thread : threads_) {
      if (thread.state == State::Done)
        continue;
      if (thread.state != State::AtBarrier)
        return false;
      any = true;
    }
    for (Thread &thread : threads_) {
      if (thread.state != State::AtBarrier)
        continue;
      thread.state = State::Ready;
      ++thread.at;
    }
    return any;
  }

  bool fail(const Instruction &one, const std::string &what) {
    *error_ = kernel_.name + ": " + what + " in '" + one.text + "'";
    return false;
  }

  uint8_t *place(Thread &thread, uint64_t address, uint64_t size) {
    if (address >= kLocalBase) {
      const uint64_t at = address - kLocalBase;
      return at + size <= thread.local.size() ? thread.local.data() + at : nullptr;
    }
    if (address >= kSharedBase + kLaunchOffset) {
      const uint64_t at = address - kSharedBase - kLaunchOffset;
      return at + size <= launched_.size() ? launched_.data() + at : nullptr;
    }
    if (address >= kSharedBase) {
      const uint64_t at = address - kSharedBase;
      return at + size <= shared_.size() ? shared_.data() + at : nullptr;
    }
    if (address % size != 0)
      return nullptr;
    return memory_.contains(address, size) ? reinterpret_cast<uint8_t *>(address) : nullptr;
  }

  bool access(Thread &thread, const Instruction &one) {
    const unsigned bytes = size_of(one.type);
    const uint64_t address = thread.slots[one.a[0]] + static_cast<uint64_t>(one.offset);
    if (address < kSharedBase && !thread.awaited && !one.constant)
      return fail(one, "memory touched before griddepcontrol.wait");
    uint8_t *memory = place(thread, address, uint64_t{bytes} * one.count);
    if (!memory || address % (uint64_t{bytes} * one.count) != 0)
      return fail(one, "an address that isn't the kernel's, or isn't aligned");
    for (unsigned i = 0; i < one.count; ++i) {
      uint64_t value = 0;
      if (one.op == Op::Store) {
        memcpy(memory + i * bytes, &thread.slots[one.to[i]], bytes);
        continue;
      }
      memcpy(&value, memory + i * bytes, bytes);
      if (one.op == Op::AtomicAdd) {
        const uint64_t sum = value + thread.slots[one.a[1]];
        memcpy(memory, &sum, bytes);
      }
      thread.slots[one.to[i]] =
          is_signed(one.type) ? static_cast<uint64_t>(extend(value, bytes)) : value;
    }
    return true;
  }

  bool copy(Thread &thread, const Instruction &one) {
    const uint64_t to = thread.slots[one.a[0]] + static_cast<uint64_t>(one.offset);
    const uint64_t from = thread.slots[one.a[1]] + static_cast<uint64_t>(one.second);
    if (!thread.awaited)
      return fail(one, "a copy of what kernels before this one may still write");
    uint8_t *target = to >= kSharedBase ? place(thread, to, one.depth) : nullptr;
    const uint8_t *source = from < kSharedBase ? place(thread, from, one.depth) : nullptr;
    if (!target || !source || to % one.depth != 0 || from % one.depth != 0)
      return fail(one, "an address that isn't the kernel's, or isn't aligned");
    thread.copies.begin(target, source, one.depth);
    return true;
  }

  // Bulk copies and the gates that they meet at.
  bool at_gate(Thread &thread, const Instruction &one) {
    auto in = [&](int i) { return thread.slots[one.a[i]]; };
    const bool copies = one.op == Op::CopyBulk;
    uint8_t *to = in(0) >= kSharedBase ? place(thread, in(0), copies ? in(2) : 8) : nullptr;
    // What is copied is what no kernel writes: it may be read before others end.
    if (!to || (copies && (in(1) >= kSharedBase || !memory_.contains(in(1), in(2)))))
      return fail(one, "an address that isn't the kernel's");
    bool passed = true;
    const char *wrong = copies                      ? gates_.copy(in(3), to, in(0), in(1), in(2))
                        : one.op == Op::MakeGate    ? gates_.make(in(0), in(1))
                        : one.op == Op::ExpectBytes ? gates_.expect(in(0), in(1))
                                                    : gates_.await(in(0), in(1) & 1, &passed);
    if (one.op == Op::AwaitGate)
      thread.slots[one.to[0]] = passed;
    idle_ = passed ? 0 : idle_ + 1;
    if (idle_ == kMostIdle)
      wrong = "a gate that is never passed";
    return !wrong || fail(one, wrong);
  }

  // Runs one thread until it waits or ends.
  bool advance(Thread &thread) {
    for (uint64_t steps = 0;; ++steps) {
      const Instruction &one = kernel_.code[thread.at];
      if (one.predicate >= 0 && bool(thread.slots[one.predicate] & 1) == one.negate) {
        ++thread.at;
        continue;
      }
      if (steps > (uint64_t{1} << 34))
        return fail(one, "a thread that doesn't end");
      switch (one.op) {
      case Op::Branch:
        thread.at = static_cast<size_t>(one.offset);
        continue;
      case Op::AwaitGrid:
        thread.awaited = true;
        break;
      case Op::Return:
        // Or the kernel could end before those that the next one builds on.
        if (!thread.awaited)
          return fail(one, "a thread that ends without griddepcontrol.wait");
        thread.state = State::Done;
        return true;
      case Op::Shuffle:
      case Op::LoadMatrices:
      case Op::MultiplyMatrices:
      case Op::WarpBarrier:
        thread.state = State::InWarp;
        return true;
      case Op::Barrier:
        thread.state = State::AtBarrier;
        return true;
      case Op::Load:
      case Op::Store:
      case Op::AtomicAdd:
        if (!access(thread, one))
          return false;
        break;
      case Op::CopyAsync:
        if (!copy(thread, one))
          return false;
        break;
      case Op::CommitCopies:
        thread.copies.commit();
        break;
      case Op::AwaitCopies:
        thread.copies.await(static_cast<uint64_t>(one.offset));
        break;
      case Op::MakeGate:
      case Op::ExpectBytes:
      case Op::CopyBulk:
      case Op::AwaitGate:
        if (!at_gate(thread, one))
          return false;
        // Others go on, and it looks again.
        if (idle_ != 0 && one.op == Op::AwaitGate) {
          ++thread.at;
          return true;
        }
        break;
      case Op::LoadParam:
        if (!parameter(thread, one))
          return false;
        break;
      default:
        compute(thread.slots.data(), one);
      }
      ++thread.at;
    }
  }

  bool parameter(Thread &thread, const Instruction &one) {
    const size_t number = static_cast<size_t>(one.offset) / 8;
    if (number >= arguments_.size())
      return fail(one, "a parameter that was not given");
    const uint64_t value = arguments_[number] >> 8 * (one.offset % 8);
    thread.slots[one.to[0]] = value & mask_of(size_of(one.type));
    return true;
  }

  static void compute(uint64_t *slots, const Instruction &one) {
    auto in = [&](int i) { return one.a[i] >= 0 ? slots[one.a[i]] : 0; };
    uint64_t result = 0;
    switch (one.op) {
    case Op::Nop:
      return;
    case Op::Mov:
      result = in(0);
      break;
    case Op::MovPack: {
      const unsigned bytes = size_of(one.type) / one.count;
      for (int i = one.count; i-- > 0;)
        result = result << 8 * bytes | (in(i)&mask_of(bytes));
      break;
    }
    case Op::MovUnpack: {
      const unsigned bytes = size_of(one.type) / one.count;
      const uint64_t all = in(0);
      for (int i = 0; i < one.count; ++i)
        slots[one.to[i]] = all >> 8 * bytes * static_cast<unsigned>(i) & mask_of(bytes);
      return;
    }
    case Op::Convert:
      result = convert(one, in(0));
      break;
    case Op::Compare:
      slots[one.to[0]] = compare(one, in(0), in(1));
      return;
    case Op::Select:
      result = in(2) & 1 ? in(0) : in(1);
      break;
    case Op::Dot4:
      result = dot4(one, in(0), in(1), in(2));
      break;
    case Op::Permute:
      result = permute(in(0), in(1), in(2));
      break;
    case Op::BitField:
      result = bit_field(one, in(0), in(1), in(2));
      break;
    case Op::BitInsert:
      result = bit_insert(in(0), in(1), in(2), in(3));
      break;
    case Op::Lop3:
      result = look_up3(in(0), in(1), in(2), in(3));
      break;
    case Op::FunnelLeft:
    case Op::FunnelRight: {
      const uint64_t both = (in(0) & 0xffffffff) | in(1) << 32, by = in(2) & 31;
      result = one.op == Op::FunnelLeft ? both << by >> 32 : both >> by;
      result &= 0xffffffff;
      break;
    }
    case Op::MulWide:
    case Op::MadWide:
      slots[one.to[0]] = multiply_wide(one, in(0), in(1), one.op == Op::MadWide ? in(2) : 0);
      return;
    default:
      if (one.type == Type::F32)
        result = float_operation(one, single(in(0)), single(in(1)), single(in(2)));
      else if (one.type == Type::F64)
        result = float_operation(one, number_of(in(0), Type::F64), number_of(in(1), Type::F64),
                                 number_of(in(2), Type::F64));
      else
        result = integer_operation(one, in(0), in(1), in(2));
    }
    // Predicates and conversions to wider registers keep all their bits.
    if (one.op != Op::Convert && one.type != Type::Pred) {
      const unsigned bytes = one.op == Op::Popc || one.op == Op::Clz ? 4 : size_of(one.type);
      result &= mask_of(bytes);
    }
    if (one.type == Type::Pred)
      result &= 1;
    slots[one.to[0]] = result;
  }

  const Kernel &kernel_;
  const std::vector<uint64_t> &arguments_;
  const Memory &memory_;
  std::string *error_;
  std::vector<Thread> threads_;
  std::vector<uint8_t> shared_, launched_;
  Gates gates_;
  // How often in a row threads looked at gates in vain.
  static constexpr uint64_t kMostIdle = 1 << 20;
  uint64_t idle_ = 0;
  bool failed_ = false;
};

// Globals of the module beside the caller's memory.
class WithGlobals : public Memory {
public:
  WithGlobals(const Module::Content &content, const Memory &rest) : rest_(rest) {
    for (const auto &[name, bytes] : content.globals)
      blocks_.push_back({reinterpret_cast<uint64_t>(bytes.data()), bytes.size()});
  }
  bool contains(uint64_t address, uint64_t size) const override {
    for (const auto &[start, bytes] : blocks_)
      if (address >= start && address - start < bytes && size <= bytes - (address - start))
        return true;
    return rest_.contains(address, size);
  }

private:
  const Memory &rest_;
  std::vector<std::pair<uint64_t, uint64_t>> blocks_;
};

} // namespace

size_t argument_count(const Kernel &kernel) { return kernel.param_offsets.size(); }

bool Module::launch(const Kernel &kernel, uint32_t blocks, uint32_t threads,
                    const std::vector<uint64_t> &arguments, const Memory &memory,
                    std::string *error, uint32_t shared_bytes) const {
  if (arguments.size() != kernel.param_offsets.size()) {
    *error = kernel.name + " takes " + std::to_string(kernel.param_offsets.size()) +
             " arguments, not " + std::to_string(arguments.size());
    return false;
  }
  const WithGlobals all(*content_, memory);
  BlockRun run(kernel, threads, arguments, all, shared_bytes, error);
  for (uint32_t block = 0; block < blocks; ++block)
    if (!run.run(block, blocks))
      return false;
  return true;
}

} // namespace izh::ptx
