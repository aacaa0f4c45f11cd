// Parsing of words, and the help text made from the declarations.

#include "tools/izh-rt/Arguments.h"

#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace izh::rt {

bool parseInteger(const std::string &text, uint64_t low, uint64_t high, uint64_t *out) {
  if (text.empty() || !isdigit(static_cast<unsigned char>(text[0])))
    return false;
  errno = 0;
  char *end = nullptr;
  unsigned long long value = strtoull(text.c_str(), &end, 10);
  if (errno != 0 || *end != 0 || value < low || value > high)
    return false;
  *out = value;
  return true;
}

static bool parseNumber(const std::string &text, double low, double high, float *out) {
  if (text.empty() || isspace(static_cast<unsigned char>(text[0])))
    return false;
  char *end = nullptr;
  double value = strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != 0 || !(value >= low && value <= high))
    return false;
  *out = static_cast<float>(value);
  return true;
}

bool Arguments::Option::matches(const std::string &name) const {
  size_t begin = 0;
  while (begin <= names.size()) {
    size_t end = names.find(',', begin);
    if (end == std::string::npos)
      end = names.size();
    if (names.compare(begin, end - begin, name) == 0)
      return true;
    begin = end + 1;
  }
  return false;
}

void Arguments::flag(const char *names, bool *target, const char *help) {
  options.push_back({Kind::Flag, names, "", help, target, nullptr, 0, 0});
}

void Arguments::text(const char *names, const char *value, std::string *target, const char *help) {
  options.push_back({Kind::Text, names, value, help, target, nullptr, 0, 0});
}

void Arguments::text(const char *names, const char *value, std::string *target, bool *given,
                     const char *help) {
  options.push_back({Kind::Text, names, value, help, target, given, 0, 0});
}

void Arguments::choice(const char *names, const char *values, std::string *target,
                       const char *help) {
  options.push_back({Kind::Choice, names, values, help, target, nullptr, 0, 0});
}

void Arguments::texts(const char *names, const char *value, std::vector<std::string> *target,
                      const char *help) {
  options.push_back({Kind::Texts, names, value, help, target, nullptr, 0, 0});
}

void Arguments::integer(const char *names, const char *value, uint64_t *target, uint64_t low,
                        uint64_t high, const char *help) {
  options.push_back({Kind::Integer, names, value, help, target, nullptr, static_cast<double>(low),
                     static_cast<double>(high)});
}

void Arguments::number(const char *names, const char *value, float *target, float low, float high,
                       const char *help) {
  options.push_back({Kind::Number, names, value, help, target, nullptr, low, high});
}

void Arguments::positional(const char *name, std::string *target, const char *help) {
  positionals.push_back({name, help, target});
}

int Arguments::misuse(const std::string &sentence) const {
  fprintf(stderr, "%s: %s\nTry '%s --help'.\n", command.c_str(), sentence.c_str(), command.c_str());
  return kWrongUsage;
}

const Arguments::Option *Arguments::find(const std::string &name) const {
  for (const Option &option : options)
    if (option.matches(name))
      return &option;
  return nullptr;
}

bool Arguments::store(const Option &option, const std::string &name,
                      const std::string &value) const {
  if (option.given)
    *option.given = true;
  switch (option.kind) {
  case Kind::Flag:
    *static_cast<bool *>(option.target) = true;
    return true;
  case Kind::Text:
    if (value.empty() && !option.given) {
      misuse(name + " needs a value (" + option.value + "), not ''");
      return false;
    }
    *static_cast<std::string *>(option.target) = value;
    return true;
  case Kind::Choice:
    if (value.empty() || value.find('|') != std::string::npos ||
        ("|" + option.value + "|").find("|" + value + "|") == std::string::npos) {
      misuse(name + " takes " + option.value + ", not '" + value + "'");
      return false;
    }
    *static_cast<std::string *>(option.target) = value;
    return true;
  case Kind::Texts:
    static_cast<std::vector<std::string> *>(option.target)->push_back(value);
    return true;
  case Kind::Integer: {
    // 2^64 as a double is beyond the last integer.
    uint64_t high = option.high >= 18446744073709551615.0 ? UINT64_MAX : uint64_t(option.high);
    if (parseInteger(value, uint64_t(option.low), high, static_cast<uint64_t *>(option.target)))
      return true;
    misuse(name + " takes an integer from " + std::to_string(uint64_t(option.low)) + " to " +
           std::to_string(high) + ", not '" + value + "'");
    return false;
  }
  case Kind::Number: {
    if (parseNumber(value, option.low, option.high, static_cast<float *>(option.target)))
      return true;
    char range[64];
    snprintf(range, sizeof(range), "from %g to %g", option.low, option.high);
    misuse(name + " takes a number " + range + ", not '" + value + "'");
    return false;
  }
  }
  return false;
}

// Handles `--name`, `--name=value` and `--name value`; moves `index` over a
// value that is a word of its own.
bool Arguments::takeOption(const std::string &word, int count, char **words, int &index) {
  size_t equals = word.rfind("--", 0) == 0 ? word.find('=') : std::string::npos;
  std::string name = word.substr(0, equals);
  const Option *option = find(name);
  if (!option) {
    misuse("unknown option '" + name + "'");
    return false;
  }
  if (option->kind == Kind::Flag) {
    if (equals == std::string::npos)
      return store(*option, name, "");
    misuse(name + " takes no value");
    return false;
  }
  if (equals != std::string::npos)
    return store(*option, name, word.substr(equals + 1));
  if (index + 1 >= count) {
    misuse(name + " needs a value (" + option->value + ")");
    return false;
  }
  return store(*option, name, words[++index]);
}

bool Arguments::parse(int count, char **words, int *status) {
  *status = kWrongUsage;
  size_t found = 0;
  bool optionsEnded = false;
  for (int i = 0; i < count; ++i) {
    std::string word = words[i];
    if (!optionsEnded && (word == "--help" || word == "-h")) {
      printHelp();
      *status = kDone;
      return false;
    }
    if (!optionsEnded && word == "--") {
      optionsEnded = true;
    } else if (!optionsEnded && word.size() > 1 && word[0] == '-') {
      if (!takeOption(word, count, words, i))
        return false;
    } else if (found < positionals.size()) {
      if (word.empty()) {
        misuse(positionals[found].name + " is empty: give " + positionals[found].help);
        return false;
      }
      *positionals[found++].target = word;
    } else {
      misuse("'" + word + "' is one word too many");
      return false;
    }
  }
  if (found < positionals.size()) {
    misuse(positionals[found].name + " is missing: " + positionals[found].help);
    return false;
  }
  return true;
}

void Arguments::printHelp() const {
  printf("%s\n\nUsage: %s", summary.c_str(), command.c_str());
  for (const Positional &word : positionals)
    printf(" %s", word.name.c_str());
  printf(" [options]\n\n");
  for (const Positional &word : positionals)
    printf("  %-26s %s\n", word.name.c_str(), word.help.c_str());
  for (const Option &option : options) {
    std::string left = option.names;
    if (!option.value.empty())
      left += " " + option.value;
    printf("  %-26s %s\n", left.c_str(), option.help.c_str());
  }
  printf("  %-26s %s\n", "-h,--help", "prints this");
}

} // namespace izh::rt
