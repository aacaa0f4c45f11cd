// izh_context_run: checks everything, takes the cache pages, then cuts the
// inputs into steps. Nothing after the checks can fail.

#include <cstring>

#include "runtime/base/status.h"
#include "runtime/exec/context.h"

namespace izh {
namespace {

struct Batch {
  const izh_input* inputs;
  uint32_t count;
};

// What the arrays of one step hold.
struct Step {
  uint32_t tokens;
  uint32_t outputs;
  uint32_t tiles;
  uint32_t pages;
};

// The next token that no step has yet.
struct Cursor {
  uint32_t input;
  uint32_t token;
};

izh_status check_tokens(const izh_input& input, uint32_t index, uint32_t vocabulary,
                        izh_error* error) {
  for (uint32_t i = 0; i < input.count; ++i) {
    if (input.tokens[i] >= 0 && static_cast<uint32_t>(input.tokens[i]) < vocabulary) continue;
    return fail(error, IZH_INVALID_ARGUMENT,
                "token %u of input %u has id %d, but the model's ids are 0 to %u", i, index,
                input.tokens[i], vocabulary - 1);
  }
  return IZH_OK;
}

izh_status check_input(izh_context* context, const izh_input& input, uint32_t index,
                       izh_error* error) {
  if (!input.sequence || input.sequence->context != context) {
    return fail(error, IZH_INVALID_ARGUMENT, "input %u has no sequence of this context", index);
  }
  if (input.sequence->run == context->runs) {
    return fail(error, IZH_INVALID_ARGUMENT,
                "input %u names a sequence that an earlier input names: join them", index);
  }
  input.sequence->run = context->runs;
  if (input.count != 0 && !input.tokens) {
    return fail(error, IZH_INVALID_ARGUMENT, "input %u has %u tokens but no array of them", index,
                input.count);
  }
  if (input.outputs > input.count) {
    return fail(error, IZH_INVALID_ARGUMENT, "input %u wants %u rows of logits of %u tokens", index,
                input.outputs, input.count);
  }
  return check_tokens(input, index, context->model->image.root.model.vocabulary, error);
}

izh_status check_batch(izh_context* context, const Batch& batch, const float* logits,
                       izh_error* error) {
  if (batch.count != 0 && !batch.inputs) {
    return fail(error, IZH_INVALID_ARGUMENT, "%u inputs were given, but no array of them",
                batch.count);
  }
  ++context->runs;
  uint64_t tokens = context->used_tokens, outputs = 0;
  for (uint32_t i = 0; i < batch.count; ++i) {
    IZH_TRY(check_input(context, batch.inputs[i], i, error));
    tokens += batch.inputs[i].count;
    outputs += batch.inputs[i].outputs;
  }
  if (outputs != 0 && !logits) {
    return fail(error, IZH_INVALID_ARGUMENT, "logits were asked for, but no place for them given");
  }
  // This is all that pages need, too: the pool has one more for each sequence
  // than whole pages of so many tokens.
  if (tokens > context->tokens) {
    return fail(error, IZH_CONTEXT_FULL,
                "the context holds %u tokens, %u are in use and %llu more were given: shorten a "
                "sequence, or create the context for more",
                context->tokens, context->used_tokens,
                static_cast<unsigned long long>(tokens - context->used_tokens));
  }
  return IZH_OK;
}

// How many tokens of `input` from `token` on still fit in the step.
uint32_t tokens_that_fit(const izh_input& input, uint32_t token, const Step& step,
                         const PlanFacts& plan) {
  uint32_t fit = input.count - token;
  if (fit > plan.max_tokens - step.tokens) fit = plan.max_tokens - step.tokens;
  // Rows of logits are those of the last tokens.
  const uint32_t first_output = input.count - input.outputs;
  const uint32_t silent = first_output > token ? first_output - token : 0;
  const uint64_t most = uint64_t{silent} + (plan.max_outputs - step.outputs);
  return fit > most ? static_cast<uint32_t>(most) : fit;
}

void fill_rows(izh_context* context, const izh_input& input, uint32_t token, uint32_t count,
               Step* step) {
  const izh_sequence& sequence = *input.sequence;
  int32_t* const* arrays = context->inputs;
  const uint32_t first_output = input.count - input.outputs;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t row = step->tokens + i, position = sequence.length + token + i;
    const int32_t page = sequence.pages[position / kPageTokens];
    arrays[static_cast<uint32_t>(Input::Ids)][row] = input.tokens[token + i];
    arrays[static_cast<uint32_t>(Input::Positions)][row] = static_cast<int32_t>(position);
    arrays[static_cast<uint32_t>(Input::Slots)][row] =
        page * static_cast<int32_t>(kPageTokens) + static_cast<int32_t>(position % kPageTokens);
    if (token + i < first_output) continue;
    arrays[static_cast<uint32_t>(Input::OutputRows)][step->outputs++] = static_cast<int32_t>(row);
  }
}

// Tiles never mix sequences; all tiles of one share its entries in `pages`.
void fill_tiles(izh_context* context, const izh_sequence& sequence, uint32_t position,
                uint32_t count, uint32_t tile_tokens, Step* step) {
  int32_t* tiles = context->inputs[static_cast<uint32_t>(Input::Tiles)];
  int32_t* pages = context->inputs[static_cast<uint32_t>(Input::Pages)];
  const uint32_t page_count = pages_for(uint64_t{position} + count);
  for (uint32_t done = 0; done < count; done += tile_tokens) {
    const uint32_t rows = count - done < tile_tokens ? count - done : tile_tokens;
    int32_t* tile = tiles + 4 * size_t{step->tiles++};
    tile[0] = static_cast<int32_t>(step->tokens + done);
    tile[1] = static_cast<int32_t>(rows);
    tile[2] = static_cast<int32_t>(position + done);
    tile[3] = static_cast<int32_t>(step->pages);
  }
  memcpy(pages + step->pages, sequence.pages.data(), page_count * sizeof(int32_t));
  step->pages += page_count;
}

// Takes as many tokens as a step may have, in order.
Step fill_step(izh_context* context, const Batch& batch, Cursor* cursor) {
  const PlanFacts& plan = context->model->image.root.plan;
  Step step = {};
  while (cursor->input < batch.count) {
    const izh_input& input = batch.inputs[cursor->input];
    if (cursor->token == input.count) {
      *cursor = {cursor->input + 1, 0};
      continue;
    }
    const uint32_t count = tokens_that_fit(input, cursor->token, step, plan);
    if (count == 0) break;
    fill_rows(context, input, cursor->token, count, &step);
    fill_tiles(context, *input.sequence, input.sequence->length + cursor->token, count,
               plan.tile_tokens, &step);
    step.tokens += count;
    cursor->token += count;
  }
  return step;
}

void run_steps(izh_context* context, const Batch& batch, float* logits) {
  const Root& root = context->model->image.root;
  const uint8_t* rows = static_cast<const uint8_t*>(context->arena) + root.plan.logits_offset;
  Cursor cursor = {0, 0};
  for (;;) {
    const Step step = fill_step(context, batch, &cursor);
    if (step.tokens == 0) return;
    program_run(&context->program, context->team, step.tokens, step.outputs, step.tiles);
    const size_t floats = size_t{step.outputs} * root.model.vocabulary;
    if (floats == 0) continue;
    memcpy(logits, rows, floats * sizeof(float));
    logits += floats;
  }
}

}  // namespace
}  // namespace izh

using namespace izh;

izh_status izh_context_run(izh_context* context, const izh_input* inputs, uint32_t input_count,
                           float* logits, izh_error* error) {
  if (!context) return fail(error, IZH_INVALID_ARGUMENT, "izh_context_run needs a context");
  const Batch batch = {inputs, input_count};
  IZH_TRY(check_batch(context, batch, logits, error));
  for (uint32_t i = 0; i < input_count; ++i) {
    sequence_cover(inputs[i].sequence, inputs[i].sequence->length + inputs[i].count);
  }
  run_steps(context, batch, logits);
  for (uint32_t i = 0; i < input_count; ++i) {
    inputs[i].sequence->length += inputs[i].count;
    context->used_tokens += inputs[i].count;
  }
  return IZH_OK;
}
