// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/perf_map.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace castor {

Result<PerfMap> PerfMap::open(const std::string& directory) {
  if (Status status = prepare_directory(directory); !status) return status.error();
  Result<RecordFile> file = RecordFile::open(fmt::format("{}/perf-{}.map", directory, ::getpid()));
  if (!file.ok()) return file.error();
  return PerfMap(std::move(file).value());
}

Status PerfMap::add(std::string_view name, std::span<const std::byte> code) {
  const std::string line =
      fmt::format("{:x} {:x} {}\n", reinterpret_cast<uintptr_t>(code.data()), code.size(), name);
  const std::span bytes = std::as_bytes(std::span(line));
  return file_.append([&](uint64_t) { return std::vector<std::byte>(bytes.begin(), bytes.end()); });
}

}  // namespace castor
