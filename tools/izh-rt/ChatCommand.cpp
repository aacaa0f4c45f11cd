// `izh-rt chat`: a conversation over standard input and output.

#include "tools/izh-rt/Chat.h"
#include "tools/izh-rt/ChatInput.h"
#include "tools/izh-rt/ChatSession.h"
#include "tools/izh-rt/Commands.h"
#include "tools/izh-rt/Sampling.h"

#include <csignal>
#include <cstdio>
#include <unistd.h>

namespace izh::rt {
namespace {

volatile bool interrupted = false;

void onInterrupt(int) { interrupted = true; }

// Ctrl-C ends an answer, never the program; reading is not taken up again
// behind it.
void catchInterrupt() {
  struct sigaction action = {};
  action.sa_handler = onInterrupt;
  sigaction(SIGINT, &action, nullptr);
}

struct ChatOptions {
  ModelOptions model;
  SamplingArguments sampling;
  std::string system; // "" for none
  bool hasSystem = false;
};

class Conversation {
public:
  Conversation(const izh_model *model, izh_context *context, const ChatOptions &options)
      : model(model), context(context),
        session(model, context, options.sampling.generation, interrupted) {
    if (!options.system.empty())
      messages.push_back({"system", options.system});
    fixed = messages.size();
  }

  bool start() { return session.start(); }
  void clear() { messages.resize(fixed); }

  // False after a message over what ends the program; a message that the
  // template or the context refuses is taken back.
  bool say(const std::string &text) {
    messages.push_back({"user", text});
    std::vector<int32_t> prompt;
    if (!makePrompt(&prompt)) {
      messages.pop_back();
      return true;
    }
    std::string answer;
    std::string stop;
    if (!session.answer(prompt, writeAll, &answer, &stop))
      return false;
    messages.push_back({"assistant", answer});
    if (!writeAll("\n"))
      return false;
    if (stop == "length")
      fprintf(stderr, "izh-rt: the answer was cut by -n\n");
    else if (stop == "context")
      fprintf(stderr, "izh-rt: the answer was cut: the context of %u tokens is full (--ctx)\n",
              izh_context_tokens(context));
    return true;
  }

private:
  // The prompt's ids; the oldest exchanges go where it doesn't fit, unless it
  // can't fit without them either.
  bool makePrompt(std::vector<int32_t> *ids) {
    // Some of the context is kept for the answer.
    size_t whole = izh_context_tokens(context), room = whole - whole / 8 - 1;
    std::vector<Message> kept = messages;
    for (;;) {
      std::string text;
      if (!renderPrompt(model, conversationJson(kept), &text) ||
          !tokenizeText(model, text, true, true, ids))
        return false;
      // The template begins with the token that the tokenizer adds.
      int32_t bos = izh_token_bos(model);
      if (ids->size() > 1 && bos >= 0 && (*ids)[0] == bos && (*ids)[1] == bos)
        ids->erase(ids->begin());
      if (ids->size() <= room)
        break;
      if (kept.size() < fixed + 3) {
        failed("this message and the template around it have " + std::to_string(ids->size()) +
               " tokens, but the context of " + std::to_string(whole) + " has room for " +
               std::to_string(room) + " and an answer: shorten it or raise --ctx");
        return false;
      }
      kept.erase(kept.begin() + fixed, kept.begin() + fixed + 2);
    }
    if (kept.size() < messages.size())
      fprintf(stderr,
              "izh-rt: the first %zu messages are forgotten: the context of %zu tokens has room "
              "for %zu and an answer\n",
              messages.size() - kept.size(), whole, room);
    messages = std::move(kept);
    return true;
  }

  const izh_model *model;
  izh_context *context;
  ChatSession session;
  std::vector<Message> messages;
  size_t fixed = 0; // messages that stay
};

int converse(Conversation &conversation, bool terminal) {
  using Got = ChatInput::Got;
  ChatInput input(STDIN_FILENO, terminal, interrupted);
  std::string text;
  for (;;) {
    interrupted = false;
    switch (input.next(&text)) {
    case Got::End:
      return kDone;
    case Got::Nothing:
      if (interrupted && !terminal)
        return kDone;
      if (interrupted)
        fprintf(stderr, "\n(/exit or Ctrl-D ends)\n");
      break;
    case Got::Clear:
      conversation.clear();
      break;
    case Got::Unknown:
      fprintf(stderr,
              "izh-rt: there is no command '%s': %s; a message that begins with / goes between "
              "\"\"\" and \"\"\"\n",
              text.c_str(), kChatCommands);
      break;
    case Got::Message:
      if (!conversation.say(text))
        return kFailed;
    }
  }
}

} // namespace

int chatCommand(int count, char **words) {
  ChatOptions options;
  Arguments arguments("izh-rt chat", "Talks: a line is a message, \"\"\" begins and ends several, "
                                     "Ctrl-C ends an answer, /clear forgets, /exit ends.");
  declareRun(arguments, options.model, "the model's context, at most 4096");
  options.sampling.generation.tokens = 1024;
  arguments.text("--system", "TEXT", &options.system, &options.hasSystem,
                 "what the model is told first; '' for nothing");
  arguments.integer("-n,--tokens", "N", &options.sampling.generation.tokens, 1, 1u << 30,
                    "most tokens of an answer (1024)");
  declareSampling(arguments, options.sampling);
  int status;
  if (!arguments.parse(count, words, &status))
    return status;
  if (std::string sentence = completeSampling(options.sampling); !sentence.empty())
    return arguments.misuse(sentence);
  ModelPtr model = openModel(options.model);
  if (!model)
    return kFailed;
  izh_model_info info;
  izh_model_get_info(model.get(), &info);
  if (!*info.chat_template)
    return failed(options.model.file +
                  " has no chat template: use 'izh-rt run', which takes raw text");
  ContextPtr context =
      createContext(model.get(), options.model.threads, options.model.contextTokens, 1);
  if (!context)
    return kFailed;
  Conversation conversation(model.get(), context.get(), options);
  if (!conversation.start())
    return kFailed;
  catchInterrupt();
  bool terminal = isatty(STDIN_FILENO);
  if (terminal)
    fprintf(stderr, "%s: a line is a message, \"\"\" begins and ends several; %s\n", info.name,
            kChatCommands);
  status = converse(conversation, terminal);
  if (status == kDone)
    fprintf(stderr, "%sseed %llu\n", terminal ? "\n" : "",
            static_cast<unsigned long long>(options.sampling.generation.sampling.seed));
  return status;
}

} // namespace izh::rt
