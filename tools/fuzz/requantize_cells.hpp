// SPDX-License-Identifier: Apache-2.0
// What the fuzzer wants to have tried of `requantize`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "ir/types/quantization.hpp"
#include "ir/verify/infer.hpp"

namespace castor::fuzz {

/// The formats of both sides, nothing for f32, and the options.
struct RequantizeCell {
  std::optional<QuantizedFormat> from{};
  std::optional<QuantizedFormat> to{};
  RequantizeOptions options{};
};
inline constexpr size_t requantize_cell_count = 5 * 5 * 2 * 2;
RequantizeCell requantize_cell(size_t number);
size_t number_of(const RequantizeCell& cell);

/// Which sides have parameters of their own for each slice.
enum class SlicedSides : uint8_t { none, source, destination, both };
/// Where the axis of slices stands in the shape; an only axis is the innermost.
enum class AxisPosition : uint8_t { outermost, middle, innermost };
/// Where the parameters come from, of both sides together.
enum class GivenIn : uint8_t { types, operands, both };

struct SliceCell {
  SlicedSides sides = SlicedSides::none;
  AxisPosition place = AxisPosition::innermost;  ///< without slices: innermost
  GivenIn given = GivenIn::types;
};
inline constexpr size_t slice_cell_count = 3 + 3 * 3 * 3;
SliceCell slice_cell(size_t number);
size_t number_of(const SliceCell& cell);

/// The cells of a `requantize` operation.
RequantizeCell requantize_cell_of(const Function& function, const Operation& operation);
SliceCell slice_cell_of(const Function& function, const Operation& operation);

std::string describe(const RequantizeCell& cell);
std::string describe(const SliceCell& cell);

}  // namespace castor::fuzz
