// izh-rt: finds the command that was asked for. A first word that is no
// command is the file of `run`.

#include "runtime/platform/process.h"
#include "tools/izh-rt/Arguments.h"
#include "tools/izh-rt/Commands.h"
#include "tools/izh-rt/Model.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace izh::rt {

double startTime;

namespace {

struct Command {
  const char *name;
  int (*run)(int count, char **words);
  const char *summary;
};

const Command kCommands[] = {
    {"run", runCommand, "continues a text (also without its name: izh-rt FILE -p TEXT)"},
    {"chat", chatCommand, "talks, with the chat template applied"},
    {"bench", benchCommand, "measures speed against the machine's limits"},
    {"logits", logitsCommand, "writes the logits of given tokens as a .npy file"},
    {"perplexity", perplexityCommand, "tells how well the model predicts a text"},
    {"tokenize", tokenizeCommand, "prints the ids of a text"},
    {"render", renderCommand, "prints the prompt that the chat template makes"},
    {"info", infoCommand, "tells what is in a file and which variant would run"},
    {"verify", verifyCommand, "compares every hash of a file"},
    {"devices", devicesCommand, "lists what models can run on here"},
};

void printHelp() {
  printf("izh-rt runs language models that izhc has compiled.\n\n"
         "Usage: izh-rt COMMAND FILE [options]\n\n");
  for (const Command &command : kCommands)
    printf("  %-12s %s\n", command.name, command.summary);
  printf("\n'izh-rt COMMAND --help' tells the options of a command.\n");
}

int dispatch(int count, char **words) {
  if (count < 2) {
    fprintf(stderr, "izh-rt: a command or a file is missing\nTry 'izh-rt --help'.\n");
    return kWrongUsage;
  }
  if (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0) {
    printHelp();
    return kDone;
  }
  if (strcmp(words[1], "--version") == 0) {
    printf("izh-rt %s\n", IZH_VERSION);
    return kDone;
  }
  for (const Command &command : kCommands)
    if (strcmp(words[1], command.name) == 0)
      return command.run(count - 2, words + 2);
  // A bare word that names no file was meant as a command.
  if (!strpbrk(words[1], "./-") && access(words[1], F_OK) != 0) {
    fprintf(stderr, "izh-rt: there is no command and no file '%s'\nTry 'izh-rt --help'.\n",
            words[1]);
    return kWrongUsage;
  }
  return runCommand(count - 1, words + 1);
}

} // namespace
} // namespace izh::rt

int main(int count, char **words) {
  izh::rt::startTime = izh::rt::now();
  izh::process_prepare("izh-rt", nullptr);
  int status = izh::rt::dispatch(count, words);
  // An earlier failure has been told unless its number is gone.
  errno = 0;
  if ((fflush(stdout) != 0 || ferror(stdout)) && status == izh::rt::kDone)
    return izh::rt::cannotPrint();
  return status;
}
