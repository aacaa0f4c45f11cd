// A dispatch that multiplies binds its activations first and its matrices right
// after; nothing else in a plan looks so. The records of activations are those
// of kind f32 in dialects/pack/ActLayout.h.

#include "tools/izhc/Probes.h"
#include "runtime/exec/context.h"
#include "runtime/schema/artifact_generated.h"
#include "runtime/schema/header.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

namespace izhc::tool {
namespace {

struct Matrix {
  std::string name;
  uint64_t columns;
};

// One dispatch.
struct Probe {
  izh::Kernel kernel;
  const uint8_t *records;
  uint64_t columns, stride;
  std::vector<std::string> matrices;
  std::vector<double> sums;
  uint64_t count = 0;

  void look(int64_t rows) {
    for (int64_t row = 0; row < rows; ++row)
      for (uint64_t k = 0; k < columns; ++k) {
        float value;
        memcpy(&value, records + row * stride + 4 * k, 4);
        sums[k] += double(value) * value;
      }
    count += rows;
  }
};

using ProbeMap = llvm::DenseMap<void *const *, Probe>;
ProbeMap *watched = nullptr;

void runWatched(void *const *bindings, const int64_t *params, int64_t begin, int64_t end) {
  Probe &probe = watched->find(bindings)->second;
  // Rows of all tokens: every one has its logits computed.
  if (begin == 0)
    probe.look(params[0]);
  probe.kernel(bindings, params, begin, end);
}

llvm::DenseMap<uint64_t, Matrix> matricesOf(const izh::Image &image) {
  izh::schema::Header header;
  memcpy(&header, image.data, sizeof(header));
  const auto *root = izh::schema::GetArtifact(image.data + header.root_offset);
  llvm::DenseMap<uint64_t, Matrix> matrices;
  for (const izh::schema::Weight *weight : *root->weights())
    if (!weight->constant())
      matrices[weight->offset()] = {weight->name()->str(), weight->cols()};
  return matrices;
}

uint64_t recordBytes(uint64_t columns) {
  uint64_t bytes = 4 * llvm::alignTo(columns, 64);
  return bytes % 4096 == 0 ? bytes + 64 : bytes;
}

class Watch final : public Probes {
public:
  explicit Watch(izh_context *context) : context(context) {
    const izh::Root &root = context->model->image.root;
    llvm::DenseMap<uint64_t, Matrix> matrices = matricesOf(context->model->image);
    for (size_t i = 0; i < root.dispatches.size(); ++i)
      add(root, i, matrices);
    watched = &probes;
    for (size_t i = 0; i < root.dispatches.size(); ++i) {
      izh::Program::Dispatch &dispatch = context->program.dispatches[i];
      auto found = probes.find(dispatch.bindings);
      if (found == probes.end())
        continue;
      found->second.kernel = dispatch.kernel;
      dispatch.kernel = &runWatched;
    }
  }

  ~Watch() override {
    for (size_t i = 0; i < context->program.dispatches.size(); ++i) {
      izh::Program::Dispatch &dispatch = context->program.dispatches[i];
      auto found = probes.find(dispatch.bindings);
      if (found != probes.end())
        dispatch.kernel = found->second.kernel;
    }
    watched = nullptr;
  }

  std::vector<ImportanceSums> sums() const override {
    std::vector<ImportanceSums> result;
    for (const auto &dispatch : context->program.dispatches) {
      auto found = probes.find(dispatch.bindings);
      if (found == probes.end() || found->second.count == 0)
        continue;
      const Probe &probe = found->second;
      for (const std::string &name : probe.matrices)
        result.push_back({name, {probe.sums.begin(), probe.sums.end()}, probe.count});
    }
    return result;
  }

private:
  void add(const izh::Root &root, size_t index, const llvm::DenseMap<uint64_t, Matrix> &matrices) {
    const izh::DispatchFacts &facts = root.dispatches[index];
    const izh::BindingFacts *bindings = root.bindings.data() + facts.first_binding;
    Probe probe = {};
    for (uint32_t i = 1; i < facts.binding_count; ++i) {
      if (bindings[i].space != izh::Space::Weights)
        break;
      auto found = matrices.find(bindings[i].offset);
      if (found == matrices.end())
        return;
      probe.columns = found->second.columns;
      probe.matrices.push_back(found->second.name);
    }
    if (probe.matrices.empty() || bindings[0].space != izh::Space::Arena)
      return;
    probe.stride = recordBytes(probe.columns);
    // Anything but one record a token is no product of this kind.
    if (bindings[0].size != probe.stride * root.plan.max_tokens &&
        bindings[0].size != probe.stride * root.plan.max_outputs)
      return;
    void *const *place = context->program.dispatches[index].bindings;
    probe.records = static_cast<const uint8_t *>(place[0]);
    probe.sums.resize(probe.columns);
    probes[place] = std::move(probe);
  }

  izh_context *context;
  ProbeMap probes;
};

} // namespace

std::unique_ptr<Probes> Probes::watch(izh_context *context) {
  return std::make_unique<Watch>(context);
}

} // namespace izhc::tool
