// `izhc tokenize`: builds the tokenizer section that compile would write, and
// encodes with the runtime's own code.

#include "compiler/import/ModelSource.h"
#include "compiler/support/Error.h"
#include "compiler/tokenizers/Tokenizers.h"
#include "runtime/platform/process.h"
#include "runtime/text/tokenizer.h"
#include "tools/izhc/ChangedText.h"
#include "tools/izhc/InputText.h"
#include "tools/izhc/ModelPath.h"
#include "tools/izhc/Report.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <memory>

namespace izhc::tool {
namespace {

struct Destroy {
  void operator()(izh::Tokenizer *tokenizer) const { izh::Tokenizer::destroy(tokenizer); }
};
using TokenizerPtr = std::unique_ptr<izh::Tokenizer, Destroy>;

// The flatbuffer, at the alignment that the runtime asks for.
struct Section {
  std::unique_ptr<llvm::WritableMemoryBuffer> bytes;
};

llvm::Expected<Section> buildSection(const TokenizeArguments &arguments) {
  if (llvm::Error error = checkModelPath(arguments.model, "izh-rt tokenize"))
    return std::move(error);
  auto source = openModel(arguments.model);
  if (!source)
    return source.takeError();
  auto bytes = buildTokenizer(**source, changeText, arguments.preTokenizer);
  if (!bytes)
    return bytes.takeError();
  if (bytes->empty())
    return makeError("{0} has no tokenizer", arguments.model);
  Section section = {
      llvm::WritableMemoryBuffer::getNewUninitMemBuffer(bytes->size(), "", llvm::Align(64))};
  std::copy(bytes->begin(), bytes->end(), section.bytes->getBufferStart());
  return std::move(section);
}

// The speed of one thread, warm: what is left when nothing else runs.
int printSpeed(const izh::Tokenizer &tokenizer, llvm::StringRef text,
               const izh::EncodeOptions &options) {
  double best = std::numeric_limits<double>::infinity();
  size_t tokens = 0;
  for (int i = 0; i < 5; ++i) {
    izh::Array<int32_t> ids;
    izh_error error = {};
    auto begin = std::chrono::steady_clock::now();
    if (tokenizer.encode(text.data(), text.size(), options, &ids, &error) != IZH_OK)
      return report(makeError("{0}", error.message));
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    tokens = ids.size();
  }
  llvm::outs() << llvm::format("%zu bytes, %zu tokens: %.1f MB/s\n", text.size(), tokens,
                               double(text.size()) / best / 1e6);
  return kDone;
}

} // namespace

int tokenize(const TokenizeArguments &arguments) {
  auto text = arguments.hasText ? llvm::Expected<std::string>(arguments.text)
                                : readText(arguments.textFile);
  if (!text)
    return report(text.takeError());
  izh::process_reads(arguments.model.c_str());
  auto section = buildSection(arguments);
  if (!section)
    return report(section.takeError());
  izh_error error = {};
  izh::Tokenizer *made = nullptr;
  if (izh::Tokenizer::create(section->bytes->getBufferStart(), section->bytes->getBufferSize(),
                             &made, &error) != IZH_OK)
    return report(makeError("{0}: {1}", arguments.model, error.message));
  TokenizerPtr tokenizer(made);
  izh::Array<int32_t> ids;
  izh::EncodeOptions options = {!arguments.noBos, !arguments.noSpecial};
  if (arguments.time)
    return printSpeed(*tokenizer, *text, options);
  if (tokenizer->encode(text->data(), text->size(), options, &ids, &error) != IZH_OK)
    return report(makeError("{0}", error.message));
  llvm::outs() << "[";
  for (size_t i = 0; i < ids.size(); ++i)
    llvm::outs() << (i ? ", " : "") << ids[i];
  llvm::outs() << "]\n";
  return kDone;
}

} // namespace izhc::tool
