// Keys as GGUF files hold them, from values.

#pragma once

#include "compiler/import/ModelSource.h"

namespace izhc {

// `name` must outlive the key.
ExportKey exportNumber(llvm::StringRef name, uint32_t value);
ExportKey exportFloat(llvm::StringRef name, float value);
ExportKey exportFlag(llvm::StringRef name, bool value);
ExportKey exportText(llvm::StringRef name, llvm::StringRef value);
ExportKey exportTexts(llvm::StringRef name, llvm::ArrayRef<std::string> values);
ExportKey exportNumbers(llvm::StringRef name, llvm::ArrayRef<int32_t> values);
ExportKey exportFloats(llvm::StringRef name, llvm::ArrayRef<float> values);
ExportKey exportBytes(llvm::StringRef name, llvm::ArrayRef<uint8_t> values);
ExportKey exportFlags(llvm::StringRef name, llvm::ArrayRef<bool> values);

} // namespace izhc
