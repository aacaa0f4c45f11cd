// A small command-line parser: options are declared with the variable that
// they fill, then a command's words are parsed. Kept by hand because izh-rt
// stays under two megabytes.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace izh::rt {

// Exit statuses of izh-rt.
enum Status { kDone = 0, kFailed = 1, kWrongUsage = 2 };

class Arguments {
public:
  // `command` as it is typed ("izh-rt bench"), `summary` one sentence.
  Arguments(std::string command, std::string summary)
      : command(std::move(command)), summary(std::move(summary)) {}

  // Options in help order. `names` are alternatives separated by commas
  // ("-p,--prompt"), `value` is how the help calls the value.
  void flag(const char *names, bool *target, const char *help);
  void text(const char *names, const char *value, std::string *target, const char *help);
  // Also says whether the option was given. Only such a text may be empty:
  // elsewhere an empty one stands for an option that was not given.
  void text(const char *names, const char *value, std::string *target, bool *given,
            const char *help);
  // One of the words in `values` ("map|read").
  void choice(const char *names, const char *values, std::string *target, const char *help);
  // May be given several times.
  void texts(const char *names, const char *value, std::vector<std::string> *target,
             const char *help);
  void integer(const char *names, const char *value, uint64_t *target, uint64_t low, uint64_t high,
               const char *help);
  void number(const char *names, const char *value, float *target, float low, float high,
              const char *help);
  // A word without dash. All are required, in this order.
  void positional(const char *name, std::string *target, const char *help);

  // Parses words[0..count). Returns true to go on; otherwise `*status` is what
  // the program ends with, and help or a sentence has been printed.
  bool parse(int count, char **words, int *status);

  // Prints a sentence about wrong usage and returns its status.
  int misuse(const std::string &sentence) const;

private:
  enum class Kind { Flag, Text, Choice, Texts, Integer, Number };
  struct Option {
    Kind kind;
    std::string names, value, help;
    void *target;
    bool *given;
    double low, high;
    bool matches(const std::string &name) const;
  };
  struct Positional {
    std::string name, help;
    std::string *target;
  };

  const Option *find(const std::string &name) const;
  bool store(const Option &option, const std::string &name, const std::string &value) const;
  bool takeOption(const std::string &word, int count, char **words, int &index);
  void printHelp() const;

  std::string command, summary;
  std::vector<Option> options;
  std::vector<Positional> positionals;
};

// Parses a decimal number that fills the whole of `text` and lies in
// [low, high]; false if it doesn't.
bool parseInteger(const std::string &text, uint64_t low, uint64_t high, uint64_t *out);

} // namespace izh::rt
