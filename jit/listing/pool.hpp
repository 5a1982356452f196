// SPDX-License-Identifier: Apache-2.0
// The constant pool as the instructions read it. Private to jit/listing/.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "jit/listing/decoder.hpp"

namespace castor::jit {

/// A constant, as one or more instructions read it; offsets count from the start of the pool.
struct PoolConstant {
  uint32_t offset = 0;
  uint32_t bytes = 0;
  uint32_t element_bytes = 4;  ///< 1, 2, 4 or 8
  bool is_float = false;       ///< of 4 or 8 bytes

  uint32_t end() const { return offset + bytes; }
};

/// The constant that the instruction reads, if any.
std::optional<PoolConstant> pool_constant(const DecodedInstruction& decoded,
                                          const MachineCode& code);

/// Its value in one line: "0x437f0000 = 255", "0x01 0x02 ...", "0x3f800000 = 1 (x16)".
std::string value_text(const PoolConstant& constant, const MachineCode& code);

/// The whole pool, one constant per paragraph, ascending; bytes that nothing reads by a plain
/// operand (tables addressed through a register, padding) as 32-bit numbers. Ends in a newline;
/// empty without pool.
std::string pool_text(std::span<const DecodedInstruction> program, const MachineCode& code);

}  // namespace castor::jit
