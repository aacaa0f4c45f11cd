// What config.json says is applied or refused by name, whatever it holds.

#include "test/unit/compiler/import/folder_files.h"
#include "test/unit/compiler/models/fake_source.h"
#include "llvm/ADT/StringExtras.h"
#include <gmock/gmock.h>

namespace izhc::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A folder whose settings (as JSON) and tensors (as shapes) tests change.
struct Folder {
  std::map<std::string, std::string> config;
  std::map<std::string, std::vector<int>> tensors;
  // Of single tensors; others hold halves.
  std::map<std::string, std::vector<float>> values;

  llvm::Expected<std::unique_ptr<ModelSource>> open() const {
    std::string text;
    for (auto &[key, value] : config)
      text += (text.empty() ? "{\"" : ", \"") + key + "\": " + value;
    SafetensorsWriter weights;
    for (auto &[name, shape] : tensors) {
      size_t count = 1;
      std::string sizes;
      for (int size : shape) {
        count *= size_t(size);
        sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
      }
      auto given = values.find(name);
      weights.floats(name, "[" + sizes + "]",
                     given == values.end() ? std::vector<float>(count, 0.5f) : given->second);
    }
    static std::list<FolderFiles> kept;
    kept.emplace_back().add("config.json", text + "}").add("model.safetensors", weights.build());
    auto folder = kept.back().open();
    if (!folder)
      return folder.takeError();
    return presentFolder(std::move(*folder));
  }

  // The IR as text, or "error: " and the sentence.
  std::string build() const {
    auto source = open();
    if (!source)
      return "error: " + llvm::toString(source.takeError());
    mlir::MLIRContext context;
    llvm::Expected<Model> model = buildModel(**source, context);
    if (!model)
      return "error: " + llvm::toString(model.takeError());
    std::string text;
    llvm::raw_string_ostream stream(text);
    model->module->print(stream);
    return text;
  }
  // A number that the architecture reads, or `otherwise` if there is none.
  double number(const std::string &key, double otherwise = -1) const {
    return llvm::cantFail(llvm::cantFail(open())->getFloatOr(key, otherwise));
  }
  std::string with(const std::string &key, const std::string &value) const {
    Folder changed = *this;
    changed.config[key] = value;
    return changed.build();
  }
};

// Gives the products of attention with these letters biases, and no others.
void setBiases(Folder &folder, llvm::StringRef letters) {
  for (std::string layer : {"model.layers.0.", "model.layers.1."})
    for (auto [letter, size] : {std::pair('q', 8), {'k', 4}, {'v', 4}, {'o', 8}}) {
      std::string name = layer + "self_attn." + letter + "_proj.bias";
      folder.tensors.erase(name);
      if (letters.contains(letter))
        folder.tensors[name] = {size};
    }
}

// Two layers: 8 wide, 2 heads and 1 key head of 4, feed-forward 16, 10 tokens.
Folder decoderFolder(const std::string &type) {
  Folder folder;
  folder.config = {{"model_type", '"' + type + '"'},
                   {"hidden_size", "8"},
                   {"num_hidden_layers", "2"},
                   {"num_attention_heads", "2"},
                   {"num_key_value_heads", "1"},
                   {"intermediate_size", "16"},
                   {"head_dim", "4"},
                   {"max_position_embeddings", "512"},
                   {"rms_norm_eps", "1e-5"},
                   {"tie_word_embeddings", "true"}};
  folder.tensors = {{"model.embed_tokens.weight", {10, 8}}, {"model.norm.weight", {8}}};
  for (std::string layer : {"model.layers.0.", "model.layers.1."}) {
    for (auto name : {"input_layernorm", "post_attention_layernorm"})
      folder.tensors[layer + name + ".weight"] = {8};
    for (auto &[name, shape] : std::map<std::string, std::vector<int>>{{"self_attn.q_proj", {8, 8}},
                                                                       {"self_attn.k_proj", {4, 8}},
                                                                       {"self_attn.v_proj", {4, 8}},
                                                                       {"self_attn.o_proj", {8, 8}},
                                                                       {"mlp.gate_proj", {16, 8}},
                                                                       {"mlp.up_proj", {16, 8}},
                                                                       {"mlp.down_proj", {8, 16}}})
      folder.tensors[layer + name + ".weight"] = shape;
  }
  if (type == "qwen2" || type == "qwen2_moe" || type == "seed_oss")
    setBiases(folder, "qkv");
  if (type == "gpt_oss")
    setBiases(folder, "qkvo");
  return folder;
}

// The same with the norms of Gemma 3 and 4.
Folder gemmaFolder(const std::string &type) {
  Folder folder = decoderFolder(type);
  folder.config["layer_types"] = R"(["sliding_attention", "full_attention"])";
  folder.config["sliding_window"] = "8";
  folder.config["rope_parameters"] =
      R"({"full_attention": {"rope_theta": 1000000.0, "rope_type": "default"},
          "sliding_attention": {"rope_theta": 5000.0, "rope_type": "default"}})";
  for (std::string layer : {"model.layers.0.", "model.layers.1."}) {
    for (auto name : {"pre_feedforward_layernorm", "post_feedforward_layernorm"})
      folder.tensors[layer + name + ".weight"] = {8};
    for (auto name : {"self_attn.q_norm", "self_attn.k_norm"})
      folder.tensors[layer + name + ".weight"] = {4};
  }
  return folder;
}

// Its second layer sees all tokens with heads of 8.
Folder gemma4Folder() {
  Folder folder = gemmaFolder("gemma4_text");
  folder.config["global_head_dim"] = "8";
  std::string layer = "model.layers.1.self_attn.";
  folder.tensors[layer + "q_proj.weight"] = {16, 8};
  folder.tensors[layer + "k_proj.weight"] = {8, 8};
  folder.tensors[layer + "v_proj.weight"] = {8, 8};
  folder.tensors[layer + "o_proj.weight"] = {8, 16};
  folder.tensors[layer + "q_norm.weight"] = {8};
  folder.tensors[layer + "k_norm.weight"] = {8};
  return folder;
}

std::string place(const std::string &key) { return "error: folder/config.json: '" + key; }

TEST(FolderConfigTest, TakesNullForAbsent) {
  Folder folder = decoderFolder("llama");
  std::string plain = folder.build();
  EXPECT_THAT(plain, Not(StartsWith("error")));
  for (const char *key : {"sliding_window", "rope_theta", "rope_parameters", "rope_scaling",
                          "attention_bias", "mlp_bias", "hidden_act", "layer_types", "text_config"})
    EXPECT_EQ(folder.with(key, "null"), plain) << key;
}

TEST(FolderConfigTest, RefusesCountsOfAnotherKindOrOutOfRange) {
  Folder folder = decoderFolder("llama");
  for (const char *key :
       {"max_position_embeddings", "hidden_size", "num_hidden_layers", "intermediate_size",
        "num_attention_heads", "num_key_value_heads", "head_dim", "sliding_window"})
    for (const char *value :
         {"\"8\"", "-1", "1e300", "8.5", "99999999999999999999", "[8]", "{}", "true"})
      EXPECT_THAT(folder.with(key, value),
                  AllOf(StartsWith(place(key)), HasSubstr("expected an integer")))
          << value;
}

TEST(FolderConfigTest, NamesItsOwnKeyForWhatIsAbsurd) {
  Folder folder = decoderFolder("llama");
  for (const char *key : {"max_position_embeddings", "hidden_size", "num_hidden_layers",
                          "intermediate_size", "num_attention_heads", "num_key_value_heads"}) {
    EXPECT_THAT(folder.with(key, "0"), StartsWith(place(key))) << key;
    if (key != std::string("num_key_value_heads"))
      EXPECT_THAT(folder.with(key, "null"), StartsWith(place(key))) << key;
  }
  EXPECT_THAT(folder.with("rms_norm_eps", "-1"), StartsWith(place("rms_norm_eps")));
  EXPECT_THAT(folder.with("rope_theta", "1"), StartsWith(place("rope_theta")));
  EXPECT_THAT(folder.with("sliding_window", "4"), StartsWith(place("sliding_window")));
  folder.tensors.erase("model.layers.1.mlp.up_proj.weight");
  EXPECT_THAT(folder.build(), HasSubstr("'model.layers.1.mlp.up_proj.weight' is missing"));
}

TEST(FolderConfigTest, RefusesNumbersFlagsAndTextsOfAnotherKind) {
  Folder folder = decoderFolder("llama");
  for (const char *key : {"rms_norm_eps", "rope_theta", "partial_rotary_factor"})
    for (const char *value : {"\"1\"", "true", "[1]", "{}"})
      EXPECT_THAT(folder.with(key, value),
                  AllOf(StartsWith(place(key)), HasSubstr("expected a number")));
  for (const char *key :
       {"tie_word_embeddings", "attention_bias", "mlp_bias", "use_sliding_window", "is_causal"})
    for (const char *value : {"1", "\"yes\"", "[true]"})
      EXPECT_THAT(folder.with(key, value),
                  AllOf(StartsWith(place(key)), HasSubstr("expected true or false")));
  for (const char *value : {"5", "true", "[\"silu\"]"})
    EXPECT_THAT(folder.with("hidden_act", value),
                AllOf(StartsWith(place("hidden_act")), HasSubstr("expected a string")));
  EXPECT_THAT(folder.with("hidden_act", "\"relu\""), StartsWith(place("hidden_act' is 'relu'")));
  EXPECT_THAT(folder.with("text_config", "7"), StartsWith(place("text_config' is 7")));
  EXPECT_THAT(folder.with("is_causal", "false"), StartsWith(place("is_causal' is false")));
}

TEST(FolderConfigTest, RefusesKindsOfLayersThatTheArchitectureHasNot) {
  Folder folder = decoderFolder("qwen2");
  for (const char *value : {"7", "\"full_attention\"", "[1, 2]", "[\"full_attention\", \"other\"]",
                            "[\"sliding_attention\", \"full_attention\"]"})
    EXPECT_THAT(folder.with("layer_types", value), StartsWith(place("layer_types"))) << value;
  EXPECT_THAT(folder.with("layer_types", "[\"full_attention\", \"other\"]"),
              HasSubstr("'layer_types[1]' is 'other', expected 'full_attention'"));
}

TEST(FolderConfigTest, RefusesBiasesThatContradictTheirFlag) {
  Folder folder = decoderFolder("llama");
  EXPECT_THAT(folder.with("attention_bias", "true"),
              AllOf(HasSubstr("'model.layers.0.self_attn.q_proj.bias' is missing"),
                    HasSubstr("'attention_bias'")));
  EXPECT_THAT(folder.with("mlp_bias", "true"), HasSubstr("mlp.gate_proj.bias' is missing"));
  setBiases(folder, "qkv");
  EXPECT_THAT(folder.with("attention_bias", "true"),
              HasSubstr("'model.layers.0.self_attn.o_proj.bias' is missing"));
  setBiases(folder, "qkvo");
  EXPECT_THAT(folder.with("attention_bias", "true"), Not(StartsWith("error")));
  EXPECT_THAT(folder.with("attention_bias", "false"), HasSubstr("must not be there"));
  EXPECT_THAT(folder.build(), HasSubstr("config.json has no 'attention_bias', it must not"));
  folder.config["attention_bias"] = "true";
  folder.tensors.erase("model.layers.1.self_attn.k_proj.bias");
  EXPECT_THAT(folder.build(), HasSubstr("'model.layers.1.self_attn.k_proj.bias' is missing"));
}

// What their code has where config.json says nothing.
TEST(FolderConfigTest, KnowsWhichArchitecturesHaveBiases) {
  auto with = [](Folder folder, llvm::StringRef letters) {
    setBiases(folder, letters);
    return folder.build();
  };
  for (const char *type : {"llama", "mistral", "granite", "qwen3", "smollm3"})
    EXPECT_THAT(with(decoderFolder(type), "qkvo"), HasSubstr("q_proj.bias' is there")) << type;
  for (const char *type : {"qwen2", "seed_oss"}) {
    EXPECT_THAT(with(decoderFolder(type), ""), HasSubstr("q_proj.bias' is missing")) << type;
    EXPECT_THAT(with(decoderFolder(type), "qkv"), Not(StartsWith("error"))) << type;
    EXPECT_THAT(with(decoderFolder(type), "qkvo"), HasSubstr("o_proj.bias' is there")) << type;
  }
  EXPECT_THAT(with(decoderFolder("gpt_oss"), "qkv"), HasSubstr("o_proj.bias' is missing"));
  Folder glm = decoderFolder("glm4_moe");
  glm.config["attention_bias"] = "true";
  EXPECT_THAT(with(glm, "qkvo"), HasSubstr("o_proj.bias' is there"));
}

TEST(FolderRopeTest, RefusesParametersOfAnotherKind) {
  Folder folder = decoderFolder("llama");
  for (const char *key : {"rope_parameters", "rope_scaling"}) {
    for (const char *value : {"5", "\"linear\"", "[1]", "true"})
      EXPECT_THAT(folder.with(key, value),
                  AllOf(StartsWith(place(key)), HasSubstr("expected an object")));
    std::string factor = std::string(key) + ".factor";
    for (const char *value : {"\"8\"", "null", "-1", "0", "[8]"})
      EXPECT_THAT(
          folder.with(key, R"({"rope_type": "linear", "factor": )" + std::string(value) + "}"),
          StartsWith(place(factor)))
          << value;
    EXPECT_THAT(folder.with(key, R"({"rope_type": 3})"), StartsWith(place(key)));
    EXPECT_THAT(folder.with(key, R"({"rope_type": "dynamic", "factor": 2.0})"),
                AllOf(StartsWith(place(key)), HasSubstr("'dynamic'")));
    // Parameters by kind of layer would go unread.
    EXPECT_THAT(folder.with(key, R"({"full_attention": {"rope_theta": 5.0}})"),
                StartsWith(place(key + std::string(".full_attention"))));
    EXPECT_THAT(folder.with(key, R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                     "original_max_position_embeddings": 64})"),
                StartsWith(place(key + std::string(".high_freq_factor' is missing"))));
  }
}

TEST(FolderRopeTest, RefusesFactorsOfAnotherKindOrNumber) {
  Folder folder = decoderFolder("phi3");
  auto factors = [&](const std::string &values) {
    return folder.with("rope_scaling", R"({"type": "longrope", "long_factor": [1, 2],
                                           "short_factor": )" +
                                           values + "}");
  };
  for (const char *values : {"[1]", "[1, \"2\"]", "[1, 1e300]", "{}", "null"})
    EXPECT_THAT(factors(values), StartsWith(place("rope_scaling.short_factor"))) << values;
}

// The magnitude of cosines and sines: 0.1 m ln 8 + 1 = 1.2079 for m = 1,
// 1.1040 for m = 1/2.
TEST(FolderRopeTest, GrowsYarnAsTheFolderSays) {
  Folder folder = decoderFolder("llama");
  auto magnitude = [&](const std::string &more) {
    folder.config["rope_parameters"] =
        R"({"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64)" + more +
        "}";
    auto source = folder.open();
    if (!source)
      return "error: " + llvm::toString(source.takeError());
    double value = llvm::cantFail((*source)->getFloatOr("llama.rope.scaling.yarn_attn_factor", 0));
    return llvm::formatv("{0:F4}", value).str();
  };
  EXPECT_EQ(magnitude(""), "1.2079");
  EXPECT_EQ(magnitude(R"(, "mscale": 1.0, "mscale_all_dim": 0.5)"), "1.0942");
  EXPECT_EQ(magnitude(R"(, "mscale_all_dim": 0.5)"), "1.2079");
  EXPECT_EQ(magnitude(R"(, "mscale": 0.5, "attention_factor": 1.5)"), "1.5000");
  EXPECT_THAT(magnitude(R"(, "mscale": "1")"), StartsWith(place("rope_parameters.mscale")));
  EXPECT_THAT(folder.with("rope_parameters", R"({"rope_type": "yarn"})"),
              StartsWith(place("rope_parameters.factor' is missing")));
}

TEST(FolderWindowTest, WantsAWindowWhereLayersHaveOne) {
  for (const char *type : {"gemma2", "gemma3_text", "gemma4_text"}) {
    Folder folder = gemmaFolder(type);
    if (type == std::string("gemma2"))
      folder.config.erase("rope_parameters");
    for (const char *value : {"0", "null", "-1", "\"8\"", "8.0"})
      EXPECT_THAT(folder.with("sliding_window", value), StartsWith(place("sliding_window")))
          << type << ' ' << value;
  }
  Folder folder = gemmaFolder("gemma3_text");
  folder.config["layer_types"] = R"(["full_attention", "full_attention"])";
  EXPECT_THAT(folder.with("sliding_window", "null"), Not(StartsWith("error")));
}

TEST(FolderWindowTest, TakesGptOssLayersAsTheFolderNamesThem) {
  Folder folder = decoderFolder("gpt_oss");
  folder.config["layer_types"] = R"(["full_attention", "sliding_attention"])";
  auto source = llvm::cantFail(folder.open());
  EXPECT_THAT(*llvm::cantFail(source->getIntArray("gpt-oss.attention.sliding_window_pattern")),
              ElementsAre(0, 1));
}

TEST(FolderGemmaTest, RefusesRopeOfWindowsThatWouldBeIgnored) {
  for (Folder folder : {gemmaFolder("gemma3_text"), gemma4Folder()}) {
    EXPECT_THAT(folder.build(), Not(StartsWith("error")));
    auto near = [&](const std::string &parameters) {
      return folder.with("rope_parameters",
                         R"({"full_attention": {"rope_theta": 1e6, "rope_type": "default"},
                             "sliding_attention": {"rope_theta": 5000.0, )" +
                             parameters + "}}");
    };
    EXPECT_THAT(near(R"("rope_type": "linear", "factor": 2.0)"),
                StartsWith(place("rope_parameters.sliding_attention.rope_type' is 'linear'")));
    EXPECT_THAT(near(R"("partial_rotary_factor": 0.5)"),
                StartsWith(place("rope_parameters.sliding_attention.partial_rotary_factor")));
    EXPECT_THAT(near(R"("rope_type": 4)"),
                StartsWith(place("rope_parameters.sliding_attention.rope_type")));
    EXPECT_THAT(folder.with("rope_parameters", R"({"rope_theta": 5000.0})"),
                StartsWith(place("rope_parameters.full_attention' is missing")));
  }
}

TEST(FolderGemmaTest, CapsTheProductsOfGemma3) {
  EXPECT_THAT(gemmaFolder("gemma3_text").with("attn_logit_softcapping", "50.0"),
              HasSubstr("softcap 5.000000e+01"));
}

TEST(FolderGemmaTest, RefusesExpertsAndLostValuesOfGemma4) {
  Folder folder = gemma4Folder();
  EXPECT_THAT(folder.with("enable_moe_block", "true"), StartsWith(place("enable_moe_block")));
  EXPECT_THAT(folder.with("attention_k_eq_v", "true"), HasSubstr("must not be there"));
  for (const char *value : {"-1", "2", "\"1\""})
    EXPECT_THAT(folder.with("num_kv_shared_layers", value),
                StartsWith(place("num_kv_shared_layers")));
  for (const char *value : {"-1", "0", "7", "\"8\""})
    EXPECT_THAT(folder.with("global_head_dim", value), StartsWith(place("global_head_dim")));
  folder.tensors.erase("model.layers.1.self_attn.v_proj.weight");
  EXPECT_THAT(folder.with("attention_k_eq_v", "true"), Not(StartsWith("error")));
  for (const char *value : {"false", "null"})
    EXPECT_THAT(folder.with("attention_k_eq_v", value),
                AllOf(StartsWith("error"), HasSubstr("model.layers.1.self_attn.v_proj.weight")));
  folder.tensors.erase("model.layers.0.self_attn.v_proj.weight");
  EXPECT_THAT(folder.with("attention_k_eq_v", "true"),
              HasSubstr("model.layers.0.self_attn.v_proj.weight' is missing"));
}

TEST(FolderGemmaTest, RefusesSizesOfSingleLayersThatWouldBeIgnored) {
  Folder folder = gemma4Folder();
  EXPECT_THAT(folder.with("per_layer_config", R"({"1": {"head_dim": 8}})"),
              Not(StartsWith("error")));
  for (const char *value :
       {"5", "[]", "[1]", R"({"0": {"head_dim": 8}})", R"({"9": {"head_dim": 8}})", R"({"1": 8})",
        R"({"1": {"head_dim": 8, "hidden_size": 4}})"})
    EXPECT_THAT(folder.with("per_layer_config", value), StartsWith(place("per_layer_config")))
        << value;
}

// Without parameters a quarter of the frequencies turn: of heads of 8, the first.
TEST(FolderGemmaTest, TurnsLargeHeadsInPartUnlessGemma4SaysOtherwise) {
  Folder folder = gemma4Folder();
  auto divisors = [](const Folder &folder) {
    auto source = llvm::cantFail(folder.open());
    return floatsOf(*source->findTensor("rope_freqs.weight"));
  };
  EXPECT_THAT(divisors(folder), ElementsAre(1, 1, 1, 1));
  folder.config.erase("rope_parameters");
  EXPECT_THAT(divisors(folder), ElementsAre(1, 1e30f, 1e30f, 1e30f));
}

constexpr llvm::StringLiteral kSettings(R"(
head_dim layer_types rope_theta rope_parameters rope_scaling text_config sliding_window
sliding_window_pattern partial_rotary_factor hidden_act tie_word_embeddings num_experts
num_experts_per_tok moe_intermediate_size n_group topk_group n_shared_experts
num_nextn_predict_layers kv_lora_rank q_lora_rank qk_rope_head_dim qk_nope_head_dim v_head_dim
global_head_dim per_layer_config num_kv_shared_layers hidden_size_per_layer_input
query_pre_attn_scalar attn_logit_softcapping no_rope_layers no_rope_layer_interval full_attn_idxs
conv_L_cache block_multiple_of block_ffn_dim_multiplier linear_num_key_heads
linear_num_value_heads linear_value_head_dim full_attention_interval quantization_config
attention_multiplier logits_scaling hidden_size num_hidden_layers num_attention_heads
num_key_value_heads intermediate_size max_position_embeddings rms_norm_eps)");
constexpr llvm::StringLiteral kOddValues(R"(
null true -1 0 3 1073741824 9223372036854775807 0.5 -1e300 1e308 "" "x" [] [1] {}
["sliding_attention"] {"rope_type":"yarn","factor":1e9} {"0":{"head_dim":4}})");

// Whatever a value is, there is a model or a sentence about the folder. Each
// architecture gets a third of all pairs, since much is common.
TEST(FolderKindsTest, SurvivesAnyValueOfAnyKey) {
  llvm::SmallVector<llvm::StringRef> keys, values;
  llvm::SplitString(kSettings, keys);
  llvm::SplitString(kOddValues, values);
  size_t pair = 0;
  for (const ModelSpec *spec : allModels()) {
    if (!spec->folder)
      continue;
    ++pair;
    Folder folder = decoderFolder(spec->folder->types.front().str());
    for (llvm::StringRef key : keys)
      for (llvm::StringRef value : values) {
        if (++pair % 3 != 0)
          continue;
        std::string text = folder.with(key.str(), value.str());
        EXPECT_TRUE(!llvm::StringRef(text).starts_with("error") ||
                    llvm::StringRef(text).starts_with("error: folder"))
            << key.str() << ": " << value.str() << ": " << text;
      }
  }
}

TEST(FolderKindsTest, RefusesSettingsThatOtherArchitecturesHave) {
  EXPECT_THAT(decoderFolder("lfm2").with("conv_bias", "true"), StartsWith(place("conv_bias")));
  EXPECT_THAT(decoderFolder("qwen3_5_text").with("output_gate_type", R"("sigmoid")"),
              StartsWith(place("output_gate_type")));
  EXPECT_THAT(decoderFolder("qwen3_5_text").with("attn_output_gate", "false"),
              StartsWith(place("attn_output_gate")));
  EXPECT_THAT(decoderFolder("phi3").with("rope_scaling", R"({"type": "yarn"})"),
              StartsWith(place("rope_scaling")));
  EXPECT_THAT(decoderFolder("seed_oss").with("attention_out_bias", "true"),
              HasSubstr("o_proj.bias' is missing"));
  for (auto [key, value] : {std::pair("rope_interleave", "false"),
                            {"attention_bias", "true"},
                            {"topk_method", "\"greedy\""},
                            {"scoring_func", "\"tanh\""},
                            {"kv_lora_rank", "\"64\""}})
    EXPECT_THAT(decoderFolder("deepseek_v3").with(key, value), StartsWith(place(key)));
}

TEST(FolderKindsTest, CountsLayersWithoutRopeByTheirInterval) {
  Folder folder = decoderFolder("smollm3");
  folder.config["no_rope_layer_interval"] = "2";
  auto source = llvm::cantFail(folder.open());
  EXPECT_THAT(*llvm::cantFail(source->getIntArray("smollm3.rope.layers")), ElementsAre(1, 0));
  EXPECT_THAT(folder.with("no_rope_layers", "[1, \"0\"]"), StartsWith(place("no_rope_layers[1]")));
}

TEST(FolderKindsTest, TakesLfm2sNumbersOfAttentionLayers) {
  Folder folder = decoderFolder("lfm2");
  folder.config["full_attn_idxs"] = "[1]";
  auto source = llvm::cantFail(folder.open());
  EXPECT_THAT(*llvm::cantFail(source->getIntArray("lfm2.attention.head_count_kv")),
              ElementsAre(0, 1));
}

// Larger than what is compared at once: the last value alone may differ.
TEST(FolderOutputTest, TiesOnlyMatricesOfEqualBytes) {
  Folder folder = decoderFolder("llama");
  folder.tensors["model.embed_tokens.weight"] = folder.tensors["lm_head.weight"] = {40000, 8};
  auto hasOutput = [](const Folder &folder) {
    return llvm::cantFail(folder.open())->findTensor("output.weight") != nullptr;
  };
  EXPECT_FALSE(hasOutput(folder));
  std::vector<float> values(size_t(40000 * 8), 0.5f);
  values.back() = 0.25f;
  folder.values["lm_head.weight"] = values;
  EXPECT_TRUE(hasOutput(folder));
  folder.values.clear();
  folder.tensors["lm_head.weight"] = {39999, 8};
  EXPECT_TRUE(hasOutput(folder));
}

TEST(FolderLayersTest, RefusesTensorsOfLayersThatAreNotCounted) {
  Folder folder = decoderFolder("llama");
  EXPECT_THAT(folder.with("num_hidden_layers", "1"),
              AllOf(StartsWith("error: folder: the tensor 'model.layers.1."),
                    HasSubstr("'num_hidden_layers' in config.json is 1")));
  folder.config["num_nextn_predict_layers"] = "1";
  EXPECT_THAT(folder.with("num_hidden_layers", "1"), Not(StartsWith("error")));
  EXPECT_THAT(folder.with("num_hidden_layers", "0"),
              StartsWith("error: folder: the tensor 'model.layers.1."));
}

// What the published code has where config.json is silent.
TEST(FolderDefaultsTest, ScalesGranitesProductsByOne) {
  Folder folder = decoderFolder("granite");
  EXPECT_EQ(folder.number("granite.attention.scale"), 1);
  folder.config["attention_multiplier"] = "0.25";
  EXPECT_EQ(folder.number("granite.attention.scale"), 0.25);
}

TEST(FolderDefaultsTest, TurnsGptOssByYarn) {
  Folder folder = decoderFolder("gpt_oss");
  auto scaling = [&](const std::string &key) {
    return folder.number("gpt-oss.rope.scaling." + key);
  };
  for (const char *old : {"null", "{}"}) {
    folder.config["rope_scaling"] = old;
    EXPECT_EQ(folder.number("gpt-oss.rope.freq_base"), 150000);
    EXPECT_EQ(scaling("factor"), 32);
    EXPECT_EQ(scaling("yarn_beta_fast"), 32);
    EXPECT_EQ(scaling("yarn_beta_slow"), 1);
    auto source = llvm::cantFail(folder.open());
    EXPECT_EQ(llvm::cantFail(source->getUInt("gpt-oss.rope.scaling.original_context_length")),
              4096u);
    EXPECT_EQ(llvm::cantFail(source->getBool("gpt-oss.rope.scaling.yarn_truncate")), false);
  }
  folder.config["rope_parameters"] = R"({"rope_theta": 5000.0, "rope_type": "default"})";
  EXPECT_EQ(scaling("factor"), -1);
}

TEST(FolderDefaultsTest, TurnsMinistral3ByYarn) {
  Folder folder = decoderFolder("ministral3");
  EXPECT_EQ(folder.number("mistral3.rope.freq_base"), 1e6);
  EXPECT_EQ(folder.number("mistral3.rope.scaling.factor"), 16);
  // Both scales are 1, so that nothing grows.
  EXPECT_EQ(folder.number("mistral3.rope.scaling.yarn_attn_factor"), 1);
  EXPECT_NEAR(folder.number("mistral3.attention.temperature_scale"), 0.1, 1e-7);
  EXPECT_EQ(
      llvm::cantFail(
          llvm::cantFail(folder.open())->getUInt("mistral3.rope.scaling.original_context_length")),
      16384u);
  EXPECT_THAT(folder.with("rope_theta", "5000.0"), StartsWith(place("rope_theta")));
  folder.config["rope_parameters"] = R"({"rope_theta": 5000.0, "rope_type": "default"})";
  EXPECT_EQ(folder.number("mistral3.rope.freq_base"), 5000);
  EXPECT_EQ(folder.number("mistral3.attention.temperature_scale"), -1);
}

TEST(FolderDefaultsTest, CountsPhi3sFirstContext) {
  auto source = llvm::cantFail([] {
    Folder folder = decoderFolder("phi3");
    folder.config["rope_scaling"] =
        R"({"type": "longrope", "long_factor": [1, 2], "short_factor": [1, 1]})";
    return folder.open();
  }());
  EXPECT_EQ(llvm::cantFail(source->getUInt("phi3.rope.scaling.original_context_length")), 4096u);
}

// Some architectures have no flag that switches windows off.
TEST(FolderWindowTest, TakesTheFlagWhereTheArchitectureHasIt) {
  for (const char *type : {"mistral", "ministral3", "phi3"}) {
    Folder folder = decoderFolder(type);
    folder.config["use_sliding_window"] = "false";
    EXPECT_THAT(folder.with("sliding_window", "8"), StartsWith(place("sliding_window"))) << type;
  }
  // Refused unless the flag says that there is none.
  Folder folder = decoderFolder("llama");
  folder.config["sliding_window"] = "8";
  EXPECT_THAT(folder.build(), StartsWith(place("sliding_window")));
  EXPECT_THAT(folder.with("use_sliding_window", "false"), Not(StartsWith("error")));
}

TEST(FolderWindowTest, AssumesThatTheFlagOfSomeIsFalse) {
  for (const char *type : {"qwen2", "qwen3", "qwen2_moe", "qwen3_moe", "smollm3"}) {
    Folder folder = decoderFolder(type);
    folder.config["sliding_window"] = "8";
    EXPECT_EQ(folder.build().find("sliding_window"), std::string::npos) << type;
    EXPECT_THAT(folder.with("use_sliding_window", "true"), StartsWith(place("sliding_window")))
        << type;
  }
}

TEST(FolderWindowTest, AssumesMistralsWindowUnlessItIsNull) {
  Folder folder = decoderFolder("mistral");
  folder.config["max_position_embeddings"] = "8192";
  EXPECT_THAT(folder.build(), StartsWith(place("sliding_window' is 4096")));
  EXPECT_THAT(folder.with("sliding_window", "null"), Not(StartsWith("error")));
  EXPECT_THAT(folder.with("model_type", "\"llama\""), Not(StartsWith("error")));
}

TEST(FolderLfm2Test, TakesOldNames) {
  Folder folder = decoderFolder("lfm2");
  EXPECT_EQ(folder.number("lfm2.rope.freq_base"), 1e6);
  folder.config["theta"] = "5000.0";
  EXPECT_EQ(folder.number("lfm2.rope.freq_base"), 5000);
  EXPECT_THAT(folder.with("rope_theta", "6000.0"), StartsWith(place("theta' is 5000")));
  folder.config["rope_parameters"] = R"({"rope_theta": 7000.0, "rope_type": "default"})";
  EXPECT_EQ(folder.number("lfm2.rope.freq_base"), 7000);
  folder.config["tie_embedding"] = "false";
  EXPECT_THAT(folder.build(), StartsWith(place("tie_embedding' contradicts")));
  folder.config.erase("tie_word_embeddings");
  EXPECT_THAT(folder.build(), AllOf(HasSubstr("'lm_head.weight' is missing"),
                                    HasSubstr("'tie_embedding' in config.json")));
  EXPECT_THAT(folder.with("tie_embedding", "true"), Not(HasSubstr("lm_head")));
  // A copy of its own is no contradiction.
  folder.tensors["lm_head.weight"] = {10, 8};
  EXPECT_NE(llvm::cantFail(folder.open())->findTensor("output.weight"), nullptr);
}

} // namespace
} // namespace izhc::test
