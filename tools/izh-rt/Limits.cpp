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
#include <set>

namespace izh::rt {
namespace {

const schema::Artifact &artifactOf(const izh_model *model) {
  return *schema::GetArtifact(model->image.data + model->image.root_offset);
}

// The matrix that starts at an offset of the weights section.
const schema::Weight *weightAt(const schema::Artifact &artifact, uint64_t offset) {
  if (artifact.weights())
    for (const schema::Weight *weight : *artifact.weights())
      if (!weight->constant() && weight->offset() == offset)
        return weight;
  return nullptr;
}

// A product's units are tiles of rows, a fixed number; looking up an
// embedding has a unit a token and reads one row of its matrix.
bool isProduct(const schema::Dispatch &dispatch) {
  return dispatch.extent() == schema::Extent::Fixed && dispatch.bindings();
}

// The last dispatch writes the logits. Others may use the same place of the
// arena before it.
bool writesLogits(const schema::Dispatch &dispatch, const schema::Plan &plan) {
  if (&dispatch != plan.dispatches()->Get(plan.dispatches()->size() - 1))
    return false;
  for (const schema::Binding *binding : *dispatch.bindings())
    if (binding->space() == schema::Space::Arena && binding->offset() == plan.logits_offset())
      return true;
  return false;
}

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

double readSpeed(Team *team, const uint8_t *data, size_t bytes) {
  bytes = std::min<size_t>(bytes, size_t(2) << 30);
  uint32_t pieces = uint32_t((bytes + kPieceBytes - 1) / kPieceBytes);
  if (!pieces)
    return 0;
  std::vector<double> speeds;
  double end = now() + 0.3;
  // The first pass only brings the pages in.
  for (int pass = 0; pass < 3 || (now() < end && pass < 20); ++pass) {
    ReadJob job{data, bytes};
    double begin = now();
    team_run(team, {&pieces, 1, ReadJob::work, &job});
    if (pass > 0)
      speeds.push_back(double(bytes) / (now() - begin) / 1e9);
  }
  return *std::max_element(speeds.begin(), speeds.end());
}

double dotSpeed(Team *team, uint32_t threads) {
  std::vector<double> speeds;
  uint32_t pieces = threads * 8;
  DotJob job{2000};
  double end = now() + 0.2;
  do {
    job.operations = 0;
    double begin = now();
    team_run(team, {&pieces, 1, DotJob::work, &job});
    speeds.push_back(double(job.operations) / (now() - begin) / 1e9);
  } while (now() < end);
  return *std::max_element(speeds.begin(), speeds.end());
}

} // namespace

ModelWork modelWork(const izh_model *model) {
  const schema::Artifact &artifact = artifactOf(model);
  const schema::Plan &plan = *artifact.plan();
  ModelWork work;
  std::set<uint64_t> seen;
  for (const schema::Dispatch *dispatch : *plan.dispatches()) {
    if (!isProduct(*dispatch))
      continue;
    uint64_t operations = 0;
    for (const schema::Binding *binding : *dispatch->bindings()) {
      if (binding->space() != schema::Space::Weights)
        continue;
      if (seen.insert(binding->offset()).second)
        work.weightBytesPerToken += binding->size();
      if (const schema::Weight *weight = weightAt(artifact, binding->offset()))
        operations += 2 * weight->rows() * weight->cols();
    }
    (writesLogits(*dispatch, plan) ? work.operationsPerOutput : work.operationsPerToken) +=
        operations;
  }
  return work;
}

MachineLimits measureLimits(const izh_model *model, uint32_t threads) {
  MachineLimits limits;
  Cores cores;
  usable_cores(&cores);
  Team *team = nullptr;
  if (team_create(threads, cores, &team, nullptr) != IZH_OK)
    return limits;
  const SectionFacts &weights = model->image.root.weights_section;
  limits.readGbps = readSpeed(team, model->image.data + weights.offset, weights.size);
  limits.int8Gops = dotSpeed(team, threads);
  limits.how = dot_peak_run(1).how;
  team_destroy(team);
  return limits;
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
