// SPDX-License-Identifier: Apache-2.0
// How the entries of a table in memory are looked up.
#pragma once

#include <cstdint>
#include <span>

#include "jit/lane/program.hpp"
#include "jit/plan/nest_form.hpp"
#include "jit/target.hpp"

namespace castor::jit {

enum class TableMethod : uint8_t {
  each_lane,           ///< read one by one
  shuffle_bytes,       ///< 16 bytes in one register, repeated
  permute_bytes,       ///< 256 bytes in four registers (VBMI)
  permute_byte_pairs,  ///< 256 bytes in four registers, as words (AVX-512, as the next)
  permute_i16,         ///< 16 entries of 16 bits in half a register
  permute_256_i16,     ///< 256 entries of 16 bits in eight registers
  permute_i32,         ///< 16 entries of 32 bits in one register
  permute_i64,         ///< 16 entries of 64 bits in two
};

/// The method for one table of 2^index_bits entries that a whole row shares. Where each element of
/// a row has a table, entries are read one by one.
TableMethod table_method(const Target& target, int index_bits, int element_bits);

/// Instructions that read entries one by one, if sources have these access patterns.
int64_t lane_by_lane_gathers(const LaneProgram& program, std::span<const Access> access,
                             const Target& target);

}  // namespace castor::jit
