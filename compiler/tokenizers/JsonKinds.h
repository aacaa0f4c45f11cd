// The kinds of what tokenizer files say. Readers ask for one kind and go by a
// default where a key is absent; this tells what is there but of another kind.

#pragma once

#include "compiler/support/Json.h"

namespace izhc {

// Checks the keys that readers know in `json`, which is of the file `file`, and,
// if `deep`, in what lies inside of it. Vocabulary and merges are left to their
// readers.
llvm::Error checkKinds(llvm::StringRef file, const Json &json, bool deep);

} // namespace izhc
