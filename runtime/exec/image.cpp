// Verification of the header and of the places of all sections.

#include "runtime/exec/image.h"

#include <xxhash.h>

#include <cstring>

#include "runtime/base/status.h"
#include "runtime/schema/header.h"

namespace izh {
namespace {

using Number = unsigned long long;

// Header versions before everything else: an older runtime must be able to say
// what it lacks, whatever follows.
izh_status read_header(const uint8_t* data, uint64_t size, const char* name, schema::Header* header,
                       izh_error* error) {
  if (size < sizeof(*header)) {
    return fail(error, IZH_BAD_ARTIFACT,
                "%s has %llu bytes, but an .izh file starts with a header of %zu", name,
                static_cast<Number>(size), sizeof(*header));
  }
  memcpy(header, data, sizeof(*header));
  if (memcmp(header->magic, schema::kMagic, sizeof(schema::kMagic)) != 0) {
    return fail(error, IZH_BAD_ARTIFACT,
                "%s is not an .izh file: its first bytes are not the ones that izhc writes "
                "(compile a model with `izhc compile MODEL -o FILE.izh`)",
                name);
  }
  if (XXH3_64bits(data, offsetof(schema::Header, checksum)) != header->checksum) {
    return fail(error, IZH_BAD_ARTIFACT,
                "the header of %s does not match its checksum: the file is damaged, copy or "
                "compile it again",
                name);
  }
  if (header->least_runtime > schema::kRuntimeVersion) {
    const uint32_t need = header->least_runtime, have = schema::kRuntimeVersion;
    return fail(error, IZH_BAD_ARTIFACT,
                "%s needs runtime %u.%u.%u or newer, but this is %u.%u.%u: update izh-rt", name,
                need / 10000, need / 100 % 100, need % 100, have / 10000, have / 100 % 100,
                have % 100);
  }
  if (header->format_major != schema::kFormatMajor) {
    return fail(
        error, IZH_BAD_ARTIFACT, "%s has format %u.%u, but this runtime reads format %u: %s", name,
        header->format_major, header->format_minor, schema::kFormatMajor,
        header->format_major > schema::kFormatMajor ? "update izh-rt" : "compile the model again");
  }
  if (header->format_minor <= schema::kFormatMinor && header->reserved != 0) {
    return fail(error, IZH_BAD_ARTIFACT, "the header of %s uses a reserved field", name);
  }
  if (header->file_length != size) {
    return fail(error, IZH_BAD_ARTIFACT,
                "%s has %llu bytes, but its header says %llu: the file was cut or grew, copy or "
                "compile it again",
                name, static_cast<Number>(size), static_cast<Number>(header->file_length));
  }
  return IZH_OK;
}

izh_status find_root(const schema::Header& header, const char* name, Image* out, izh_error* error) {
  const uint64_t offset = header.root_offset, size = header.root_size;
  if (offset < sizeof(header) || offset % 64 != 0 || offset > out->size ||
      size > out->size - offset) {
    return fail(error, IZH_BAD_ARTIFACT,
                "the root of %s is said to be %llu bytes at %llu, which is not inside the file",
                name, static_cast<Number>(size), static_cast<Number>(offset));
  }
  out->root_offset = offset;
  out->root_size = size;
  return image_check_hash(*out, name, "the plan", offset, size, header.root_hash, error);
}

struct Segment {
  uint64_t offset;
  uint64_t size;
  const char* what;
};

izh_status check_section(const SectionFacts& section, const char* what, const char* name,
                         const Image& image, Array<Segment>* segments, izh_error* error) {
  if (section.size == 0) return IZH_OK;
  if (section.offset % schema::kSectionAlignment != 0) {
    return fail(error, IZH_BAD_ARTIFACT, "%s of %s starts at %llu, which is not a multiple of %llu",
                what, name, static_cast<Number>(section.offset),
                static_cast<Number>(schema::kSectionAlignment));
  }
  if (section.offset > image.size || section.size > image.size - section.offset) {
    return fail(error, IZH_BAD_ARTIFACT,
                "%s of %s is said to be %llu bytes at %llu, which is not inside the file of %llu",
                what, name, static_cast<Number>(section.size), static_cast<Number>(section.offset),
                static_cast<Number>(image.size));
  }
  if (!segments->push({section.offset, section.size, what})) {
    return fail(error, IZH_OUT_OF_MEMORY, "no memory is left for the tables of %s", name);
  }
  return IZH_OK;
}

izh_status check_overlaps(Array<Segment>* segments, const char* name, izh_error* error) {
  Segment* list = segments->data();
  // Insertion sort: there are a few dozen at most.
  for (size_t i = 1; i < segments->size(); ++i) {
    for (size_t k = i; k > 0 && list[k].offset < list[k - 1].offset; --k) {
      std::swap(list[k], list[k - 1]);
    }
  }
  for (size_t i = 1; i < segments->size(); ++i) {
    if (list[i].offset - list[i - 1].offset < list[i - 1].size) {
      return fail(error, IZH_BAD_ARTIFACT, "%s and %s of %s overlap at byte %llu", list[i - 1].what,
                  list[i].what, name, static_cast<Number>(list[i].offset));
    }
  }
  return IZH_OK;
}

izh_status check_sections(const Image& image, const char* name, izh_error* error) {
  const Root& root = image.root;
  Array<Segment> segments;
  if (!segments.push({0, sizeof(schema::Header), "the header"}) ||
      !segments.push({image.root_offset, image.root_size, "the root"})) {
    return fail(error, IZH_OUT_OF_MEMORY, "no memory is left for the tables of %s", name);
  }
  for (const VariantFacts& variant : root.variants) {
    if (variant.code.size == 0) {
      return fail(error, IZH_BAD_ARTIFACT, "variant %s of %s has no code", variant.name, name);
    }
    IZH_TRY(check_section(variant.code, "a code section", name, image, &segments, error));
  }
  IZH_TRY(
      check_section(root.weights_section, "the weights section", name, image, &segments, error));
  IZH_TRY(check_section(root.constants_section, "the constants section", name, image, &segments,
                        error));
  IZH_TRY(check_section(root.tokenizer_section, "the tokenizer section", name, image, &segments,
                        error));
  return check_overlaps(&segments, name, error);
}

}  // namespace

izh_status image_check_hash(const Image& image, const char* name, const char* what, uint64_t offset,
                            uint64_t size, uint64_t hash, izh_error* error) {
  if (XXH3_64bits(image.data + offset, static_cast<size_t>(size)) == hash) return IZH_OK;
  return fail(error, IZH_BAD_ARTIFACT,
              "%s of %s does not match its hash: the file is damaged, copy or compile it again",
              what, name);
}

izh_status image_verify(const uint8_t* data, uint64_t size, const char* name, Image* out,
                        izh_error* error) {
  schema::Header header;
  out->data = data;
  out->size = size;
  IZH_TRY(read_header(data, size, name, &header, error));
  IZH_TRY(find_root(header, name, out, error));
  IZH_TRY(root_read(data + out->root_offset, out->root_size, name, &out->root, error));
  IZH_TRY(check_sections(*out, name, error));
  return plan_verify(out->root, name, error);
}

}  // namespace izh
