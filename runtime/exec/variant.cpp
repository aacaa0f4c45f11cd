// The choice of the variant.

#include "runtime/exec/variant.h"

#include <cstdio>
#include <cstring>

#include "runtime/base/status.h"
#include "runtime/platform/cpu.h"

namespace izh {
namespace {

bool runs_on(const VariantFacts& variant, const Machine& machine) {
  return strcmp(variant.arch, machine.arch) == 0 && (variant.features & ~machine.features) == 0;
}

bool any_runs_on(const Root& root, const Machine& machine) {
  for (const VariantFacts& variant : root.variants) {
    if (runs_on(variant, machine)) return true;
  }
  return false;
}

// Why `variant` cannot run on `machine`; "" if it can.
void obstacle(const VariantFacts& variant, const Machine& machine, char* out, size_t capacity) {
  out[0] = 0;
  if (strcmp(variant.arch, machine.arch) != 0) {
    if (!machine.name && strncmp(variant.arch, "nvptx", 5) == 0) {
      snprintf(out, capacity, "is for GPUs (izh-rt devices lists them)");
    } else if (machine.name) {
      snprintf(out, capacity, "is for %s, but %s was asked for, which is %s", variant.arch,
               machine.name, machine.arch);
    } else {
      snprintf(out, capacity, "is for %s, but this machine is %s", variant.arch, machine.arch);
    }
    return;
  }
  const uint64_t missing = variant.features & ~machine.features;
  if (missing == 0) return;
  char names[160];
  cpu_feature_list(missing, names, sizeof(names));
  snprintf(out, capacity, "needs %s, which %s does not offer", names,
           machine.name ? machine.name : "this CPU or its system");
}

// "a, b, c": the names of all variants.
void variant_names(const Root& root, char* out, size_t capacity) {
  size_t used = 0;
  out[0] = 0;
  for (const VariantFacts& variant : root.variants) {
    const int count = snprintf(out + used, capacity - used, "%s%s", used ? ", " : "", variant.name);
    if (count < 0 || static_cast<size_t>(count) >= capacity - used) return;
    used += static_cast<size_t>(count);
  }
}

izh_status choose_named(const Root& root, const char* name, const Machine& machine,
                        const char* wanted, uint32_t* chosen, izh_error* error) {
  for (uint32_t i = 0; i < root.variants.size(); ++i) {
    const VariantFacts& variant = root.variants[i];
    if (strcmp(variant.name, wanted) != 0) continue;
    char reason[256];
    obstacle(variant, machine, reason, sizeof(reason));
    if (reason[0]) {
      return fail(error, IZH_UNSUPPORTED_CPU, "variant %s of %s %s", wanted, name, reason);
    }
    *chosen = i;
    return IZH_OK;
  }
  char names[256];
  variant_names(root, names, sizeof(names));
  return fail(error, IZH_INVALID_ARGUMENT, "%s has no variant \"%s\": it has %s", name, wanted,
              names);
}

izh_status choose_best(const Root& root, const char* name, const Machine& machine, uint32_t* chosen,
                       izh_error* error) {
  bool found = false;
  for (uint32_t i = 0; i < root.variants.size(); ++i) {
    const VariantFacts& variant = root.variants[i];
    if (!runs_on(variant, machine)) continue;
    if (found && variant.rank <= root.variants[*chosen].rank) continue;
    *chosen = i;
    found = true;
  }
  if (found) return IZH_OK;
  // The least demanding one tells best what the machine lacks.
  uint32_t least = 0;
  for (uint32_t i = 1; i < root.variants.size(); ++i) {
    if (root.variants[i].rank < root.variants[least].rank) least = i;
  }
  char reason[256];
  obstacle(root.variants[least], machine, reason, sizeof(reason));
  const char* kind = machine.name ? nullptr : device_kind_for(root.variants[least].arch);
  return fail(error, IZH_UNSUPPORTED_CPU,
              "no variant of %s runs on this machine: %s %s; %s%s%scompile it for more targets "
              "(izhc compile --target=...)",
              name, root.variants[least].name, reason, kind ? "run it with --device " : "",
              kind ? kind : "", kind ? ", or " : "");
}

izh_status check_required(const Root& root, const char* name, const Machine& machine,
                          const char* required, uint32_t chosen, izh_error* error) {
  const VariantFacts& variant = root.variants[chosen];
  for (const char* rest = required; *rest;) {
    const size_t length = strcspn(rest, ",");
    const int bit = cpu_feature_bit(rest, length);
    if (length != 0 && bit < 0) {
      char known[320];
      cpu_feature_list(cpu_features_known(), known, sizeof(known));
      return fail(error, IZH_INVALID_ARGUMENT,
                  "\"%.*s\" is not a CPU feature that can be required: known are %s",
                  static_cast<int>(length), rest, known);
    }
    if (length != 0 && !((variant.features >> bit) & 1)) {
      const bool here = ((machine.features >> bit) & 1) != 0;
      return fail(error, IZH_UNSUPPORTED_CPU,
                  "%.*s is required, but the best variant of %s that runs here is %s, which does "
                  "not use it: %s",
                  static_cast<int>(length), rest, name, variant.name,
                  here ? "compile a variant that does (izhc compile --target=...)"
                       : "this CPU or its system does not offer it");
    }
    rest += length;
    if (*rest == ',') ++rest;
  }
  return IZH_OK;
}

}  // namespace

Machine machine_of(const Device* device) {
  if (!device) return {cpu_arch(), cpu_features(), nullptr};
  const DeviceInfo& info = device_info(device);
  return {info.arch, info.features, info.name};
}

izh_status variant_choose(const Root& root, const char* name, const Machine& machine,
                          const izh_model_options* options, uint32_t* chosen, izh_error* error) {
  if (options && options->variant) {
    IZH_TRY(choose_named(root, name, machine, options->variant, chosen, error));
  } else if (options && options->no_run && !options->require && !any_runs_on(root, machine)) {
    *chosen = kNoVariant;
  } else {
    IZH_TRY(choose_best(root, name, machine, chosen, error));
  }
  if (!options || !options->require) return IZH_OK;
  return check_required(root, name, machine, options->require, *chosen, error);
}

void variant_reason(const Root& root, const Machine& machine, uint32_t index, uint32_t chosen,
                    char* out, size_t capacity) {
  out[0] = 0;
  if (index == chosen) return;
  obstacle(root.variants[index], machine, out, capacity);
  if (out[0]) return;
  const char* other = root.variants[chosen].name;
  if (root.variants[index].rank <= root.variants[chosen].rank) {
    snprintf(out, capacity, "ranks below %s", other);
  } else {
    snprintf(out, capacity, "%s was asked for", other);
  }
}

}  // namespace izh
