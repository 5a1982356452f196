// SPDX-License-Identifier: Apache-2.0
#include "ir/types/quantization.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace castor {

namespace {

constexpr bool table_is_in_enum_order() {
  for (size_t i = 0; i < quantized_table.size(); ++i) {
    if (quantized_table[i].format != static_cast<QuantizedFormat>(i)) return false;
  }
  return true;
}
static_assert(table_is_in_enum_order());

std::string text_of(const QuantizationParameter& parameter, bool is_per_axis) {
  if (!parameter) return "?";
  if (is_per_axis || parameter->size() != 1) {
    return fmt::format("[{}]", fmt::join(*parameter, ", "));
  }
  return fmt::format("{}", parameter->front());
}

}  // namespace

std::optional<QuantizedFormat> quantized_format_named(std::string_view name) {
  for (const QuantizedInfo& row : quantized_table) {
    if (row.name == name) return row.format;
  }
  return std::nullopt;
}

std::string to_string(const Quantization& quantization) {
  if (!is_quantized_format(quantization.format)) return "unknown";
  const QuantizedInfo& format = info(quantization.format);
  std::vector<std::string> entries;
  if (quantization.is_per_axis()) entries.push_back(fmt::format("axis = {}", quantization.axis));
  for (const QuantizationRule& rule : quantization_rules) {
    if (rule.asymmetric_only && !format.is_asymmetric) continue;
    entries.push_back(fmt::format(
        "{} = {}", rule.name, text_of(quantization.*rule.parameter, quantization.is_per_axis())));
  }
  return fmt::format("{}<{}>", format.name, fmt::join(entries, ", "));
}

}  // namespace castor
