// SPDX-License-Identifier: Apache-2.0
// The kernel that looks bytes up in a table of 256.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/emit/emit_options.hpp"
#include "jit/kernel/spec.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// What the kernel takes.
struct ByteTableCall {
  const std::byte* source;
  std::byte* destination;  ///< the source itself, or elsewhere
  int64_t count;           ///< bytes of either
  const std::byte* table;  ///< 256 bytes: what each byte, as an unsigned number, becomes
};

/// The spec of its code, which is one for all targets that have it.
struct ByteTableSpec {
  static constexpr std::string_view name = "byte_table";
  using Arguments = const ByteTableCall;
  static constexpr auto fields(const auto& list) { return list(); }
};

/// Whether the target looks up in 256 bytes faster than it computes (VBMI).
bool has_byte_tables(const Target& target);

/// For targets with byte tables. No byte but the source's is read, none but the destination's is
/// written.
Result<MachineCode> emit_kernel(const ByteTableSpec& spec, const Target& target,
                                const EmitOptions& options = {});

}  // namespace castor::jit
