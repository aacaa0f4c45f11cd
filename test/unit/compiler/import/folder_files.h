// Model folders in memory: config.json and safetensors files, built by tests.

#pragma once

#include "compiler/import/FolderModel.h"
#include "test/unit/compiler/import/open.h"

#include <list>

namespace izhc::test {

// One safetensors file. `header` replaces the header that the tensors make.
class SafetensorsWriter {
public:
  std::string header;

  SafetensorsWriter &add(const std::string &name, const std::string &type, const std::string &shape,
                         const Bytes &data) {
    entries += (entries.empty() ? "" : ", ") + ("\"" + name + "\": {\"dtype\": \"" + type) +
               "\", \"shape\": " + shape + ", \"data_offsets\": [" + std::to_string(body.size()) +
               ", " + std::to_string(body.size() + data.size()) + "]}";
    body.insert(body.end(), data.begin(), data.end());
    return *this;
  }
  SafetensorsWriter &floats(const std::string &name, const std::string &shape,
                            const std::vector<float> &values) {
    auto *bytes = reinterpret_cast<const uint8_t *>(values.data());
    return add(name, "F32", shape, Bytes(bytes, bytes + values.size() * 4));
  }

  Bytes build() const {
    std::string text = header.empty() ? "{" + entries + "}" : header;
    Bytes file;
    for (int i = 0; i < 8; ++i)
      file.push_back(uint8_t(uint64_t(text.size()) >> 8 * i));
    file.insert(file.end(), text.begin(), text.end());
    file.insert(file.end(), body.begin(), body.end());
    return file;
  }

private:
  std::string entries;
  Bytes body;
};

class FolderFiles {
public:
  FolderFiles &add(const std::string &name, const Bytes &bytes) {
    kept.push_back(bytes);
    files.emplace_back(name, &kept.back());
    return *this;
  }
  FolderFiles &add(const std::string &name, const std::string &text) {
    return add(name, Bytes(text.begin(), text.end()));
  }

  llvm::Expected<std::unique_ptr<FolderSource>> open() const {
    std::vector<FolderFile> list;
    for (auto &[name, bytes] : files)
      list.push_back({name, nullptr, *bytes});
    return FolderSource::open("folder", std::move(list));
  }
  std::string refusal() const { return message(open()); }

private:
  std::list<Bytes> kept;
  std::vector<std::pair<std::string, const Bytes *>> files;
};

// All values of a float32 tensor.
inline std::vector<float> floatsOf(const TensorInfo &tensor) {
  std::vector<float> values(tensor.elements());
  tensor.readRows(0, tensor.rows(), reinterpret_cast<uint8_t *>(values.data()));
  return values;
}

} // namespace izhc::test
