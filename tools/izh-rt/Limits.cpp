// Predictions from what was measured.

#include "tools/izh-rt/Limits.h"

#include "runtime/exec/model.h"
#include "runtime/schema/artifact_generated.h"
#include "runtime/schema/step_time.h"

#include <algorithm>

namespace izh::rt {

ModelWork modelWork(const izh_model *model) {
  const schema::Plan &plan =
      *schema::GetArtifact(model->image.data + model->image.root_offset)->plan();
  return {plan.token_bytes(), plan.token_operations(), plan.output_operations(), plan.max_tokens(),
          plan.dispatches() ? plan.dispatches()->size() : 0};
}

static double atMost(const MachineLimits &limits, double tokens, double bytes, double operations,
                     double phases) {
  if (limits.readGbps <= 0)
    return 0;
  double seconds = schema::step_time({limits.readGbps, limits.int8Gops, limits.phaseUs}, bytes,
                                     operations, phases)
                       .seconds;
  return seconds > 0 ? tokens / seconds : 0;
}

uint64_t cacheBytesRead(const izh_model_info &info, uint64_t tokens) {
  return info.cache_bytes_per_token * tokens +
         info.window_bytes_per_token * std::min<uint64_t>(tokens, info.window);
}

double predictGeneration(const MachineLimits &limits, const ModelWork &work, uint64_t bytes) {
  return atMost(limits, 1, double(bytes),
                double(work.operationsPerToken) + double(work.operationsPerOutput),
                double(work.phases));
}

double predictPrompt(const MachineLimits &limits, const ModelWork &work, uint64_t tokens) {
  uint64_t steps = (tokens + work.stepTokens - 1) / std::max<uint64_t>(work.stepTokens, 1);
  return atMost(limits, double(tokens), double(work.weightBytesPerToken) * double(steps),
                double(work.operationsPerToken) * double(tokens) + double(work.operationsPerOutput),
                double(work.phases) * double(steps));
}

} // namespace izh::rt
