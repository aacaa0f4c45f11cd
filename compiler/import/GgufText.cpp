// Prints metadata values. Reads only payloads that were checked on loading.

#include "compiler/import/GgufText.h"

#include "compiler/import/ByteReader.h"
#include "compiler/support/Error.h"

#include <bit>
#include <charconv>

using namespace izhc;

static constexpr size_t kShownBytes = 120;
static constexpr uint64_t kShownElements = 8;

static const char *typeName(GgufType type) {
  static const char *const names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                      "bool", "string", "array", "u64", "i64", "f64"};
  return names[static_cast<uint32_t>(type)];
}

std::string izhc::typeText(const GgufValue &value) {
  if (value.type != GgufType::Array)
    return typeName(value.type);
  return std::string("array of ") + typeName(value.elementType);
}

// The shortest text that reads back as the same value.
template <typename T> static std::string floatText(T value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

// Takes one value off `in`.
static std::string elementText(GgufType type, ByteReader &in) {
  auto integer = [&]<typename T>(T value) -> std::string {
    if (!in.read(value))
      return "?";
    return std::to_string(value);
  };
  switch (type) {
  case GgufType::U8:
    return integer(uint8_t());
  case GgufType::I8:
    return integer(int8_t());
  case GgufType::U16:
    return integer(uint16_t());
  case GgufType::I16:
    return integer(int16_t());
  case GgufType::U32:
    return integer(uint32_t());
  case GgufType::I32:
    return integer(int32_t());
  case GgufType::U64:
    return integer(uint64_t());
  case GgufType::I64:
    return integer(int64_t());
  case GgufType::Bool: {
    uint8_t value;
    return in.read(value) ? value ? "true" : "false" : "?";
  }
  case GgufType::F32: {
    uint32_t bits;
    return in.read(bits) ? floatText(std::bit_cast<float>(bits)) : "?";
  }
  case GgufType::F64: {
    uint64_t bits;
    return in.read(bits) ? floatText(std::bit_cast<double>(bits)) : "?";
  }
  case GgufType::String: {
    llvm::StringRef text;
    return in.readString(text) ? quote(text, kShownBytes) : "?";
  }
  case GgufType::Array:
    return "[...]";
  }
  return "?";
}

std::string izhc::valueText(const GgufValue &value) {
  ByteReader in(value.payload);
  if (value.type != GgufType::Array)
    return elementText(value.type, in);
  // Nested arrays are not taken apart.
  if (value.elementType == GgufType::Array)
    return llvm::formatv("{0} arrays", value.count).str();
  std::string result = "[";
  for (uint64_t i = 0; i < value.count && i < kShownElements; ++i)
    result += (i ? ", " : "") + elementText(value.elementType, in);
  if (value.count > kShownElements)
    result += llvm::formatv(", ... ({0})", value.count).str();
  return result + "]";
}
