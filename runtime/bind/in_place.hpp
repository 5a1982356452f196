// SPDX-License-Identifier: Apache-2.0
// When a call reads its inputs and writes its outputs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace castor {

/// The order of a call's reads and writes, which decides the outputs that may be written in place
/// of inputs. Its size is that of the inputs and outputs, not of their pairs. Steps count from 1.
struct InPlaceOrder {
  static constexpr uint32_t never = ~uint32_t{0};

  InPlaceOrder() = default;
  /// Nothing is read or written yet.
  InPlaceOrder(size_t inputs, size_t outputs)
      : last_read(inputs, 0), last_read_elsewhere(inputs, 0), first_write(outputs, never) {}

  /// `matches_space`: each element is read where the step writes that of the same index.
  void read(uint32_t step, size_t input, bool matches_space) {
    last_read[input] = std::max(last_read[input], step);
    if (!matches_space) last_read_elsewhere[input] = std::max(last_read_elsewhere[input], step);
  }
  void write(uint32_t step, size_t output) {
    first_write[output] = std::min(first_write[output], step);
  }

  /// Whether no element of the input is read after the output's element of the same index was
  /// written. (Whether both tensors have the same access pattern, same_access says.)
  bool allows(size_t input, size_t output) const {
    return last_read[input] <= first_write[output] &&
           last_read_elsewhere[input] < first_write[output];
  }

  std::vector<uint32_t> last_read;            ///< by input; 0: none
  std::vector<uint32_t> last_read_elsewhere;  ///< by input; 0: none
  std::vector<uint32_t> first_write;          ///< by output
};

}  // namespace castor
