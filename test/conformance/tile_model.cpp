// Tiles of the calling thread as arrays of bytes.

#include "test/conformance/tile_model.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringSwitch.h"
#include "gtest/gtest.h"
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

namespace izhc::conformance {

namespace {

constexpr int64_t kTiles = 8, kMostRows = 16, kMostBytes = 64;

// The 64 bytes of palette 1.
struct Config {
  uint8_t palette, startRow, reserved[14];
  uint16_t bytesPerRow[kTiles], noBytes[8];
  uint8_t rows[kTiles], noRows[8];
};
static_assert(sizeof(Config) == 64);

struct Tile {
  int64_t rows = 0, bytes = 0;
  uint8_t data[kMostRows][kMostBytes] = {};

  void clear() { std::memset(data, 0, sizeof(data)); }
};

struct Tiles {
  bool configured = false;
  Tile tiles[kTiles];
};
thread_local Tiles state;

bool allZero(const void *data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    if (static_cast<const uint8_t *>(data)[i])
      return false;
  return true;
}

// A tile that can be used; null (and a failure) otherwise.
Tile *tileAt(int64_t number, const char *instruction) {
  if (state.configured && number >= 0 && number < kTiles && state.tiles[number].rows)
    return &state.tiles[number];
  ADD_FAILURE() << instruction << " of tile " << number << ", which is not configured";
  return nullptr;
}

void configure(const void *from) {
  Config config;
  std::memcpy(&config, from, sizeof(config));
  EXPECT_EQ(config.palette, 1);
  EXPECT_EQ(config.startRow, 0) << "loads would begin in the middle";
  EXPECT_TRUE(allZero(config.reserved, sizeof(config.reserved)) &&
              allZero(config.noBytes, sizeof(config.noBytes)) &&
              allZero(config.noRows, sizeof(config.noRows)))
      << "reserved bytes of a configuration are set";
  state = Tiles();
  state.configured = true;
  for (int64_t i = 0; i < kTiles; ++i) {
    EXPECT_LE(config.rows[i], kMostRows);
    EXPECT_LE(config.bytesPerRow[i], kMostBytes);
    EXPECT_EQ(config.rows[i] == 0, config.bytesPerRow[i] == 0) << "tile " << i;
    state.tiles[i].rows = std::min<int64_t>(config.rows[i], kMostRows);
    state.tiles[i].bytes = std::min<int64_t>(config.bytesPerRow[i], kMostBytes);
  }
}

void release() { state = Tiles(); }

void zero(int64_t number) {
  if (Tile *tile = tileAt(number, "tilezero"))
    tile->clear();
}

void load(int64_t number, const uint8_t *from, int64_t stride) {
  Tile *tile = tileAt(number, "tileloadd");
  if (!tile)
    return;
  tile->clear();
  for (int64_t r = 0; r < tile->rows; ++r)
    std::memcpy(tile->data[r], from + r * stride, tile->bytes);
}

void store(int64_t number, uint8_t *to, int64_t stride) {
  const Tile *tile = tileAt(number, "tilestored");
  for (int64_t r = 0; tile && r < tile->rows; ++r)
    std::memcpy(to + r * stride, tile->data[r], tile->bytes);
}

// Signed bytes times signed bytes.
void multiply(int64_t sums, int64_t left, int64_t right) {
  Tile *c = tileAt(sums, "tdpbssd"), *a = tileAt(left, "tdpbssd"), *b = tileAt(right, "tdpbssd");
  if (!a || !b || !c)
    return;
  bool fits = sums != left && sums != right && left != right && a->rows == c->rows &&
              a->bytes % 4 == 0 && a->bytes / 4 == b->rows && b->bytes == c->bytes &&
              c->bytes % 4 == 0;
  if (!fits) {
    ADD_FAILURE() << "tdpbssd of tiles " << sums << ", " << left << ", " << right
                  << " whose shapes don't fit";
    return;
  }
  for (int64_t m = 0; m < c->rows; ++m)
    for (int64_t k = 0; k < b->rows; ++k)
      for (int64_t n = 0; n < c->bytes / 4; ++n) {
        uint32_t sum;
        std::memcpy(&sum, &c->data[m][4 * n], 4);
        for (int64_t j = 0; j < 4; ++j)
          sum += uint32_t(int8_t(a->data[m][4 * k + j]) * int8_t(b->data[k][4 * n + j]));
        std::memcpy(&c->data[m][4 * n], &sum, 4);
      }
}

const void *modelOf(llvm::StringRef intrinsic) {
  auto place = [](auto *function) { return reinterpret_cast<const void *>(function); };
  return llvm::StringSwitch<const void *>(intrinsic)
      .Case("llvm.x86.ldtilecfg", place(configure))
      .Case("llvm.x86.tilerelease", place(release))
      .Case("llvm.x86.tilezero", place(zero))
      .Case("llvm.x86.tileloadd64", place(load))
      .Case("llvm.x86.tilestored64", place(store))
      .Case("llvm.x86.tdpbssd", place(multiply))
      .Default(nullptr);
}

enum Feature : unsigned {
#define IZH_CPU_FEATURE(bit, name, arch) name = bit,
#include "runtime/schema/cpu_features.def"
};

} // namespace

uint64_t modelledFeatures() { return uint64_t(1) << amxtile | uint64_t(1) << amxint8; }

bool tilesPermitted() {
#if defined(__x86_64__)
  constexpr int kRequest = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
#else
  return false;
#endif
}

void modelTiles(mlir::ModuleOp module) {
  namespace LLVM = mlir::LLVM;
  module.walk([](LLVM::CallIntrinsicOp op) {
    const void *model = modelOf(op.getIntrin());
    if (!model)
      return;
    mlir::OpBuilder b(op);
    mlir::Type word = b.getI64Type(), pointer = LLVM::LLVMPointerType::get(b.getContext());
    mlir::Value address = LLVM::ConstantOp::create(
        b, op.getLoc(), word, b.getI64IntegerAttr(reinterpret_cast<intptr_t>(model)));
    llvm::SmallVector<mlir::Value> operands = {
        LLVM::IntToPtrOp::create(b, op.getLoc(), pointer, address)};
    llvm::SmallVector<mlir::Type> types;
    // Numbers of tiles are bytes; functions here take words.
    for (mlir::Value operand : op.getArgs()) {
      if (operand.getType().isInteger(8))
        operand = LLVM::ZExtOp::create(b, op.getLoc(), word, operand);
      types.push_back(operand.getType());
      operands.push_back(operand);
    }
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), types);
    LLVM::CallOp::create(b, op.getLoc(), type, operands);
    op.erase();
  });
}

bool tilesConfigured() { return state.configured; }

} // namespace izhc::conformance
