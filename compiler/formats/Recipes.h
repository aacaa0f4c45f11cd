// Recipes: which format each tensor of a model gets when it is quantized.
// Names of recipes stand only here.

#pragma once

#include "compiler/formats/Format.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

namespace izhc {

struct Recipe {
  llvm::StringRef name;
  uint32_t fileType;    // how GGUF files number it (general.file_type)
  llvm::StringRef base; // the format of most matrices
  // Of matrices that errors weigh more in: values and the way back from the
  // feed-forward layer. `Some`: in the first and last eighth of the layers and
  // in every third; `First`: in the first eighth (values: first four layers).
  llvm::StringRef better;
  enum Where : uint8_t { Nowhere, First, Some } where;
  llvm::StringRef output; // of the output matrix, also where it is the embedding
};

llvm::ArrayRef<Recipe> allRecipes();
// nullptr if there is none.
const Recipe *findRecipe(llvm::StringRef name);
// Never nullptr: an error that lists all recipes.
llvm::Expected<const Recipe *> requireRecipe(llvm::StringRef name);

// What a choice depends on.
struct TensorFacts {
  llvm::StringRef name;          // as GGUF files call it
  llvm::ArrayRef<int64_t> shape; // columns first
  int64_t layers;                // of the model
  bool tied;                     // the embedding is the output matrix too
};

// nullptr: the tensor stays as it is (vectors, routers, convolutions, rows that
// are no whole blocks of any format of the recipe).
const FormatSpec *chooseFormat(const Recipe &recipe, const TensorFacts &tensor);

// Formats to choose from for this tensor, each fitting its rows, by ascending bits
// up to `stored` itself; empty: the tensor stays as it is.
llvm::SmallVector<const FormatSpec *> formatLadder(const TensorFacts &tensor,
                                                   const FormatSpec &stored);

// `format`, or the next one with blocks that divide rows of `cols` weights;
// nullptr if there is none.
const FormatSpec *fittingFormat(const FormatSpec &format, int64_t cols);

} // namespace izhc
