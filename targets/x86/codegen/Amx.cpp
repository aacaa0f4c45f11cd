// Tile registers are named by constants, so that LLVM allocates none and adds
// no configuration of its own.

#include "targets/x86/codegen/Amx.h"
#include <array>

namespace izhc::x86 {

using namespace mlir;

namespace {

class AmxUnit final : public MatrixUnit {
public:
  void configure(KernelBuilder &k, int64_t depth) const override;
  void release(KernelBuilder &k) const override { call(k, "llvm.x86.tilerelease", {}); }
  void load(KernelBuilder &k, int64_t to, Value from, int64_t stride) const override {
    call(k, "llvm.x86.tileloadd64", {tile(k, to), from, k.constI64(stride)});
  }
  void store(KernelBuilder &k, int64_t from, Value to, int64_t stride) const override {
    call(k, "llvm.x86.tilestored64", {tile(k, from), to, k.constI64(stride)});
  }
  void clear(KernelBuilder &k, int64_t sums) const override {
    call(k, "llvm.x86.tilezero", tile(k, sums));
  }
  void multiply(KernelBuilder &k, int64_t sums, int64_t activations, int64_t codes) const override {
    call(k, "llvm.x86.tdpbssd", {tile(k, sums), tile(k, activations), tile(k, codes)});
  }

private:
  static Value tile(KernelBuilder &k, int64_t number) { return k.constInt(k.i8(), number); }
  static void call(KernelBuilder &k, llvm::StringRef name, ValueRange operands) {
    LLVM::CallIntrinsicOp::create(k.builder, k.loc, k.builder.getStringAttr(name), operands);
  }
};

// The 64 bytes of palette 1: from byte 16 on the bytes a row of each tile (16
// bits), from byte 48 on its rows.
void AmxUnit::configure(KernelBuilder &k, int64_t depth) const {
  std::array<uint8_t, 64> config = {};
  config[0] = 1;
  auto shape = [&](int64_t number, int64_t rows, int64_t bytes) {
    config[16 + 2 * number] = uint8_t(bytes);
    config[48 + number] = uint8_t(rows);
  };
  for (int64_t i = 0; i < kSums; ++i)
    shape(sums(i), kRows, 64);
  for (int64_t i = 0; i < kOperands; ++i) {
    shape(activations(i), kRows, depth);
    shape(codes(i), depth / 4, 64);
  }
  call(k, "llvm.x86.ldtilecfg", k.table(config));
}

} // namespace

const MatrixUnit &amxUnit() {
  static const AmxUnit unit;
  return unit;
}

} // namespace izhc::x86
