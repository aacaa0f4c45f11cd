// The steps of a section that is not written yet, as the runtime would read them.

#include "tools/izhc/ChangedText.h"

#include "compiler/support/Error.h"
#include "runtime/text/normalizer.h"

using namespace izhc;

// More than any step makes of a text that a file may hold for a token.
static constexpr size_t kMostBytes = 1 << 20;

static izh::Span<const uint8_t> span(llvm::StringRef text) {
  return {text.bytes_begin(), text.size()};
}

llvm::Expected<std::string> tool::changeText(llvm::ArrayRef<TextStep> steps, llvm::StringRef text) {
  izh::TokenizerView view;
  if (steps.size() > std::size(view.steps))
    return makeError("text is changed in {0} steps, at most {1} can be used", steps.size(),
                     std::size(view.steps));
  for (const TextStep &step : steps)
    view.steps[view.step_count++] = {izh::NormalStepKind(step.kind), span(step.from),
                                     span(step.to)};
  izh::Array<uint8_t> bytes;
  izh_error error = {};
  if (!bytes.append(text.bytes_begin(), text.size()))
    return makeError("no memory is left");
  if (izh::normalize(view, {0, view.step_count}, kMostBytes, &bytes, &error) != IZH_OK)
    return makeError("{0}", error.message);
  return std::string(bytes.begin(), bytes.end());
}
