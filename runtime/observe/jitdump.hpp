// SPDX-License-Identifier: Apache-2.0
// The jitdump file of Linux's perf (tools/perf/Documentation/jitdump-specification.txt): the code
// that a process made, with names and times, which `perf inject --jit` puts into a profile.
#pragma once

#include <cstdint>
#include <optional>

#include "jit/memory/system_memory.hpp"
#include "runtime/observe/record_file.hpp"

namespace castor {

namespace jitdump {

inline constexpr uint32_t magic = 0x4A695444;  // "JiTD", read by the machine that wrote it
inline constexpr uint32_t version = 1;

struct Header {
  uint32_t magic;
  uint32_t version;
  uint32_t total_size;
  uint32_t elf_machine;
  uint32_t padding;
  uint32_t process;
  uint64_t timestamp;  ///< CLOCK_MONOTONIC, nanoseconds, as in records
  uint64_t flags;
};

enum class RecordId : uint32_t { code_load = 0, code_close = 3 };

struct RecordPrefix {
  RecordId id;
  uint32_t total_size;
  uint64_t timestamp;
};

/// The name with its null, and the code, follow it.
struct CodeLoad {
  RecordPrefix prefix;
  uint32_t process;
  uint32_t thread;
  uint64_t virtual_address;
  uint64_t code_address;
  uint64_t code_size;
  uint64_t code_index;  ///< unique in the file: the record's offset
};

}  // namespace jitdump

/// Not thread safe.
class Jitdump {
 public:
  /// jit-PID.dump of this process in the directory, which is made where it is missing. Begins the
  /// file where it is new, and maps it executable: that mapping is how perf learns of it. Fails
  /// (io).
  static Result<Jitdump> open(const std::string& directory);
  /// One record for code that can be called.
  Status add(std::string_view name, std::span<const std::byte> code);
  /// The record that says that this writer adds no more.
  Status close();

 private:
  Jitdump(RecordFile file, jit::MappedPages marker)
      : file_(std::move(file)), marker_(std::move(marker)) {}
  RecordFile file_;
  jit::MappedPages marker_;
};

}  // namespace castor
