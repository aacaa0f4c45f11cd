// What is in an .izh file. Whether a machine can run it is izh-rt's business:
// an artifact for other machines can be looked at too.

#include "compiler/support/Error.h"
#include "runtime/schema/artifact_generated.h"
#include "runtime/schema/header.h"
#include "tools/izhc/Inspect.h"
#include "tools/izhc/Report.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>
#include <map>
#include <xxhash.h>

namespace izhc::tool {
namespace {

namespace schema = izh::schema;

} // namespace

llvm::Expected<const schema::Artifact *> readRoot(const MappedFile &file) {
  llvm::ArrayRef<uint8_t> bytes = file.bytes();
  schema::Header header;
  if (bytes.size() < sizeof(header))
    return makeError("{0} is cut off: it has {1} bytes, fewer than its header", file.path(),
                     bytes.size());
  memcpy(&header, bytes.data(), sizeof(header));
  if (header.checksum != XXH3_64bits(&header, offsetof(schema::Header, checksum)))
    return makeError("{0} is damaged: the checksum of its header does not match", file.path());
  if (header.format_major != schema::kFormatMajor)
    return makeError("{0} has format {1}.{2}, but this izhc knows {3}.x", file.path(),
                     header.format_major, header.format_minor, schema::kFormatMajor);
  if (header.file_length != bytes.size())
    return makeError("{0} has {1} bytes, but its header says {2}: copy it again", file.path(),
                     bytes.size(), header.file_length);
  if (header.root_offset > bytes.size() || header.root_size > bytes.size() - header.root_offset ||
      header.root_offset % 64 != 0)
    return makeError("{0} is damaged: its tables lie outside of the file", file.path());
  const uint8_t *root = bytes.data() + header.root_offset;
  flatbuffers::Verifier verifier(root, header.root_size, 64, 10'000'000);
  if (!schema::VerifyArtifactBuffer(verifier))
    return makeError("{0} is damaged: its tables are malformed", file.path());
  return schema::GetArtifact(root);
}

namespace {

llvm::StringRef text(const flatbuffers::String *string) {
  return string ? llvm::StringRef(string->c_str(), string->size()) : llvm::StringRef();
}

template <typename T> size_t count(const flatbuffers::Vector<T> *list) {
  return list ? list->size() : 0;
}

std::string featureNames(uint64_t bits) {
  static const std::pair<unsigned, const char *> names[] = {
#define IZH_CPU_FEATURE(bit, name, arch) {bit, #name},
#include "runtime/schema/cpu_features.def"
  };
  std::string list;
  for (auto &[bit, name] : names)
    if (bits >> bit & 1)
      list += (list.empty() ? "" : ",") + std::string(name);
  return list;
}

uint64_t size(const schema::Section *section) { return section ? section->size() : 0; }

struct FormatTotal {
  uint64_t count = 0, bytes = 0;
};

std::map<std::string, FormatTotal> formats(const schema::Artifact &artifact) {
  std::map<std::string, FormatTotal> totals;
  if (artifact.weights())
    for (const schema::Weight *weight : *artifact.weights()) {
      FormatTotal &total = totals[clean(text(weight->format()))];
      ++total.count;
      total.bytes += weight->size();
    }
  return totals;
}

uint64_t pageBytes(const schema::Plan &plan) {
  uint64_t bytes = 0;
  if (plan.states())
    for (const schema::State *state : *plan.states())
      bytes += state->page_bytes();
  return bytes;
}

// Every fact as a key and a JSON value, grouped; both outputs are made of it.
llvm::json::Object describe(const MappedFile &file, const schema::Artifact &artifact) {
  using llvm::json::Object;
  auto number = [](uint64_t value) { return llvm::json::Value(int64_t(value)); };
  const schema::Model &model = *artifact.model();
  const schema::Plan &plan = *artifact.plan();
  Object result;
  result["file"] = clean(file.path());
  result["kind"] = "izh";
  result["bytes"] = number(file.bytes().size());
  result["model"] = Object{{"architecture", clean(text(model.architecture()))},
                           {"name", clean(text(model.name()))},
                           {"parameters", number(model.parameters())},
                           {"layers", number(model.layers())},
                           {"embedding", number(model.embedding())},
                           {"vocabulary", number(model.vocabulary())},
                           {"context", number(model.context())},
                           {"chat_template", !text(model.chat_template()).empty()}};
  result["sections"] = Object{{"weights", number(size(artifact.weights_section()))},
                              {"constants", number(size(artifact.constants_section()))},
                              {"tokenizer", number(size(artifact.tokenizer_section()))}};
  result["plan"] = Object{
      {"kernels", number(count(plan.kernels()))},  {"dispatches", number(count(plan.dispatches()))},
      {"states", number(count(plan.states()))},    {"arena_bytes", number(plan.arena_bytes())},
      {"max_tokens", number(plan.max_tokens())},   {"max_outputs", number(plan.max_outputs())},
      {"page_tokens", number(plan.page_tokens())}, {"page_bytes", number(pageBytes(plan))}};
  Object weights;
  for (auto &[name, total] : formats(artifact))
    weights[name] = Object{{"count", number(total.count)}, {"bytes", number(total.bytes)}};
  result["formats"] = std::move(weights);
  llvm::json::Array variants;
  for (const schema::Variant *variant : *artifact.variants())
    variants.push_back(Object{{"name", clean(text(variant->name()))},
                              {"arch", clean(text(variant->arch()))},
                              {"rank", number(variant->rank())},
                              {"features", featureNames(variant->features())},
                              {"code_bytes", number(size(variant->code()))}});
  result["variants"] = std::move(variants);
  if (const schema::Provenance *from = artifact.provenance())
    result["provenance"] = Object{{"compiler", clean(text(from->compiler()))},
                                  {"command_line", clean(text(from->command_line()))},
                                  {"source", clean(text(from->source()))},
                                  {"source_hash", clean(text(from->source_hash()))},
                                  {"recipe", clean(text(from->recipe()))}};
  return result;
}

// Safe to print, whatever the file holds.
std::string quoted(const llvm::json::Value &value) {
  if (auto string = value.getAsString())
    return quote(*string, 400);
  return llvm::formatv("{0}", value);
}

std::string plain(const llvm::json::Object &object, llvm::StringRef key) {
  std::string text = quote(object.getString(key).value_or(""));
  return text.substr(1, text.size() - 2);
}

void printGroup(llvm::StringRef name, const llvm::json::Value &value, unsigned depth) {
  std::string indent(2 * depth, ' ');
  if (const llvm::json::Object *object = value.getAsObject()) {
    llvm::outs() << indent << name << "\n";
    // The object itself has no order.
    std::map<llvm::StringRef, const llvm::json::Value *> sorted;
    for (auto &[key, inner] : *object)
      sorted[key] = &inner;
    for (auto &[key, inner] : sorted)
      printGroup(key, *inner, depth + 1);
  } else {
    llvm::outs() << indent << llvm::formatv("{0,-16} {1}\n", name, quoted(value));
  }
}

void printVariants(const llvm::json::Array &variants) {
  llvm::outs() << "variants\n";
  for (const llvm::json::Value &value : variants) {
    const llvm::json::Object &one = *value.getAsObject();
    llvm::outs() << llvm::formatv("  {0,-16} {1}, {2} bytes of code, {3}\n", plain(one, "name"),
                                  plain(one, "arch"), *one.getInteger("code_bytes"),
                                  plain(one, "features"));
  }
}

} // namespace

llvm::Error inspectArtifact(const MappedFile &file, bool json) {
  auto root = readRoot(file);
  if (!root)
    return root.takeError();
  llvm::json::Object facts = describe(file, **root);
  if (json) {
    llvm::outs() << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(facts)));
    return llvm::Error::success();
  }
  for (llvm::StringRef key :
       {"file", "bytes", "model", "plan", "sections", "formats", "provenance"})
    if (const llvm::json::Value *value = facts.get(key))
      printGroup(key, *value, 0);
  printVariants(*facts.getArray("variants"));
  return llvm::Error::success();
}

} // namespace izhc::tool
