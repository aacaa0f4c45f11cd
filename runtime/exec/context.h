// A context and its sequences: the memory and the threads that run a model.

#pragma once

#include <cstdint>

#include "runtime/base/array.h"
#include "runtime/exec/device_program.h"
#include "runtime/exec/model.h"
#include "runtime/exec/page_pool.h"
#include "runtime/exec/program.h"
#include "runtime/include/izh/izh.h"
#include "runtime/platform/read_ahead.h"
#include "runtime/platform/team.h"

struct izh_sequence {
  izh_context* context = nullptr;
  uint32_t length = 0;        // tokens in the cache
  uint32_t slot = 0;          // its page of states that have one a sequence
  uint64_t run = 0;           // the last run that named this sequence
  izh::Array<int32_t> pages;  // room for a full context is reserved
  // Tokens that were written at any time since the sequence was last empty:
  // what a ring holds ends there.
  uint32_t written = 0;
};

struct izh_context {
  const izh_model* model = nullptr;
  izh::Team* team = nullptr;
  izh::Program program;
  izh::DeviceProgram* device = nullptr;  // in place of the program, the arena and the pools
  uint32_t tokens = 0;                   // capacity, of all sequences together
  uint32_t max_sequences = 0;
  uint32_t used_tokens = 0;  // sum of the sequences' lengths
  uint64_t runs = 0;
  izh::ReadAhead* read_ahead = nullptr;
  void* arena = nullptr;
  uint64_t pool_pages = 0;
  // Pages that each sequence has for itself in the pools of states with a window,
  // as a ring: page p of the sequence is page p % ring of them. 0: rings would take
  // more than the pages of whole sequences, and these are used.
  uint32_t ring = 0;
  izh::Array<void*> pools;  // of each state: pool_pages pages, zero at first
  izh::PagePool pages;
  izh::Array<int32_t> input_memory;
  int32_t* inputs[izh::kInputs] = {};
  izh::Array<izh_sequence*> sequences;
};

namespace izh {

// Makes the sequence's table cover `length` tokens; the pool has the pages.
void sequence_cover(izh_sequence* sequence, uint32_t length);

// Gives back the pages that `length` tokens do not need.
void sequence_cut(izh_sequence* sequence, uint32_t length);

// Where page `number` of the sequence is in the pools of states with a window.
inline int32_t window_page(const izh_sequence& sequence, uint32_t number) {
  const uint32_t ring = sequence.context->ring;
  return ring ? static_cast<int32_t>(sequence.slot * ring + number % ring) : sequence.pages[number];
}

inline uint32_t pages_for(uint64_t tokens) {
  return static_cast<uint32_t>((tokens + kPageTokens - 1) / kPageTokens);
}

}  // namespace izh
