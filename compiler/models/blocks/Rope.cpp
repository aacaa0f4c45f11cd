// Computes inverse frequencies as their definition says: base^(-2i/n) rounded
// to float32, then what the scaling makes of them. Definitions: linear (Chen et
// al. 2023), yarn (Peng et al. 2023), longrope (Ding et al. 2024).

#include "compiler/models/blocks/Rope.h"
#include "compiler/support/Numbers.h"
#include <cmath>

namespace izhc {

namespace {

constexpr double kPi = 3.14159265358979323846;

class Scaling {
public:
  Scaling(ModelBuilder &builder, const Hyper &hyper, const RopeOptions &options, double base,
          int64_t rotary)
      : builder(builder), hyper(hyper), options(options), base(base), rotary(rotary),
        frequencies(rotary / 2) {
    for (int64_t i = 0; i < rotary / 2; ++i)
      frequencies[i] = float(std::pow(base, -2.0 * double(i) / double(rotary)));
    if (options.scaled)
      scale();
  }

  std::vector<float> takeFrequencies() { return std::move(frequencies); }
  float magnitude = 1;

private:
  double number(const char *name, double otherwise, double low, double high) {
    return builder.number(hyper.prefix + "rope.scaling." + name, otherwise, low, high);
  }

  double originalContext() {
    return number("original_context_length", hyper.context, 1, double(1 << 30));
  }

  void scale() {
    const ModelSource &source = builder.source();
    std::string key = hyper.prefix + "rope.scaling.type";
    auto type = builder.unwrap<std::optional<llvm::StringRef>>(source.getString(key), std::nullopt);
    // The key of old files.
    double old =
        builder.unwrap<double>(source.getFloatOr(hyper.prefix + "rope.scale_linear", 1), 1);
    // Zero was written where nothing was meant.
    double factor = number("factor", old, 0, 1e6);
    factor = factor == 0 ? 1 : std::max(factor, 1e-3);
    llvm::StringRef kind = type.value_or("linear");
    if (kind == "linear")
      divide([&](int64_t) { return factor; });
    else if (kind == "yarn")
      yarn(factor);
    else if (kind == "longrope" || kind == "su")
      longrope();
    else if (kind != "none")
      builder.fail(makeError("{0} is {1}; known are 'none', 'linear', 'yarn' and 'longrope'",
                             source.keyPlace(key), quote(kind)));
    if (builder.hasTensor("rope_freqs.weight"))
      divideBy("rope_freqs.weight");
    else if (builder.hasTensor("rope_factors_short.weight") && kind != "longrope" && kind != "su")
      longrope();
  }

  void divide(llvm::function_ref<double(int64_t)> divisor) {
    for (size_t i = 0; i < frequencies.size(); ++i)
      frequencies[i] = frequencies[i] / float(divisor(i));
  }

  // Divisors in a tensor; one of 1e30 is written where nothing turns.
  void divideBy(const char *name) {
    std::vector<float> values = builder.readVector(name, frequencies.size());
    for (float value : values)
      if (!(value >= 1e-6f && value <= 2e30f) && !builder.failed())
        builder.fail(makeError("{0}: tensor {1} holds {2}, expected divisors from 1e-6 to 1e30",
                               builder.source().fileName(), name, shortText(value)));
    if (!builder.failed())
      divide([&](int64_t i) { return values[i]; });
  }

  void yarn(double factor) {
    double original = originalContext();
    // The number of a frequency that turns `turns` times over the original context.
    auto place = [&](double turns) {
      return rotary * std::log(original / (turns * 2 * kPi)) / (2 * std::log(base));
    };
    double low = place(number("yarn_beta_fast", 32, 1e-3, 1e6));
    double high = place(number("yarn_beta_slow", 1, 1e-3, 1e6));
    // The limits are whole numbers unless the model says otherwise.
    if (builder.unwrap<bool>(
            builder.source().getBoolOr(hyper.prefix + "rope.scaling.yarn_truncate", true), true)) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, double(rotary - 1));
    if (low == high)
      high += 0.001;
    for (size_t i = 0; i < frequencies.size(); ++i) {
      double stretched = std::min(std::max((double(i) - low) / (high - low), 0.0), 1.0);
      frequencies[i] =
          float(frequencies[i] / factor * stretched + frequencies[i] * (1 - stretched));
    }
    auto grown = [&](double by) { return factor <= 1 ? 1 : 0.1 * by * std::log(factor) + 1; };
    double byAll = number("yarn_log_multiplier", 0, 0, 1e3);
    double magnitudeOf = byAll == 0 ? grown(1) : grown(1) / grown(byAll);
    if (options.grows)
      magnitude = float(number("yarn_attn_factor", magnitudeOf, 1e-3, 1e3) *
                        number("attn_factor", 1, 1e-3, 1e3));
  }

  void longrope() {
    const char *lists[] = {"rope_factors_short.weight", "rope_factors_long.weight"};
    bool isLong = builder.tokens() > ropeContext(builder, hyper);
    divideBy(lists[isLong]);
    builder.markUsed(lists[!isLong]);
    double original = originalContext(), factor = hyper.context / original;
    double grown = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(original));
    magnitude = float(number("attn_factor", grown, 1e-3, 1e3));
  }

  ModelBuilder &builder;
  const Hyper &hyper;
  const RopeOptions &options;
  double base;
  int64_t rotary;
  std::vector<float> frequencies;
};

} // namespace

mlir::Value ropeAngles(ModelBuilder &builder, const Hyper &hyper, const RopeOptions &options) {
  const ModelSource &source = builder.source();
  int64_t dim = options.headDim ? options.headDim : hyper.headDim;
  int64_t rotary = builder.unwrap<uint64_t>(
      source.getUIntOr(hyper.prefix + options.dimensionKey, dim, 1, 1 << 12), 2);
  if (rotary % 2 != 0 || rotary > dim) {
    builder.fail(makeError("{0} is {1}, expected an even number up to the {2} values of a head",
                           source.keyPlace(hyper.prefix + options.dimensionKey), rotary, dim));
    rotary = 2;
  }
  double base = builder.unwrap<double>(
      source.getFloatOr(hyper.prefix + options.baseKey, options.base), options.base);
  if (!(base > 1 && base <= 1e12)) {
    builder.fail(makeError("{0} is {1}, expected more than 1 and at most 1e12",
                           source.keyPlace(hyper.prefix + options.baseKey), shortText(base)));
    base = 10000;
  }
  Scaling scaling(builder, hyper, options, base, rotary);
  mlir::Value positions = builder.input(lm::InputKind::Positions);
  mlir::Value constant = builder.constant("rope.frequencies", scaling.takeFrequencies());
  return builder.create<lm::RopeAnglesOp>(lm::rowsType(builder.context(), rotary), positions,
                                          constant, llvm::APFloat(scaling.magnitude),
                                          llvm::APFloat(options.growth), uint64_t(options.period));
}

int64_t ropeContext(ModelBuilder &builder, const Hyper &hyper) {
  if (!builder.hasTensor("rope_factors_short.weight"))
    return hyper.context;
  std::string key = hyper.prefix + "rope.scaling.original_context_length";
  uint64_t original = builder.unwrap<uint64_t>(
      builder.source().getUIntOr(key, hyper.context, 1, 1u << 30), hyper.context);
  return std::min<int64_t>(original, hyper.context);
}

} // namespace izhc
