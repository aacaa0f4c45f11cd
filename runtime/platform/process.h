// What the command-line programs ask of their process. The library itself
// never touches signals or standard streams.

#pragma once

namespace izh {

// To be called first in main(), with the name that messages begin with:
// - A standard stream that the caller closed is opened so that its use fails;
//   otherwise the next file opened would be taken for it.
// - Writing to a closed pipe or beyond the limit of a file's size fails
//   instead of ending the process.
// - A mapped file that loses its bytes (cut in place, or its disk failed)
//   ends the process with a sentence and status 1 instead of a bus error,
//   after `before_exit` (may be null; must be safe in a signal handler).
void process_prepare(const char* program, void (*before_exit)());

// The file that the sentence about lost bytes names.
void process_reads(const char* path);

// A file to be removed when a signal ends the process; null when it is
// complete or gone.
void process_writes(const char* path);

}  // namespace izh
