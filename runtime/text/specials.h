// Finding special tokens in a text: they are cut out before anything is split
// or merged.

#pragma once

#include "runtime/base/array.h"
#include "runtime/text/tokenizer_view.h"

namespace izh {

// A part of a text: a special token, or (`token` -1) text between two of them.
struct Fragment {
  uint32_t begin;
  uint32_t end;
  int32_t token;
};

class SpecialFinder {
 public:
  // Looks for `specials`, which are those of `view` or its changed ones. Both must
  // outlive it.
  void create(const TokenizerView* view, const SpecialTokens* specials);

  // Replaces `fragments` with the parts of `text`, none of them empty. Of tokens
  // that overlap the first one counts, or longer ones are cut out before others
  // (then those with lower ids, then those further left), as the view says.
  // Control and unknown tokens only count if `parse_control`; user-defined ones
  // always do. False if there is no memory. Blanks beside tokens that take them
  // belong to their part. What must be a whole word and isn't remains text, and
  // nothing that overlaps it is looked for.
  [[nodiscard]] bool cut(const uint8_t* text, uint32_t bytes, bool parse_control,
                         Array<Fragment>* fragments) const;

 private:
  // A special token, by its index, and where it is in the text.
  struct Found {
    uint32_t at;
    uint32_t size;
    uint32_t index;
  };
  uint8_t strips_of(uint32_t index) const {
    return specials_->strips.empty() ? 0 : specials_->strips[index];
  }
  // Whether there is no word character beside what was found.
  bool is_whole(const uint8_t* text, uint32_t bytes, const Found& found) const;
  uint32_t next_start(const uint8_t* text, uint32_t at, uint32_t bytes) const;
  Found longest(const uint8_t* text, uint32_t bytes, bool parse_control) const;
  // Both append what is cut out, from left to right; false if there is no memory.
  [[nodiscard]] bool find_leftmost(const uint8_t* text, uint32_t bytes, bool parse_control,
                                   Array<Found>* found) const;
  [[nodiscard]] bool find_longest(const uint8_t* text, uint32_t bytes, bool parse_control,
                                  Array<Found>* found) const;

  const TokenizerView* view_ = nullptr;
  const SpecialTokens* specials_ = nullptr;
  // Of each byte whether a special token begins with it.
  bool begins_[256] = {};
};

}  // namespace izh
