// SPDX-License-Identifier: Apache-2.0
// Listings: machine code disassembled (Zydis), annotated with the IR op and nest that each
// instruction comes from, and weighed by the port model. Not linked by the embedded core: CMake
// target castor_listing.
#pragma once

#include <string>
#include <vector>

#include "ir/result.hpp"
#include "jit/code.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// One decoded instruction.
struct ListedInstruction {
  uint32_t offset = 0;
  uint32_t length = 0;
  std::string mnemonic;  ///< lower case, as Zydis names it
  std::string text;      ///< Intel syntax
};

/// Decodes the instruction part. Fails (internal) at bytes that are no instruction.
Result<std::vector<ListedInstruction>> disassemble(const MachineCode& code);

/// What the port model says of one iteration of a loop: a bound by loads, by stores, and by each
/// pipe; the largest is the limit. Cycles of the reference machine (Zen 4).
struct PortCycles {
  double load = 0;
  double store = 0;
  double pipes = 0;      ///< the busiest of the vector pipes
  double front_end = 0;  ///< instructions over the issue width
  double bound() const;
  /// "load", "store", "pipes" or "front end": what bound() comes from.
  std::string_view limited_by() const;
};
Result<PortCycles> port_cycles(const MachineCode& code, const CodeLoop& loop);

/// Checks that every instruction belongs to the tier's features: the error names the first one
/// that does not, with its offset.
Status check_features(const MachineCode& code, const Target& target);

/// The annotated listing: offset, bytes, instruction, notes, and for each loop its port-model
/// cycles; then the constant pool, and totals. Deterministic: a pure function of `code`.
Result<std::string> listing(const MachineCode& code);

}  // namespace castor::jit
