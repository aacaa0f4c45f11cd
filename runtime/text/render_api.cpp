// The C API's chat templates.

#include <algorithm>
#include <cstring>

#include "runtime/base/status.h"
#include "runtime/exec/model.h"
#include "runtime/text/jinja/render.h"

namespace izh {
namespace {

// The text of a special token as a template wants it; empty if there is none.
izh_status special_text(const izh_model* model, int32_t id, Array<char>* out, izh_error* error) {
  size_t count = 0;
  if (id < 0) return IZH_OK;
  IZH_TRY(izh_token_bytes(model, id, true, nullptr, 0, &count, error));
  if (!out->resize(count)) return fail(error, IZH_OUT_OF_MEMORY, "no memory is left");
  return izh_token_bytes(model, id, true, out->data(), out->size(), &count, error);
}

izh_status render_to(const jinja::RenderInput& input, char* out, size_t capacity, size_t* count,
                     izh_error* error) {
  Array<char> text;
  IZH_TRY(jinja::render(input, {}, &text, error));
  std::copy_n(text.data(), std::min(text.size(), capacity), out);
  *count = text.size();
  return IZH_OK;
}

}  // namespace
}  // namespace izh

izh_status izh_render(const izh_model* model, const char* context, size_t context_bytes, char* out,
                      size_t capacity, size_t* count, izh_error* error) {
  izh_model_info info;
  izh_model_get_info(model, &info);
  if (info.chat_template[0] == 0) {
    return izh::fail(error, IZH_INVALID_ARGUMENT, "%s has no chat template", model->path.data());
  }
  izh::Array<char> bos, eos;
  if (info.has_tokenizer) {
    IZH_TRY(izh::special_text(model, izh_token_bos(model), &bos, error));
    IZH_TRY(izh::special_text(model, izh_token_eos(model), &eos, error));
  }
  return izh::render_to({{info.chat_template, strlen(info.chat_template)},
                         {context, context_bytes},
                         {bos.empty() ? "" : bos.data(), bos.size()},
                         {eos.empty() ? "" : eos.data(), eos.size()}},
                        out, capacity, count, error);
}

izh_status izh_render_template(const char* source, size_t source_bytes, const char* context,
                               size_t context_bytes, char* out, size_t capacity, size_t* count,
                               izh_error* error) {
  if (source_bytes > UINT32_MAX || context_bytes > UINT32_MAX) {
    return izh::fail(error, IZH_LIMIT, "templates and contexts of 4 GB and more can't be rendered");
  }
  return izh::render_to({{source, source_bytes}, {context, context_bytes}}, out, capacity, count,
                        error);
}
