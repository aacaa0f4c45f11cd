// izh's C API: load an .izh artifact, run it, turn text into tokens and back.
//
// Objects: a model is a mapped and verified artifact; a context is memory and
// threads to run it with; a sequence is one conversation's state in a context.
// A model may serve several contexts. A context and its sequences belong to
// one thread at a time; models may be shared between threads.
//
// Every fallible function returns a status; on failure a sentence that names
// what was found, what was expected and what to do is in the izh_error given
// (NULL is allowed), and out-parameters are unchanged or NULL.

#ifndef IZH_IZH_H
#define IZH_IZH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define IZH_NODISCARD __attribute__((warn_unused_result))
#define IZH_API __attribute__((visibility("default")))
#else
#define IZH_NODISCARD
#define IZH_API
#endif

// Values are part of the ABI: never renumbered, only appended.
typedef enum izh_status {
  IZH_OK = 0,
  IZH_INVALID_ARGUMENT = 1,
  IZH_OUT_OF_MEMORY = 2,
  IZH_BAD_ARTIFACT = 3,     // malformed, damaged or made for a newer runtime
  IZH_UNSUPPORTED_CPU = 4,  // no variant runs on this machine
  IZH_IO = 5,
  IZH_CONTEXT_FULL = 6,  // no cache page or position is left
  IZH_LIMIT = 7,         // a documented limit was exceeded
} izh_status;

typedef struct izh_error {
  char message[512];  // zero-terminated
} izh_error;

typedef struct izh_model izh_model;
typedef struct izh_context izh_context;
typedef struct izh_sequence izh_sequence;

// ---- Model ----------------------------------------------------------------

// How the file gets into memory.
typedef enum izh_load {
  IZH_LOAD_MAP = 0,   // mapped: starts at once, and processes share the pages
  IZH_LOAD_READ = 1,  // read whole into huge pages of this process
} izh_load;

typedef struct izh_model_options {
  const char* variant;  // force one of the artifact's variants; NULL: the best
  const char* require;  // comma-separated CPU features that the chosen variant must use; NULL: none
  izh_load load;
  // Only to look into the file, to tokenize and to render: no context can be made,
  // and the file need have no variant for this machine.
  bool no_run;
} izh_model_options;

// Maps (or reads) and verifies the file at `path`. `options` may be NULL.
IZH_API IZH_NODISCARD izh_status izh_model_open(const char* path, const izh_model_options* options,
                                                izh_model** out, izh_error* error);
IZH_API void izh_model_close(izh_model* model);

typedef struct izh_model_info {
  const char* architecture;  // strings live as long as the model
  const char* name;
  const char* variant;        // "" if none runs here, which no_run allows
  const char* chat_template;  // "" if the model has none
  const char* compiler;
  const char* command_line;
  const char* source;
  const char* source_hash;
  const char* recipe;
  uint32_t vocabulary;  // columns of the logits
  uint32_t context;     // tokens that the model was trained for
  uint32_t embedding;
  uint32_t layers;
  uint32_t max_step_tokens;  // tokens computed at once
  uint64_t parameters;
  uint64_t file_bytes;
  uint64_t weight_bytes;
  uint64_t code_bytes;             // of the chosen variant
  uint64_t arena_bytes;            // a context's buffers
  uint64_t cache_bytes_per_token;  // of layers that see all tokens
  uint32_t variants;
  bool has_tokenizer;
  // Layers that see the last `window` tokens only (the greatest of them; 0: there
  // are none) keep these bytes of each, and of the tokens of a step.
  uint32_t window;
  uint64_t window_bytes_per_token;
} izh_model_info;

IZH_API void izh_model_get_info(const izh_model* model, izh_model_info* out);

// Variant `index` of the artifact: its name and why it was not chosen (""
// for the chosen one, of which there is none where none runs here).
IZH_API IZH_NODISCARD izh_status izh_model_variant(const izh_model* model, uint32_t index,
                                                   const char** name, const char** reason);

// Reads the whole file and compares every hash.
IZH_API IZH_NODISCARD izh_status izh_model_verify(const izh_model* model, izh_error* error);

// ---- Context --------------------------------------------------------------

typedef struct izh_context_options {
  uint32_t threads;    // 0: one a usable physical core
  uint32_t tokens;     // cache for so many tokens in all sequences; 0: min(model's context, 4096)
  uint32_t sequences;  // sequences alive at a time; 0: 1
} izh_context_options;

// `options` may be NULL, as if all were 0. The model must outlive the context.
IZH_API IZH_NODISCARD izh_status izh_context_create(const izh_model* model,
                                                    const izh_context_options* options,
                                                    izh_context** out, izh_error* error);
// What a context takes, in bytes.
typedef struct izh_memory {
  uint64_t buffers;
  uint64_t cache;    // when all of its tokens are in use
  uint64_t file;     // weights, code and tables
  bool file_mapped;  // the system may drop mapped pages and read them again
  uint64_t peak;     // all of these
  uint64_t limit;    // what this process may use
} izh_memory;

// Tells what izh_context_create with these options would take, and fails as it
// would over sizes, but not over the limit.
IZH_API IZH_NODISCARD izh_status izh_context_memory(const izh_model* model,
                                                    const izh_context_options* options,
                                                    izh_memory* out, izh_error* error);

// Destroys its sequences too.
IZH_API void izh_context_destroy(izh_context* context);
IZH_API uint32_t izh_context_threads(const izh_context* context);
IZH_API uint32_t izh_context_tokens(const izh_context* context);  // capacity, as granted

IZH_API IZH_NODISCARD izh_status izh_sequence_create(izh_context* context, izh_sequence** out,
                                                     izh_error* error);
IZH_API void izh_sequence_destroy(izh_sequence* sequence);
IZH_API uint32_t izh_sequence_length(const izh_sequence* sequence);
// Forgets the tokens from position `length` on. A model with a state of fixed
// size can only forget all of them: IZH_LIMIT for other lengths. So it is where
// layers with a window have already dropped tokens that the next one would see,
// which is so some way behind the longest that the sequence was.
IZH_API IZH_NODISCARD izh_status izh_sequence_truncate(izh_sequence* sequence, uint32_t length,
                                                       izh_error* error);

// Tokens to append to one sequence, and how many logits rows are wanted of
// them: the last `outputs` tokens each give a row.
typedef struct izh_input {
  izh_sequence* sequence;
  const int32_t* tokens;
  uint32_t count;
  uint32_t outputs;
} izh_input;

// Runs all inputs (of different sequences of this context) and writes the rows
// wanted to `logits`, in the order of inputs and tokens: sum of outputs rows
// of `vocabulary` floats. Splits into steps as needed. On failure no sequence
// is longer than before.
IZH_API IZH_NODISCARD izh_status izh_context_run(izh_context* context, const izh_input* inputs,
                                                 uint32_t input_count, float* logits,
                                                 izh_error* error);

// The same, but of each row only the number of the largest logit is written to
// `best`, of equal ones the lowest; -1 where a logit is not below infinity. On a
// device the rows stay there.
IZH_API IZH_NODISCARD izh_status izh_context_run_best(izh_context* context, const izh_input* inputs,
                                                      uint32_t input_count, int32_t* best,
                                                      izh_error* error);

// ---- Text -----------------------------------------------------------------

typedef struct izh_tokenize_options {
  bool add_bos;        // as the model's metadata says (not: always)
  bool parse_special;  // control tokens in the text are recognised
} izh_tokenize_options;

// Ids of `text`. Writes at most `capacity` of them; `*count` is the number
// there are in any case, so call again with a larger buffer if it is greater.
// `options` may be NULL, as if both were true.
IZH_API IZH_NODISCARD izh_status izh_tokenize(const izh_model* model, const char* text,
                                              size_t text_bytes,
                                              const izh_tokenize_options* options, int32_t* ids,
                                              size_t capacity, size_t* count, izh_error* error);

// The bytes of one token (may be part of a UTF-8 character; control tokens
// give their name if `special`, else nothing). Same convention for `capacity`.
IZH_API IZH_NODISCARD izh_status izh_token_bytes(const izh_model* model, int32_t id, bool special,
                                                 char* out, size_t capacity, size_t* count,
                                                 izh_error* error);
IZH_API bool izh_token_ends_text(const izh_model* model, int32_t id);
IZH_API int32_t izh_token_bos(const izh_model* model);  // -1 if there is none
IZH_API int32_t izh_token_eos(const izh_model* model);

// ---- Chat templates -------------------------------------------------------

// The prompt that the model's chat template makes of a conversation.
// `context` is a JSON object: messages, tools, add_generation_prompt (true if
// absent) and whatever else the template knows; `now`, an ISO time, is what
// strftime_now tells. The model's bos_token and eos_token are added. Same
// convention for `capacity`. Fails if the template refuses the conversation,
// or takes more steps, memory, depth or output than a template may.
IZH_API IZH_NODISCARD izh_status izh_render(const izh_model* model, const char* context,
                                            size_t context_bytes, char* out, size_t capacity,
                                            size_t* count, izh_error* error);

// The same of a template in Jinja's language; tokens come from the context.
IZH_API IZH_NODISCARD izh_status izh_render_template(const char* source, size_t source_bytes,
                                                     const char* context, size_t context_bytes,
                                                     char* out, size_t capacity, size_t* count,
                                                     izh_error* error);

// ---- Sampling -------------------------------------------------------------

typedef struct izh_sampler izh_sampler;

typedef struct izh_sampler_options {
  float temperature;       // 0: greedy (the lowest id of equal best)
  uint32_t top_k;          // 0: off
  float top_p;             // 1: off
  float min_p;             // 0: off
  float repeat_penalty;    // 1: off; positive logits divided, negative multiplied
  uint32_t repeat_window;  // last tokens that are penalised
  uint64_t seed;
} izh_sampler_options;

IZH_API IZH_NODISCARD izh_status izh_sampler_create(const izh_sampler_options* options,
                                                    uint32_t vocabulary, izh_sampler** out,
                                                    izh_error* error);
IZH_API void izh_sampler_destroy(izh_sampler* sampler);
// Chooses a token and remembers it. `logits` has `vocabulary` floats.
IZH_API int32_t izh_sampler_next(izh_sampler* sampler, const float* logits);
// Remembers a token of the prompt, for the repeat penalty.
IZH_API void izh_sampler_accept(izh_sampler* sampler, int32_t id);

// Holds back bytes until they are whole UTF-8 characters. Feed it the bytes of
// each token; it writes what is complete. Invalid bytes become U+FFFD.
typedef struct izh_utf8_stream {
  uint8_t pending[4];
  uint8_t count;
} izh_utf8_stream;
// `out` needs room for 3 * (bytes + 4). Returns the bytes written.
IZH_API size_t izh_utf8_feed(izh_utf8_stream* stream, const char* bytes, size_t count, char* out);
// Flushes an incomplete character at the end of the text.
IZH_API size_t izh_utf8_finish(izh_utf8_stream* stream, char* out);

#ifdef __cplusplus
}
#endif

#endif  // IZH_IZH_H
