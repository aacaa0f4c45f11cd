// The commands of izh-rt. Each gets the words behind its name and returns the
// exit status.

#pragma once

namespace izh::rt {

// When main began, in seconds of now(): times to a first token count from here.
extern double startTime;

int runCommand(int count, char **words);
int benchCommand(int count, char **words);
int logitsCommand(int count, char **words);
int perplexityCommand(int count, char **words);
int tokenizeCommand(int count, char **words);
int renderCommand(int count, char **words);
int chatCommand(int count, char **words);
int infoCommand(int count, char **words);
int verifyCommand(int count, char **words);
int devicesCommand(int count, char **words);

} // namespace izh::rt
