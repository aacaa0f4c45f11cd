// How a published model folder corresponds to what izh's architectures read:
// the metadata keys and tensor names of GGUF. An architecture's file holds one
// FolderMap as data and a function for its keys; FolderModel.h applies it.

#pragma once

#include "compiler/import/FolderSource.h"

namespace izhc {

// What happens to the values of a tensor on its way.
enum class Change : uint8_t {
  None,
  // For small tensors, which become float32:
  PlusOne,     // norms that are stored as the difference from 1
  NegativeExp, // -exp(x), for decays that are stored as logarithms
  // The last two sizes change places: matrices stored as input x output.
  Transpose,
};

// How many matrices of equal size lie one after the other in a stored one, which
// then is a stack. Called once a tensor.
using Split = llvm::Expected<int64_t> (*)(const FolderSource &source);

// Which rows (or columns) of a stored matrix make ours: element i is the index
// of ours number i. Of stacked matrices: within each. `count` is the number
// that the stored one has. Called once a tensor.
using Order = llvm::Expected<std::vector<int64_t>> (*)(const FolderSource &source, int64_t count);

struct TensorRule {
  // The GGUF name, for example "blk.*.attn_q.weight"; empty: left out.
  llvm::StringRef ours;
  // The name in the folder: '*' is a number that both names have, '#' the
  // number of an expert, over which ours is stacked; "**" at the end is any rest.
  llvm::StringRef theirs;
  Change change = Change::None;
  // Of the rows and columns as ours has them (after Change::Transpose); nullptr: all.
  Order rows = nullptr;
  Order cols = nullptr;
  Split split = nullptr;
};

class FolderModel;

// Fills in the keys of a FolderModel. Errors are sticky, as in ModelBuilder.
class FolderKeys {
public:
  explicit FolderKeys(FolderModel &model) : model(model) {}

  // The value in config.json at this path (in `text_config` first, where there
  // is one), or nullptr if it is absent or null. Several paths, separated by
  // '|': the first that is there.
  const Json *find(llvm::StringRef paths) const;
  std::optional<double> number(llvm::StringRef paths) const;
  std::optional<int64_t> integer(llvm::StringRef paths) const;
  std::optional<bool> flag(llvm::StringRef path) const;
  std::optional<llvm::StringRef> text(llvm::StringRef path) const;
  // "layer_types" and the like: whether each entry is `value`; empty if absent.
  std::vector<bool> equals(llvm::StringRef path, llvm::StringRef value) const;

  // What the functions above answer where config.json has no value: published
  // ones leave out what their architecture's code has anyway.
  void assume(llvm::StringRef path, Json value);

  // Sets ARCH.`ours` (ARCH: the map's architecture).
  void set(llvm::StringRef ours, Json value);
  void set(llvm::StringRef ours, const std::vector<bool> &values);
  void set(llvm::StringRef ours, const std::vector<int64_t> &values);
  // The value of `theirs`, if there is one.
  void copy(llvm::StringRef ours, llvm::StringRef theirs);
  // A float32 vector that the folder has no tensor for.
  void vector(llvm::StringRef tensor, llvm::ArrayRef<float> values);
  void fail(llvm::Error error);
  // What the folder holds is in an order that GGUF files don't have, so it can't
  // be written as one.
  void ownForm();

  const FolderSource &source() const;
  llvm::StringRef fileName() const;

private:
  FolderModel &model;
};

struct FolderMap {
  // Values of `model_type`.
  llvm::ArrayRef<llvm::StringRef> types;
  // The architecture that the model is presented as.
  llvm::StringRef architecture;
  // Tried in order; every rule that matches makes a tensor.
  llvm::ArrayRef<TensorRule> tensors;
  // Tried for names that no rule of `tensors` matched.
  llvm::ArrayRef<TensorRule> (*shared)() = nullptr;
  void (*keys)(FolderKeys &keys);
};

} // namespace izhc
