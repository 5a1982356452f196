// SPDX-License-Identifier: Apache-2.0
// The jitdump file of Linux's perf (tools/perf/Documentation/jitdump-specification.txt): the code
// that a process made, with names and times, which `perf inject --jit` puts into a profile.
#pragma once

#include <cstdint>
#include <optional>

#include "jit/code.hpp"
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

enum class RecordId : uint32_t { code_load = 0, code_close = 3, unwinding = 4 };

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

/// Before the record of the code that it is of. The sections .eh_frame and .eh_frame_hdr follow it,
/// as they are in a file after the code, then zeros up to a multiple of 8.
struct Unwinding {
  RecordPrefix prefix;
  uint64_t section_bytes;
  uint64_t header_bytes;
  uint64_t mapped_bytes;  ///< that perf takes for them after the code: nothing else is there
};

}  // namespace jitdump

/// Not thread safe.
class Jitdump {
 public:
  /// jit-PID.dump of this process in the directory, which is made where it is missing. Begins the
  /// file where it is new, and maps it executable: that mapping is how perf learns of it. Fails
  /// (io).
  static Result<Jitdump> open(const std::string& directory);
  /// The records for code that can be called: how it is unwound, then the code itself.
  Status add(std::string_view name, std::span<const std::byte> code,
             std::span<const jit::FrameChange> frame);
  /// The record that says that this writer adds no more.
  Status close();

 private:
  Jitdump(RecordFile file, jit::MappedPages marker)
      : file_(std::move(file)), marker_(std::move(marker)) {}
  RecordFile file_;
  jit::MappedPages marker_;
};

}  // namespace castor
