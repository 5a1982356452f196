// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/requantize_cells.hpp"

#include <fmt/format.h>

#include <array>

#include "ir/verify/requantize.hpp"

namespace castor::fuzz {

namespace {

constexpr size_t side_formats = quantized_table.size() + 1;

size_t number_of_format(const std::optional<QuantizedFormat>& format) {
  return format ? static_cast<size_t>(*format) + 1 : 0;
}
std::optional<QuantizedFormat> format_of(size_t number) {
  if (number == 0) return {};
  return static_cast<QuantizedFormat>(number - 1);
}
std::string_view name_of(const std::optional<QuantizedFormat>& format) {
  return format ? info(*format).name : "f32";
}

std::optional<QuantizedFormat> format_of(const TensorType& type) {
  if (!type.quantization) return {};
  return type.quantization->format;
}

bool is_per_axis(const TensorType& type) {
  return type.quantization && type.quantization->is_per_axis();
}

}  // namespace

RequantizeCell requantize_cell(size_t number) {
  RequantizeCell cell;
  cell.options.rounding = static_cast<RequantizeRounding>(number % 2);
  cell.options.arithmetic = static_cast<RequantizeArithmetic>(number / 2 % 2);
  cell.to = format_of(number / 4 % side_formats);
  cell.from = format_of(number / 4 / side_formats);
  return cell;
}

size_t number_of(const RequantizeCell& cell) {
  const size_t formats = number_of_format(cell.from) * side_formats + number_of_format(cell.to);
  return formats * 4 + static_cast<size_t>(cell.options.arithmetic) * 2 +
         static_cast<size_t>(cell.options.rounding);
}

SliceCell slice_cell(size_t number) {
  SliceCell cell;
  cell.given = static_cast<GivenIn>(number % 3);
  if (number < 3) return cell;
  const size_t slices = number / 3 - 1;
  cell.place = static_cast<AxisPosition>(slices % 3);
  cell.sides = static_cast<SlicedSides>(slices / 3 + 1);
  return cell;
}

size_t number_of(const SliceCell& cell) {
  const auto given = static_cast<size_t>(cell.given);
  if (cell.sides == SlicedSides::none) return given;
  const size_t sides = static_cast<size_t>(cell.sides) - 1;
  return 3 + (sides * 3 + static_cast<size_t>(cell.place)) * 3 + given;
}

RequantizeCell requantize_cell_of(const Function& function, const Operation& operation) {
  return {format_of(function.type_of(operation.operands[0])),
          format_of(function.type_of(operation.results[0])), requantize_options(operation)};
}

SliceCell slice_cell_of(const Function& function, const Operation& operation) {
  const TensorType& from = function.type_of(operation.operands[0]);
  const TensorType& to = function.type_of(operation.results[0]);
  SliceCell cell;
  cell.sides = static_cast<SlicedSides>((is_per_axis(from) ? 1 : 0) + (is_per_axis(to) ? 2 : 0));
  if (cell.sides != SlicedSides::none) {
    const int axis = (is_per_axis(from) ? from : to).quantization->axis;
    const int last = static_cast<int>(from.shape.size()) - 1;
    cell.place = axis == last ? AxisPosition::innermost
                 : axis == 0  ? AxisPosition::outermost
                              : AxisPosition::middle;
  }
  bool in_types = false;
  bool in_operands = false;
  for (const TensorType* side : {&from, &to}) {
    if (!side->quantization) continue;
    for (const QuantizationRule& rule : quantization_rules) {
      if (rule.asymmetric_only && !info(side->quantization->format).is_asymmetric) continue;
      ((*side->quantization).*rule.parameter ? in_types : in_operands) = true;
    }
  }
  cell.given = !in_operands ? GivenIn::types : in_types ? GivenIn::both : GivenIn::operands;
  return cell;
}

std::string describe(const RequantizeCell& cell) {
  const bool is_exact = cell.options.arithmetic == RequantizeArithmetic::exact;
  const bool is_half_up = cell.options.rounding == RequantizeRounding::half_up;
  return fmt::format("{} -> {}, {}, {}", name_of(cell.from), name_of(cell.to),
                     is_exact ? "exact" : "embarc", is_half_up ? "half_up" : "nearest_even");
}

std::string describe(const SliceCell& cell) {
  constexpr std::array<std::string_view, 4> sides = {"per tensor", "source per index",
                                                     "destination per index", "both per index"};
  constexpr std::array<std::string_view, 3> places = {"outermost", "middle", "innermost"};
  constexpr std::array<std::string_view, 3> given = {"in types", "at run time", "both"};
  const std::string axis =
      cell.sides == SlicedSides::none
          ? ""
          : fmt::format(" of the {} axis", places[static_cast<size_t>(cell.place)]);
  return fmt::format("{}{}, parameters {}", sides[static_cast<size_t>(cell.sides)], axis,
                     given[static_cast<size_t>(cell.given)]);
}

}  // namespace castor::fuzz
