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

inline uint32_t pages_for(uint64_t tokens) {
  return static_cast<uint32_t>((tokens + kPageTokens - 1) / kPageTokens);
}

}  // namespace izh
