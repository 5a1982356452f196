// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/dump_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>

#include "ir/support/guarded.hpp"
#include "ir/text/text.hpp"
#include "jit/dump/dump.hpp"
#include "runtime/observe/code_name.hpp"
#include "runtime/observe/record_file.hpp"

namespace castor {

namespace {

/// Constants of more bytes are not written as literals.
constexpr size_t max_literal_bytes = 1024;

std::optional<std::string> content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// A file without a name that lasts, removed with its owner.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& directory) : path_(directory + "/.castor-XXXXXX") {
    file_ = FileDescriptor(::mkostemp(path_.data(), O_CLOEXEC));
    error_ = file_.get() < 0 ? errno : 0;
  }
  ~TemporaryFile() {
    if (file_.get() >= 0) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  int error() const { return error_; }
  int descriptor() const { return file_.get(); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  FileDescriptor file_;
  int error_ = 0;
};

std::string nests_text(const Function& shown, const Function& canonical,
                       const jit::Target* target) {
  std::string text = fmt::format("// canonicalised:\n{}\n", print(shown));
  if (target == nullptr) return text + "// interpreted: there are no nests\n";
  const auto add = [&](std::string_view title, const Result<std::string>& part) {
    text += fmt::format("// {}:\n{}\n", title, part.ok() ? *part : part.error().message + "\n");
  };
  add("nests, as if unknown extents were long", jit::dump_nest(canonical, *target));
  add("lanes", jit::dump_lanes(canonical, *target));
  return text;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<std::string> DumpDirectory::write_file(std::string_view name, std::string_view extension,
                                              std::string_view content) const {
  const std::string hash = short_hash(content);
  for (const std::string& candidate : {std::string(name), fmt::format("{}_{}", name, hash)}) {
    const std::string path = fmt::format("{}/{}{}", path_, candidate, extension);
    if (const auto present = content_of(path)) {
      if (*present == content) return candidate;
      continue;
    }
    const TemporaryFile file(path_);
    if (file.error() != 0) return file_error("make a file in", path_, file.error());
    if (const int error = write_all(file.descriptor(), 0, std::as_bytes(std::span(content)))) {
      return file_error("write", path, error);
    }
    ::fchmod(file.descriptor(), 0644);
    if (::link(file.path().c_str(), path.c_str()) == 0) return candidate;
    if (errno != EEXIST) return file_error("make", path, errno);
    if (content_of(path) == content) return candidate;  // another process was faster
  }
  return Error{ErrorCode::io, fmt::format("cannot write {}/{}_{}{}: another file has this name",
                                          path_, name, hash, extension)};
}

Result<Function> DumpDirectory::with_bound_constants(const Function& function) const {
  Function shown = function;
  for (Operation& operation : shown.operations) {
    if (!operation.data || operation.data->bytes.size() <= max_literal_bytes) continue;
    const std::string_view bytes = as_text(operation.data->bytes);
    const Result<std::string> name =
        write_file(fmt::format("constant_{}", short_hash(bytes)), ".bin", bytes);
    if (!name.ok()) return name.error();
    operation.data = std::make_shared<const ConstantData>(ConstantData{*name, {}});
  }
  return shown;
}

Status DumpDirectory::write(const Function& function, const Function& canonical,
                            const jit::Target* target) const {
  const Result<Function> shown = with_bound_constants(function);
  if (!shown.ok()) return shown.error();
  const Result<std::string> name =
      write_file(as_identifier(function.name), ".castor", print(*shown));
  if (!name.ok()) return name.error();
  const Result<Function> shown_canonical = with_bound_constants(canonical);
  if (!shown_canonical.ok()) return shown_canonical.error();
  const Result<std::string> nests =
      write_file(*name, ".nests.txt", nests_text(*shown_canonical, canonical, target));
  if (!nests.ok()) return nests.error();
  return {};
}

namespace {

/// What the caller's writer gives, or the error that stands for what it throws.
Result<std::string> lines_of(const jit::MachineCode& code, ListingWriter listing) {
  try {
    return listing(code);
  } catch (...) {
    return callback_error("listing");
  }
}

}  // namespace

Status DumpDirectory::write(std::string_view name, const CodeDescription& description,
                            const jit::MachineCode& code, ListingWriter listing) const {
  std::string text = fmt::format("{}\n{}", name, description.text());
  if (listing != nullptr) {
    const std::optional<Result<jit::MachineCode>> annotated = description.annotated();
    const bool has_notes = annotated && annotated->ok();
    const Result<std::string> lines = lines_of(has_notes ? **annotated : code, listing);
    const Result<std::string> file =
        write_file(name, ".asm.txt", lines.ok() ? *lines : lines.error().message + "\n");
    if (!file.ok()) return file.error();
  } else {
    const Result<std::string> file = write_file(name, ".bin", as_text(code.bytes));
    if (!file.ok()) return file.error();
    text += fmt::format(
        "  {} bytes of instructions, then constants:\n"
        "  objdump -D -b binary -m i386:x86-64 -M intel --stop-address={} {}.bin\n",
        code.instruction_bytes, code.instruction_bytes, *file);
  }
  const Result<std::string> file = write_file(name, ".nest.txt", text);
  if (!file.ok()) return file.error();
  return {};
}

}  // namespace castor
