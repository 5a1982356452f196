// SPDX-License-Identifier: Apache-2.0
// The kernel that looks bytes up in a table of 256.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// What the kernel takes.
struct ByteTableCall {
  const std::byte* source;
  std::byte* destination;  ///< the source itself, or elsewhere
  int64_t count;           ///< bytes of either
  const std::byte* table;  ///< 256 bytes: what each byte, as an unsigned number, becomes
};
using ByteTableFunction = void (*)(const ByteTableCall* call);

/// Whether the target looks up in 256 bytes faster than it computes (VBMI).
bool has_byte_tables(const Target& target);

/// For targets with byte tables. No byte but the source's is read, none but the destination's is
/// written.
Result<MachineCode> emit_byte_table();

}  // namespace castor::jit
