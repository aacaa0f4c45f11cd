// `izh-rt chat`: a conversation over standard input and output.

#include "tools/izh-rt/Chat.h"
#include "tools/izh-rt/ChatSession.h"
#include "tools/izh-rt/Commands.h"
#include "tools/izh-rt/Sampling.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
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
  std::string system;
};

// Reads what people type. A line is a message; a line that ends with a
// backslash goes on in the next one, and so does all between lines of """.
class Input {
public:
  explicit Input(bool terminal) : terminal(terminal) {}

  enum class Got { Message, Nothing, End };

  Got next(std::string *message) {
    message->clear();
    bool block = false, more = true;
    for (bool first = true; more; first = false) {
      prompt(first ? "> " : "... ");
      std::string line;
      if (!readLine(&line)) {
        if (interrupted)
          return Got::Nothing;
        return first ? Got::End : Got::Message;
      }
      if (line == "\"\"\"") {
        more = block = !block;
        continue;
      }
      more = block || (!line.empty() && line.back() == '\\');
      if (more && !block)
        line.pop_back();
      *message += line + (more ? "\n" : "");
    }
    // The line break before the closing """ is not part of the message.
    if (!message->empty() && message->back() == '\n')
      message->pop_back();
    return message->empty() ? Got::Nothing : Got::Message;
  }

private:
  static constexpr size_t kMostBytes = size_t(64) << 20;

  void prompt(const char *text) {
    if (terminal)
      (void)!write(STDERR_FILENO, text, strlen(text));
  }

  // Without buffering of stdio, which would keep reading after a signal.
  bool readLine(std::string *line) {
    for (;;) {
      size_t end = waiting.find('\n');
      if (end != std::string::npos) {
        *line = waiting.substr(0, end);
        waiting.erase(0, end + 1);
        if (!line->empty() && line->back() == '\r')
          line->pop_back();
        return true;
      }
      char piece[4096];
      ssize_t count =
          ended || waiting.size() > kMostBytes ? 0 : read(STDIN_FILENO, piece, sizeof(piece));
      if (count < 0 && errno == EINTR && !interrupted)
        continue;
      if (count < 0 && interrupted) {
        waiting.clear();
        return false;
      }
      if (count > 0) {
        waiting.append(piece, size_t(count));
        continue;
      }
      ended = true;
      *line = std::move(waiting);
      waiting.clear();
      return !line->empty();
    }
  }

  bool terminal, ended = false;
  std::string waiting;
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
    size_t spent = 0;
    if (!session.answer(prompt, writeAll, &answer, &spent))
      return false;
    messages.push_back({"assistant", answer});
    return writeAll("\n");
  }

private:
  // The prompt's ids; the oldest exchanges go where it doesn't fit.
  bool makePrompt(std::vector<int32_t> *ids) {
    size_t room = izh_context_tokens(context);
    size_t before = messages.size();
    for (;;) {
      std::string text;
      if (!renderPrompt(model, conversationJson(messages), &text) ||
          !tokenizeText(model, text, true, true, ids))
        return false;
      // The template begins with the token that the tokenizer adds.
      int32_t bos = izh_token_bos(model);
      if (ids->size() > 1 && bos >= 0 && (*ids)[0] == bos && (*ids)[1] == bos)
        ids->erase(ids->begin());
      if (ids->size() + room / 8 < room)
        break;
      if (messages.size() < fixed + 3) {
        failed("this message and the template around it have " + std::to_string(ids->size()) +
               " tokens, but there is room for " + std::to_string(room) +
               ": shorten it or raise --ctx");
        return false;
      }
      messages.erase(messages.begin() + fixed, messages.begin() + fixed + 2);
    }
    if (messages.size() < before)
      fprintf(stderr,
              "izh-rt: the first %zu messages are forgotten: the context has room for %zu tokens\n",
              before - messages.size(), room);
    return true;
  }

  const izh_model *model;
  izh_context *context;
  ChatSession session;
  std::vector<Message> messages;
  size_t fixed = 0; // messages that stay
};

int converse(Conversation &conversation, bool terminal) {
  Input input(terminal);
  std::string text;
  for (;;) {
    interrupted = false;
    Input::Got got = input.next(&text);
    if (got == Input::Got::End || text == "/exit")
      break;
    if (got == Input::Got::Nothing) {
      if (interrupted && terminal)
        fprintf(stderr, "\n(/exit or Ctrl-D ends)\n");
      else if (interrupted)
        return kDone;
      continue;
    }
    if (text == "/clear") {
      conversation.clear();
      continue;
    }
    if (!conversation.say(text))
      return kFailed;
  }
  if (terminal)
    fprintf(stderr, "\n");
  return kDone;
}

} // namespace

int chatCommand(int count, char **words) {
  ChatOptions options;
  Arguments arguments("izh-rt chat", "Talks: a line is a message, \"\"\" begins and ends several, "
                                     "Ctrl-C ends an answer, /clear forgets, /exit ends.");
  declareRun(arguments, options.model);
  options.sampling.generation.tokens = 1024;
  arguments.text("--system", "TEXT", &options.system, "what the model is told first");
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
  return converse(conversation, isatty(STDIN_FILENO));
}

} // namespace izh::rt
