// Runs lld with a script that puts text and read-only data into one section at
// address 0 and refuses everything that would need work at load time.

#include "compiler/target/FlatLink.h"
#include "lld/Common/Driver.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <mutex>

LLD_HAS_DRIVER(elf)

namespace izhc {

namespace {

constexpr llvm::StringLiteral kScript = R"(SECTIONS {
  . = 0;
  .blob : { *(.text .text.*) . = ALIGN(64); *(.rodata .rodata.*) }
  .dynsym : { *(.dynsym) }
  .gnu.hash : { *(.gnu.hash) }
  .hash : { *(.hash) }
  .dynstr : { *(.dynstr) }
  .dynamic : { *(.dynamic) }
  .rela.dyn : { *(.rela.*) }
  .bad : { *(.data .data.* .bss .bss.* .tdata .tbss .got .got.plt .init_array .ctors) }
  ASSERT(SIZEOF(.bad) == 0, "writable data in kernel code")
  ASSERT(SIZEOF(.rela.dyn) == 0, "dynamic relocations in kernel code")
  /DISCARD/ : { *(.eh_frame*) *(.comment) *(.note*) *(.llvm_addrsig) }
}
)";

// A folder that vanishes with its files.
class ScratchFolder {
public:
  ~ScratchFolder() {
    if (!path.empty())
      llvm::sys::fs::remove_directories(path);
  }
  llvm::Error create() {
    if (auto code = llvm::sys::fs::createUniqueDirectory("izhc-link", path))
      return llvm::createStringError(code, "cannot create a folder for temporary files: %s",
                                     code.message().c_str());
    return llvm::Error::success();
  }
  std::string file(llvm::StringRef name) const {
    llvm::SmallString<128> full(path);
    llvm::sys::path::append(full, name);
    return std::string(full);
  }
  llvm::Error write(llvm::StringRef name, llvm::StringRef content) const {
    std::error_code code;
    llvm::raw_fd_ostream out(file(name), code);
    out << content;
    out.close();
    if (!code && out.has_error())
      code = out.error();
    out.clear_error();
    if (code)
      return llvm::createStringError(code, "cannot write '%s': %s", file(name).c_str(),
                                     code.message().c_str());
    return llvm::Error::success();
  }

private:
  llvm::SmallString<128> path;
};

llvm::Error runLinker(const ScratchFolder &folder) {
  std::string object = folder.file("kernels.o"), script = folder.file("blob.ld"),
              output = folder.file("blob.elf");
  const char *arguments[] = {"ld.lld", "-shared", "-z", "text", "-Bsymbolic", "--no-undefined",
                             "-z", "norelro", "--build-id=none", "--threads=1", "-T",
                             script.c_str(), object.c_str(), "-o", output.c_str()};
  std::string messages;
  llvm::raw_string_ostream log(messages);
  // lld keeps state in globals.
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  auto result = lld::lldMain(arguments, log, log, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return llvm::createStringError("linking failed: " + messages);
  return llvm::Error::success();
}

llvm::Expected<CodeBlob> readBlob(llvm::StringRef path, llvm::ArrayRef<std::string> order) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return llvm::createStringError(file.getError(), "cannot read the linker's output");
  auto object = llvm::object::ObjectFile::createObjectFile(**file);
  if (!object)
    return object.takeError();
  CodeBlob blob;
  for (const auto &section : (*object)->sections()) {
    auto name = section.getName();
    auto content = section.getContents();
    if (!name || !content)
      return llvm::joinErrors(name.takeError(), content.takeError());
    if (*name == ".blob")
      blob.bytes.assign(content->bytes_begin(), content->bytes_end());
  }
  std::map<std::string, uint64_t> addresses;
  for (const auto &symbol : (*object)->symbols()) {
    auto name = symbol.getName();
    auto address = symbol.getAddress();
    if (!name || !address)
      return llvm::joinErrors(name.takeError(), address.takeError());
    addresses[name->str()] = *address;
  }
  for (const std::string &name : order) {
    auto found = addresses.find(name);
    if (found == addresses.end() || found->second >= blob.bytes.size())
      return llvm::createStringError("the linker's output lacks the kernel '" + name + "'");
    blob.entries.push_back(uint32_t(found->second));
  }
  return blob;
}

} // namespace

llvm::Expected<CodeBlob> linkFlat(llvm::StringRef object, llvm::ArrayRef<std::string> order) {
  ScratchFolder folder;
  if (auto error = folder.create())
    return error;
  if (auto error = folder.write("kernels.o", object))
    return error;
  if (auto error = folder.write("blob.ld", kScript))
    return error;
  if (auto error = runLinker(folder))
    return error;
  return readBlob(folder.file("blob.elf"), order);
}

} // namespace izhc
