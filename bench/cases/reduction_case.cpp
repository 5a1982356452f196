// SPDX-License-Identifier: Apache-2.0
#include "bench/cases/reduction_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace castor::bench {

namespace {

using enum ElementType;

constexpr Footprint large_footprint = {"64MiB", size_t{64} << 20, true};
constexpr std::array sizes = {l2_footprint, large_footprint, memory_footprint};

using Inner = std::array<int64_t, 3>;
constexpr Inner one_axis = {};
constexpr Inner rows_of_1024 = {1024};
constexpr Inner rows_of_4096 = {4096};
constexpr Inner images_of_64 = {64, 64, 64};
constexpr Inner images_of_32 = {64, 32, 32};

/// Reductions of one row, of rows, and of columns.
constexpr ReductionRow reductions[] = {
    {"min_max_f32", f32, one_axis,
     "%a = reduce_min %x {axes = [0], keep_dims = false}\n"
     "  %b = reduce_max %x {axes = [0], keep_dims = false}",
     "f32[], f32[]", "%a, %b"},
    {"max_abs_f32", f32, one_axis, "%a = reduce_max_abs %x {axes = [0], keep_dims = false}",
     "f32[]", "%a"},
    {"max_abs_bf16", bf16, one_axis, "%a = reduce_max_abs %x {axes = [0], keep_dims = false}",
     "bf16[]", "%a"},
    {"sum_f32", f32, one_axis, "%a = reduce_sum %x {axes = [0], keep_dims = false}", "f32[]", "%a"},
    {"max_abs_f32_inner", f32, rows_of_4096,
     "%a = reduce_max_abs %x {axes = [1], keep_dims = false}", "f32[?n]", "%a"},
    {"sum_f32_inner", f32, rows_of_4096, "%a = reduce_sum %x {axes = [1], keep_dims = false}",
     "f32[?n]", "%a"},
    {"min_max_f32_outer", f32, rows_of_1024,
     "%a = reduce_min %x {axes = [0], keep_dims = false}\n"
     "  %b = reduce_max %x {axes = [0], keep_dims = false}",
     "f32[1024], f32[1024]", "%a, %b"},
    {"sum_f32_outer", f32, rows_of_1024, "%a = reduce_sum %x {axes = [0], keep_dims = false}",
     "f32[1024]", "%a"},
    {"dynamic_quantize_linear", f32, one_axis, "%y, %s, %z = dynamic_quantize_linear %x : u8",
     "u8[?n], f32[], u8[]", "%y, %s, %z", 2},
};

/// Rows of 4096 elements, each quantized by its own range, which caches hold meanwhile.
constexpr ReductionRow quantized_rows[] = {
    {"dynamic_quantize_f32_i8_rows", f32, rows_of_4096,
     "%y, %s = dynamic_quantize_symmetric %x {axes = [-1]} : i8", "i8[{0}, 4096], f32[{0}, 1]",
     "%y, %s"},
    {"dynamic_quantize_f32_i8_rows_reciprocal", f32, rows_of_4096,
     "%y, %s = dynamic_quantize_symmetric %x {axes = [-1], scaling = reciprocal} : i8",
     "i8[{0}, 4096], f32[{0}, 1]", "%y, %s"},
    {"dynamic_quantize_bf16_i8_rows", bf16, rows_of_4096,
     "%f = convert %x : f32\n  %y, %s = dynamic_quantize_symmetric %f {axes = [-1]} : i8",
     "i8[{0}, 4096], f32[{0}, 1]", "%y, %s"},
    {"dynamic_quantize_bf16_i8_rows_reciprocal", bf16, rows_of_4096,
     "%f = convert %x : f32\n"
     "  %y, %s = dynamic_quantize_symmetric %f {axes = [-1], scaling = reciprocal} : i8",
     "i8[{0}, 4096], f32[{0}, 1]", "%y, %s"},
};

/// Windows whose strides leave a quarter of the elements.
constexpr ReductionRow pools[] = {
    {"max_pool_3x3_u8_nhwc", u8, images_of_64,
     "%y = max_pool %x {kernel_shape = [3, 3], layout = nhwc, pads = [1, 1, 1, 1], strides = [2, "
     "2]}",
     "u8[?n, 32, 32, 64]", "%y"},
    {"max_pool_3x3_u8_nchw", u8, images_of_64,
     "%y = max_pool %x {kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]}",
     "u8[?n, 64, 32, 32]", "%y"},
    {"max_pool_3x3_f32_nchw", f32, images_of_32,
     "%y = max_pool %x {kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]}",
     "f32[?n, 64, 16, 16]", "%y"},
    {"max_pool_2x2_f32_nchw", f32, images_of_32,
     "%y = max_pool %x {kernel_shape = [2, 2], strides = [2, 2]}", "f32[?n, 64, 16, 16]", "%y"},
};

/// The axes before the rows' own.
std::string_view outer_axes(const ReductionCell& cell) { return cell.by_two ? "8, ?n" : "?n"; }

std::span<const int64_t> inner_axes(const ReductionRow& row) {
  const auto end = std::ranges::find(row.inner, 0);
  return {row.inner.begin(), end};
}

/// The text with its outer axes in place of {0}.
std::string with_axes(std::string_view text, std::string_view axes) {
  std::string filled(text);
  constexpr std::string_view mark = "{0}";
  for (size_t at = filled.find(mark); at != std::string::npos; at = filled.find(mark)) {
    filled.replace(at, mark.size(), axes);
  }
  return filled;
}

}  // namespace

std::string ReductionCell::name() const {
  return fmt::format("Reduce{}/{}/{}", by_two ? "Threads" : "", row.name, footprint.name);
}

Dims ReductionCell::extents() const {
  int64_t rows = static_cast<int64_t>(footprint.bytes) * 8 / bits_of(row.element);
  for (const int64_t extent : inner_axes(row)) rows /= extent;
  Dims extents = by_two && row.inner[0] > 0 ? Dims{8, rows / 8} : Dims{rows};
  for (const int64_t extent : inner_axes(row)) extents.push_back(extent);
  return extents;
}

std::string ReductionCell::text() const {
  const std::string_view outer = outer_axes(*this);
  std::string x(row.inner[0] == 0 ? "?n" : outer);
  for (const int64_t extent : inner_axes(row)) x += fmt::format(", {}", extent);
  return fmt::format("func @reduce(%x: {}[{}]) -> ({}) {{\n  {}\n  return {}\n}}\n",
                     castor::name_of(row.element), x, with_axes(row.results, outer), row.operations,
                     row.names);
}

std::vector<ReductionCell> reduction_cells() {
  std::vector<ReductionCell> cells;
  for (const Footprint& footprint : sizes) {
    for (const ReductionRow& row : reductions) cells.push_back({row, footprint});
    for (const ReductionRow& row : quantized_rows) cells.push_back({row, footprint});
    for (const ReductionRow& row : pools) cells.push_back({row, footprint});
  }
  return cells;
}

std::vector<ReductionCell> reduction_cells_by_two() {
  std::vector<ReductionCell> cells;
  for (const ReductionRow& row : reductions) {
    if (row.inner[0] == 0) cells.push_back({row, memory_footprint, true});
  }
  for (const ReductionRow& row : quantized_rows) cells.push_back({row, memory_footprint, true});
  return cells;
}

}  // namespace castor::bench
