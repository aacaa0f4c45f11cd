// Builds the flatbuffer of an artifact from the compiler's structures.

#include "compiler/emit/Layout.h"
#include "runtime/schema/artifact_generated.h"
#include "llvm/ADT/STLExtras.h"

namespace izhc::emit {
namespace {

namespace fb = izh::schema;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

fb::Section section(const SectionPlace &place) {
  return fb::Section(place.offset, place.size, place.hash);
}

Offset<fb::Model> buildModel(FlatBufferBuilder &builder, const Facts &facts) {
  auto architecture = builder.CreateString(facts.architecture);
  auto name = builder.CreateString(facts.name);
  auto chatTemplate = builder.CreateString(facts.chatTemplate);
  fb::ModelBuilder model(builder);
  model.add_architecture(architecture);
  model.add_name(name);
  model.add_vocabulary(facts.vocabulary);
  model.add_context(facts.context);
  model.add_embedding(facts.embedding);
  model.add_layers(facts.layers);
  model.add_parameters(facts.parameters);
  model.add_chat_template(chatTemplate);
  return model.Finish();
}

Offset<fb::Dispatch> buildDispatch(FlatBufferBuilder &builder, const Dispatch &dispatch) {
  std::vector<fb::Binding> bindings;
  for (const Binding &binding : dispatch.bindings)
    bindings.emplace_back(binding.offset, binding.size, static_cast<fb::Space>(binding.space));
  auto list = builder.CreateVectorOfStructs(bindings);
  return fb::CreateDispatch(builder, dispatch.kernel, list, dispatch.units,
                            static_cast<fb::Extent>(dispatch.extent), dispatch.grain);
}

Offset<fb::Plan> buildPlan(FlatBufferBuilder &builder, const Plan &plan) {
  auto kernels = builder.CreateVectorOfStrings(plan.kernels);
  std::vector<Offset<fb::Dispatch>> dispatches;
  for (const Dispatch &dispatch : plan.dispatches)
    dispatches.push_back(buildDispatch(builder, dispatch));
  auto dispatchList = builder.CreateVector(dispatches);
  std::vector<Offset<fb::State>> states;
  for (auto [index, pageBytes] : llvm::enumerate(plan.statePageBytes)) {
    auto window = plan.stateWindows.find(index);
    states.push_back(fb::CreateState(builder, pageBytes,
                                     llvm::is_contained(plan.sequenceStates, index),
                                     window == plan.stateWindows.end() ? 0 : window->second));
  }
  auto stateList = builder.CreateVector(states);
  fb::PlanBuilder result(builder);
  result.add_kernels(kernels);
  result.add_dispatches(dispatchList);
  result.add_states(stateList);
  result.add_arena_bytes(plan.arenaBytes);
  result.add_max_tokens(plan.maxTokens);
  result.add_max_outputs(plan.maxOutputs);
  result.add_tile_tokens(plan.tileTokens);
  result.add_page_tokens(plan.pageTokens);
  result.add_logits_offset(plan.logitsOffset);
  result.add_span_tokens(plan.spanTokens);
  result.add_max_partials(plan.maxPartials);
  result.add_token_bytes(plan.tokenBytes);
  result.add_token_operations(plan.tokenOperations);
  result.add_output_operations(plan.outputOperations);
  return result.Finish();
}

Offset<fb::Variant> buildVariant(FlatBufferBuilder &builder, const Variant &variant,
                                 const SectionPlace &place) {
  auto name = builder.CreateString(variant.name);
  auto arch = builder.CreateString(variant.arch);
  auto entries = builder.CreateVector(variant.code.entries);
  fb::Section code = section(place);
  return fb::CreateVariant(builder, name, arch, variant.features, variant.rank, &code, entries);
}

using WeightList = Offset<flatbuffers::Vector<Offset<fb::Weight>>>;

WeightList buildWeights(FlatBufferBuilder &builder, const Plan &plan, const Layout &layout) {
  std::vector<Offset<fb::Weight>> weights;
  for (auto [index, weight] : llvm::enumerate(plan.weights)) {
    auto name = builder.CreateString(weight.name);
    auto format = builder.CreateSharedString(weight.format->name.str());
    weights.push_back(fb::CreateWeight(builder, name, format, weight.rows, weight.cols,
                                       weight.offset, weight.size, layout.weightHashes[index],
                                       false, weight.view.first, weight.view.run,
                                       weight.view.stride, weight.count));
  }
  for (auto [index, constant] : llvm::enumerate(plan.constants)) {
    auto name = builder.CreateString(constant.name);
    auto format = builder.CreateSharedString(std::string("f32"));
    weights.push_back(fb::CreateWeight(builder, name, format, 1, constant.count, constant.offset,
                                       constant.count * sizeof(float), layout.constantHashes[index],
                                       true));
  }
  return builder.CreateVector(weights);
}

} // namespace

flatbuffers::DetachedBuffer buildRoot(const ArtifactInput &input, const Layout &layout) {
  FlatBufferBuilder builder(1 << 16);
  // Zeros are written too, or the size would depend on the numbers.
  builder.ForceDefaults(true);
  auto model = buildModel(builder, input.facts);
  auto plan = buildPlan(builder, input.plan);
  std::vector<Offset<fb::Variant>> variants;
  for (auto [variant, place] : llvm::zip_equal(input.variants, layout.code))
    variants.push_back(buildVariant(builder, variant, place));
  auto variantList = builder.CreateVector(variants);
  auto weights = buildWeights(builder, input.plan, layout);
  auto provenance = fb::CreateProvenanceDirect(
      builder, input.provenance.compiler.c_str(), input.provenance.commandLine.c_str(),
      input.provenance.source.c_str(), layout.sourceHash.c_str(), input.provenance.recipe.c_str());
  fb::Section weightsSection = section(layout.weights);
  fb::Section constantsSection = section(layout.constants);
  fb::Section tokenizerSection = section(layout.tokenizer);
  fb::Section ggufSection = section(layout.gguf);
  auto root = fb::CreateArtifact(builder, model, plan, variantList, weights, &weightsSection,
                                 &constantsSection, &tokenizerSection, provenance, &ggufSection);
  fb::FinishArtifactBuffer(builder, root);
  return builder.Release();
}

} // namespace izhc::emit
