// SPDX-License-Identifier: Apache-2.0
// Shapes of convolutions, and messages about them. Each row is checked twice: by the types of a
// function, and by extents that are bound to a function whose parameters' extents are all unknown.
#pragma once

#include <optional>

#include "tests/support/shape_rows.hpp"

namespace castor::test {

/// An extent whose double overflows.
inline constexpr int64_t huge_extent = int64_t{1} << 62;

/// Operands of a convolution, and the result's shape or the message after "conv_integer: ".
struct ConvolutionRow {
  Dims x;
  Dims w;
  std::string attributes;
  std::string result;
  std::optional<Dims> x_zero_point = {};
  std::optional<Dims> w_zero_point = {};
};

inline std::string text_of(const ConvolutionRow& row, bool open) {
  std::vector<std::string> types;
  std::string operands;
  const auto add = [&](const char* element, const std::optional<Dims>& extents) {
    operands += types.empty() ? "" : ", ";
    operands += extents ? fmt::format("%x{}", types.size()) : "none";
    if (!extents) return;
    types.push_back(element + (open ? to_string(open_shape(*extents)) : to_string(*extents)));
  };
  add("u8", row.x);
  add("i8", row.w);
  add("u8", row.x_zero_point);
  add("i8", row.w_zero_point);
  return function_text(types,
                       fmt::format("%y = conv_integer {}{}", operands, in_braces(row.attributes)));
}

inline void expect_row(const ConvolutionRow& row) {
  const std::string expected =
      row.result.starts_with('[') ? row.result : "conv_integer: " + row.result;
  std::vector<Dims> extents = {row.x, row.w};
  if (row.x_zero_point) extents.push_back(*row.x_zero_point);
  if (row.w_zero_point) extents.push_back(*row.w_zero_point);
  EXPECT_EQ(inferred(text_of(row, false)), expected) << text_of(row, false);
  EXPECT_EQ(bound(text_of(row, true), extents), expected) << text_of(row, true);
}

inline void expect_rows(const std::vector<ConvolutionRow>& rows) {
  for (const ConvolutionRow& row : rows) expect_row(row);
}

}  // namespace castor::test
