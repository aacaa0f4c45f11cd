// LLVM's options are global: code generation reads them, and lld sets all of
// them back to their defaults whenever it runs. Internal to compiler/target.

#pragma once

namespace izhc {

enum class LlvmUse {
  Generate,          // as LLVM does by default
  GenerateLoopsAsIs, // without the reduction of loops' strengths
  Link,              // nobody else
};

// Holds the options for a use; waits while they are held for another one.
class LlvmOptions {
public:
  explicit LlvmOptions(LlvmUse use);
  ~LlvmOptions();
  LlvmOptions(const LlvmOptions &) = delete;
  LlvmOptions &operator=(const LlvmOptions &) = delete;
};

} // namespace izhc
