// Reads the mixture's numbers and builds router, experts and the shared part.

#include "compiler/models/blocks/Experts.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/support/Numbers.h"
#include "llvm/ADT/STLExtras.h"

namespace izhc {

using mlir::Value;

static lm::Score scoreOf(ModelBuilder &builder, const std::string &key, lm::Score otherwise) {
  uint64_t number = builder.unwrap<uint64_t>(builder.source().getUIntOr(key, 0, 0, 3), 0);
  switch (number) {
  case 1:
    return lm::Score::Softmax;
  case 2:
    return lm::Score::Sigmoid;
  case 3:
    return lm::Score::SoftmaxChosen;
  }
  return otherwise;
}

Experts readExperts(ModelBuilder &builder, const Hyper &hyper, const Routing &routing) {
  const ModelSource &source = builder.source();
  Experts experts;
  experts.routing = routing;
  auto number = [&](const char *name, uint64_t otherwise, uint64_t low, uint64_t high) {
    return int64_t(
        builder.unwrap<uint64_t>(source.getUIntOr(hyper.prefix + name, otherwise, low, high), low));
  };
  experts.count = number("expert_count", 0, 0, 1 << 12);
  if (experts.count == 0)
    return experts;
  experts.used = builder.unwrap<uint64_t>(
      source.requireUInt(hyper.prefix + "expert_used_count", 1, experts.count), 1);
  experts.feedForward =
      number("expert_feed_forward_length", uint64_t(hyper.feedForward), 1, 1 << 22);
  experts.groups = std::max<int64_t>(number("expert_group_count", 1, 0, experts.count), 1);
  experts.groupsUsed =
      std::max<int64_t>(number("expert_group_used_count", experts.groups, 0, experts.groups), 1);
  int64_t sharedParts = number("expert_shared_count", 0, 0, 64);
  experts.shared = number("expert_shared_feed_forward_length",
                          uint64_t(sharedParts * experts.feedForward), 0, 1 << 22);
  experts.routing.score = scoreOf(builder, hyper.prefix + "expert_gating_func", routing.score);
  experts.routing.normalize = builder.unwrap<bool>(
      source.getBoolOr(hyper.prefix + "expert_weights_norm", routing.normalize), true);
  double scale = builder.unwrap<double>(
      source.getFloatOr(hyper.prefix + "expert_weights_scale", routing.scale), 1);
  // Zero was written where nothing was meant.
  experts.routing.scale = scale == 0 ? 1.0f : float(scale);
  if (!(scale >= 0 && scale <= 1e6))
    builder.fail(makeError("{0} is {1}, expected 0 to 1000000",
                           source.keyPlace(hyper.prefix + "expert_weights_scale"),
                           shortText(scale)));
  int64_t size = experts.count / experts.groups;
  if (experts.count % experts.groups != 0 || experts.groupsUsed * size < experts.used ||
      (experts.groups > 1 && size < experts.routing.groupBest))
    builder.fail(makeError("{0} is {1}, but {2} of {3} experts can't come from {4} of {1} groups",
                           source.keyPlace(hyper.prefix + "expert_group_count"), experts.groups,
                           experts.used, experts.count, experts.groupsUsed));
  if (builder.failed())
    experts.count = 0;
  return experts;
}

bool isMixture(const ModelBuilder &builder, const std::string &layer) {
  return builder.hasTensor(layer + ".ffn_gate_inp.weight");
}

static Value route(ModelBuilder &builder, const Experts &experts, const std::string &layer,
                   Value input) {
  const Routing &routing = experts.routing;
  Value ratings = builder.linear(input, layer + ".ffn_gate_inp", experts.count);
  std::string name = layer + ".exp_probs_b.bias";
  Value bias = builder.hasTensor(name) ? builder.vector(name, experts.count) : Value();
  if (bias && routing.score == lm::Score::SoftmaxChosen) {
    builder.fail(makeError("{0}: tensor {1} ranks experts, which a softmax of the chosen ones "
                           "doesn't allow for; expert_gating_func is wrong",
                           builder.source().fileName(), quote(name)));
    bias = Value();
  }
  auto type = lm::RoutesType::get(builder.context(), experts.count, experts.used);
  auto unit = routing.normalize ? mlir::UnitAttr::get(builder.context()) : mlir::UnitAttr();
  int64_t best = experts.groups > 1 ? routing.groupBest : 1;
  mlir::Builder attributes(builder.context());
  auto integer = [&](int64_t value) { return attributes.getI64IntegerAttr(value); };
  return builder.create<lm::RouteOp>(
      type, ratings, bias, lm::ScoreAttr::get(builder.context(), routing.score), unit,
      attributes.getF32FloatAttr(routing.scale), integer(experts.groups),
      integer(experts.groupsUsed), integer(best));
}

llvm::SmallVector<Value, 2> mixture(ModelBuilder &builder, const Experts &experts,
                                    const std::string &layer, Value input) {
  int64_t width = lm::widthOf(input), hidden = experts.feedForward, count = experts.count;
  Value routes = route(builder, experts, layer, input);
  auto stack = [&](const char *name, int64_t rows, int64_t cols) {
    return builder.stack(layer + name + ".weight", count, rows, cols);
  };
  Value gate = stack(".ffn_gate_exps", hidden, width), up = stack(".ffn_up_exps", hidden, width);
  Value down = stack(".ffn_down_exps", width, hidden);
  llvm::SmallVector<Value> biases;
  if (builder.hasTensor(layer + ".ffn_gate_exps.bias"))
    for (auto [name, size] : {std::pair(".ffn_gate_exps.bias", hidden),
                              {".ffn_up_exps.bias", hidden},
                              {".ffn_down_exps.bias", width}})
      biases.push_back(builder.vectors(layer + name, count, size));
  const Routing &routing = experts.routing;
  Value sum = builder.create<lm::ExpertsOp>(input.getType(), input, routes, gate, up, down, biases,
                                            routing.gating, llvm::APFloat(routing.alpha),
                                            llvm::APFloat(routing.limit));
  if (experts.shared == 0)
    return {sum};
  Value sharedGate = builder.linear(input, layer + ".ffn_gate_shexp", experts.shared);
  Value sharedUp = builder.linear(input, layer + ".ffn_up_shexp", experts.shared);
  Value silu = builder.create<lm::SiluOp>(sharedGate.getType(), sharedGate);
  Value product = builder.create<lm::MulOp>(silu.getType(), silu, sharedUp);
  Value rows = builder.linear(product, layer + ".ffn_down_shexp", width);
  std::string gateName = layer + ".ffn_gate_inp_shexp.weight";
  if (!builder.hasTensor(gateName))
    return {sum, rows};
  // The shared part has a gate: one number a row.
  mlir::Type one = lm::rowsType(builder.context(), 1);
  Value weight = builder.matrix(gateName, 1, width);
  auto rating = builder.create<lm::LinearOp>(mlir::TypeRange(one), input, mlir::ValueRange(weight),
                                             mlir::ValueRange());
  Value factor = builder.create<lm::SigmoidOp>(one, rating.getResult(0));
  return {sum, builder.create<lm::ScaleRowsOp>(rows.getType(), rows, factor)};
}

llvm::ArrayRef<TensorRule> expertTensors() {
  static constexpr TensorRule rules[] = {
      {"blk.*.ffn_gate_inp.weight", "model.layers.*.mlp.gate.weight"},
      {"blk.*.exp_probs_b.bias", "model.layers.*.mlp.gate.e_score_correction_bias"},
      {"blk.*.ffn_gate_exps.weight", "model.layers.*.mlp.experts.#.gate_proj.weight"},
      {"blk.*.ffn_up_exps.weight", "model.layers.*.mlp.experts.#.up_proj.weight"},
      {"blk.*.ffn_down_exps.weight", "model.layers.*.mlp.experts.#.down_proj.weight"},
      {"blk.*.ffn_gate_shexp.weight", "model.layers.*.mlp.shared_experts.gate_proj.weight"},
      {"blk.*.ffn_up_shexp.weight", "model.layers.*.mlp.shared_experts.up_proj.weight"},
      {"blk.*.ffn_down_shexp.weight", "model.layers.*.mlp.shared_experts.down_proj.weight"},
      {"blk.*.ffn_gate_shexp.weight", "model.layers.*.mlp.shared_expert.gate_proj.weight"},
      {"blk.*.ffn_up_shexp.weight", "model.layers.*.mlp.shared_expert.up_proj.weight"},
      {"blk.*.ffn_down_shexp.weight", "model.layers.*.mlp.shared_expert.down_proj.weight"},
      {"blk.*.ffn_gate_inp_shexp.weight", "model.layers.*.mlp.shared_expert_gate.weight"},
      // Layers that guess further tokens, which are left out.
      {"", "model.layers.*.embed_tokens.weight"},
      {"", "model.layers.*.eh_proj.weight"},
      {"", "model.layers.*.enorm.weight"},
      {"", "model.layers.*.hnorm.weight"},
      {"", "model.layers.*.shared_head.**"},
  };
  return rules;
}

llvm::ArrayRef<TensorRule> mixtureTensors() {
  static const std::vector<TensorRule> rules = [] {
    std::vector<TensorRule> all = expertTensors().vec();
    llvm::append_range(all, decoderTensors());
    return all;
  }();
  return rules;
}

void expertKeys(FolderKeys &keys) {
  keys.copyCount("expert_count", "num_experts|num_local_experts|n_routed_experts");
  keys.copyCount("expert_used_count", "num_experts_per_tok");
  keys.copyCount("expert_feed_forward_length", "moe_intermediate_size");
  keys.copyFlag("expert_weights_norm", "norm_topk_prob");
  keys.copyNumber("expert_weights_scale", "routed_scaling_factor");
  keys.copyCount("expert_group_count", "n_group");
  keys.copyCount("expert_group_used_count", "topk_group");
  keys.copyCount("expert_shared_count", "n_shared_experts");
  keys.copyCount("leading_dense_block_count", "first_k_dense_replace");
  keys.copyCount("expert_shared_feed_forward_length", "shared_expert_intermediate_size");
  // Their number comes on top of the layers here, as one of them there.
  int64_t guesses = keys.count("num_nextn_predict_layers").value_or(0);
  auto layers = keys.count("num_hidden_layers");
  if (layers && guesses > 0 && guesses < 64) {
    keys.set("block_count", Json::of(*layers + guesses));
    keys.set("nextn_predict_layers", Json::of(guesses));
  }
}

} // namespace izhc
