// Brings a mapped file into memory ahead of whoever reads it.

#pragma once

#include <cstdint>

#include "runtime/platform/file.h"

namespace izh {

struct ReadAhead;

// Starts a thread that touches the range in order. NULL where there is nothing
// to do or no thread: then pages come when they are needed.
ReadAhead* read_ahead_start(const MappedFile& file, uint64_t offset, uint64_t size);

// Waits until the range's first `bytes` are there, or the thread has given up;
// NULL is allowed and has given up.
void read_ahead_wait(const ReadAhead* ahead, uint64_t bytes);

// Ends it, finished or not; NULL is allowed. Has to come before file_unmap.
void read_ahead_stop(ReadAhead* ahead);

}  // namespace izh
