// Matching by the tables that the compiler made of patterns (tokenizer.fbs).

#pragma once

#include <cstdint>

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
  // `text` is UTF-8 up to `end`, and `at` < `end` begins a character.
  Match match(const uint8_t* text, uint32_t at, uint32_t end) const;

 private:
  const CharacterClasses* classes_ = nullptr;
  Span<const uint16_t> transitions_;
};

}  // namespace izh
