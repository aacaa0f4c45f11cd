// Executes kernels: all threads of a block in one process thread, each until it
// has to wait for others.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "test/ptx/copies.h"
#include "test/ptx/gates.h"
#include "test/ptx/program.h"
#include "test/ptx/values.h"

namespace izh::ptx {
namespace {

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
    uint64_t reduced = one.op == Op::ReduceMin ? UINT32_MAX : 0;
    if (one.op == Op::ReduceMax || one.op == Op::ReduceMin)
      for (size_t i = first; i < end; ++i)
        if (threads_[i].state != State::Done) {
          const uint64_t value = threads_[i].slots[one.a[0]];
          reduced = one.op == Op::ReduceMax ? std::max(reduced, value) : std::min(reduced, value);
        }
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
      if (one.op == Op::ReduceMax || one.op == Op::ReduceMin)
        thread.slots[one.to[0]] = reduced;
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

  // Words of the left matrix: rows 0..7, then 8..15, of bytes 0..15 of these, then the
  // same of bytes 16..31; of the right one columns 0..7, of their bytes 0..15, then
  // 16..31.
  void multiply_matrices(Thread *lanes, const Instruction &one) {
    uint32_t results[16][8];
    for (unsigned row = 0; row < 16; ++row) {
      for (unsigned column = 0; column < 8; ++column) {
        const Thread &owner = lanes[4 * (row % 8) + column / 2];
        const uint64_t start = owner.slots[one.added[2 * (row / 8) + column % 2]];
        int64_t sum = static_cast<int32_t>(start);
        // Exact: products of float16 have 22 bits, and a few more where they are added.
        double exact = single(start);
        for (unsigned word = 0; word < one.depth / 4; ++word) {
          const unsigned lane = word % 4, half = word / 4;
          const uint64_t a = lanes[4 * (row % 8) + lane].slots[one.left[2 * half + row / 8]];
          const uint64_t b = lanes[4 * column + lane].slots[one.right[half]];
          if (one.type == Type::F16)
            exact += halves_product(a, b);
          else
            sum += bytes_product(a, b);
        }
        results[row][column] = one.type == Type::F16
                                   ? std::bit_cast<uint32_t>(static_cast<float>(exact))
                                   : static_cast<uint32_t>(sum);
      }
    }
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned i = 0; i < 4; ++i)
        lanes[lane].slots[one.to[i]] = results[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2];
  }

  static int64_t bytes_product(uint64_t a, uint64_t b) {
    int64_t sum = 0;
    for (unsigned i = 0; i < 4; ++i)
      sum += extend(a >> 8 * i & 255, 1) * extend(b >> 8 * i & 255, 1);
    return sum;
  }
  static double halves_product(uint64_t a, uint64_t b) {
    return number_of(a, Type::F16) * number_of(b, Type::F16) +
           number_of(a >> 16, Type::F16) * number_of(b >> 16, Type::F16);
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
    if (!thread.awaited && !one.constant)
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
      case Op::ReduceMax:
      case Op::ReduceMin:
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
      if (one.count == 2)
        result = result << 16 | convert(one, in(1));
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
uint64_t shared_bytes(const Kernel &kernel) { return kernel.shared_bytes; }

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
