// SPDX-License-Identifier: Apache-2.0
// Drawing `requantize`.
#pragma once

#include <array>
#include <vector>

#include "tools/fuzz/program.hpp"
#include "tools/fuzz/random.hpp"
#include "tools/fuzz/requantize_cells.hpp"

namespace castor::fuzz {

/// Numbers that parameters are drawn from; one, where both are the same.
struct NumberRange {
  int32_t min = 0;
  int32_t max = 0;
};

/// One side of a requantization. Parameters are in the order of quantization_rules.
struct DrawnSide {
  std::optional<QuantizedFormat> format{};  ///< nothing: f32
  int axis = Quantization::per_tensor;
  std::array<NumberRange, 3> ranges = {};
  std::array<bool, 3> is_open = {};  ///< given at run time

  ElementType element() const { return format ? info(*format).container : ElementType::f32; }
  bool has(const QuantizationRule& rule) const {
    return format && (info(*format).is_asymmetric || !rule.asymmetric_only);
  }
};

struct DrawnRequantization {
  DrawnSide from{};
  DrawnSide to{};
  RequantizeOptions options{};
  Dims shape{};
};

/// A parameter given at run time.
struct ParameterOperand {
  ElementType element = ElementType::i16;
  std::vector<AxisSpec> axes;
  NumberRange range;
};

/// One that hits the cells; null: any.
DrawnRequantization draw_requantization_like(Random& random, const RequantizeCell* formats,
                                             const SliceCell* slices);

/// Says for each parameter of both sides whether it is given at run time.
void draw_given(Random& random, DrawnRequantization& drawn, GivenIn given);

/// A function around requantizations, with inputs made for them.
void draw_requantizations(Random& random, Program& program);

}  // namespace castor::fuzz
