// Measurements use the runtime's own thread team, so that they meet the same
// cores, and read the weights where they are mapped.

#include "tools/izh-rt/LimitMeter.h"

#include "runtime/exec/model.h"
#include "runtime/platform/cores.h"
#include "runtime/platform/dot_peak.h"
#include "runtime/platform/team.h"
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

// Pieces of a pass over the weights at full speed, and those that a phase of
// one piece a thread has: as few bytes as small products have.
constexpr size_t kPieceBytes = 1 << 20, kPhasePieceBytes = 64 << 10;
// What a phase leaves for the next: a row of activations.
constexpr size_t kRowWords = 512;

// Reads `bytes` in pieces: `perPhase` of them, then all threads meet. Where
// there are rows a phase's threads leave one together, which each of the next
// phase's threads reads.
struct ReadJob {
  const uint8_t *data;
  size_t bytes, pieceBytes;
  uint32_t perPhase;
  std::vector<uint64_t> rows[2] = {};
  std::atomic<uint64_t> sum{0};

  static void work(void *argument, uint32_t phase, uint32_t piece) {
    ReadJob &job = *static_cast<ReadJob *>(argument);
    size_t begin = (size_t(phase) * job.perPhase + piece) * job.pieceBytes;
    if (begin >= job.bytes)
      return;
    uint64_t sum = sumWords(job.data + begin, std::min(job.pieceBytes, job.bytes - begin));
    for (uint64_t word : job.rows[phase % 2])
      sum += word;
    std::vector<uint64_t> &left = job.rows[1 - phase % 2];
    for (size_t i = left.size() * piece / job.perPhase,
                end = left.size() * (piece + 1) / job.perPhase;
         i < end; ++i)
      left[i] = sum + i;
    job.sum += sum;
  }

  double seconds(Team *team) {
    size_t count = (bytes + pieceBytes - 1) / pieceBytes;
    std::vector<uint32_t> phases((count + perPhase - 1) / perPhase, perPhase);
    double begin = now();
    team_run(team, {phases.data(), uint32_t(phases.size()), work, this});
    return now() - begin;
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

constexpr size_t kMostPhasedBytes = size_t(128) << 20;

struct ReadSpeed {
  double gbps = 0;    // of the fastest pass
  double phaseUs = 0; // that a phase takes beyond its bytes, the median of the passes
};

// A few passes over `bytes` at `data`, in turn without and with phases: what a
// cache keeps of the weights is the same for both.
ReadSpeed readSpeed(Team *team, uint32_t threads, const uint8_t *data, size_t bytes) {
  bytes = std::min(bytes, kMostBytes);
  size_t phased = std::min(bytes, kMostPhasedBytes);
  double phases = double(phased) / double(kPhasePieceBytes) / threads;
  if (!bytes)
    return {};
  auto allPieces = uint32_t(bytes / kPieceBytes + 1);
  std::vector<double> excess;
  double best = 0, end = now() + 0.06;
  for (int pass = 0; pass < 2 || (now() < end && pass < 20); ++pass) {
    double plain = ReadJob{data, bytes, kPieceBytes, allPieces}.seconds(team);
    ReadJob job{data, phased, kPhasePieceBytes, threads};
    for (std::vector<uint64_t> &row : job.rows)
      row.resize(kRowWords);
    double inPhases = job.seconds(team);
    best = std::max(best, double(bytes) / plain / 1e9);
    excess.push_back((inPhases - plain * double(phased) / double(bytes)) * 1e6 / phases);
  }
  return {best, std::max(0.0, median(excess))};
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

} // namespace

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
  // As many bytes as a token reads: of many experts a cache keeps those that a text takes.
  uint64_t bytes = std::min<uint64_t>(weights.size, modelWork(model).weightBytesPerToken);
  ReadSpeed speed = readSpeed(team, threads, model->image.data + weights.offset, bytes);
  readSpeeds.push_back(speed.gbps);
  phaseTimes.push_back(speed.phaseUs);
  dotSpeeds.push_back(dotSpeed(team, threads));
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
