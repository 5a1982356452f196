// SPDX-License-Identifier: Apache-2.0
// The tuning table: what cost models and estimates of work know about a core.
//
// Planners read it, emitters never do: a number that shapes code is a field of the kernel's spec,
// which the planner sets. Numbers that bound what is possible or how much memory is used are no
// tuning: they stay where the code is. "Measure" names the filter of castor-bench
// (--benchmark_filter='FILTER') that shows the effect of a number.
#pragma once

#include <cstdint>
#include <string_view>

#include "jit/core/core.hpp"
#include "jit/core/cost_events.hpp"

namespace castor::jit {

/// Microarchitectures that the port model (jit/listing/port_model.hpp) has figures for.
enum class PortModel : uint8_t { zen4 };
/// "zen4"; "unknown" of a number that is none.
std::string_view name_of(PortModel model);

/// What one thread does in a nanosecond with tensors in L2, to decide whether splitting work pays;
/// rather too fast than too slow. Measured on Emerald Rapids.
struct WorkRates {
  // (Convert|Elementwise|Requantize)/.*256KiB
  double bytes = 64;              ///< read and written by a nest
  double instructions = 8;        ///< lane operations, a vector each
  double strided_elements = 2;    ///< elements of strided operands, which are copied first
  double bitwise_elements = 0.5;  ///< elements whose bits are reached one by one
  double table_bytes = 32;        ///< looked up in tables of bytes by requantizations
  // ConvInteger/.*
  double products = 400;          ///< one input by one weight of a convolution
  double convolution_bytes = 16;  ///< inputs and outputs of a convolution
};

/// What bounds K loops of convolutions on the core, and how many cycles everything else takes that
/// a candidate's cost counts. Measure: castor-sweep.
struct ConvolutionCosts {
  double product_512 = 1;    ///< cycles from one product of 512 bits to the next
  double product_256 = 0.5;  ///< the same of 256 bits
  double load = 0.5;         ///< cycles from one vector load to the next
  double latency = 10;       ///< cycles from one product to the next of one accumulator
  EventCycles cycles = {};
};

/// A row.
struct CoreTuning {
  Core core = Core::generic;
  PortModel port_model = PortModel::zen4;
  WorkRates rates{};
  ConvolutionCosts convolution{};
};

/// The row of the core; the generic one of a number that is none.
const CoreTuning& tuning_of(Core core);

}  // namespace castor::jit
