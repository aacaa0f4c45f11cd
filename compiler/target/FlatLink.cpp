// Runs lld with a script that puts text and read-only data into one section at
// address 0 and refuses everything that would need work at load time.

#include "compiler/target/FlatLink.h"
#include "lld/Common/Driver.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
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

// A file beside the system's other temporary files; it goes with this object,
// or with a signal.
class ScratchFile {
public:
  ~ScratchFile() {
    if (path.empty())
      return;
    llvm::sys::fs::remove(path);
    llvm::sys::DontRemoveFileOnSignal(path);
  }

  llvm::Error create(llvm::StringRef suffix) {
    llvm::SmallString<128> name;
    llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, name);
    llvm::SmallString<128> folder(name);
    llvm::sys::path::append(name, "izhc-%%%%%%%%." + suffix);
    if (auto code = llvm::sys::fs::createUniqueFile(name, path))
      return failure("create a file in", folder, code);
    llvm::sys::RemoveFileOnSignal(path);
    return llvm::Error::success();
  }

  llvm::Error write(llvm::StringRef content) const {
    std::error_code code;
    llvm::raw_fd_ostream out(path, code);
    if (!code) {
      out << content;
      out.close();
      code = out.error();
      out.clear_error();
    }
    return code ? failure("write to", llvm::sys::path::parent_path(path), code)
                : llvm::Error::success();
  }

  // The linker maps its output, and a full disk would show as a bus error.
  llvm::Error requireRoom(uint64_t bytes) const {
    auto space = llvm::sys::fs::disk_space(path);
    if (space && space->available < bytes)
      return failure("write to", llvm::sys::path::parent_path(path),
                     std::make_error_code(std::errc::no_space_on_device));
    return llvm::Error::success();
  }

  const char *name() const { return path.c_str(); }

private:
  static llvm::Error failure(llvm::StringRef what, llvm::StringRef folder, std::error_code code) {
    return llvm::createStringError(
        code, llvm::formatv("cannot {0} {1}, the folder for temporary files: {2}; set TMPDIR to "
                            "another one",
                            what, folder, code.message()));
  }

  mutable llvm::SmallString<128> path;
};

llvm::Error runLinker(const ScratchFile &object, const ScratchFile &script,
                      const ScratchFile &output) {
  const char *arguments[] = {
      "ld.lld",     "-shared",         "-z",          "text", "-Bsymbolic",  "--no-undefined", "-z",
      "norelro",    "--build-id=none", "--threads=1", "-T",   script.name(), object.name(),    "-o",
      output.name()};
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
  ScratchFile kernels, script, output;
  const std::pair<ScratchFile *, llvm::StringRef> files[] = {
      {&kernels, "o"}, {&script, "ld"}, {&output, "elf"}};
  for (auto [file, suffix] : files)
    if (auto error = file->create(suffix))
      return error;
  if (auto error = kernels.write(object))
    return error;
  if (auto error = script.write(kScript))
    return error;
  // Padding between pages comes on top of the sections, which are a part of the object.
  if (auto error = output.requireRoom(object.size() + 65536))
    return error;
  if (auto error = runLinker(kernels, script, output))
    return error;
  return readBlob(output.name(), order);
}

} // namespace izhc
