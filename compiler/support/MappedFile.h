// A file mapped into memory for reading. Pages are loaded when they are
// touched; release() hands them back, so that a pass over a large model keeps
// a small resident set.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>
#include <string>

namespace izhc {

class MappedFile {
public:
  // Fails with a sentence if `path` is no readable regular file.
  static llvm::Expected<std::unique_ptr<MappedFile>> open(llvm::StringRef path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const std::string &path() const { return name; }
  // Valid as long as this object. The bytes of a file that someone shortens
  // meanwhile can't be read any more (SIGBUS), as with every mapping.
  llvm::ArrayRef<uint8_t> bytes() const { return {data, size}; }
  bool contains(const uint8_t *address) const { return address >= data && address < data + size; }

  // Drops the whole pages inside of [offset, offset + count) from memory.
  // They stay readable and come back from the file when touched. A range that
  // leaves the file is cut to it. Safe from several threads.
  void release(uint64_t offset, uint64_t count) const;
  // Asks for read-ahead of the range.
  void willNeed(uint64_t offset, uint64_t count) const;

private:
  MappedFile(std::string name, const uint8_t *data, size_t size)
      : name(std::move(name)), data(data), size(size) {}

  std::string name;
  const uint8_t *data;
  size_t size;
};

} // namespace izhc
