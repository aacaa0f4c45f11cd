// What config.json says about rotary positions. Definitions: see Rope.cpp, and
// for "llama3" the ramp between the wavelengths that its factors name.

#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/support/Error.h"
#include "compiler/support/Numbers.h"
#include <algorithm>
#include <cmath>
#include <numbers>

namespace izhc {

namespace {

constexpr llvm::StringLiteral kOld("rope_scaling");

// The parameters of one kind of rotation.
class RopeFolder {
public:
  RopeFolder(FolderKeys &keys, llvm::StringRef where)
      : keys(keys), at(where.str()), isNew(keys.find(where) != nullptr) {}

  void apply();

private:
  // In an object of its own, or in that of old folders.
  std::string path(llvm::StringRef name) const {
    return llvm::formatv("{0}.{1}|{2}.{1}", at, name, kOld).str();
  }
  // The one of the two that messages name where neither is there.
  std::string shown(llvm::StringRef name) const {
    return llvm::formatv("{0}.{1}", isNew ? llvm::StringRef(at) : llvm::StringRef(kOld), name)
        .str();
  }
  std::string base() const { return at + ".rope_theta|rope_theta"; }
  std::string original() const {
    return path("original_max_position_embeddings") + "|original_max_position_embeddings";
  }
  std::optional<double> number(llvm::StringRef name, double low, double high) const {
    return keys.number(path(name), low, high);
  }
  // The same, which must be there.
  double need(llvm::StringRef name) const;
  double factor() const;
  void refuseKinds(llvm::StringRef place) const;
  void llama3();
  void yarn();
  void longrope();
  void factors(llvm::StringRef list, llvm::StringRef tensor);

  FolderKeys &keys;
  std::string at;
  bool isNew;
  int64_t rotary = 0;
};

double RopeFolder::need(llvm::StringRef name) const {
  if (auto found = number(name, 1e-6, 1e9))
    return *found;
  keys.refuse(shown(name), "is missing, which this rope type needs");
  return 1;
}

// By how much texts may be longer than those that the model was first trained for.
double RopeFolder::factor() const {
  if (auto found = number("factor", 1e-3, 1e6))
    return *found;
  auto context = keys.count("max_position_embeddings", 1), first = keys.count(original(), 1);
  if (context && first)
    return double(*context) / double(*first);
  return need("factor");
}

// Each kind of layer may have parameters of its own, which only some
// architectures know.
void RopeFolder::refuseKinds(llvm::StringRef place) const {
  const Json *all = keys.find(place);
  if (!all)
    return;
  if (!all->isObject())
    return keys.fail(keys.source().unexpected(place, *all, "an object"));
  for (size_t i = 0; i < all->items().size(); ++i)
    if (all->items()[i].isObject())
      keys.refuse((place + "." + all->key(i)).str(),
                  "is an object, but in this architecture all layers turn alike");
}

// One divisor a frequency: long waves are stretched, short ones are not, and
// between the two there is a ramp.
void RopeFolder::llama3() {
  double factor = need("factor"), low = need("low_freq_factor"), high = need("high_freq_factor");
  double original = need("original_max_position_embeddings");
  if (!(high > low))
    return keys.refuse(shown("high_freq_factor"), "is " + shortText(high) +
                                                      ", expected more than low_freq_factor " +
                                                      shortText(low));
  double theta = keys.number(base()).value_or(10000);
  std::vector<float> divisors;
  for (int64_t i = 0; i < rotary / 2; ++i) {
    double wave = 2 * std::numbers::pi * std::pow(theta, 2.0 * double(i) / double(rotary));
    double ramp = std::clamp((original / wave - low) / (high - low), 0.0, 1.0);
    divisors.push_back(float(1 / ((1 - ramp) / factor + ramp)));
  }
  keys.vector("rope_freqs.weight", divisors);
}

// Folders say how much cosines and sines grow in one of three ways; a zero says
// nothing.
void RopeFolder::yarn() {
  double by = factor();
  auto grown = [&](double scale) { return by <= 1 ? 1 : 0.1 * scale * std::log(by) + 1; };
  double one = number("mscale", 0, 1e3).value_or(0);
  double all = number("mscale_all_dim", 0, 1e3).value_or(0);
  double growth = one != 0 && all != 0 ? grown(one) / grown(all) : grown(1);
  growth = number("attention_factor", 1e-3, 1e3).value_or(growth);
  keys.set("rope.scaling.yarn_attn_factor", Json::of(growth), shown("attention_factor"));
  for (auto [ours, theirs] : {std::pair("rope.scaling.yarn_beta_fast", "beta_fast"),
                              {"rope.scaling.yarn_beta_slow", "beta_slow"}})
    if (auto turns = number(theirs, 0, 1e6).value_or(0))
      keys.set(ours, Json::of(turns), shown(theirs));
  keys.copyFlag("rope.scaling.yarn_truncate", path("truncate"));
  keys.set("rope.scaling.factor", Json::of(by), shown("factor"));
}

void RopeFolder::factors(llvm::StringRef list, llvm::StringRef tensor) {
  std::vector<float> values = keys.numbers(path(list));
  if (int64_t(values.size()) != rotary / 2)
    keys.refuse(shown(list), llvm::formatv("has {0} entries, expected {1}, one for each pair of "
                                           "values that are turned",
                                           values.size(), rotary / 2)
                                 .str());
  keys.vector(tensor, values);
}

void RopeFolder::longrope() {
  factors("long_factor", "rope_factors_long.weight");
  factors("short_factor", "rope_factors_short.weight");
  auto growth = number("attention_factor", 1e-3, 1e3);
  auto by = number("factor", 1e-3, 1e6);
  double first = double(keys.count(original(), 2).value_or(2));
  if (!growth && by)
    growth = *by <= 1 ? 1 : std::sqrt(1 + std::log(*by) / std::log(first));
  if (growth)
    keys.set("rope.scaling.attn_factor", Json::of(*growth), shown("attention_factor"));
}

void RopeFolder::apply() {
  keys.copyNumber("rope.freq_base", base());
  std::string part = at + ".partial_rotary_factor|partial_rotary_factor";
  rotary = int64_t(double(folderHeadDim(keys)) * keys.number(part, 0, 1).value_or(1));
  keys.set("rope.dimension_count", Json::of(rotary),
           keys.find(part) ? "partial_rotary_factor" : "head_dim");
  refuseKinds(at);
  refuseKinds(kOld);

  std::string named = path("rope_type") + "|" + path("type");
  llvm::StringRef type = keys.text(named).value_or("default");
  if (type == "default")
    return;
  if (type == "llama3")
    return llama3();
  if (type == "su")
    type = "longrope";
  if (type != "linear" && type != "yarn" && type != "longrope")
    return keys.refuse(shown("rope_type"), "is " + quote(type) +
                                               "; only 'default', 'linear', 'yarn', 'longrope' "
                                               "and 'llama3' can be compiled");
  keys.set("rope.scaling.type", Json::of(type));
  keys.copyCount("rope.scaling.original_context_length", original());
  if (type == "yarn")
    return yarn();
  if (type == "longrope")
    return longrope();
  keys.set("rope.scaling.factor", Json::of(need("factor")), shown("factor"));
}

} // namespace

void ropeKindKeys(FolderKeys &keys) {
  for (const char *kind : {"rope_parameters.full_attention", "rope_parameters.sliding_attention"})
    if (keys.find("rope_parameters") && !keys.find(kind))
      keys.refuse(kind, "is missing, which this architecture needs beside the other kind's");
}

void ropeSectionKeys(FolderKeys &keys) {
  constexpr llvm::StringLiteral where("rope_parameters.mrope_section|rope_scaling.mrope_section");
  std::vector<int64_t> sections = keys.counts(where);
  if (sections.empty())
    sections = {11, 11, 10};
  if (sections.size() > 4)
    return keys.refuse("rope_parameters.mrope_section",
                       "has " + llvm::Twine(sections.size()) + " entries, expected at most 4");
  sections.resize(4);
  keys.set("rope.dimension_sections", sections, where);
}

void ropeKeys(FolderKeys &keys, llvm::StringRef where) { RopeFolder(keys, where).apply(); }

void ropeBaseKey(FolderKeys &keys, llvm::StringRef ours, llvm::StringRef at, llvm::StringRef old) {
  std::string base = at.str() + ".rope_theta";
  keys.copyNumber(ours, old.empty() ? base : base + "|" + old.str());
  std::string type = at.str() + ".rope_type", share = at.str() + ".partial_rotary_factor";
  if (auto named = keys.text(type + "|" + at.str() + ".type"); named && *named != "default")
    keys.refuse(type, "is " + quote(*named) + "; only 'default' can be compiled for these layers");
  if (auto part = keys.number(share); part && *part != 1)
    keys.refuse(share, "is " + shortText(*part) + "; only 1 can be compiled for these layers");
}

} // namespace izhc
