// Reuses the longest common beginning of two prompts. Where a state can't be
// taken back (recurrent ones), everything is read again.

#include "tools/izh-rt/ChatSession.h"

#include <algorithm>

namespace izh::rt {

ChatSession::ChatSession(const izh_model *model, izh_context *context,
                         const GenerationOptions &options, const volatile bool &interrupted)
    : model(model), context(context), options(options), interrupted(interrupted) {
  izh_model_info info;
  izh_model_get_info(model, &info);
  logits.resize(info.vocabulary);
  chunk = std::max<uint32_t>(info.max_step_tokens, 1);
}

ChatSession::~ChatSession() {
  if (sequence)
    izh_sequence_destroy(sequence);
}

bool ChatSession::restart() {
  if (sequence)
    izh_sequence_destroy(sequence);
  sequence = nullptr;
  held.clear();
  izh_error error = {};
  if (izh_sequence_create(context, &sequence, &error) == IZH_OK)
    return true;
  failed(error);
  return false;
}

bool ChatSession::start() {
  izh_error error = {};
  izh_sampler *made = nullptr;
  if (izh_sampler_create(&options.sampling, uint32_t(logits.size()), &made, &error) != IZH_OK) {
    failed(error);
    return false;
  }
  sampler.reset(made);
  return restart();
}

bool ChatSession::step(const int32_t *tokens, size_t count, bool output) {
  izh_input input = {sequence, tokens, uint32_t(count), output ? 1u : 0u};
  izh_error error = {};
  if (izh_context_run(context, &input, 1, logits.data(), &error) != IZH_OK) {
    failed(error);
    return false;
  }
  held.insert(held.end(), tokens, tokens + count);
  return !output || checkLogits(logits.data(), logits.size(), held.size() - 1);
}

bool ChatSession::read(const std::vector<int32_t> &prompt) {
  size_t common = 0;
  // The last token is read again, for its logits.
  while (common < held.size() && common + 1 < prompt.size() && held[common] == prompt[common])
    ++common;
  if (common < held.size()) {
    izh_error error = {};
    if (izh_sequence_truncate(sequence, uint32_t(common), &error) == IZH_OK)
      held.resize(common);
    else if (!restart())
      return false;
  }
  for (size_t done = held.size(); done < prompt.size() && !interrupted;) {
    size_t count = std::min(chunk, prompt.size() - done);
    if (!step(prompt.data() + done, count, done + count == prompt.size()))
      return false;
    done += count;
  }
  for (int32_t id : prompt)
    izh_sampler_accept(sampler.get(), id);
  return true;
}

bool ChatSession::answer(const std::vector<int32_t> &prompt,
                         const std::function<bool(const std::string &)> &show, std::string *answer,
                         std::string *stop) {
  if (!read(prompt))
    return false;
  TextStream text(model, options.stops);
  auto give = [&](const std::string &piece) {
    *answer += piece;
    return show(piece);
  };
  bool stopped = false;
  stop->clear();
  for (uint64_t made = 0; stop->empty(); ++made) {
    if (interrupted || made >= options.tokens) {
      *stop = interrupted ? "interrupt" : "length";
      break;
    }
    int32_t id = izh_sampler_next(sampler.get(), logits.data());
    if (izh_token_ends_text(model, id)) {
      *stop = "eos";
      break;
    }
    if (!give(text.feed(id, &stopped)))
      return cannotPrint() == kDone;
    if (stopped)
      *stop = "string";
    else if (made + 1 < options.tokens && held.size() >= izh_context_tokens(context))
      *stop = "context";
    else if (made + 1 < options.tokens && !step(&id, 1, true))
      return false;
  }
  if (!stopped && !give(text.finish()))
    return cannotPrint() == kDone;
  return true;
}

} // namespace izh::rt
