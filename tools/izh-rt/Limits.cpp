// Measurements use the runtime's own thread team, so that they meet the same
// cores, and read the weights where they are mapped.

#include "tools/izh-rt/Limits.h"

#include "runtime/exec/model.h"
#include "runtime/platform/cores.h"
#include "runtime/platform/dot_peak.h"
#include "runtime/platform/team.h"
#include "runtime/schema/artifact_generated.h"
#include "tools/izh-rt/Model.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace izh::rt {
namespace {

// A thread's share of the bytes, summed in words.
uint64_t sumWords(const uint8_t *data, size_t bytes) {
  typedef uint64_t Words __attribute__((vector_size(64), aligned(64)));
  Words sums[4] = {};
  const Words *words = reinterpret_cast<const Words *>(data);
  size_t count = bytes / sizeof(Words) / 4 * 4;
  for (size_t i = 0; i < count; i += 4)
    for (size_t lane = 0; lane < 4; ++lane)
      sums[lane] += words[i + lane];
  Words all = sums[0] + sums[1] + sums[2] + sums[3];
  return all[0] + all[1] + all[2] + all[3] + all[4] + all[5] + all[6] + all[7];
}

constexpr size_t kPieceBytes = 1 << 20;

struct ReadJob {
  const uint8_t *data;
  size_t bytes;
  std::atomic<uint64_t> sum{0};

  static void work(void *argument, uint32_t, uint32_t piece) {
    ReadJob &job = *static_cast<ReadJob *>(argument);
    size_t begin = size_t(piece) * kPieceBytes;
    job.sum += sumWords(job.data + begin, std::min(kPieceBytes, job.bytes - begin));
  }
};

struct DotJob {
  uint64_t rounds;
  std::atomic<uint64_t> operations{0};

  static void work(void *argument, uint32_t, uint32_t) {
    DotJob &job = *static_cast<DotJob *>(argument);
    job.operations += dot_peak_run(job.rounds).operations;
  }
};

constexpr size_t kMostBytes = size_t(2) << 30;

// The best of a few passes over `bytes` at `data`, in GB/s.
double readSpeed(Team *team, const uint8_t *data, size_t bytes) {
  bytes = std::min(bytes, kMostBytes);
  uint32_t pieces = uint32_t((bytes + kPieceBytes - 1) / kPieceBytes);
  if (!pieces)
    return 0;
  double best = 0, end = now() + 0.06;
  for (int pass = 0; pass < 2 || (now() < end && pass < 20); ++pass) {
    ReadJob job{data, bytes};
    double begin = now();
    team_run(team, {&pieces, 1, ReadJob::work, &job});
    best = std::max(best, double(bytes) / (now() - begin) / 1e9);
  }
  return best;
}

double dotSpeed(Team *team, uint32_t threads) {
  uint32_t pieces = threads * 8;
  DotJob job{1000};
  double best = 0, end = now() + 0.04;
  do {
    job.operations = 0;
    double begin = now();
    team_run(team, {&pieces, 1, DotJob::work, &job});
    best = std::max(best, double(job.operations) / (now() - begin) / 1e9);
  } while (now() < end);
  return best;
}

// Microseconds of a phase of one empty piece for each thread.
double phaseTime(Team *team, uint32_t threads) {
  constexpr uint32_t kPhases = 256;
  const std::vector<uint32_t> pieces(kPhases, threads);
  auto nothing = [](void *, uint32_t, uint32_t) {};
  double best = 0, end = now() + 0.005;
  do {
    double begin = now();
    team_run(team, {pieces.data(), kPhases, nothing, nullptr});
    double time = (now() - begin) * 1e6 / kPhases;
    best = best > 0 ? std::min(best, time) : time;
  } while (now() < end);
  return best;
}

} // namespace

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
  double seconds = bytes / (limits.readGbps * 1e9);
  if (limits.int8Gops > 0)
    seconds = std::max(seconds, operations / (limits.int8Gops * 1e9));
  seconds += phases * limits.phaseUs / 1e6;
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

LimitMeter::LimitMeter(const izh_model *model, uint32_t threads) : model(model), threads(threads) {
  Cores cores;
  usable_cores(&cores);
  // Without threads nothing is measured.
  if (team_create(threads, cores, &team, nullptr) != IZH_OK)
    team = nullptr;
}

LimitMeter::~LimitMeter() { team_destroy(team); }

void LimitMeter::measure() {
  if (model->device) {
    double rate = 0;
    if (device_copy_rate(model->device, &rate, nullptr) == IZH_OK)
      readSpeeds.push_back(rate);
    return;
  }
  if (!team)
    return;
  const SectionFacts &weights = model->image.root.weights_section;
  readSpeeds.push_back(readSpeed(team, model->image.data + weights.offset, weights.size));
  dotSpeeds.push_back(dotSpeed(team, threads));
  phaseTimes.push_back(phaseTime(team, threads));
}

MachineLimits LimitMeter::limits() const {
  if (readSpeeds.empty())
    return {threads, 0, 0, 0, ""};
  if (model->device)
    return {threads, median(readSpeeds), 0, 0,
            std::string(device_info(model->device).name) + " copies (read and written) at"};
  return {threads, median(readSpeeds), median(dotSpeeds), median(phaseTimes), dot_peak_run(1).how};
}

std::vector<MachineLimits> limitsByThreads(const izh_model *model, uint32_t most) {
  std::vector<MachineLimits> list;
  if (model->device)
    most = 1;
  for (uint32_t threads = 1;; threads = std::min(threads * 2, most)) {
    LimitMeter meter(model, threads);
    meter.measure();
    list.push_back(meter.limits());
    if (threads >= most)
      return list;
  }
}

std::string processorName() {
  FILE *file = fopen("/proc/cpuinfo", "r");
  if (!file)
    return "";
  std::string name;
  char line[512];
  while (name.empty() && fgets(line, sizeof(line), file)) {
    const char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) == 0 && colon && colon[1] == ' ')
      name = std::string(colon + 2, strcspn(colon + 2, "\n"));
  }
  fclose(file);
  return name;
}

} // namespace izh::rt
