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
  // Bits of TokenizerView::strips.
  uint8_t strips;
};

class SpecialFinder {
 public:
  // `view` must outlive it.
  void create(const TokenizerView* view);

  // Replaces `fragments` with the parts of `text`, none of them empty. Longer
  // tokens are cut out first, then those further left. Control and unknown
  // tokens only count if `parse_control`; user-defined ones always do. False if
  // there is no memory. Blanks beside tokens that take them belong to no part.
  [[nodiscard]] bool cut(const uint8_t* text, uint32_t bytes, bool parse_control,
                         Array<Fragment>* fragments) const;

 private:
  // Appends the indices of all specials that occur, each once.
  [[nodiscard]] bool find_present(const uint8_t* text, uint32_t bytes, bool parse_control,
                                  Array<uint32_t>* present) const;

  const TokenizerView* view_ = nullptr;
  // Specials that start with byte b: indices first_[b] to first_[b + 1].
  uint32_t first_[257] = {};
};

}  // namespace izh
