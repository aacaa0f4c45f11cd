// izh_context_run: checks everything, takes the cache pages, then cuts the
// inputs into steps. Nothing after the checks can fail but a device.

#include <cstring>

#include "runtime/base/best_logit.h"
#include "runtime/base/status.h"
#include "runtime/exec/context.h"

namespace izh {
namespace {

struct Batch {
  const izh_input* inputs;
  uint32_t count;
};

// What the arrays of one step hold.
struct Step : StepCounts {
  uint32_t pages;
  uint32_t partials;
};

// Where results go: all logits, or where `logits` is NULL, the best of each row.
struct Results {
  float* logits;
  int32_t* best;
  const char* what;  // for messages
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

izh_status check_batch(izh_context* context, const Batch& batch, const Results& results,
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
  if (outputs != 0 && !results.logits && !results.best) {
    return fail(error, IZH_INVALID_ARGUMENT, "%s were asked for, but no place for them given",
                results.what);
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
                         const izh_model& model) {
  const PlanFacts& plan = model.image.root.plan;
  uint32_t fit = input.count - token;
  if (fit > model.step_tokens() - step.tokens) fit = model.step_tokens() - step.tokens;
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
    arrays[static_cast<uint32_t>(Input::WindowSlots)][row] =
        window_page(sequence, position / kPageTokens) * static_cast<int32_t>(kPageTokens) +
        static_cast<int32_t>(position % kPageTokens);
    if (token + i < first_output) continue;
    arrays[static_cast<uint32_t>(Input::OutputRows)][step->outputs++] = static_cast<int32_t>(row);
  }
}

// Up to so many rows of a sequence are cut by spans of its context as well, so
// that all threads have a part of few heads.
constexpr uint32_t kFewRows = 8;

struct Tile {
  uint32_t row;
  uint32_t rows;
  uint32_t position;
  uint32_t first_page;
};

// `place`: of the partials of the tile's first row; -1 for none.
void push_tile(izh_context* context, const Tile& tile, int32_t span, int32_t end, int32_t place,
               Step* step) {
  const size_t at = 4 * size_t{step->tiles++};
  int32_t* words = context->inputs[static_cast<uint32_t>(Input::Tiles)] + at;
  words[0] = static_cast<int32_t>(tile.row);
  words[1] = static_cast<int32_t>(tile.rows);
  words[2] = static_cast<int32_t>(tile.position);
  words[3] = static_cast<int32_t>(tile.first_page);
  int32_t* part = context->inputs[static_cast<uint32_t>(Input::Parts)] + at;
  part[0] = span;
  part[1] = end;
  part[2] = place;
  part[3] = 0;
}

// One tile for each span; the partials of a span are neighbours.
void split_tile(izh_context* context, const Tile& tile, uint32_t spans, Step* step) {
  for (uint32_t span = 0; span < spans; ++span) {
    push_tile(context, tile, static_cast<int32_t>(span), static_cast<int32_t>(span + 1),
              static_cast<int32_t>(step->partials + span * tile.rows), step);
  }
  for (uint32_t i = 0; i < tile.rows; ++i) {
    int32_t* merge =
        context->inputs[static_cast<uint32_t>(Input::Merges)] + 4 * size_t{step->merges++};
    merge[0] = static_cast<int32_t>(tile.row + i);
    merge[1] = static_cast<int32_t>(tile.position + i);
    merge[2] = static_cast<int32_t>(step->partials + i);
    merge[3] = static_cast<int32_t>(tile.rows);
  }
  step->partials += spans * tile.rows;
}

// Tiles never mix sequences; all tiles of one share its entries in `pages`.
// The last tile, which sees the most keys, comes first.
void fill_tiles(izh_context* context, const izh_sequence& sequence, uint32_t position,
                uint32_t count, Step* step) {
  const PlanFacts& plan = context->model->image.root.plan;
  int32_t* pages = context->inputs[static_cast<uint32_t>(Input::Pages)];
  const uint32_t page_count = pages_for(uint64_t{position} + count);
  for (uint32_t done = count; done > 0;) {
    const uint32_t rows = done % plan.tile_tokens ? done % plan.tile_tokens : plan.tile_tokens;
    done -= rows;
    const Tile tile = {step->tokens + done, rows, position + done, step->pages};
    const uint32_t spans = plan.span_tokens ? (tile.position + rows - 1) / plan.span_tokens + 1 : 1;
    const bool fits = uint64_t{spans} * rows <= plan.max_partials - step->partials;
    if (count <= kFewRows && spans > 1 && fits) {
      split_tile(context, tile, spans, step);
    } else {
      push_tile(context, tile, 0, INT32_MAX, -1, step);
    }
  }
  memcpy(pages + step->pages, sequence.pages.data(), page_count * sizeof(int32_t));
  // What lies further back than a ring reaches is not read.
  int32_t* window_pages = context->inputs[static_cast<uint32_t>(Input::WindowPages)];
  for (uint32_t page = 0; page < page_count; ++page) {
    window_pages[step->pages + page] = window_page(sequence, page);
  }
  step->pages += page_count;
}

// A step names each sequence once.
void fill_sequence(izh_context* context, const izh_sequence& sequence, uint32_t position,
                   uint32_t count, Step* step) {
  int32_t* entry =
      context->inputs[static_cast<uint32_t>(Input::Sequences)] + 4 * size_t{step->sequences++};
  entry[0] = static_cast<int32_t>(step->tokens);
  entry[1] = static_cast<int32_t>(count);
  entry[2] = static_cast<int32_t>(position);
  entry[3] = static_cast<int32_t>(sequence.slot);
}

// Takes as many tokens as a step may have, in order.
Step fill_step(izh_context* context, const Batch& batch, Cursor* cursor) {
  Step step = {};
  while (cursor->input < batch.count) {
    const izh_input& input = batch.inputs[cursor->input];
    if (cursor->token == input.count) {
      *cursor = {cursor->input + 1, 0};
      continue;
    }
    const uint32_t count = tokens_that_fit(input, cursor->token, step, *context->model);
    if (count == 0) break;
    fill_rows(context, input, cursor->token, count, &step);
    fill_tiles(context, *input.sequence, input.sequence->length + cursor->token, count, &step);
    fill_sequence(context, *input.sequence, input.sequence->length + cursor->token, count, &step);
    step.tokens += count;
    cursor->token += count;
  }
  return step;
}

// One step; its results go to the beginning of where results go.
izh_status run_step(izh_context* context, const Step& step, const Results& to, izh_error* error) {
  const Root& root = context->model->image.root;
  if (context->device) {
    return device_program_run(context->device, step, to.logits, to.best, error);
  }
  program_run(&context->program, context->team, step);
  const uint8_t* start = static_cast<const uint8_t*>(context->arena) + root.plan.logits_offset;
  const float* rows = reinterpret_cast<const float*>(start);
  const uint32_t vocabulary = root.model.vocabulary;
  if (to.logits && step.outputs != 0) {
    memcpy(to.logits, rows, size_t{step.outputs} * vocabulary * sizeof(float));
  }
  for (uint32_t i = 0; i < step.outputs && !to.logits; ++i) {
    to.best[i] = best_logit(rows + size_t{i} * vocabulary, vocabulary);
  }
  return IZH_OK;
}

izh_status run_steps(izh_context* context, const Batch& batch, Results results, izh_error* error) {
  Cursor cursor = {0, 0};
  for (;;) {
    const Step step = fill_step(context, batch, &cursor);
    if (step.tokens == 0) return IZH_OK;
    IZH_TRY(run_step(context, step, results, error));
    if (step.outputs == 0) continue;
    if (results.logits) {
      results.logits += size_t{step.outputs} * context->model->image.root.model.vocabulary;
    } else {
      results.best += step.outputs;
    }
  }
}

izh_status run(izh_context* context, const Batch& batch, const Results& results, izh_error* error) {
  IZH_TRY(check_batch(context, batch, results, error));
  const izh_input* inputs = batch.inputs;
  for (uint32_t i = 0; i < batch.count; ++i) {
    sequence_cover(inputs[i].sequence, inputs[i].sequence->length + inputs[i].count);
  }
  const izh_status status = run_steps(context, batch, results, error);
  if (status != IZH_OK) {
    for (uint32_t i = 0; i < batch.count; ++i) {
      sequence_cut(inputs[i].sequence, inputs[i].sequence->length);
    }
    return status;
  }
  for (uint32_t i = 0; i < batch.count; ++i) {
    izh_sequence* sequence = inputs[i].sequence;
    sequence->length += inputs[i].count;
    if (sequence->length > sequence->written) sequence->written = sequence->length;
    context->used_tokens += inputs[i].count;
  }
  return IZH_OK;
}

}  // namespace
}  // namespace izh

using namespace izh;

izh_status izh_context_run(izh_context* context, const izh_input* inputs, uint32_t input_count,
                           float* logits, izh_error* error) {
  if (!context) return fail(error, IZH_INVALID_ARGUMENT, "izh_context_run needs a context");
  return run(context, {inputs, input_count}, {logits, nullptr, "logits"}, error);
}

izh_status izh_context_run_best(izh_context* context, const izh_input* inputs, uint32_t input_count,
                                int32_t* best, izh_error* error) {
  if (!context) return fail(error, IZH_INVALID_ARGUMENT, "izh_context_run_best needs a context");
  return run(context, {inputs, input_count}, {nullptr, best, "best tokens"}, error);
}
