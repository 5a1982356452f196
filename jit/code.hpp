// SPDX-License-Identifier: Apache-2.0
// Machine code as the emitters leave it: bytes, and where each part comes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "jit/code_section.hpp"

namespace castor::jit {

/// A note on a stretch of code: it begins at `offset` and ends where the next note begins.
struct CodeNote {
  static constexpr int32_t no_number = -1;

  uint32_t offset = 0;
  CodeSection section = CodeSection::none;
  int32_t number = no_number;  ///< of the section: "chunk 2"
  std::string text;    ///< the lane operation, e.g. "%3: f32 = round %1 down"; empty outside lanes
  std::string origin;  ///< the IR operation, e.g. "%y = convert %x : u8"; empty where there is none
  int32_t operation = no_number;  ///< the index of that IR operation, where it is known

  /// Whether two notes differ in nothing but where they begin.
  bool agrees_with(const CodeNote& other) const {
    return section == other.section && number == other.number && operation == other.operation &&
           text == other.text && origin == other.origin;
  }
};

/// An instruction of the lane programs that code computes.
struct CodeLane {
  std::string text;  ///< as in notes
  int32_t operation = CodeNote::no_number;
  bool is_constant = false;
};

/// A loop whose iterations the port model weighs.
struct CodeLoop {
  uint32_t begin = 0;      ///< offset of the first instruction of the body
  uint32_t end = 0;        ///< offset after the loop's closing branch
  int64_t elements = 0;    ///< elements of the iteration space done in one iteration
  int64_t load_bytes = 0;  ///< bytes of tensors read in one iteration
  int64_t store_bytes = 0;
  std::string name;  ///< "main loop", "tail"
};

/// What changes at an instruction in how a debugger finds the frame of the caller (DWARF 5, 6.4).
/// The CFA, the canonical frame address, is the caller's stack pointer before its call: the return
/// address is stored 8 bytes below it. At the first instruction the CFA is rsp + 8, and all
/// registers are the caller's.
struct FrameChange {
  enum class Kind : uint8_t {
    cfa_register,  ///< from here on the CFA is `reg` + `value`
    cfa_memory,    ///< the CFA is the 64 bits at rsp + `slot`, + `value`
    saved,         ///< the caller's `reg` is stored at the CFA + `value`
    restored,      ///< `reg` is the caller's again
  };
  uint32_t offset = 0;  ///< the first instruction that finds it so
  Kind kind = Kind::cfa_register;
  uint8_t reg = 0;  ///< by DWARF's number (System V ABI, AMD64 supplement, figure 3.36)
  int32_t value = 0;
  int32_t slot = 0;
  friend bool operator==(const FrameChange&, const FrameChange&) = default;
};

/// The output of the emitter, which can be executed wherever it is: instructions, padding, and the
/// constant pool. Listings, digests and dumps show it like this. When it is published, the pool is
/// stored elsewhere, on pages that cannot be executed, and the distance in `pool_references`
/// changes.
struct MachineCode {
  std::vector<std::byte> bytes;
  uint32_t instruction_bytes = 0;  ///< instructions; padding and the constant pool follow
  uint32_t pool_begin = 0;         ///< where the constant pool begins: a multiple of 64, if any
  /// Offsets of the 32-bit displacements from the instruction pointer to constants, ascending.
  std::vector<uint32_t> pool_references;
  std::vector<FrameChange> frame;  ///< ascending offsets
  /// Bytes after the instructions that are left free where the code is published: a profiler takes
  /// them for the code's unwind records.
  uint32_t room_after = 0;
  int spills = 0;  ///< values stored to the stack for want of registers
  // Only when asked for (EmitOptions::annotate):
  std::vector<CodeNote> notes;  ///< ascending offsets
  std::vector<CodeLoop> loops;
  std::vector<CodeLane> lanes;  ///< in the order of the programs

  std::span<const std::byte> instructions() const {
    return std::span(bytes).first(instruction_bytes);
  }
  std::span<const std::byte> pool() const { return std::span(bytes).subspan(pool_begin); }
};

}  // namespace castor::jit
