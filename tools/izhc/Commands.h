// The commands of izhc as functions on parsed arguments. Main.cpp, which is
// compiled with exceptions, calls these, which are not: nothing of LLVM or
// CLI11 crosses this header. Each returns the exit status.

#pragma once

#include <string>
#include <vector>

namespace izhc::tool {

enum Status { kDone = 0, kFailed = 1, kWrongUsage = 2 };

struct CompileArguments {
  std::string model, output, target = "default", preTokenizer, printIrAfter, quant, machine;
  std::string emit = "izh";
  std::string commandLine, importance;
  std::vector<std::string> tensorTypes;
  double targetBits = 0; // 0: not given
  unsigned jobs = 0;     // threads; 0: all cores
  unsigned context = 0;  // 0: not given
  std::string kv = "f16";
  bool exact = false, stats = false;
};
int compile(const CompileArguments &arguments);

struct InspectArguments {
  std::string file;
  bool json = false;
};
int inspect(const InspectArguments &arguments);

struct ExportArguments {
  std::string file, output;
};
int exportModel(const ExportArguments &arguments);

struct CalibrateArguments {
  std::string model, textFile, output;
};
int calibrate(const CalibrateArguments &arguments);

int listTargets();

struct TokenizeArguments {
  std::string model, text, textFile, preTokenizer;
  bool hasText = false;
  bool noBos = false, noSpecial = false;
  bool time = false;
};
int tokenize(const TokenizeArguments &arguments);

struct CheckArguments {
  std::vector<std::string> models; // the reference first; at least two
  std::string textFile, plot;
  unsigned window = 0;  // tokens seen at once; 0: 512, or less where a model has less
  unsigned threads = 0; // 0: all cores
  bool exact = false, json = false;
};
int check(const CheckArguments &arguments);

struct RenderArguments {
  std::string model, context;
};
int render(const RenderArguments &arguments);

// What every command needs: to be called first in main().
void prepare();
// Ends the program, after a sentence, over something that the system refused.
[[noreturn]] void giveUp(const char *what);
// Writes what is left of standard output. Returns `status`, or kFailed after a
// sentence where output was lost.
int finish(int status);

// "models, lm, ...", for help texts.
std::string cacheTypeList();
std::string stageList();

// What to use instead of `given`, which is none of `commands`, as the end of a
// sentence; "" where nothing comes near.
std::string suggestCommand(const std::string &given, const std::vector<std::string> &commands);

} // namespace izhc::tool
