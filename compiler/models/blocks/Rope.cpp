// Computes inverse frequencies as their definition says: base^(-2i/n) rounded
// to float32, then divided by the scaling's factors in float32.

#include "compiler/models/blocks/Rope.h"
#include <cmath>

namespace izhc {

// The factor that all frequencies are divided by.
static float linearScaling(ModelBuilder &builder, const Hyper &hyper) {
  const ModelSource &source = builder.source();
  auto type = builder.unwrap<std::optional<llvm::StringRef>>(
      source.getString(hyper.prefix + "rope.scaling.type"), std::nullopt);
  // The key of old files.
  double old = builder.unwrap<double>(source.getFloatOr(hyper.prefix + "rope.scale_linear", 1), 1);
  double factor =
      builder.unwrap<double>(source.getFloatOr(hyper.prefix + "rope.scaling.factor", old), 1);
  if (type && *type == "none")
    return 1;
  if (type && *type != "linear") {
    builder.fail(makeError("{0}: {1}rope.scaling.type is {2}; only 'none' and 'linear' can be "
                           "compiled yet",
                           source.fileName(), hyper.prefix, quote(*type)));
    return 1;
  }
  // Zero was written where nothing was meant.
  if (factor == 0)
    return 1;
  if (!(factor >= 1e-3 && factor <= 1e6)) {
    builder.fail(makeError("{0}: {1}rope.scaling.factor is {2}, expected 0.001 to 1000000",
                           source.fileName(), hyper.prefix, factor));
    return 1;
  }
  return float(factor);
}

// One divisor for each frequency, or none.
static std::vector<float> divisors(ModelBuilder &builder, int64_t count) {
  const char *name = "rope_freqs.weight";
  const ModelSource &source = builder.source();
  if (!builder.hasTensor(name))
    return {};
  builder.markUsed(name);
  auto tensor = source.requireTensor(name, {count});
  if (!tensor) {
    builder.fail(tensor.takeError());
    return {};
  }
  if ((*tensor)->format->kind != ElementKind::F32) {
    builder.fail(makeError("{0}: tensor {1} has the format {2}, expected float32",
                           source.fileName(), name, (*tensor)->format->name));
    return {};
  }
  std::vector<float> values(count);
  (*tensor)->readRows(0, (*tensor)->rows(), reinterpret_cast<uint8_t *>(values.data()));
  for (float value : values)
    if (!(value >= 1e-6f && value <= 1e6f))
      builder.fail(makeError("{0}: tensor {1} holds {2}, expected divisors from 1e-6 to 1e6",
                             source.fileName(), name, value));
  return values;
}

mlir::Value ropeAngles(ModelBuilder &builder, const Hyper &hyper) {
  const ModelSource &source = builder.source();
  int64_t rotary = builder.unwrap<uint64_t>(
      source.getUIntOr(hyper.prefix + "rope.dimension_count", hyper.headDim, 1, 1 << 12), 2);
  if (rotary % 2 != 0 || rotary > hyper.headDim) {
    builder.fail(makeError("{0}: {1}rope.dimension_count is {2}, expected an even number up to "
                           "the {3} values of a head",
                           source.fileName(), hyper.prefix, rotary, hyper.headDim));
    rotary = 2;
  }
  double base =
      builder.unwrap<double>(source.getFloatOr(hyper.prefix + "rope.freq_base", 10000), 10000);
  if (!(base > 1 && base <= 1e12))
    builder.fail(makeError("{0}: {1}rope.freq_base is {2}, expected more than 1 and at most 1e12",
                           source.fileName(), hyper.prefix, base));
  float scaling = linearScaling(builder, hyper);
  std::vector<float> factors = divisors(builder, rotary / 2);

  std::vector<float> frequencies(rotary / 2);
  for (int64_t i = 0; i < rotary / 2; ++i) {
    float frequency = float(std::pow(base, -2.0 * double(i) / double(rotary)));
    frequencies[i] = frequency / scaling / (factors.empty() ? 1.0f : factors[i]);
  }
  mlir::Value positions = builder.input(lm::InputKind::Positions);
  mlir::Value constant = builder.constant("rope.frequencies", frequencies);
  return builder.create<lm::RopeAnglesOp>(lm::rowsType(builder.context(), rotary), positions,
                                          constant, llvm::APFloat(1.0f));
}

} // namespace izhc
