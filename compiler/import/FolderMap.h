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

// Fills in the keys of a FolderModel. Errors are sticky, as in ModelBuilder: a
// value in config.json of another kind than asked for, or out of range, is one,
// and the function that met it answers as if there were none.
class FolderKeys {
public:
  // What a count may be at most: products of two fit in int64_t.
  static constexpr int64_t kMostCounted = 1 << 30;

  explicit FolderKeys(FolderModel &model) : model(model) {}

  // The value in config.json at this path (in `text_config` first, where there
  // is one), or nullptr if it is absent or null. Several paths, separated by
  // '|': the first that is there.
  const Json *find(llvm::StringRef paths) const;
  // True if config.json has the key itself, be it null.
  bool names(llvm::StringRef key) const;
  // A finite number from `low` to `high`.
  std::optional<double> number(llvm::StringRef paths, double low = -1e300,
                               double high = 1e300) const;
  // A number of things: an integer from `low` to kMostCounted.
  std::optional<int64_t> count(llvm::StringRef paths, int64_t low = 0) const;
  std::optional<bool> flag(llvm::StringRef paths) const;
  std::optional<llvm::StringRef> text(llvm::StringRef paths) const;
  // All values of a list, or empty if it is absent.
  std::vector<float> numbers(llvm::StringRef paths) const;
  std::vector<int64_t> counts(llvm::StringRef paths) const;
  // "layer_types" and the like: whether each entry is `value`; empty if absent.
  // What is neither that nor `other` is an error.
  std::vector<bool> equals(llvm::StringRef path, llvm::StringRef value,
                           llvm::StringRef other = {}) const;

  // What the functions above answer where config.json has no value: published
  // ones leave out what their architecture's code has anyway.
  void assume(llvm::StringRef path, Json value);

  // Sets ARCH.`ours` (ARCH: the map's architecture). `theirs` is the path that
  // the value comes from, for messages about it.
  void set(llvm::StringRef ours, Json value, llvm::StringRef theirs = {});
  void set(llvm::StringRef ours, const std::vector<bool> &values, llvm::StringRef theirs = {});
  void set(llvm::StringRef ours, const std::vector<int64_t> &values, llvm::StringRef theirs = {});
  // The value at `theirs`, if there is one.
  void copyNumber(llvm::StringRef ours, llvm::StringRef theirs);
  void copyCount(llvm::StringRef ours, llvm::StringRef theirs);
  void copyFlag(llvm::StringRef ours, llvm::StringRef theirs);
  // A float32 vector that the folder has no tensor for.
  void vector(llvm::StringRef tensor, llvm::ArrayRef<float> values);
  // Where the folder has the tensor `given` (GGUF's name, '*' is any number), it
  // must have `wanted` too, or must not, as `path` in config.json says. Checked
  // when all keys are set.
  void expect(llvm::StringRef path, llvm::StringRef given, llvm::StringRef wanted, bool present);
  void fail(llvm::Error error) const;
  // Fails with a sentence about config.json: what `text` says of the value at
  // `path` and is to be done about it.
  void refuse(llvm::StringRef path, const llvm::Twine &text) const;

  const FolderSource &source() const;
  llvm::StringRef fileName() const;

private:
  // A value, and which of several paths it is at.
  struct Place {
    llvm::StringRef path;
    const Json *value = nullptr;
  };
  Place locate(llvm::StringRef paths) const;
  template <typename T, typename Convert>
  std::optional<T> one(llvm::StringRef paths, const llvm::Twine &expected,
                       const Convert &convert) const;
  template <typename T, typename Convert>
  std::vector<T> list(llvm::StringRef paths, const llvm::Twine &expected,
                      const Convert &convert) const;
  void copy(llvm::StringRef ours, llvm::StringRef theirs, std::optional<Json> value);

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
