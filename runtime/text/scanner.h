// Matching by the tables that the compiler made of patterns (tokenizer.fbs).

#pragma once

#include <cstdint>

#include "runtime/base/array.h"
#include "runtime/base/span.h"

namespace izh {

// The class of every character, shared by the patterns of a tokenizer. All
// numbers in it have been checked.
struct CharacterClasses {
  static constexpr uint32_t kPage = 128;
  static constexpr uint32_t kPages = 0x110000 / kPage;
  Span<const uint16_t> pages;
  Span<const uint8_t> classes;
  // Two more than there are classes.
  uint32_t symbols = 0;

  uint32_t of(uint32_t code_point) const {
    return classes[size_t{pages[code_point / kPage]} * kPage + code_point % kPage];
  }
};

// States of a scanner at places of a text from which no match can end any more.
// A match that had to look far for nothing leaves them behind, and later ones
// stop there: so all matches together take time in proportion to the text (as
// in "Maximal-munch" tokenization in linear time, Reps 1998). Places are the
// first characters of every kBlock bytes.
class DeadEnds {
 public:
  static constexpr uint32_t kBlock = 64;

  // Forgets all of them, for a text of `bytes` and a scanner of `states`.
  void start(uint32_t bytes, uint32_t states);
  bool has(uint32_t at, uint32_t state) const {
    return !bits_.empty() && (bits_[bit(at, state) / 64] >> bit(at, state) % 64 & 1) != 0;
  }
  // What the match at hand came through since it could have ended. Without
  // memory it is forgotten.
  void visit(uint32_t at, uint32_t state) { static_cast<void>(visited_.push({at, state})); }
  void clear_visited() { visited_.clear(); }
  // All of it was in vain.
  void add_visited();

 private:
  struct Place {
    uint32_t at;
    uint32_t state;
  };
  uint64_t bit(uint32_t at, uint32_t state) const {
    return uint64_t{at / kBlock} * states_ + state;
  }

  uint32_t bytes_ = 0, states_ = 0;
  Array<uint64_t> bits_;
  Array<Place> visited_;
};

class Scanner {
 public:
  // No transitions: there is no table.
  Scanner() = default;
  Scanner(const CharacterClasses* classes, Span<const uint16_t> transitions)
      : classes_(classes), transitions_(transitions) {}

  bool exists() const { return !transitions_.empty(); }

  // The first place from `at` on where a match may begin; `end` if there is none.
  uint32_t find_start(const uint8_t* text, uint32_t at, uint32_t end) const;

  struct Match {
    // Where the match ends that begins at `at`; `at` if there is none or it is empty.
    uint32_t end;
    // How far it had to look.
    uint32_t seen;
  };
  // `text` is UTF-8 up to `end`, and `at` < `end` begins a character. `dead` was
  // started for this scanner and text.
  Match match(const uint8_t* text, uint32_t at, uint32_t end, DeadEnds* dead) const;
  uint32_t states() const { return static_cast<uint32_t>(transitions_.size / classes_->symbols); }

 private:
  const CharacterClasses* classes_ = nullptr;
  Span<const uint16_t> transitions_;
};

}  // namespace izh
