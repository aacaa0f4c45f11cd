// Checking a device's code, and bringing code and weights to the device.

#include "runtime/exec/device_image.h"

#include <cstring>

#include "runtime/base/heap.h"
#include "runtime/base/status.h"
#include "runtime/schema/header.h"

namespace izh {
namespace {

constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kMaxBlocks = uint32_t{1} << 30;
constexpr uint64_t kMaxRowScratchBytes = uint64_t{1} << 40;

// The code section of the chosen variant.
struct Section {
  const char* data;
  uint64_t size;

  // Whether a string begins at `offset` and ends within the section.
  bool has_string(uint64_t offset) const {
    return offset < size && memchr(data + offset, 0, size - offset);
  }
  // `record` is read whatever its place's alignment is. False if it is outside.
  template <typename Record>
  bool read(uint64_t offset, Record* record) const {
    if (size < sizeof(Record) || offset > size - sizeof(Record)) return false;
    memcpy(record, data + offset, sizeof(Record));
    return true;
  }
  // Form number `i` of the kernel whose record is at `kernel`.
  bool read_form(uint64_t kernel, uint32_t i, schema::DeviceForm* form) const {
    return read(kernel + sizeof(schema::DeviceKernel) + i * sizeof(*form), form);
  }
};

Section section_of(const izh_model& model) {
  const Image& image = model.image;
  const SectionFacts& code = image.root.variants[model.variant].code;
  return {reinterpret_cast<const char*>(image.data + code.offset), code.size};
}

uint32_t entry_of(const Root& root, uint32_t variant, size_t kernel) {
  return root.entries[root.variants[variant].first_entry + kernel];
}

izh_status damaged(const izh_model& model, const char* what, izh_error* error) {
  const Root& root = model.image.root;
  return fail(error, IZH_BAD_ARTIFACT, "the code of variant %s of %s has %s: compile it again",
              root.variants[model.variant].name, model.path.data(), what);
}

// The kernel itself, without its forms. `record` was checked before.
izh_status find_kernel(const izh_model& model, const DeviceImage& image,
                       const schema::DeviceKernel& record, DeviceKernel* out, izh_error* error) {
  out->threads = record.threads;
  out->shared_bytes = record.shared_bytes;
  return device_find(model.device, image.code, section_of(model).data + record.name_offset,
                     record.shared_bytes, &out->function, error);
}

izh_status find_kernels(const izh_model& model, DeviceImage* image, izh_error* error) {
  const Root& root = model.image.root;
  const Section section = section_of(model);
  if (!image->kernels.resize(root.kernels.size())) {
    return fail(error, IZH_OUT_OF_MEMORY, "no memory is left for the model");
  }
  for (size_t i = 0; i < root.kernels.size(); ++i) {
    const uint32_t entry = entry_of(root, model.variant, i);
    schema::DeviceKernel record;
    if (!section.read(entry, &record)) continue;  // checked before
    DeviceKernel& kernel = image->kernels[i];
    kernel.form_count = record.forms;
    IZH_TRY(find_kernel(model, *image, record, &kernel, error));
    for (uint32_t f = 0; f < record.forms; ++f) {
      DeviceKernel::Form& form = kernel.forms[f];
      if (!section.read_form(entry, f, &form.record)) continue;
      IZH_TRY(device_find(model.device, image->code, section.data + form.record.name_offset,
                          form.record.shared_bytes, &form.function, error));
      form.then = nullptr;
      if (form.record.then_threads == 0) continue;
      IZH_TRY(device_find(model.device, image->code, section.data + form.record.then_name_offset, 0,
                          &form.then, error));
    }
  }
  return IZH_OK;
}

// Forms with ascending least rows, whose blocks can be launched.
izh_status check_forms(const izh_model& model, const Section& section, uint64_t entry,
                       uint32_t count, izh_error* error) {
  if (count > schema::kMaxForms) return damaged(model, "kernels of too many forms", error);
  uint32_t least = 0;
  for (uint32_t i = 0; i < count; ++i) {
    schema::DeviceForm form;
    if (!section.read_form(entry, i, &form) || !section.has_string(form.name_offset)) {
      return damaged(model, "forms without a name", error);
    }
    if (form.threads == 0 || form.threads > kMaxThreads || form.then_threads > kMaxThreads) {
      return damaged(model, "forms of an impossible number of threads", error);
    }
    if (form.shared_bytes > schema::kMaxSharedBytes) {
      return damaged(model, "forms that share an impossible amount of memory", error);
    }
    if (form.then_units > kMaxBlocks) {
      return damaged(model, "forms of impossible sizes", error);
    }
    if (form.then_threads != 0 && !section.has_string(form.then_name_offset)) {
      return damaged(model, "forms without a name", error);
    }
    if (form.least_rows <= least || form.rows_each == 0 || form.rows >= schema::kFormRows ||
        form.groups == 0 || form.groups > kMaxBlocks / model.image.root.plan.max_tokens) {
      return damaged(model, "forms of impossible sizes", error);
    }
    least = form.least_rows;
  }
  return IZH_OK;
}

// A kernel's record, and that it takes `bindings`.
izh_status check_kernel(const izh_model& model, uint64_t offset, uint64_t bindings,
                        izh_error* error) {
  const Section section = section_of(model);
  schema::DeviceKernel kernel;
  if (!section.read(offset, &kernel) || !section.has_string(kernel.name_offset)) {
    return damaged(model, "kernels without a name", error);
  }
  if (kernel.threads == 0 || kernel.threads > kMaxThreads) {
    return damaged(model, "kernels of an impossible number of threads", error);
  }
  if (kernel.shared_bytes > schema::kMaxSharedBytes) {
    return damaged(model, "kernels that share an impossible amount of memory", error);
  }
  if (kernel.bindings != bindings) return damaged(model, "kernels of another plan", error);
  return check_forms(model, section, offset, kernel.forms, error);
}

// False if there is no such form.
bool read_one_row(const Section& section, uint64_t first, size_t number, schema::OneRowForm* form) {
  return section.read(first + number * sizeof(*form), form);
}

izh_status check_one_row(const izh_model& model, uint64_t first, size_t number, izh_error* error) {
  const Root& root = model.image.root;
  schema::OneRowForm form;
  if (!read_one_row(section_of(model), first, number, &form)) {
    return damaged(model, "fewer forms than dispatches", error);
  }
  if (form.rows == 0) return IZH_OK;
  if ((form.rows != uint32_t(Extent::Tokens) && form.rows != uint32_t(Extent::Outputs)) ||
      form.prologue > root.dispatches.size()) {
    return damaged(model, "an unknown form of a dispatch", error);
  }
  if (form.skipped) return IZH_OK;
  if (form.extent >= kExtents || (form.at_once != 0 && form.extent != uint32_t(Extent::Fixed))) {
    return damaged(model, "an unknown form of a dispatch", error);
  }
  // No count of a step is larger than these together.
  const PlanFacts& plan = root.plan;
  const uint64_t most = form.extent == 0 ? 1 : uint64_t{plan.max_tokens} + plan.max_partials;
  if (form.units == 0 || form.units > kMaxBlocks / most) {
    return damaged(model, "a form of an impossible number of blocks", error);
  }
  uint64_t bindings = root.dispatches[number].binding_count;
  if (form.prologue != 0) bindings += root.dispatches[form.prologue - 1].binding_count;
  return check_kernel(model, form.kernel, bindings, error);
}

// So many that each takes about as many units as the others.
uint32_t blocks_of(const schema::OneRowForm& form, uint32_t multiprocessors) {
  const uint64_t most = uint64_t{form.at_once} * multiprocessors;
  if (most == 0 || form.units <= most) return form.units;
  const uint64_t turns = (form.units + most - 1) / most;
  return static_cast<uint32_t>((form.units + turns - 1) / turns);
}

izh_status find_one_rows(const izh_model& model, uint64_t first, DeviceImage* image,
                         izh_error* error) {
  if (first == 0) return IZH_OK;
  const Section section = section_of(model);
  const size_t count = model.image.root.dispatches.size();
  if (!image->one_rows.resize(count)) {
    return fail(error, IZH_OUT_OF_MEMORY, "no memory is left for the model");
  }
  for (size_t i = 0; i < count; ++i) {
    schema::OneRowForm form;
    if (!read_one_row(section, first, i, &form)) continue;  // checked before
    OneRow& out = image->one_rows[i];
    out = {static_cast<Extent>(form.rows),
           form.skipped != 0,
           {},
           form.prologue,
           blocks_of(form, device_info(model.device).multiprocessors),
           static_cast<Extent>(form.extent)};
    schema::DeviceKernel record;
    if (form.rows == 0 || out.skipped || !section.read(form.kernel, &record)) continue;
    IZH_TRY(find_kernel(model, *image, record, &out.kernel, error));
  }
  return IZH_OK;
}

izh_status find_best(const izh_model& model, uint32_t offset, DeviceImage* image,
                     izh_error* error) {
  const Section section = section_of(model);
  schema::DeviceKernel record;
  if (!section.read(offset, &record)) return IZH_OK;  // checked before
  return find_kernel(model, *image, record, &image->best, error);
}

izh_status upload(const izh_model& model, const SectionFacts& section, const char* what,
                  DeviceAddress* out, izh_error* error) {
  IZH_TRY(device_alloc(model.device, section.size, what, out, error));
  return device_upload(model.device, *out, model.image.data + section.offset, section.size, error);
}

izh_status make(const izh_model& model, DeviceImage* image, izh_error* error) {
  const Root& root = model.image.root;
  const Section section = section_of(model);
  schema::DeviceCode code;
  if (!section.read(0, &code)) return damaged(model, "no beginning", error);
  IZH_TRY(device_load(model.device, section.data + code.text_offset, model.path.data(),
                      &image->code, error));
  image->overlaps = code.overlaps != 0;
  image->scratch_bytes = code.scratch_bytes;
  IZH_TRY(find_kernels(model, image, error));
  IZH_TRY(find_best(model, code.best_offset, image, error));
  IZH_TRY(find_one_rows(model, code.one_rows_offset, image, error));
  IZH_TRY(upload(model, root.weights_section, "the weights", &image->weights, error));
  return upload(model, root.constants_section, "the constants", &image->constants, error);
}

}  // namespace

izh_status device_code_check(const izh_model& model, izh_error* error) {
  const Root& root = model.image.root;
  const auto* header = reinterpret_cast<const schema::Header*>(model.image.data);
  if (header->format_minor < schema::kDeviceFormatMinor) {
    return fail(error, IZH_BAD_ARTIFACT,
                "%s has code for GPUs of format %u.%u, but this runtime reads that of %u.%u and "
                "later: compile the model again, or use --device cpu",
                model.path.data(), header->format_major, header->format_minor, schema::kFormatMajor,
                schema::kDeviceFormatMinor);
  }
  const Section section = section_of(model);
  schema::DeviceCode code;
  if (!section.read(0, &code) || !section.has_string(code.text_offset)) {
    return damaged(model, "no text", error);
  }
  if (code.scratch_bytes > schema::kMaxScratchBytes) {
    return damaged(model, "an impossible need of memory", error);
  }
  if (code.row_scratch_bytes > kMaxRowScratchBytes / root.plan.max_tokens) {
    return damaged(model, "a scratch of an impossible size", error);
  }
  // Its four arguments are counted as one before the three that others end with.
  IZH_TRY(check_kernel(model, code.best_offset, 1, error));
  for (size_t i = 0; i < root.dispatches.size(); ++i) {
    const DispatchFacts& dispatch = root.dispatches[i];
    IZH_TRY(check_kernel(model, entry_of(root, model.variant, dispatch.kernel),
                         dispatch.binding_count, error));
    if (code.one_rows_offset != 0) IZH_TRY(check_one_row(model, code.one_rows_offset, i, error));
  }
  return IZH_OK;
}

uint64_t device_row_scratch_bytes(const izh_model& model) {
  schema::DeviceCode code;
  if (!section_of(model).read(0, &code)) return 0;
  return code.row_scratch_bytes * model.image.root.plan.max_tokens;
}

izh_status device_image_get(const izh_model& model, const DeviceImage** out, izh_error* error) {
  DeviceImage* image = model.device_image.load(std::memory_order_acquire);
  if (!image) {
    image = heap_create<DeviceImage>();
    if (!image) return fail(error, IZH_OUT_OF_MEMORY, "no memory is left for the model");
    const izh_status status = make(model, image, error);
    if (status != IZH_OK) {
      device_image_destroy(model.device, image);
      return status;
    }
    DeviceImage* first = nullptr;
    if (!model.device_image.compare_exchange_strong(first, image, std::memory_order_acq_rel)) {
      device_image_destroy(model.device, image);
      image = first;
    }
  }
  *out = image;
  return IZH_OK;
}

void device_image_destroy(Device* device, DeviceImage* image) {
  if (!image) return;
  izh_error ignored;
  // Where this fails, so will the rest, and the process ends it all.
  (void)device_begin(device, &ignored);
  device_free(device, image->weights);
  device_free(device, image->constants);
  device_unload(device, image->code);
  heap_destroy(image);
}

}  // namespace izh
