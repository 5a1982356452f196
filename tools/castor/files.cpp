// SPDX-License-Identifier: Apache-2.0
#include "tools/castor/files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace castor::tools {

namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

constexpr size_t chunk_bytes = size_t{1} << 16;  // read at a time from a pipe

Error cannot(std::string_view action, const std::string& path, std::string_view reason) {
  return {ErrorCode::io, fmt::format("cannot {} '{}': {}", action, path, reason)};
}

bool is_readable_kind(const struct stat& status) {
  return S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode);
}

}  // namespace

Result<std::vector<std::byte>> read_file(const std::string& path, size_t limit) {
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) return cannot("read", path, std::strerror(errno));
  struct stat status = {};
  if (fstat(fileno(file.get()), &status) != 0) return cannot("read", path, std::strerror(errno));
  if (!is_readable_kind(status)) return cannot("read", path, "it is no regular file");

  std::vector<std::byte> content;
  size_t expected = S_ISREG(status.st_mode) ? static_cast<size_t>(status.st_size) : 0;
  while (content.size() + expected <= limit) {
    const size_t had = content.size();
    content.resize(had + (expected > 0 ? expected : chunk_bytes));
    const size_t got = std::fread(content.data() + had, 1, content.size() - had, file.get());
    content.resize(had + got);
    if (std::ferror(file.get()) != 0) return cannot("read", path, std::strerror(errno));
    if (got == 0) return content;
    expected = 0;  // a file that grows, or a pipe
  }
  return cannot("read", path, fmt::format("it has more than {} bytes", limit));
}

Status write_file(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  File file(std::fopen(path.c_str(), "wb"));
  if (!file) return cannot("write", path, std::strerror(errno));
  for (std::span<const std::byte> part : parts) {
    if (part.empty()) continue;  // whose data may be null
    if (std::fwrite(part.data(), 1, part.size(), file.get()) != part.size()) {
      return cannot("write", path, std::strerror(errno));
    }
  }
  if (std::fclose(file.release()) != 0) return cannot("write", path, std::strerror(errno));
  return {};
}

bool file_exists(const std::string& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 && is_readable_kind(status);
}

}  // namespace castor::tools
