// Splitting text into words by the artifact's patterns.

#pragma once

#include "runtime/base/array.h"
#include "runtime/text/tokenizer_view.h"

namespace izh {

// Shared between threads once created.
class Splitter {
 public:
  Splitter() = default;
  Splitter(const Splitter&) = delete;
  Splitter& operator=(const Splitter&) = delete;
  ~Splitter();

  // Compiles the patterns that have no scanner. Called once; the scanners' tables
  // must outlive this.
  [[nodiscard]] izh_status create(const PatternList& patterns, izh_error* error);

  // Memory of one thread's calls to split.
  class Scratch {
   public:
    Scratch() = default;
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch();

   private:
    friend class Splitter;
    void* match_data = nullptr;
    void* match_context = nullptr;
    Array<uint32_t> pieces;
    DeadEnds dead;
  };

  // Replaces `ends` with the end of every word of `text`, which is UTF-8 and
  // shorter than 2^31 bytes. Words are not empty and fill the text.
  [[nodiscard]] izh_status split(const uint8_t* text, uint32_t bytes, Scratch* scratch,
                                 Array<uint32_t>* ends, izh_error* error) const;

 private:
  [[nodiscard]] izh_status prepare(uint32_t bytes, Scratch* scratch, izh_error* error) const;
  // Both split text[begin..end) by one pattern and append to `ends`.
  [[nodiscard]] izh_status scan_piece(size_t pattern, const uint8_t* text, uint32_t begin,
                                      uint32_t end, DeadEnds* dead, uint64_t* steps,
                                      Array<uint32_t>* ends, izh_error* error) const;
  [[nodiscard]] izh_status split_piece(size_t pattern, const uint8_t* text, uint32_t begin,
                                       uint32_t end, Scratch* scratch, Array<uint32_t>* ends,
                                       izh_error* error) const;

  void* general_ = nullptr;
  void* codes_[schema::kMaxPatterns] = {};
  Scanner scanners_[schema::kMaxPatterns];
  size_t count_ = 0;
};

}  // namespace izh
