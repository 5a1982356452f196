// SPDX-License-Identifier: Apache-2.0
#include "tools/emulator/function.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>

#include "tools/emulator/permission.hpp"
#include "tools/machine/machine.hpp"

namespace castor::emulator {

namespace {

using machine::Numbers;
using Machine = machine::Machine<Numbers>;
using Program = std::vector<jit::DecodedInstruction>;

constexpr size_t longest_instruction = 15;
constexpr size_t stack_bytes = size_t{1} << 20;
constexpr int rsp = 4;

/// Follows the jumps of a function: where it ends is said nowhere.
class FunctionDecoder {
 public:
  explicit FunctionDecoder(const uint8_t* entry) : entry_(entry) {
    ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  }

  /// Its instructions in the order of their offsets.
  Result<Program> run() {
    begins_ = {0};
    while (!begins_.empty()) {
      const uint32_t offset = begins_.back();
      begins_.pop_back();
      if (Status status = follow(offset); !status) return status.error();
    }
    Program program;
    for (auto& [offset, decoded] : found_) program.push_back(decoded);
    return program;
  }

 private:
  /// Up to an instruction after which nothing follows.
  Status follow(uint32_t offset) {
    while (!found_.contains(offset)) {
      jit::DecodedInstruction& decoded = found_[offset];
      decoded.offset = offset;
      const ZyanStatus status =
          ZydisDecoderDecodeFull(&decoder_, entry_ + offset, longest_instruction,
                                 &decoded.instruction, decoded.operands.data());
      if (!ZYAN_SUCCESS(status)) {
        return Error{ErrorCode::unsupported, fmt::format("no instruction at offset {:#x}", offset)};
      }
      if (const auto target = jit::branch_target(decoded)) begins_.push_back(*target);
      const ZydisInstructionCategory category = decoded.instruction.meta.category;
      if (category == ZYDIS_CATEGORY_RET || category == ZYDIS_CATEGORY_UNCOND_BR) return {};
      offset = decoded.end();
    }
    return {};
  }

  const uint8_t* entry_;
  ZydisDecoder decoder_;
  std::vector<uint32_t> begins_;
  std::map<uint32_t, jit::DecodedInstruction> found_;
};

/// A function and the machine that runs it.
struct Function {
  Numbers numbers;
  bool has_tiles = false;
  std::vector<uint8_t> bytes;  ///< the code when it was decoded
  std::optional<Machine> machine;
};

/// Functions that a thread has called, by their entries.
class Functions {
 public:
  /// The function that is at the entry now.
  Result<Machine*> at(const uint8_t* entry) {
    constexpr size_t most = 64;
    if (functions_.size() >= most && !functions_.contains(entry)) functions_.clear();
    Function& function = functions_[entry];
    const std::vector<uint8_t>& bytes = function.bytes;
    const bool is_same = !bytes.empty() && std::memcmp(bytes.data(), entry, bytes.size()) == 0;
    if (is_same) return permitted(function);
    Result<Program> program = FunctionDecoder(entry).run();
    if (!program) return program.error();
    function.has_tiles = std::ranges::any_of(*program, [](const auto& decoded) {
      return decoded.instruction.meta.category == ZYDIS_CATEGORY_AMX_TILE;
    });
    function.bytes.assign(entry, entry + program->back().end());
    function.machine = Machine::of_process(function.numbers, std::move(program).value(),
                                           reinterpret_cast<uint64_t>(entry));
    return permitted(function);
  }

  /// The address after the last byte of a stack for functions of this thread.
  uint64_t stack_end() {
    stack_.resize(stack_bytes);
    return reinterpret_cast<uint64_t>(stack_.data() + stack_bytes) / 64 * 64;
  }

 private:
  static Result<Machine*> permitted(Function& function) {
    if (!function.has_tiles || is_tile_data_permitted()) return &*function.machine;
    return Error{ErrorCode::unsupported, "tiles, for which the process has no leave"};
  }

  std::map<const uint8_t*, Function> functions_;
  std::vector<std::byte> stack_;
};

thread_local Functions functions;

/// Memory that was to be executed: calls of anything else are faults. Threads fill it, and a thread
/// that is in a call is not filling it.
class CodeRanges {
 public:
  void add(const void* at, size_t size) {
    const std::scoped_lock lock(mutex_);
    ranges_.emplace_back(reinterpret_cast<uint64_t>(at), size);
  }
  bool contain(const void* at) {
    const std::scoped_lock lock(mutex_);
    const auto address = reinterpret_cast<uint64_t>(at);
    return std::ranges::any_of(ranges_, [&](const auto& range) {
      return address >= range.first && address - range.first < range.second;
    });
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<uint64_t, size_t>> ranges_;
};

CodeRanges& code_ranges() {
  static CodeRanges ranges;
  return ranges;
}

void* mmap_to_be_read(void* at, size_t size, int protection, int flags, int fd, off_t offset) {
  void* const mapped = ::mmap(at, size, protection & ~PROT_EXEC, flags, fd, offset);
  if ((protection & PROT_EXEC) != 0 && mapped != MAP_FAILED) code_ranges().add(mapped, size);
  return mapped;
}

int mprotect_to_be_read(void* at, size_t size, int protection) {
  if ((protection & PROT_EXEC) != 0) code_ranges().add(at, size);
  return ::mprotect(at, size, protection & ~PROT_EXEC);
}

}  // namespace

jit::SystemCalls without_execution(const jit::SystemCalls& system) {
  jit::SystemCalls calls = system;
  calls.mmap = mmap_to_be_read;
  calls.mprotect = mprotect_to_be_read;
  return calls;
}

bool is_code(const void* at) { return code_ranges().contain(at); }

Status carry_out_function(SignalFrame& frame) {
  const Result<Machine*> machine = functions.at(frame.instruction());
  if (!machine) return machine.error();
  Machine::Entry entry = {.general = {}, .mxcsr = frame.mxcsr()};
  for (size_t i = 0; i < entry.general.size(); ++i) {
    entry.general[i] = frame.general(static_cast<int>(i));
  }
  entry.general[rsp] = functions.stack_end();
  (*machine)->begin(entry);
  const auto to_the_end = [](uint32_t) { return false; };
  Status status = (*machine)->run(to_the_end, std::numeric_limits<int64_t>::max());
  if (!status) return status;
  for (int i = 0; i < static_cast<int>(entry.general.size()); ++i) {
    if (i != rsp) frame.set_general(i, (*machine)->register_at(i).word.value);
  }
  frame.return_to_caller();
  return {};
}

}  // namespace castor::emulator
