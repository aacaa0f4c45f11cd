// The whole of the C API that a program needs: opens a model, reads a prompt
// and prints the likeliest continuation. Leaves sampling, stop strings and
// whole UTF-8 characters to izh_sampler and izh_utf8_stream.
//
//     greedy MODEL.izh PROMPT [TOKENS]

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/include/izh/izh.h"

static izh_error error;

static void check(izh_status status) {
  if (status == IZH_OK) return;
  fprintf(stderr, "greedy: %s\n", error.message);
  exit(1);
}

static int32_t likeliest(const float* logits, uint32_t count) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; ++i)
    if (logits[i] > logits[best]) best = i;
  return (int32_t)best;
}

int main(int argc, char** argv) {
  int wanted = argc == 4 ? atoi(argv[3]) : 64;
  if (argc < 3 || argc > 4 || wanted < 1) {
    fprintf(stderr, "usage: greedy MODEL.izh PROMPT [TOKENS]\n");
    return 2;
  }

  izh_model* model;
  izh_model_info info;
  check(izh_model_open(argv[1], NULL, &model, &error));
  izh_model_get_info(model, &info);

  // The first call only counts.
  izh_tokenize_options tokenize = {.add_bos = true, .parse_special = true};
  size_t count, bytes = strlen(argv[2]);
  check(izh_tokenize(model, argv[2], bytes, &tokenize, NULL, 0, &count, &error));
  int32_t* prompt = malloc((count + 1) * sizeof(int32_t));
  float* logits = malloc(info.vocabulary * sizeof(float));
  if (!prompt || !logits) return 1;
  check(izh_tokenize(model, argv[2], bytes, &tokenize, prompt, count, &count, &error));

  izh_context* context;
  izh_sequence* sequence;
  izh_context_options options = {.tokens = (uint32_t)count + (uint32_t)wanted};
  check(izh_context_create(model, &options, &context, &error));
  check(izh_sequence_create(context, &sequence, &error));

  // One row of logits is wanted: that of the last token.
  izh_input input = {sequence, prompt, (uint32_t)count, 1};
  int32_t token;
  for (int i = 0; i < wanted; ++i) {
    check(izh_context_run(context, &input, 1, logits, &error));
    token = likeliest(logits, info.vocabulary);
    if (izh_token_ends_text(model, token)) break;
    char text[256];
    check(izh_token_bytes(model, token, false, text, sizeof(text), &bytes, &error));
    fwrite(text, 1, bytes < sizeof(text) ? bytes : sizeof(text), stdout);
    fflush(stdout);
    input = (izh_input){sequence, &token, 1, 1};
  }
  printf("\n");

  izh_context_destroy(context);
  izh_model_close(model);
  free(logits);
  free(prompt);
  return 0;
}
