// PTX in the form that the interpreter runs: every operand is a number of a
// slot in a thread's registers; constants have slots of their own.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "test/ptx/interpreter.h"

namespace izh::ptx {

enum class Op : uint8_t {
  Mov,
  MovPack,
  MovUnpack,
  Load,
  LoadParam,
  Store,
  AtomicAdd,
  Add,
  Sub,
  Mul,
  MulWide,
  MulHigh,
  Mad,
  MadWide,
  Div,
  Rem,
  Fma,
  Neg,
  Abs,
  Min,
  Max,
  Sqrt,
  Rcp,
  Ex2,
  And,
  Or,
  Xor,
  Not,
  Shl,
  Shr,
  Popc,
  Clz,
  Convert,
  Compare,
  Select,
  Dot4,
  Permute,
  BitField,
  Shuffle,
  ReduceMax,
  ReduceMin,
  LoadMatrices,
  MultiplyMatrices,
  WarpBarrier,
  Barrier,
  Branch,
  Return,
  FunnelLeft,
  FunnelRight,
  CopySign,
  Lop3,
  BitInsert,
  AwaitGrid,
  CopyAsync,
  CommitCopies,
  AwaitCopies,
  MakeGate,
  ExpectBytes,
  CopyBulk,
  AwaitGate,
  Nop
};

enum class Type : uint8_t {
  B8,
  S8,
  U8,
  B16,
  S16,
  U16,
  F16,
  B32,
  S32,
  U32,
  F32,
  B64,
  S64,
  U64,
  F64,
  Pred
};

enum class Test : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Ltu, Leu, Gtu, Geu, Equ, Neu, Num, Nan };

enum class Rounding : uint8_t { None, NearestInt, ZeroInt, MinusInt, PlusInt };

struct Instruction {
  Op op = Op::Nop;
  Type type = Type::B32, from = Type::B32; // of the result, of the source
  Test test = Test::Eq;
  Rounding rounding = Rounding::None;
  uint8_t count = 1;     // values of a vector
  bool negate = false;   // of the predicate
  bool flushes = false;  // results below the least normal number are zero
  bool constant = false; // a load or copy of what no kernel writes
  int32_t predicate = -1;
  int32_t to[4] = {-1, -1, -1, -1};
  int32_t a[4] = {-1, -1, -1, -1};
  int64_t offset = 0; // of addresses; of a param; where a branch goes
  int64_t second = 0; // of CopyAsync: of the address that is read
  // Of CopyAsync: bytes. Of MultiplyMatrices: bytes of a row of the first matrix, and the
  // words of the matrices that are multiplied and of the one that is added.
  uint32_t depth = 0;
  std::vector<int32_t> left, right, added;
  std::string text; // for messages
};

// Slots that every thread has.
enum Special : int32_t { kTid, kCtaid, kNtid, kNctaid, kLaneid, kZero, kFirstFree };

struct Kernel {
  std::string name;
  std::vector<Instruction> code;
  std::vector<uint64_t> slots; // first values: constants
  std::vector<uint32_t> param_offsets;
  uint64_t shared_bytes = 0, local_bytes = 0;
  bool overlaps = false; // it waits itself for what comes before it
};

// Addresses of what isn't memory of the process.
constexpr uint64_t kSharedBase = uint64_t{0xF1} << 56;
// Of what is declared extern, behind all that functions declare.
constexpr uint64_t kLaunchOffset = uint64_t{1} << 32;
constexpr uint64_t kLocalBase = uint64_t{0xF2} << 56;

struct Module::Content {
  std::map<std::string, Kernel, std::less<>> kernels;
  std::map<std::string, std::vector<uint8_t>> globals;
};

unsigned size_of(Type type);
inline bool is_signed(Type type) {
  return type == Type::S8 || type == Type::S16 || type == Type::S32 || type == Type::S64;
}

} // namespace izh::ptx
