// The command line of izhc. Knows options and exit statuses, nothing else.

#include "tools/izhc/Commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <iostream>
#include <system_error>

using namespace izhc::tool;

namespace {

// The words as a shell would need them, for the artifact's provenance.
std::string quoteWords(int count, char **words) {
  std::string line = "izhc";
  for (int i = 1; i < count; ++i) {
    std::string word = words[i];
    bool plain = !word.empty() &&
                 word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "0123456789-_=+,./:@%") == std::string::npos;
    line += ' ';
    if (plain) {
      line += word;
      continue;
    }
    line += '\'';
    for (char c : word)
      line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

using Action = std::function<int()>;

// The names are some seventy; whoever gives a wrong one sees them all.
constexpr char kPreTokenizer[] =
    "how text is cut, for models that name no way or an unknown one; a wrong NAME lists all";

// `value` is how the help calls what the option takes.
CLI::Option *addText(CLI::App *command, const char *names, const char *value, std::string &target,
                     const std::string &help) {
  // An empty word would stand for an option that was not given.
  CLI::Validator filled(
      [](std::string &text) { return std::string(text.empty() ? "needs a value, not ''" : ""); },
      "");
  return command->add_option(names, target, help)->check(filled)->type_name(value);
}

// Ranges of CLI11 let pass what is no number.
CLI::Validator between(double low, double high) {
  return CLI::Validator(
      [=](std::string &text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high)
          return std::string();
        std::string ends = CLI::detail::to_string(low) + " to " + CLI::detail::to_string(high);
        return "takes a number from " + ends + ", not '" + text + "'";
      },
      "");
}

void addCompile(CLI::App &app, CompileArguments &arguments, Action &action) {
  CLI::App *command = app.add_subcommand("compile", "Compiles a model into one .izh file.");
  addText(command, "MODEL", "", arguments.model,
          "a .gguf file (the first one of a split model), or a folder with config.json and "
          "safetensors")
      ->required();
  addText(command, "-o,--output", "FILE", arguments.output,
          "the file to write (MODEL's name with .izh, in this folder)");
  addText(command, "--target", "NAMES", arguments.target,
          "what to generate code for, separated by commas: those of 'izhc targets'; "
          "native: the best for this machine; default: those in the default set (default)");
  command
      ->add_option("--kv", arguments.kv,
                   "type of the key and value cache: f16, or blocks of 8 or 4 bits (" +
                       cacheTypeList() + ")")
      ->type_name("TYPE");
  command
      ->add_option("--context", arguments.context,
                   "tokens that a text may have, at most what the model was trained for (that, or "
                   "with factors for long texts, as Phi has, what they begin at: a larger N takes "
                   "these factors, which are a little worse for short texts)")
      ->check(CLI::Range(1u, 1u << 30))
      ->type_name("N");
  command->add_flag("--exact", arguments.exact,
                    "float32 activations for all weights (int8 where weights are quantized)");
  addText(command, "--pre-tokenizer", "NAME", arguments.preTokenizer, kPreTokenizer);
  addText(command, "--print-ir-after", "STAGE", arguments.printIrAfter,
          "prints the IR after a stage to standard output: " + stageList());
  CLI::Option *stats = command->add_flag("--stats", arguments.stats,
                                         "prints sizes, memory, times and what a token costs");
  addText(command, "--machine", "LIMITS", arguments.machine,
          "with --stats: predicts the speed on a machine, for example gbps=50,gops=900,phase_us=1 "
          "(what 'izh-rt bench' measures)")
      ->needs(stats);
  command->add_option("-j,--jobs", arguments.jobs, "threads, 1 to 1024 (one a core)")
      ->check(CLI::Range(1u, 1024u))
      ->type_name("N");
  addText(command, "--quant", "RECIPE", arguments.quant,
          "encodes weights anew, with fewer bits (a wrong RECIPE lists all): the type of most "
          "matrices, _m and _s better ones where errors weigh more");
  command
      ->add_option("--tensor-type", arguments.tensorTypes,
                   "the type of tensors with names that PATTERN, a regular expression, matches; "
                   "may be given several times")
      ->allow_extra_args(false)
      ->type_name("PATTERN=TYPE");
  command
      ->add_option("--target-bpw", arguments.targetBits,
                   "instead of a recipe: bits a weight over the whole model, 2 to 32; types are "
                   "chosen by the errors that they make on a sample of each matrix")
      ->check(between(2, 32))
      ->type_name("BITS")
      ->excludes("--quant");
  addText(command, "--imatrix", "FILE", arguments.importance,
          "how much each column matters (a .gguf or .dat importance matrix), for --quant, "
          "--tensor-type or --target-bpw");
  // There is only one kind so far: the help would promise more.
  command->add_option("--emit", arguments.emit)->check(CLI::IsMember({"izh", "exe"}))->group("");
  command->callback([&] { action = [&] { return compile(arguments); }; });
}

void addInspect(CLI::App &app, InspectArguments &arguments, Action &action) {
  CLI::App *command =
      app.add_subcommand("inspect", "Tells what is in a .gguf or .izh file, or in a model folder.");
  addText(command, "FILE", "", arguments.file, "a .gguf or .izh file, or a model folder")
      ->required();
  command->add_flag("--json", arguments.json, "prints one JSON object");
  command->callback([&] { action = [&] { return inspect(arguments); }; });
}

void addExport(CLI::App &app, ExportArguments &arguments, Action &action) {
  CLI::App *command = app.add_subcommand(
      "export", "Writes the weights of an .izh file as a GGUF file, bit for bit.");
  addText(command, "FILE", "", arguments.file, "an .izh file")->required();
  addText(command, "-o,--output", "FILE", arguments.output, "the .gguf file to write")->required();
  command->callback([&] { action = [&] { return exportModel(arguments); }; });
}

void addCalibrate(CLI::App &app, CalibrateArguments &arguments, Action &action) {
  CLI::App *command = app.add_subcommand(
      "calibrate", "Measures on a text which columns of a model's matrices matter most.");
  addText(command, "MODEL", "", arguments.model, "a .gguf file or a model folder")->required();
  addText(command, "-f,--file", "FILE", arguments.textFile, "the text; - for input")->required();
  addText(command, "-o,--output", "FILE", arguments.output,
          "the importance matrix to write, for compile --imatrix")
      ->required();
  command->callback([&] { action = [&] { return calibrate(arguments); }; });
}

void addTokenize(CLI::App &app, TokenizeArguments &arguments, Action &action) {
  CLI::App *command = app.add_subcommand(
      "tokenize", "Prints the ids that the compiled model will see, as a JSON list.");
  addText(command, "MODEL", "", arguments.model, "a .gguf file or a model folder")->required();
  CLI::Option *text =
      command->add_option("-p,--prompt", arguments.text, "the text")->type_name("TEXT");
  CLI::Option *file = addText(command, "-f,--file", "FILE", arguments.textFile,
                              "a file with the text; - for input");
  text->excludes(file);
  command->add_flag("--no-bos", arguments.noBos,
                    "no beginning-of-text token, whatever the model says");
  command->add_flag("--no-special", arguments.noSpecial, "control tokens are plain text");
  command->add_flag("--time", arguments.time,
                    "prints the speed on one core instead: the best of five runs");
  addText(command, "--pre-tokenizer", "NAME", arguments.preTokenizer, kPreTokenizer);
  command->callback([&, text, file] {
    if (text->count() + file->count() == 0)
      throw CLI::RequiredError("-p TEXT or -f FILE");
    arguments.hasText = text->count() != 0;
    action = [&] { return tokenize(arguments); };
  });
}

void addCheck(CLI::App &app, CheckArguments &arguments, Action &action) {
  CLI::App *command = app.add_subcommand(
      "check", "Tells what versions of a model lose against a reference, on a text.");
  command
      ->add_option("MODELS", arguments.models,
                   "the reference, then the others: .izh files, or models to be compiled for this "
                   "machine")
      ->required()
      ->expected(2, -1)
      ->type_name("");
  addText(command, "-f,--file", "FILE", arguments.textFile, "a file with the text; - for input")
      ->required();
  command
      ->add_option("--window", arguments.window,
                   "tokens seen at once, 4 to 1048576; those of the second half are scored (512)")
      ->check(CLI::Range(4u, 1u << 20))
      ->type_name("N");
  command->add_flag("--exact", arguments.exact, "models are compiled with float32 activations");
  command->add_option("-t,--threads", arguments.threads, "threads, 1 to 1024 (one a core)")
      ->check(CLI::Range(1u, 1024u))
      ->type_name("N");
  command->add_flag("--json", arguments.json, "prints one JSON object, not a Markdown table");
  addText(command, "--svg", "FILE", arguments.plot, "also draws quality against size");
  command->callback([&] {
    if (arguments.models.size() > 64)
      throw CLI::ValidationError("MODELS", "at most 64 can be compared");
    action = [&] { return check(arguments); };
  });
}

void addRender(CLI::App &app, RenderArguments &arguments, Action &action) {
  CLI::App *command = app.add_subcommand("render", "Prints the prompt that a chat template makes.");
  addText(command, "MODEL", "", arguments.model,
          "a .gguf file, a model folder, or a file with a template")
      ->required();
  addText(command, "--context", "C.json", arguments.context,
          "a JSON object with messages, tools, add_generation_prompt (true if it is not there) and "
          "whatever the template knows; - for input")
      ->required();
  command->callback([&] { action = [&] { return render(arguments); }; });
}

std::vector<std::string> commandNames(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; }))
    names.push_back(command->get_name());
  return names;
}

// What was wrong, and which help to read.
std::string explain(const CLI::App &app, const CLI::Error &error, int count, char **words) {
  std::string what = error.what(), help = "izhc";
  auto given = app.get_subcommands();
  if (!given.empty())
    help += " " + given[0]->get_name();
  else if (count > 1)
    what = std::string(words[1][0] == '-' ? "there is no option '" : "there is no command '") +
           words[1] + "'" + suggestCommand(words[1], commandNames(app));
  else if (count == 1)
    what = "a command is missing";
  return "izhc: " + what + "\nTry '" + help + " --help'.\n";
}

int run(int count, char **words) {
  CLI::App app("izhc compiles a language model ahead of time into one .izh file.", "izhc");
  app.set_version_flag("--version", "izhc " IZH_VERSION);
  app.require_subcommand(1);
  app.failure_message(
      [&](const CLI::App *, const CLI::Error &error) { return explain(app, error, count, words); });
  CompileArguments compileArguments;
  compileArguments.commandLine = quoteWords(count, words);
  InspectArguments inspectArguments;
  ExportArguments exportArguments;
  CalibrateArguments calibrateArguments;
  TokenizeArguments tokenizeArguments;
  CheckArguments checkArguments;
  RenderArguments renderArguments;
  Action action;
  addCompile(app, compileArguments, action);
  addInspect(app, inspectArguments, action);
  addExport(app, exportArguments, action);
  addCalibrate(app, calibrateArguments, action);
  app.add_subcommand("targets", "Lists what can be compiled for.")->callback([&] {
    action = [] { return listTargets(); };
  });
  addTokenize(app, tokenizeArguments, action);
  addCheck(app, checkArguments, action);
  addRender(app, renderArguments, action);
  try {
    // Help for a command that there isn't is no help.
    auto names = commandNames(app);
    if (count > 1 && words[1][0] != '-' &&
        std::find(names.begin(), names.end(), words[1]) == names.end())
      throw CLI::ExtrasError({words[1]});
    app.parse(count, words);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? kDone : kWrongUsage;
  }
  return action();
}

// Help and version go through iostreams.
int finishHelp(int status) {
  std::cout.flush();
  if (std::cout || errno == EPIPE || status != kDone)
    return finish(status);
  fprintf(stderr, "izhc: cannot write to standard output\n");
  return finish(kFailed);
}

} // namespace

int main(int count, char **words) {
  prepare();
  try {
    return finishHelp(run(count, words));
  } catch (const std::system_error &error) {
    giveUp((std::string("the system refused a thread (") + error.what() + ")").c_str());
  } catch (const std::exception &error) {
    fprintf(stderr, "izhc: %s\n", error.what());
    return kFailed;
  }
}
