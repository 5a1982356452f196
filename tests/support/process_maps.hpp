// SPDX-License-Identifier: Apache-2.0
// What /proc/self tells about this process: its mappings and its open files; and code to publish.
#pragma once

#include <dirent.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

/// Bytes of code arenas mapped to be executed.
inline size_t code_arena_bytes() {
  size_t bytes = 0;
  for (const ProcessMapping& m : process_maps()) {
    if (m.of_code_memory() && m.executable()) bytes += m.end - m.begin;
  }
  return bytes;
}

/// Mappings of code arenas that can be written.
inline int count_writable_arenas() {
  int count = 0;
  for (const ProcessMapping& m : process_maps()) count += m.of_code_memory() && m.writable();
  return count;
}

/// Whether the address lies in a mapping that can be executed.
inline bool is_executable(const void* at) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  for (const ProcessMapping& m : process_maps()) {
    if (m.begin <= address && address < m.end) return m.executable();
  }
  return false;
}

inline int count_open_files() {
  int count = 0;
  DIR* directory = ::opendir("/proc/self/fd");
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

/// Machine code `mov eax, value; ret`, and bytes made from `value` up to `size` (6 or more).
inline std::vector<std::byte> code_returning(uint32_t value, size_t size = 6) {
  std::vector<std::byte> code(size);
  for (size_t i = 0; i < size; ++i) code[i] = static_cast<std::byte>(value * 31 + i);
  code[0] = std::byte{0xb8};
  std::memcpy(code.data() + 1, &value, sizeof value);
  code[5] = std::byte{0xc3};
  return code;
}

/// Calls machine code made by `code_returning`.
inline uint32_t call(const std::byte* code) { return reinterpret_cast<uint32_t (*)()>(code)(); }

}  // namespace castor::test
