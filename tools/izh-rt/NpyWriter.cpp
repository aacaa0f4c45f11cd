// The header is padded so that the values start at a multiple of 64 bytes.

#include "tools/izh-rt/NpyWriter.h"

#include "tools/izh-rt/Model.h"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace izh::rt {

bool NpyWriter::fail() {
  failed("cannot write '" + path + "': " + strerror(errno));
  return false;
}

bool NpyWriter::open(const std::string &name, uint64_t rows, uint64_t columns) {
  path = name;
  file = fopen(path.c_str(), "wb");
  if (!file)
    return fail();
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(rows) + ", " + std::to_string(columns) + "), }";
  constexpr size_t kPrefix = 10;
  while ((kPrefix + header.size() + 1) % 64 != 0)
    header += ' ';
  header += '\n';
  char prefix[kPrefix] = {char(0x93), 'N', 'U', 'M', 'P', 'Y', 1, 0};
  prefix[8] = char(header.size() & 0xff);
  prefix[9] = char(header.size() >> 8);
  if (fwrite(prefix, 1, kPrefix, file) != kPrefix ||
      fwrite(header.data(), 1, header.size(), file) != header.size())
    return fail();
  return true;
}

bool NpyWriter::write(const float *values, size_t count) {
  return fwrite(values, sizeof(float), count, file) == count || fail();
}

bool NpyWriter::close() {
  if (fflush(file) != 0)
    return fail();
  fclose(file);
  file = nullptr;
  return true;
}

NpyWriter::~NpyWriter() {
  if (!file)
    return;
  struct stat status;
  // Only what we made: the path may be a pipe or a device.
  bool regular = fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode);
  fclose(file);
  if (regular)
    unlink(path.c_str());
}

} // namespace izh::rt
