// Verification of the tokenizer section. This is the only file of the folder
// that reads the flatbuffer.

#include "runtime/text/tokenizer_view.h"

#include "runtime/base/status.h"
#include "runtime/schema/byte_trie.h"
#include "runtime/schema/tokenizer_generated.h"
#include "runtime/schema/tokenizer_hash.h"
#include "runtime/text/utf8.h"

namespace izh {
namespace {

static_assert(sizeof(MergeRule) == sizeof(schema::Merge));

constexpr uint32_t kMaxTokens = schema::kSlotValue;

template <typename T>
Span<const T> span_of(const flatbuffers::Vector<T>* vector) {
  return vector ? Span<const T>{vector->data(), vector->size()} : Span<const T>{};
}

// The sentence says what the section is; `what` says what is wrong with it.
izh_status bad(izh_error* error, const char* what) {
  return fail(error, IZH_BAD_ARTIFACT,
              "the artifact's tokenizer is damaged: %s; compile the model again", what);
}

bool ids_below(Span<const uint32_t> ids, uint32_t limit) {
  for (const uint32_t id : ids) {
    if (id >= limit) return false;
  }
  return true;
}

bool fits(int32_t id, uint32_t tokens) {
  return id >= -1 && (id < 0 || static_cast<uint32_t>(id) < tokens);
}

bool slots_fit(Span<const uint32_t> slots, size_t entries) {
  for (const uint32_t slot : slots) {
    const uint32_t number = slot & schema::kSlotValue;
    if (number > entries || (number == 0 && slot != 0)) return false;
  }
  return true;
}

izh_status check_texts(const TokenizerView& view, izh_error* error) {
  if (view.text_offsets[0] != 0 || view.text_offsets[view.tokens] != view.text.size) {
    return bad(error, "the texts of the tokens don't fill their section");
  }
  for (uint32_t i = 0; i < view.tokens; ++i) {
    if (view.text_offsets[i] > view.text_offsets[i + 1]) {
      return bad(error, "the texts of the tokens are out of order");
    }
    if (view.types[i] > static_cast<uint8_t>(TokenType::kByte)) {
      return bad(error, "a token has an unknown type");
    }
  }
  return IZH_OK;
}

int compare(Span<const uint8_t> a, Span<const uint8_t> b) {
  const size_t shared = a.size < b.size ? a.size : b.size;
  const int order = memcmp(a.data, b.data, shared);
  if (order != 0) return order;
  return a.size < b.size ? -1 : a.size > b.size;
}

izh_status check_specials(const TokenizerView& view, izh_error* error) {
  for (const SpecialTokens* specials : {&view.specials, &view.changed_specials}) {
    if (!specials->strips.empty() && specials->strips.size != specials->ids.size) {
      return bad(error, "there is not one rule for blanks a special token");
    }
    if (!ids_below(specials->ids, view.tokens)) {
      return bad(error, "a special token is not in the vocabulary");
    }
  }
  const Span<const uint32_t> ids = view.specials.ids;
  for (size_t i = 0; i < ids.size; ++i) {
    const Span<const uint8_t> text = view.token_text(ids[i]);
    // A text that is searched for them must not be cut inside of a character.
    if (text.empty() || !utf8_is_valid(text.data, text.size)) {
      return bad(error, "a special token's text is empty or not UTF-8");
    }
    if (i > 0 && compare(view.token_text(ids[i - 1]), text) >= 0) {
      return bad(error, "the special tokens are out of order");
    }
  }
  return IZH_OK;
}

izh_status check_tables(const TokenizerView& view, izh_error* error) {
  if (!slots_fit(view.token_slots, view.tokens) || !slots_fit(view.merge_slots, view.merges.size)) {
    return bad(error, "a look-up table points past its entries");
  }
  for (const MergeRule& merge : view.merges) {
    if (merge.left >= view.tokens || merge.right >= view.tokens || merge.result >= view.tokens) {
      return bad(error, "a merge names a token that is not in the vocabulary");
    }
  }
  if (view.byte_tokens.size != 256) return bad(error, "it doesn't say the token of every byte");
  for (const int32_t id : view.byte_tokens) {
    if (!fits(id, view.tokens)) return bad(error, "the token of a byte is not in the vocabulary");
  }
  for (const int32_t id : {view.bos, view.eos, view.eot, view.unk, view.pad}) {
    if (!fits(id, view.tokens)) return bad(error, "a special id is not in the vocabulary");
  }
  if ((view.add_bos && view.bos < 0) || (view.add_eos && view.eos < 0)) {
    return bad(error, "it adds a token that it doesn't have");
  }
  if (!ids_below(view.ends, view.tokens)) {
    return bad(error, "a token that ends text is not in the vocabulary");
  }
  if (!view.joins.empty() && view.joins.size != TokenizerView::kJoinBytes) {
    return bad(error, "it doesn't say of every two bytes whether tokens join them");
  }
  if (!view.byte_cuts.empty() && view.byte_cuts.size != TokenizerView::kCutBytes) {
    return bad(error, "it doesn't say of every two bytes whether words are cut there");
  }
  const bool scored = view.kind == TokenizerKind::kScoreBpe || view.kind == TokenizerKind::kUnigram;
  const size_t precise = view.precise_scores.size;
  if (scored && (view.scores.size != view.tokens || (precise != 0 && precise != view.tokens))) {
    return bad(error, "there is not one score a token");
  }
  return IZH_OK;
}

izh_status read_steps(const schema::Tokenizer* root, TokenizerView* view, izh_error* error) {
  view->step_count = 0;
  const size_t steps = root->normal_steps() ? root->normal_steps()->size() : 0;
  if (view->steps_before_specials > steps) {
    return bad(error, "special tokens are looked for behind more steps than there are");
  }
  if (steps == 0) return IZH_OK;
  if (root->normal_steps()->size() > schema::kMaxNormalSteps) {
    return bad(error, "it changes texts in too many steps");
  }
  for (const schema::NormalStep* step : *root->normal_steps()) {
    const auto kind = static_cast<NormalStepKind>(step->kind());
    if (kind > NormalStepKind::kPrepend) {
      return fail(error, IZH_BAD_ARTIFACT,
                  "the artifact's tokenizer changes texts in a way (%d) that this runtime doesn't "
                  "know: use a newer runtime",
                  static_cast<int>(kind));
    }
    view->steps[view->step_count++] = {kind, span_of(step->from()), span_of(step->to())};
  }
  return IZH_OK;
}

// Whether no look-up leads out of the trie, or to a value of `values` or more.
bool trie_fits(Span<const uint64_t> trie, size_t values) {
  if (trie.empty() || trie.size % schema::kTrieBlock != 0) return false;
  for (const schema::TrieUnit unit : trie) {
    if (schema::base_of(unit) >= trie.size) return false;
    if (schema::value_of(unit) >= static_cast<int64_t>(values)) return false;
  }
  return true;
}

izh_status check_tries(const TokenizerView& view, izh_error* error) {
  // Kinds that look tokens up by their starts.
  const bool needed =
      view.kind == TokenizerKind::kUnigram || view.kind == TokenizerKind::kWordPiece;
  const SpecialTokens& specials = view.specials;
  if ((needed && view.pieces.empty()) || (!specials.ids.empty() && specials.trie.empty())) {
    return fail(error, IZH_BAD_ARTIFACT,
                "the artifact's tokenizer is of an older format, without the tables that tokens "
                "are looked up in: compile the model again");
  }
  if (needed && !trie_fits(view.pieces, view.tokens)) {
    return bad(error, "there is no trie of its tokens, or a wrong one");
  }
  for (const SpecialTokens* each : {&specials, &view.changed_specials}) {
    if (!each->ids.empty() && !trie_fits(each->trie, each->ids.size)) {
      return bad(error, "there is no trie of its special tokens, or a wrong one");
    }
  }
  if (view.kind == TokenizerKind::kWordPiece && view.unk < 0) {
    return bad(error, "it has no token for unknown words");
  }
  return IZH_OK;
}

bool classes_fit(const CharacterClasses& classes) {
  constexpr uint32_t kPage = CharacterClasses::kPage;
  if (classes.symbols < 3 || classes.pages.size != CharacterClasses::kPages) return false;
  for (const uint16_t page : classes.pages) {
    if (size_t{page} * kPage + kPage > classes.classes.size) return false;
  }
  for (const uint8_t number : classes.classes) {
    if (number + 2u >= classes.symbols) return false;
  }
  return true;
}

bool transitions_fit(Span<const uint16_t> transitions, uint32_t symbols) {
  const size_t states = transitions.size / symbols;
  if (transitions.size % symbols != 0 || states == 1) return false;
  for (const uint16_t entry : transitions) {
    if (entry / 2u >= states) return false;
  }
  return true;
}

izh_status read_scanners(const schema::Tokenizer* root, const TokenizerView& view,
                         PatternList* patterns, izh_error* error) {
  if (!root->scanners()) return IZH_OK;
  if (root->scanners()->size() != patterns->count || !classes_fit(view.classes)) {
    return bad(error, "its classes of characters don't fit its patterns");
  }
  for (size_t i = 0; i < patterns->count; ++i) {
    const schema::Scanner* scanner = root->scanners()->Get(static_cast<uint32_t>(i));
    const Span<const uint16_t> transitions = span_of(scanner->transitions());
    if (!transitions_fit(transitions, view.classes.symbols)) {
      return bad(error, "the table of a pattern points past its states");
    }
    patterns->scanners[i] = Scanner(&view.classes, transitions);
  }
  return IZH_OK;
}

izh_status read_patterns(const schema::Tokenizer* root, PatternList* patterns, izh_error* error) {
  patterns->count = 0;
  if (!root->patterns()) return IZH_OK;
  if (root->patterns()->size() > schema::kMaxPatterns)
    return bad(error, "it has too many patterns");
  for (const flatbuffers::String* pattern : *root->patterns()) {
    if (pattern->size() > schema::kMaxPatternBytes) return bad(error, "a pattern is too long");
    patterns->items[patterns->count++] = {pattern->c_str(), pattern->size()};
  }
  return IZH_OK;
}

void fill(const schema::Tokenizer* root, TokenizerView* view) {
  view->kind = static_cast<TokenizerKind>(root->kind());
  view->tokens = root->types()->size();
  view->text_offsets = span_of(root->text_offsets());
  view->text = span_of(root->text());
  view->types = span_of(root->types());
  view->scores = span_of(root->scores());
  view->token_slots = span_of(root->token_slots());
  if (root->merges()) {
    view->merges = {reinterpret_cast<const MergeRule*>(root->merges()->Data()),
                    root->merges()->size()};
  }
  view->merge_slots = span_of(root->merge_slots());
  view->byte_tokens = span_of(root->byte_tokens());
  view->specials = {span_of(root->specials()), span_of(root->special_trie()),
                    span_of(root->strips())};
  view->changed_specials = {span_of(root->changed_specials()), span_of(root->changed_trie()),
                            span_of(root->changed_strips())};
  view->steps_before_specials = root->steps_before_specials();
  view->byte_cuts = span_of(root->byte_cuts());
  view->ends = span_of(root->ends());
  view->joins = span_of(root->joins());
  view->precise_scores = span_of(root->precise_scores());
  view->pieces = span_of(root->pieces());
  view->unknown_score = root->unknown_score();
  view->longest_word = root->longest_word();
  view->byte_marks = root->byte_marks();
  view->user_defined_inside = root->user_defined_inside();
  view->leftmost_specials = root->leftmost_specials();
  view->classes.pages = span_of(root->character_pages());
  view->classes.classes = span_of(root->character_classes());
  view->classes.symbols = root->symbols();
  view->whole_words = root->whole_words();
  view->words_at_spaces = root->words_at_spaces();
  view->add_bos = root->add_bos();
  view->add_eos = root->add_eos();
  view->add_space_prefix = root->add_space_prefix();
  view->space_prefix_once = root->space_prefix_once();
  view->space_prefix_skips = root->space_prefix_skips();
  view->prefix_in_steps = root->prefix_in_steps();
  view->split_spaces = root->split_spaces();
  view->fuse_unknown = root->fuse_unknown();
  view->bos = root->bos();
  view->eos = root->eos();
  view->eot = root->eot();
  view->unk = root->unk();
  view->pad = root->pad();
}

}  // namespace

int32_t TokenizerView::find_token(const uint8_t* bytes, size_t count) const {
  const uint32_t slots = static_cast<uint32_t>(token_slots.size);
  if (slots == 0) return -1;
  const uint64_t hash = schema::hash_bytes(bytes, count);
  uint32_t slot = schema::home_slot(hash, slots);
  for (uint32_t probe = 0; probe < schema::kMaxProbes; ++probe) {
    const uint32_t found = token_slots[slot];
    if (found == 0) return -1;
    if ((found & ~schema::kSlotValue) == schema::slot_tag(hash)) {
      const uint32_t id = (found & schema::kSlotValue) - 1;
      const Span<const uint8_t> text = token_text(id);
      if (text.size == count && memcmp(text.data, bytes, count) == 0) {
        return static_cast<int32_t>(id);
      }
    }
    slot = slot + 1 == slots ? 0 : slot + 1;
  }
  return -1;
}

int32_t TokenizerView::find_merge(uint32_t left, uint32_t right) const {
  const uint32_t slots = static_cast<uint32_t>(merge_slots.size);
  if (slots == 0) return -1;
  const uint64_t hash = schema::hash_pair(left, right);
  uint32_t slot = schema::home_slot(hash, slots);
  for (uint32_t probe = 0; probe < schema::kMaxProbes; ++probe) {
    const uint32_t found = merge_slots[slot];
    if (found == 0) return -1;
    if ((found & ~schema::kSlotValue) == schema::slot_tag(hash)) {
      const uint32_t rank = (found & schema::kSlotValue) - 1;
      const MergeRule& merge = merges[rank];
      if (merge.left == left && merge.right == right) return static_cast<int32_t>(rank);
    }
    slot = slot + 1 == slots ? 0 : slot + 1;
  }
  return -1;
}

izh_status view_tokenizer(const void* section, size_t bytes, TokenizerView* view,
                          PatternList* patterns, izh_error* error) {
  if (reinterpret_cast<uintptr_t>(section) % 8 != 0) return bad(error, "it is not aligned");
  // Smaller sections have no room for the identifier.
  if (bytes < 16 || bytes > INT32_MAX) return bad(error, "it has an impossible size");
  flatbuffers::Verifier verifier(static_cast<const uint8_t*>(section), bytes);
  if (!schema::VerifyTokenizerBuffer(verifier)) {
    return bad(error, "its references don't fit together");
  }
  const schema::Tokenizer* root = schema::GetTokenizer(section);
  if (root->kind() > schema::TokenizerKind::WordPiece) {
    return fail(error, IZH_BAD_ARTIFACT,
                "the artifact's tokenizer is of kind %d, which this runtime doesn't know: "
                "use a newer runtime",
                static_cast<int>(root->kind()));
  }
  fill(root, view);
  if (view->tokens == 0 || view->tokens > kMaxTokens ||
      view->text_offsets.size != size_t{view->tokens} + 1) {
    return bad(error, "the number of tokens is impossible");
  }
  IZH_TRY(check_texts(*view, error));
  IZH_TRY(check_specials(*view, error));
  IZH_TRY(check_tables(*view, error));
  IZH_TRY(check_tries(*view, error));
  IZH_TRY(read_steps(root, view, error));
  IZH_TRY(read_patterns(root, patterns, error));
  return read_scanners(root, *view, patterns, error);
}

}  // namespace izh
