// Places the sections of an artifact and writes them.

#include "compiler/emit/Artifact.h"
#include "compiler/emit/Layout.h"
#include "compiler/emit/OutputFile.h"
#include "compiler/emit/WeightStream.h"
#include "runtime/schema/header.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <xxhash.h>

namespace izhc::emit {
namespace {

namespace schema = izh::schema;

uint64_t place(SectionPlace &section, uint64_t size, uint64_t end) {
  section.offset = llvm::alignTo(end, schema::kSectionAlignment);
  section.size = size;
  return section.offset + size;
}

// Header, flatbuffer, code, constants, tokenizer, keys for export, weights. The large section
// comes last. Returns the length of the file.
uint64_t placeSections(const ArtifactInput &input, uint64_t rootSize, Layout &layout) {
  uint64_t end = sizeof(schema::Header) + rootSize;
  for (auto [section, variant] : llvm::zip_equal(layout.code, input.variants)) {
    const std::vector<uint8_t> &bytes = variant.code.bytes;
    end = place(section, bytes.size(), end);
    section.hash = XXH3_64bits(bytes.data(), bytes.size());
  }
  end = place(layout.constants, input.plan.constantsBytes, end);
  end = place(layout.tokenizer, input.tokenizer.size(), end);
  layout.tokenizer.hash = XXH3_64bits(input.tokenizer.data(), input.tokenizer.size());
  end = place(layout.gguf, input.gguf.size(), end);
  layout.gguf.hash = XXH3_64bits(input.gguf.data(), input.gguf.size());
  return place(layout.weights, input.plan.weightsBytes, end);
}

schema::Header makeHeader(uint64_t fileLength, llvm::ArrayRef<uint8_t> root) {
  schema::Header header = {};
  memcpy(header.magic, schema::kMagic, sizeof(header.magic));
  header.format_major = schema::kFormatMajor;
  header.format_minor = schema::kFormatMinor;
  header.least_runtime = schema::kRuntimeVersion;
  header.file_length = fileLength;
  header.root_offset = sizeof(schema::Header);
  header.root_size = root.size();
  header.root_hash = XXH3_64bits(root.data(), root.size());
  header.checksum = XXH3_64bits(&header, offsetof(schema::Header, checksum));
  return header;
}

llvm::Error writeSmallSections(const ArtifactInput &input, OutputFile &file, Layout &layout) {
  for (auto [section, variant] : llvm::zip_equal(layout.code, input.variants))
    if (llvm::Error error = file.write(section.offset, variant.code.bytes))
      return error;
  auto constants = buildConstants(input, layout);
  if (!constants)
    return constants.takeError();
  if (llvm::Error error = file.write(layout.constants.offset, *constants))
    return error;
  if (llvm::Error error = file.write(layout.tokenizer.offset, input.tokenizer))
    return error;
  return file.write(layout.gguf.offset, input.gguf);
}

// Last, so that a file with a header is a whole one.
llvm::Error writeRootAndHeader(OutputFile &file, uint64_t fileLength,
                               llvm::ArrayRef<uint8_t> root) {
  if (llvm::Error error = file.write(sizeof(schema::Header), root))
    return error;
  schema::Header header = makeHeader(fileLength, root);
  return file.write(0, {reinterpret_cast<const uint8_t *>(&header), sizeof(header)});
}

} // namespace

llvm::Expected<ArtifactSizes> writeArtifact(llvm::StringRef path, const ArtifactInput &input) {
  if (llvm::Error error = checkWeights(input))
    return error;
  Layout layout;
  layout.code.resize(input.variants.size());
  layout.weightHashes.resize(input.plan.weights.size());
  layout.constantHashes.resize(input.plan.constants.size());
  uint64_t rootSize = buildRoot(input, layout).size();
  uint64_t fileLength = placeSections(input, rootSize, layout);

  auto file = OutputFile::create(path);
  if (!file)
    return file.takeError();
  if (llvm::Error error = file->reserve(fileLength))
    return error;
  if (llvm::Error error = writeSmallSections(input, *file, layout))
    return error;
  if (llvm::Error error = streamWeights(input, *file, layout))
    return error;
  layout.sourceHash = input.provenance.sourceHash();
  flatbuffers::DetachedBuffer root = buildRoot(input, layout);
  assert(root.size() == rootSize && "the root's size depends on its numbers");
  if (llvm::Error error = writeRootAndHeader(*file, fileLength, {root.data(), root.size()}))
    return error;
  if (llvm::Error error = file->keep())
    return error;

  ArtifactSizes sizes;
  sizes.file = fileLength;
  sizes.root = rootSize;
  for (const SectionPlace &section : layout.code)
    sizes.code += section.size;
  sizes.constants = layout.constants.size;
  sizes.tokenizer = layout.tokenizer.size;
  sizes.gguf = layout.gguf.size;
  sizes.weights = layout.weights.size;
  return sizes;
}

} // namespace izhc::emit
