// `izh-rt devices`: what models can run on here, as --device takes it.

#include "runtime/platform/cpu.h"
#include "runtime/platform/device.h"
#include "tools/izh-rt/Commands.h"
#include "tools/izh-rt/Json.h"
#include "tools/izh-rt/LimitMeter.h"
#include "tools/izh-rt/Model.h"

#include <cstdio>

namespace izh::rt {

static std::string featuresOf(uint64_t bits) {
  char names[512];
  cpu_feature_list(bits, names, sizeof(names));
  return names;
}

static std::string featuresJson(uint64_t bits) {
  std::vector<std::string> list;
  for (unsigned bit = 0; bit < 64; ++bit)
    if ((bits >> bit) & 1)
      list.push_back(jsonString(featuresOf(uint64_t(1) << bit)));
  return jsonList(list);
}

int devicesCommand(int count, char **words) {
  bool json = false;
  Arguments arguments("izh-rt devices", "Lists what models can run on here.");
  arguments.flag("--json", &json, "one JSON object on standard output");
  int status;
  if (!arguments.parse(count, words, &status))
    return status;
  std::vector<DeviceInfo> devices;
  uint32_t found = 0;
  izh_error error = {};
  izh_status opened = device_count(&found, &error);
  for (uint32_t i = 0; opened == IZH_OK && i < found; ++i) {
    DeviceInfo info;
    opened = device_describe(i, &info, &error);
    if (opened == IZH_OK)
      devices.push_back(info);
  }
  if (json) {
    std::vector<std::string> list;
    for (const DeviceInfo &info : devices)
      list.push_back(JsonObject()
                         .text("device", info.id)
                         .text("name", info.name)
                         .add("features", featuresJson(info.features))
                         .count("bytes", info.total_bytes)
                         .str());
    std::string text = JsonObject()
                           .text("processor", processorName())
                           .add("features", featuresJson(cpu_features()))
                           .add("devices", jsonList(list))
                           .text("problem", opened == IZH_OK ? "" : error.message)
                           .str();
    printf("%s\n", text.c_str());
    return kDone;
  }
  printf("cpu     %s: %s\n", processorName().c_str(), featuresOf(cpu_features()).c_str());
  for (const DeviceInfo &info : devices)
    printf("%-7s %s, %.1f GiB: %s\n", info.id, info.name,
           static_cast<double>(info.total_bytes) / (1u << 30), featuresOf(info.features).c_str());
  // Most machines have none, which is nothing to fail over.
  if (opened != IZH_OK)
    printf("no GPU: %s\n", error.message);
  return kDone;
}

} // namespace izh::rt
