// Opening models in tests: the model, or a failed test; the message, or "".

#pragma once

#include "compiler/import/Gguf.h"
#include "test/unit/compiler/import/gguf_writer.h"

#include <gtest/gtest.h>

namespace izhc::test {

// Keeps the bytes that the model points into.
struct OpenedModel {
  Bytes bytes;
  std::unique_ptr<ModelSource> model;
  ModelSource *operator->() const { return model.get(); }
};

inline OpenedModel open(const GgufWriter &writer) {
  OpenedModel opened{writer.build(), nullptr};
  auto model = openGgufBytes("test.gguf", opened.bytes);
  if (model)
    opened.model = std::move(*model);
  else
    ADD_FAILURE() << llvm::toString(model.takeError());
  return opened;
}

// The message with which opening fails.
inline std::string refusal(const Bytes &bytes) {
  auto model = openGgufBytes("test.gguf", bytes);
  if (!model)
    return llvm::toString(model.takeError());
  ADD_FAILURE() << "the file was accepted";
  return "";
}
inline std::string refusal(const GgufWriter &writer) { return refusal(writer.build()); }

template <typename T> std::string message(llvm::Expected<T> value) {
  if (!value)
    return llvm::toString(value.takeError());
  return "";
}

// The value, which must be there.
template <typename T> T get(llvm::Expected<std::optional<T>> value) {
  if (!value) {
    ADD_FAILURE() << llvm::toString(value.takeError());
    return T();
  }
  EXPECT_TRUE(value->has_value());
  return value->value_or(T());
}

} // namespace izhc::test
