// A model that izhc itself runs: an artifact as it is, anything else compiled
// for this machine into a file that is gone when it is opened.

#pragma once

#include "runtime/include/izh/izh.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace izhc::tool {

struct Close {
  void operator()(izh_model *model) const { izh_model_close(model); }
  void operator()(izh_context *context) const { izh_context_destroy(context); }
  void operator()(izh_sequence *sequence) const { izh_sequence_destroy(sequence); }
};

struct RunOptions {
  bool exact = false;   // how models that aren't artifacts are compiled
  unsigned threads = 0; // 0: the runtime's choice
};

class RunnableModel {
public:
  // Fails with a sentence about `path`.
  static llvm::Expected<std::unique_ptr<RunnableModel>> open(llvm::StringRef path,
                                                             const RunOptions &options);

  const std::string &path() const { return file; }
  // The last part of the path.
  std::string name() const;
  const izh_model_info &info() const { return facts; }
  const izh_model *handle() const { return model.get(); }
  // After prepare().
  izh_context *running() const { return context.get(); }

  // The ids of `text`, control tokens taken as text, begun as the model says.
  llvm::Expected<std::vector<int32_t>> tokenize(llvm::StringRef text) const;

  // Makes room for one sequence of so many tokens; to be called before the rest.
  llvm::Error prepare(uint32_t tokens);
  // Forgets all tokens.
  llvm::Error restart();
  // Appends tokens and writes the logits of the last `outputs` of them.
  llvm::Error run(llvm::ArrayRef<int32_t> tokens, uint32_t outputs,
                  llvm::MutableArrayRef<float> logits);

private:
  explicit RunnableModel(llvm::StringRef path) : file(path.str()) {}

  llvm::Error compileAndOpen(const RunOptions &options);
  llvm::Error openArtifact(const std::string &path);

  std::string file;
  unsigned threads = 0;
  izh_model_info facts = {};
  std::unique_ptr<izh_model, Close> model;
  std::unique_ptr<izh_context, Close> context;
  std::unique_ptr<izh_sequence, Close> sequence;
};

} // namespace izhc::tool
