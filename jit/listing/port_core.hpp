// SPDX-License-Identifier: Apache-2.0
// What the port model knows of a core: its ports, what moves data, its front end, and a row a class
// of instructions. The tables are data, one file a core, in jit/listing/cores/; which instruction
// is of which class is the same for all cores (port_table.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/core/core_tuning.hpp"

namespace castor::jit {

/// A set of a core's ports, one bit each, in the order of `PortCore::ports`.
using Ports = uint16_t;

/// Classes of instructions that cost the same on every core, with and without a zmm register.
enum class Cost : uint8_t {
  same,          ///< only in forms of `PortRow`: the same cost as `PortRow::cost`
  unmeasured,    ///< no figure is known: the model refuses the instruction
  none,          ///< no port: moves that renaming removes, plain loads and stores, prefetches
  masked_load,   ///< by the signs of a vector
  masked_store,  ///< the same
  vector_alu,
  ternary_logic,
  vector_min_max,
  vector_min_max_64,
  vector_equal_64,
  vector_greater_64,
  vector_saturate,
  vector_average,
  vector_count_bits,
  vector_count_zeros,
  vector_shuffle,
  vector_shuffle_32,
  vector_shuffle_float,
  vector_align,
  vector_pack,
  vector_unpack,
  vector_permute,
  vector_permute_16,
  vector_permute_two,
  vector_permute_two_16,
  vector_permute_two_8,
  vector_widen,
  vector_narrow,
  vector_insert,
  vector_insert_load,
  vector_extract,
  vector_extract_store,
  vector_broadcast,
  vector_broadcast_load,
  vector_broadcast_lanes,
  vector_expand,
  vector_shift,
  vector_shift_bytes,
  vector_rotate,
  vector_multiply,
  vector_multiply_32,
  vector_multiply_64,
  vector_sad,
  vector_horizontal,
  float_horizontal,
  vector_multishift,
  vector_affine,
  vector_test,
  dot_product,
  blend_by_vector,
  blend_floats_by_vector,
  blend_floats,
  blend_words,
  float_multiply,
  float_fused,
  float_estimate,
  float_add,
  float_compare,
  float_fixup,
  float_compare_mask,
  float_compare_flags,
  float_round,
  float_scale,
  float_exponent,
  float_convert,
  float_convert_width,
  float_to_bf16,
  float_to_half,
  float_to_gpr,
  gpr_to_float,
  divide_f32,
  divide_f64,
  sqrt_f32,
  sqrt_f64,
  half_arithmetic,
  half_compare_mask,
  half_round,
  half_convert,
  half_convert_32,
  half_convert_64,
  divide_f16,
  sqrt_f16,
  mask_compare,
  mask_from_vector,
  mask_to_vector,
  mask_logic,
  mask_test,
  mask_add,
  mask_shift,
  mask_load,
  mask_to_gpr,
  gpr_to_mask,
  vector_to_gpr,
  gpr_to_vector,
  gpr_insert,
  gpr_insert_load,
  gpr_extract,
  gpr_extract_store,
  gpr_broadcast,
  gpr_alu,
  gpr_carry,
  gpr_count,
  gpr_trailing_zeros,
  gpr_bits,
  gpr_extract_bits,
  gpr_exchange,
  gpr_flags_read,
  gpr_set,
  gpr_shift,
  gpr_multiply,
  gpr_deposit,
  gpr_divide,
  jump,
  control_register,
  zero_upper,
};
inline constexpr size_t cost_count = static_cast<size_t>(Cost::zero_upper) + 1;

/// A row of a core's table as it is written: the class, the micro-operations of forms of up to 256
/// bits (or without vectors) and of those of 512 bits, or of masks of 64 bits, and latencies.
///
/// Micro-operations are parted by spaces: "FP12" is one that any one of FP1 and FP2 does in a
/// cycle, "FP12*2" one that holds its port for two cycles, "ALU0|branch" one of ALU0 and branch.
/// "FP01+FP45" is one that needs both, as FP45 reads its third source.
/// "FP0123@2" is done by two ports of the four, it is not known which: two such take at least a
/// cycle, and count as work of all four beside others. "-" is none. "?" is unmeasured.
struct CoreRow {
  Cost cost;
  std::string_view up_to_256;
  std::string_view in_512 = {};  ///< empty: as up_to_256
  /// Cycles from the first source to the result, in registers; 0 where none is known or the result
  /// is of another register file.
  double latency_256 = 0;
  double latency_512 = 0;  ///< 0: as latency_256
};

/// A micro-operation, or a part of one: it occupies any one of `ports` for `cycles`.
struct PortUse {
  Ports ports = 0;
  double cycles = 0;
  int at_most = 0;  ///< more than 0: runs on so few of the ports, not known which
};

/// What an instruction occupies on a core.
struct CostRow {
  static constexpr size_t max_uses = 6;
  struct Form {
    std::array<PortUse, max_uses> uses{};
    size_t count = 0;
    size_t micro_operations = 0;  ///< each may have several uses
    double latency = 0;
    bool is_measured = false;

    std::span<const PortUse> all() const { return {uses.data(), count}; }
  };
  Form up_to_256;
  Form in_512;

  const Form& form(bool wide) const { return wide ? in_512 : up_to_256; }
};

/// Something of each kind of access to memory.
template <class Value>
struct ByAccess {
  Value gpr{};     ///< a general register
  Value mask{};    ///< a mask register
  Value vector{};  ///< up to 256 bits
  Value vector_512{};
};

/// Cycles that loads keep the load ports busy, in L1. Some loads are done by some of the ports
/// only; others take what these leave. So both sums bound the time of several loads.
struct LoadCycles {
  double all = 0;   ///< all ports: port cycles over their number
  double wide = 0;  ///< the ports that alone do wide loads; 0: any port does these loads

  LoadCycles& operator+=(const LoadCycles& other) {
    all += other.all;
    wide += other.wide;
    return *this;
  }
  double bound() const { return std::max(all, wide); }
};

struct PortCore {
  std::string_view name;  ///< "Zen 4"
  std::span<const std::string_view> ports;
  ByAccess<LoadCycles> load{};
  ByAccess<double> store{};  ///< cycles that one keeps all store ports, in L1
  /// What the data of a vector's or a mask's store occupy beside that; no uses: nothing that
  /// computes.
  CostRow::Form stored_vector{};
  CostRow::Form stored_mask{};
  double gather_element = 0;  ///< cycles of all load ports per element of a gather
  double width = 0;       ///< macro-operations dispatched a cycle (Intel: fused micro-operations)
  double jump_taken = 1;  ///< cycles from one taken branch to the next
  bool fuses_moves = false;  ///< a copy and what overwrites the copy are one (fusion.hpp)
  bool has_tiles =
      false;  ///< AMX; figures of other cores' tiles are Granite Rapids' (tile_unit.hpp)
  std::array<CostRow, cost_count> costs{};
};

/// The table of the model.
const PortCore& port_core(PortModel model);

/// The class of the instruction at that offset. Fails (internal) where none begins, or no class is
/// known.
Result<Cost> cost_class_at(const MachineCode& code, uint32_t offset);

/// The name of a class, e.g. "vector_alu".
std::string_view name_of(Cost cost);

/// The ports' names, e.g. "FP1 FP2".
std::string names_of(const PortCore& core, Ports ports);

/// The tables, one a file in cores/.
extern const PortCore zen4_ports;
extern const PortCore zen5_ports;
extern const PortCore golden_cove_ports;
extern const PortCore redwood_cove_ports;

}  // namespace castor::jit
