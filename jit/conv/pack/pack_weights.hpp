// SPDX-License-Identifier: Apache-2.0
// Packing of weights: bytes that are stored output channel by output channel become k groups of
// four input channels, with those of sixteen output channels adjacent.
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

struct PackWeightsArguments;

/// A unit of weights, which a vector holds of each output channel: k groups at adjacent positions
/// of the filter. These are its slots, k group by k group.
struct PackWeights {
  static constexpr std::string_view name = "pack_weights";
  using Arguments = const PackWeightsArguments;

  static constexpr int channels = 16;   ///< output channels
  static constexpr int max_slots = 16;  ///< of an output channel

  int positions = 1;
  int k_groups = 1;  ///< at each position; where there are several, input_step is `positions`
  /// Bytes from one input channel to the next where all of a unit's are within a vector; 0 where
  /// the call says it.
  int input_step = 0;

  constexpr int slots() const { return positions * k_groups; }
  constexpr bool is_one_vector() const { return input_step != 0; }
  /// Bytes that the code reads from the first byte of a unit, or, where that is not one vector, of
  /// each input channel.
  constexpr int64_t bytes_read() const { return is_one_vector() ? 64 : 16; }

  static constexpr auto fields(const auto& list) {
    return list(field("positions", &PackWeights::positions),
                field("k_groups", &PackWeights::k_groups),
                field("input_step", &PackWeights::input_step));
  }
};

/// Whether there is code for such units.
bool fits(const PackWeights& unit, const Target& target);

/// The argument of the code.
struct PackWeightsArguments {
  const std::byte* source = nullptr;  ///< the first unit of the first output channel
  int64_t channel_step = 0;           ///< bytes from one output channel to the next
  int64_t input_step = 0;   ///< the same of input channels; unused where a vector holds them
  int64_t unit_step = 0;    ///< bytes from one unit to the next
  int64_t units = 1;        ///< at least 1
  uint64_t to = 0;          ///< address of channel 0's first slot, which need not be stored
  int64_t step = 0;         ///< bytes from one slot to the next
  int64_t skip = 0;         ///< bytes from the end of a unit's last slot to the next unit
  uint64_t lanes = 0;       ///< a bit for each output channel that is stored: adjacent ones
  int32_t* sums = nullptr;  ///< of sixteen channels: what is packed is added to them
  uint32_t flips = 0;       ///< xored to every k group
};

/// Emits the code. A pure function of its arguments.
Result<MachineCode> emit_kernel(const PackWeights& unit, const Target& target,
                                const EmitOptions& options = {});

}  // namespace castor::jit
