// What a compilation has to tell although it succeeded.

#pragma once

#include "compiler/pipeline/Compile.h"
#include "tools/izhc/TokenizerCheck.h"
#include "llvm/Support/raw_ostream.h"

namespace izhc::tool {

// Which files beside the model its tokenizer was compared with.
void noteVectors(const CheckedTokenizer &tokenizer, llvm::raw_ostream &out);

// That texts may become longer than the artifact allows, and how.
void noteShorterContext(const CompileOptions &options, const CompileReport &report,
                        llvm::raw_ostream &out);

// Which commands of izh-rt will refuse the artifact.
void noteMissingParts(const CompileOptions &options, const CompileReport &report,
                      llvm::raw_ostream &out);

// That the chat template can't begin a conversation, and why.
void noteTemplate(const CompileOptions &options, const CompileReport &report,
                  llvm::raw_ostream &out);

// How many matrices have rows that the formats of the recipe don't divide, and
// what the weights take with the formats that they got instead.
void noteOtherFormats(const CompileOptions &options, const CompileReport &report,
                      llvm::raw_ostream &out);

// That weights which were quantized before are quantized again.
void noteEncodedTwice(const CompileOptions &options, const CompileReport &report,
                      llvm::raw_ostream &out);

} // namespace izhc::tool
