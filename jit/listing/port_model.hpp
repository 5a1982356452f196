// SPDX-License-Identifier: Apache-2.0
// The port model's table: what an instruction occupies on a core. Zen 4 is the only one with
// figures so far, and all rows of the tuning table (jit/core/core_tuning.hpp) name it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/support/result.hpp"
#include "jit/listing/decoder.hpp"
#include "jit/listing/listing.hpp"

namespace castor::jit {

/// A set of execution pipes, one bit each.
using Pipes = uint16_t;
namespace pipe {
inline constexpr Pipes fp0 = 1 << 0, fp1 = 1 << 1, fp2 = 1 << 2, fp3 = 1 << 3;
inline constexpr Pipes fp4 = 1 << 4, fp5 = 1 << 5;  ///< to and from general registers
inline constexpr Pipes alu0 = 1 << 6, alu1 = 1 << 7, alu2 = 1 << 8, alu3 = 1 << 9;
inline constexpr Pipes branch = 1 << 10;
inline constexpr int count = 11;

inline constexpr Pipes fp01 = fp0 | fp1, fp03 = fp0 | fp3, fp12 = fp1 | fp2, fp23 = fp2 | fp3;
inline constexpr Pipes fp123 = fp1 | fp2 | fp3, fp0123 = fp0 | fp123, fp45 = fp4 | fp5;
inline constexpr Pipes alu03 = alu0 | alu3, alu12 = alu1 | alu2, alu0123 = alu03 | alu12;
inline constexpr Pipes any_branch = alu0 | branch;
}  // namespace pipe

/// The pipes' names, e.g. "FP1 FP2".
std::string names_of(Pipes pipes);

/// A micro-operation: it occupies any one of `pipes` for `cycles_256` in an operation of up to 256
/// bits (or without vectors), and for `cycles_512` in one of 512 bits.
struct PipeUse {
  Pipes pipes = 0;  ///< none: there is no such micro-operation
  double cycles_256 = 1;
  double cycles_512 = 2;
  double cycles(bool wide) const { return wide ? cycles_512 : cycles_256; }
};

/// What families of instructions cost.
enum class Cost : uint8_t {
  same,        ///< only in forms of `PortRow`: the same cost as `PortRow::cost`
  unmeasured,  ///< no figure is known: the model refuses the instruction
  none,        ///< no pipe: moves that renaming removes, plain loads and stores, prefetches
  vector_alu,
  ternary_logic,
  vector_alu_complex,
  vector_shuffle,
  vector_unpack,
  vector_expand,
  vector_shift,
  vector_multiply,
  vector_sad,
  vector_horizontal,
  vector_pair_unknown,
  vector_test,
  dot_product,
  blend_by_vector,
  float_multiply,
  float_add,
  float_compare,
  float_compare_flags,
  float_round,
  float_scale,
  float_convert,
  float_convert_width,
  float_to_half,
  float_to_gpr,
  gpr_to_float,
  divide_f32,
  divide_f64,
  sqrt_f32,
  sqrt_f64,
  mask_compare,
  mask_from_vector,
  mask_to_vector,
  mask_logic,
  mask_shift,
  mask_transfer,
  transfer,
  transfer_shuffle,
  gpr_alu,
  gpr_exchange,
  gpr_flags_read,
  gpr_shift,
  gpr_multiply,
  gpr_divide,
  jump,
  control_register,
  zero_upper,
};

/// One row of the table of costs.
struct CostRow {
  Cost cost;
  std::string_view name;
  PipeUse first{};
  PipeUse second{};       ///< of instructions that are two micro-operations
  int pipes_at_most = 0;  ///< see `port_cycles`: known to run on so few pipes, not known which
};
const CostRow& cost_row(PortModel model, Cost cost);

/// One row of the table of instructions; the memory operand's load and store come on top.
struct PortRow {
  std::string_view mnemonic;  ///< Zydis's name; a '*' at its end stands for any ending
  Cost cost;
  Cost with_memory = Cost::same;   ///< with a memory operand
  Cost with_gpr = Cost::same;      ///< with a general register operand
  Cost to_mask = Cost::same;       ///< with a mask register as destination
  Cost under_mask = Cost::same;    ///< register to register under a mask
  bool zeroes_itself = false;      ///< x op x is zero by renaming, without a pipe
  double load_cycles_element = 0;  ///< per element of a gather
};
std::span<const PortRow> port_table();

/// The row with the longest name that fits; null where none does.
const PortRow* port_row(std::string_view mnemonic);

/// As port_cycles of listing.hpp, for code that is decoded already.
Result<PortCycles> port_cycles(std::span<const DecodedInstruction> program, const MachineCode& code,
                               const CodeLoop& loop, PortModel model = PortModel::zen4);

}  // namespace castor::jit
