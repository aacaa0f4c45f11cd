// What the sections of all tokenizer kinds have in common, before it is written
// as a flatbuffer.

#pragma once

#include "compiler/tokenizers/ByteTrie.h"
#include "compiler/tokenizers/Tokenizers.h"
#include "compiler/tokenizers/Vocabulary.h"
#include "llvm/ADT/DenseSet.h"
#include <string>
#include <vector>

namespace izhc {

struct TokenizerTables {
  izh::schema::TokenizerKind kind = {};
  // Bytes of each token, as tokenizer.fbs wants them for this kind.
  std::vector<std::string> texts;
  std::vector<uint32_t> tokenSlots;
  std::vector<izh::schema::Merge> merges;
  std::vector<uint32_t> mergeSlots;
  std::vector<int32_t> byteTokens;
  std::vector<std::string> patterns;
  // Indices of patterns that must match everything.
  std::vector<size_t> covering;
  // See tokenizer.fbs; empty where words are cut by patterns.
  std::vector<uint8_t> joins;
  bool wholeWords = false;
  bool wordsAtSpaces = false;
  bool addBos = false;
  bool addEos = false;
  bool addSpacePrefix = false;
  // See tokenizer.fbs.
  bool spacePrefixOnce = false;
  bool spacePrefixSkips = false;
  bool splitSpaces = false;
  bool fuseUnknown = false;
  std::vector<TextStep> steps;
  std::vector<uint64_t> pieces;
  std::vector<double> preciseScores;
  double unknownScore = 0;
  bool userDefinedInside = false;
  bool leftmostSpecials = false;
  uint32_t longestWord = 100;
  // Special tokens that are looked for in what the first `stepsBeforeSpecials`
  // steps make of a text: what these make of the token, which no other becomes, and
  // its id.
  std::vector<std::pair<std::string, uint32_t>> changedSpecials;
  uint32_t stepsBeforeSpecials = 0;
  bool prefixInSteps = false;
  // Tokens that are special whatever else they are.
  llvm::DenseSet<uint32_t> cutOut;
  std::vector<uint8_t> byteCuts;
  // See tokenizer.fbs; of special tokens that have no such rule there is none.
  llvm::DenseMap<uint32_t, uint8_t> strips;
  bool byteMarks = false;
};

// The two sides of a merge.
using MergeText = std::pair<llvm::StringRef, llvm::StringRef>;

// Bytes that byte-level tokens stand for, and which of them words can be.
void fillByteTexts(const Vocabulary &vocabulary, TokenizerTables &tables,
                   std::vector<uint32_t> &words);
// The merges by rank; `name` is where they come from, for messages.
llvm::Error addMerges(const ModelSource &source, llvm::StringRef name, const Vocabulary &vocabulary,
                      llvm::ArrayRef<MergeText> merges, TokenizerTables &tables);
// The token of each byte: <0x00> to <0xFF>, or as they stand in the byte alphabet.
void fillByteTokens(const Vocabulary &vocabulary, bool alphabet, TokenizerTables &tables);
// Whether no text has a space after another character.
bool spacesOnlyLead(llvm::StringRef text);
// Adds the neighbours in a text that tokens can be made of.
void addJoins(llvm::StringRef text, TokenizerTables &tables);
// What is left once kind and tables are known: control tokens, ends, the section.
llvm::Expected<std::vector<uint8_t>>
finishTokenizer(const ModelSource &source, Vocabulary &vocabulary, TokenizerTables &tables);
// Builds the section from a folder's tokenizer.json.
llvm::Expected<std::vector<uint8_t>>
buildFromJson(const ModelSource &source, llvm::ArrayRef<uint8_t> bytes, TextChanger change);
// The same from its tokenizer.model.
llvm::Expected<std::vector<uint8_t>> buildFromPieces(const ModelSource &source,
                                                     llvm::ArrayRef<uint8_t> bytes);

// One function a kind of vocabulary: fills in the tables. They may change the
// vocabulary's special ids where the kind has defaults.
llvm::Expected<TokenizerTables> buildByteBpe(const ModelSource &source, Vocabulary &vocabulary,
                                             llvm::StringRef preTokenizer);
llvm::Expected<TokenizerTables> buildScoreBpe(const ModelSource &source, Vocabulary &vocabulary,
                                              llvm::StringRef preTokenizer);

// By a list of merges instead of scores.
llvm::Expected<TokenizerTables> buildRankBpe(const ModelSource &source, Vocabulary &vocabulary,
                                             llvm::StringRef preTokenizer);
// The merges of tokenizer.ggml.merges.
llvm::Error readMerges(const ModelSource &source, const Vocabulary &vocabulary,
                       TokenizerTables &tables);
// Texts, byte tokens and look-ups of tokens that are characters, once the merges
// are known. `fallback`: tokens like <0x00> stand for bytes.
llvm::Error fillCharacters(const ModelSource &source, Vocabulary &vocabulary, bool fallback,
                           TokenizerTables &tables);

// What BERT's tokenizers do to a text.
struct BertRules {
  bool clean = true, spaceIdeographs = true, stripAccents = true, lowercase = true;
};
void addBertSteps(const BertRules &rules, TokenizerTables &tables);
// Adds SentencePiece's map of characters, if it isn't empty; `where` it is from.
llvm::Error addCharsmap(llvm::Twine where, std::string map, TokenizerTables &tables);
// One space at a time, none at the ends.
void dropExtraSpaces(TokenizerTables &tables);
// Everything but steps and flags. User-defined tokens that are inside compete by
// scores, which this sets, and are not cut out of texts. Those that the file calls
// pieces compete by their own scores where they are not cut out.
llvm::Error fillUnigram(const ModelSource &source, Vocabulary &vocabulary, bool userDefinedInside,
                        TokenizerTables &tables);
// Texts of tokens as they stand in words, with kWordMark before what begins one.
using WordParts = std::vector<std::pair<std::string, uint32_t>>;
// Everything but steps, flags and the texts that ids stand for.
llvm::Error fillWordPiece(const ModelSource &source, const Vocabulary &vocabulary, WordParts parts,
                          TokenizerTables &tables);
// <0x00> to <0xFF>
std::string byteTokenText(unsigned byte);

llvm::Expected<TokenizerTables> buildUnigram(const ModelSource &source, Vocabulary &vocabulary,
                                             llvm::StringRef preTokenizer);
llvm::Expected<TokenizerTables> buildWordPiece(const ModelSource &source, Vocabulary &vocabulary,
                                               llvm::StringRef preTokenizer);

// The trie of the texts of `ids` (distinct, not empty) with their ids. Fails if
// looking for them at every place of a text could take long.
llvm::Expected<std::vector<uint64_t>> buildTokenTrie(const ModelSource &source,
                                                     llvm::ArrayRef<std::string> texts,
                                                     llvm::ArrayRef<uint32_t> ids);
// The same of any texts and ids; of equal texts the lowest id counts.
llvm::Expected<std::vector<uint64_t>> buildTokenTrie(const ModelSource &source,
                                                     std::vector<TrieEntry> entries);
// The slots of `ids` (of distinct texts), keyed by `texts`.
llvm::Expected<std::vector<uint32_t>> buildTokenSlots(const ModelSource &source,
                                                      llvm::ArrayRef<std::string> texts,
                                                      llvm::ArrayRef<uint32_t> ids);

} // namespace izhc
