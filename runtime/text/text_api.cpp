// The C API's tokenizer functions: a model's tokenizer is made at its first use.

#include <algorithm>

#include "runtime/base/status.h"
#include "runtime/exec/model.h"
#include "runtime/text/tokenizer.h"

namespace izh {
namespace {

void destroy_tokenizer(void* tokenizer) { Tokenizer::destroy(static_cast<Tokenizer*>(tokenizer)); }

izh_status tokenizer_of(const izh_model* model, const Tokenizer** out, izh_error* error) {
  void* made = model->text.load(std::memory_order_acquire);
  if (!made) {
    if (model->tokenizer.empty()) {
      return fail(error, IZH_INVALID_ARGUMENT,
                  "%s has no tokenizer: it takes and gives token ids only", model->path.data());
    }
    Tokenizer* fresh;
    IZH_TRY(Tokenizer::create(model->tokenizer.data, model->tokenizer.size, &fresh, error));
    model->text_destroy.store(destroy_tokenizer, std::memory_order_release);
    // Another thread may have been faster; then its object is the one.
    if (model->text.compare_exchange_strong(made, fresh, std::memory_order_acq_rel)) {
      made = fresh;
    } else {
      Tokenizer::destroy(fresh);
    }
  }
  *out = static_cast<const Tokenizer*>(made);
  return IZH_OK;
}

}  // namespace
}  // namespace izh

izh_status izh_tokenize(const izh_model* model, const char* text, size_t text_bytes,
                        const izh_tokenize_options* options, int32_t* ids, size_t capacity,
                        size_t* count, izh_error* error) {
  const izh::Tokenizer* tokenizer;
  IZH_TRY(izh::tokenizer_of(model, &tokenizer, error));
  izh::EncodeOptions encode;
  if (options) encode = {options->add_bos, options->parse_special};
  izh::Array<int32_t> found;
  IZH_TRY(tokenizer->encode(text, text_bytes, encode, &found, error));
  std::copy_n(found.data(), std::min(found.size(), capacity), ids);
  *count = found.size();
  return IZH_OK;
}

izh_status izh_token_bytes(const izh_model* model, int32_t id, bool special, char* out,
                           size_t capacity, size_t* count, izh_error* error) {
  const izh::Tokenizer* tokenizer;
  IZH_TRY(izh::tokenizer_of(model, &tokenizer, error));
  // Output matrices often have rows for more tokens than there are: they have no bytes.
  const uint32_t columns = std::max(model->image.root.model.vocabulary, tokenizer->size());
  if (id < 0 || static_cast<uint32_t>(id) >= columns) {
    return izh::fail(error, IZH_INVALID_ARGUMENT, "token %d is not in the vocabulary of %u tokens",
                     id, columns);
  }
  *count = tokenizer->token_bytes(id, special, out, capacity);
  return IZH_OK;
}

bool izh_token_ends_text(const izh_model* model, int32_t id) {
  const izh::Tokenizer* tokenizer;
  return izh::tokenizer_of(model, &tokenizer, nullptr) == IZH_OK && tokenizer->ends_text(id);
}

int32_t izh_token_bos(const izh_model* model) {
  const izh::Tokenizer* tokenizer;
  return izh::tokenizer_of(model, &tokenizer, nullptr) == IZH_OK ? tokenizer->bos() : -1;
}

int32_t izh_token_eos(const izh_model* model) {
  const izh::Tokenizer* tokenizer;
  return izh::tokenizer_of(model, &tokenizer, nullptr) == IZH_OK ? tokenizer->eos() : -1;
}
