// The header is padded so that the values start at a multiple of 64 bytes.

#include "tools/izh-rt/NpyWriter.h"

#include "runtime/platform/process.h"
#include "tools/izh-rt/Model.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace izh::rt {

bool NpyWriter::fail() {
  failed("cannot write '" + path + "': " + strerror(errno));
  return false;
}

FILE *NpyWriter::create() {
  struct stat facts;
  bool exists = stat(path.c_str(), &facts) == 0;
  if (exists && !S_ISREG(facts.st_mode))
    return fopen(path.c_str(), "wb");
  char resolved[PATH_MAX];
  // A link stays one; the file that it names is replaced.
  if (exists && realpath(path.c_str(), resolved))
    path = resolved;
  std::string name = path + ".tmpXXXXXX";
  int descriptor = mkstemp(name.data());
  if (descriptor < 0)
    return nullptr;
  temporary = name;
  process_writes(temporary.c_str());
  mode_t mask = umask(0);
  umask(mask);
  // Not every file system knows modes.
  (void)!fchmod(descriptor, exists ? facts.st_mode & 0777 : 0666 & ~mask);
  return fdopen(descriptor, "wb");
}

bool NpyWriter::open(const std::string &name, uint64_t rows, uint64_t columns) {
  path = name;
  file = create();
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
  if (fflush(file) != 0 || (!temporary.empty() && rename(temporary.c_str(), path.c_str()) != 0))
    return fail();
  process_writes(nullptr);
  temporary.clear();
  fclose(file);
  file = nullptr;
  return true;
}

NpyWriter::~NpyWriter() {
  if (file)
    fclose(file);
  if (!temporary.empty())
    unlink(temporary.c_str());
  process_writes(nullptr);
}

} // namespace izh::rt
