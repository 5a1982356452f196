// SPDX-License-Identifier: Apache-2.0
// What /proc/self tells about this process: its mappings and its open files.
#pragma once

#include <dirent.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace castor::test {

/// One line of /proc/self/maps.
struct ProcessMapping {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  std::string permissions;  ///< "rwxp" or "rwxs", a dash for each that is missing
  std::string name;
  bool writable() const { return permissions[1] == 'w'; }
  bool executable() const { return permissions[2] == 'x'; }
  bool of_code_memory() const { return name.find("/memfd:castor-code") == 0; }
};

inline std::vector<ProcessMapping> process_maps() {
  std::vector<ProcessMapping> maps;
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    ProcessMapping mapping;
    std::string skipped;
    in >> std::hex >> mapping.begin;
    in.ignore(1);
    in >> mapping.end >> mapping.permissions >> skipped >> skipped >> skipped >> mapping.name;
    maps.push_back(mapping);
  }
  return maps;
}

/// Mappings that can be both written and executed.
inline int count_writable_executable() {
  int count = 0;
  for (const ProcessMapping& m : process_maps()) count += m.writable() && m.executable();
  return count;
}

/// Bytes of code arenas' pages that are there, whether they can be executed or only read.
inline size_t code_arena_bytes() {
  size_t bytes = 0;
  bool is_arena = false;
  std::ifstream file("/proc/self/smaps");
  for (std::string line; std::getline(file, line);) {
    size_t kilobytes = 0;
    if (line.find("/memfd:castor-code") != std::string::npos) {
      is_arena = true;
    } else if (is_arena && std::sscanf(line.c_str(), "Rss: %zu kB", &kilobytes) == 1) {
      bytes += kilobytes << 10;
      is_arena = false;
    }
  }
  return bytes;
}

/// Mappings of code arenas, that is, address space that may have no pages yet.
inline int count_arena_mappings() {
  int count = 0;
  for (const ProcessMapping& m : process_maps()) count += m.of_code_memory();
  return count;
}

/// Mappings of code arenas that can be written.
inline int count_writable_arenas() {
  int count = 0;
  for (const ProcessMapping& m : process_maps()) count += m.of_code_memory() && m.writable();
  return count;
}

/// What can be done at an address: as in /proc/self/maps, empty where nothing is mapped.
inline std::string permissions_at(const void* at) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  for (const ProcessMapping& m : process_maps()) {
    if (m.begin <= address && address < m.end) return m.permissions;
  }
  return "";
}

/// Whether the address is in a mapping that can be executed.
inline bool is_executable(const void* at) { return permissions_at(at).find('x') == 2; }

inline int count_open_files() {
  int count = 0;
  DIR* directory = ::opendir("/proc/self/fd");
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

}  // namespace castor::test
