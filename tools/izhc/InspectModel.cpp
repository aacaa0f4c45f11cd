// What is in a model file: metadata, and tensors by type.

#include "compiler/import/ModelSource.h"
#include "compiler/support/Error.h"
#include "tools/izhc/Inspect.h"
#include "tools/izhc/Report.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <map>
#include <optional>

namespace izhc::tool {
namespace {

std::string typeName(const TensorInfo &tensor) {
  llvm::StringRef name =
      tensor.storedType.empty() ? ggufTypeName(tensor.ggufType) : tensor.storedType;
  return tensor.format  ? tensor.format->name.str()
         : name.empty() ? "unknown type " + std::to_string(tensor.ggufType)
                        : name.str();
}

// Safe to print, whatever the file holds.
std::string plain(llvm::StringRef text) {
  return llvm::StringRef(quote(text, 200)).drop_front().drop_back().str();
}

using Json = llvm::json::OStream;

void put(Json &out, llvm::StringRef text) { out.value(clean(text)); }
void put(Json &out, bool value) { out.value(value); }
void put(Json &out, int64_t value) { out.value(value); }
void put(Json &out, uint64_t value) { out.value(value); }
// JSON has neither infinities nor what is no number.
void put(Json &out, double value) {
  out.value(std::isfinite(value) ? llvm::json::Value(value) : llvm::json::Value(nullptr));
}
// One element after the other, so that lists take no memory of their own.
template <typename T> void put(Json &out, const std::vector<T> &list) {
  out.array([&] {
    for (const T &value : list)
      put(out, value);
  });
}

// Writes by the first of the getters that reads the key; false if none does.
template <typename... Getters> bool putFirst(Json &out, llvm::StringRef key, Getters... getters) {
  auto take = [&](auto value) {
    if (!value) {
      llvm::consumeError(value.takeError());
      return false;
    }
    if (*value)
      put(out, **value);
    return value->has_value();
  };
  return (take(getters(key)) || ...);
}

// Whole, whatever its length; what is no list of one kind as text for people.
void putValue(Json &out, const ModelSource &source, const MetaInfo &meta) {
  auto by = [&](auto getter) {
    return [&source, getter](llvm::StringRef key) { return (source.*getter)(key); };
  };
  using Source = ModelSource;
  bool found = source.isArray(meta.key)
                   ? putFirst(out, meta.key, by(&Source::getStringArray), by(&Source::getIntArray),
                              by(&Source::getFloatArray))
                   : putFirst(out, meta.key, by(&Source::getString), by(&Source::getBool),
                              by(&Source::getInt), by(&Source::getUInt), by(&Source::getFloat));
  if (found)
    return;
  // Getters of numbers refuse what is none.
  if (meta.type == "f32" || meta.type == "f64")
    out.value(nullptr);
  else
    out.value(clean(meta.value));
}

struct TypeTotal {
  uint64_t tensors = 0, bytes = 0, elements = 0;
};

std::map<std::string, TypeTotal> totals(const ModelSource &source) {
  std::map<std::string, TypeTotal> types;
  for (const TensorInfo &tensor : source.tensors()) {
    TypeTotal &total = types[typeName(tensor)];
    ++total.tensors;
    total.bytes += tensor.bytes;
    total.elements += tensor.elements();
  }
  return types;
}

void printJson(const ModelSource &source) {
  llvm::json::OStream out(llvm::outs(), 1);
  out.object([&] {
    out.attribute("file", clean(source.fileName()));
    out.attribute("kind", source.kindName());
    out.attribute("bytes", int64_t(source.fileBytes()));
    out.attributeObject("metadata", [&] {
      for (const MetaInfo &meta : source.metadata())
        out.attributeObject(clean(meta.key), [&] {
          out.attribute("type", meta.type);
          out.attributeBegin("value");
          putValue(out, source, meta);
          out.attributeEnd();
        });
    });
    out.attributeObject("types", [&] {
      for (auto &[name, total] : totals(source))
        out.attributeObject(name, [&] {
          out.attribute("tensors", int64_t(total.tensors));
          out.attribute("elements", int64_t(total.elements));
          out.attribute("bytes", int64_t(total.bytes));
        });
    });
    out.attributeArray("tensors", [&] {
      for (const TensorInfo &tensor : source.tensors())
        out.object([&] {
          out.attribute("name", clean(tensor.name));
          out.attribute("type", typeName(tensor));
          out.attributeArray("shape", [&] {
            for (int64_t size : tensor.shape)
              out.value(size);
          });
          out.attribute("bytes", int64_t(tensor.bytes));
        });
    });
  });
  llvm::outs() << "\n";
}

void printText(const ModelSource &source) {
  llvm::raw_ostream &out = llvm::outs();
  out << llvm::formatv("{0}: {1}, {2}\n\nmetadata\n", source.fileName(), source.kindName(),
                       megabytes(source.fileBytes()));
  for (const MetaInfo &meta : source.metadata())
    out << llvm::formatv("  {0,-40} {1,-8} {2}\n", plain(meta.key), meta.type, meta.value);
  out << "\ntensors\n";
  for (const TensorInfo &tensor : source.tensors()) {
    std::string shape;
    for (int64_t size : tensor.shape)
      shape += (shape.empty() ? "" : " x ") + std::to_string(size);
    out << llvm::formatv("  {0,-40} {1,-8} {2}\n", plain(tensor.name), typeName(tensor), shape);
  }
  out << "\ntypes\n";
  for (auto &[name, total] : totals(source))
    out << llvm::formatv("  {0,-8} {1,5} tensors {2,14} values {3,12}\n", name, total.tensors,
                         total.elements, megabytes(total.bytes));
}

} // namespace

llvm::Error inspectModel(llvm::StringRef path, bool json) {
  auto source = openModel(path);
  if (!source)
    return source.takeError();
  json ? printJson(**source) : printText(**source);
  return llvm::Error::success();
}

} // namespace izhc::tool
