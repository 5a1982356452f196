// SPDX-License-Identifier: Apache-2.0
#include "bench/cases/reduction_case.hpp"

#include <fmt/format.h>

#include <array>

namespace castor::bench {

namespace {

using enum ElementType;

constexpr Footprint large_footprint = {"64MiB", size_t{64} << 20, true};
constexpr std::array sizes = {l2_footprint, large_footprint, memory_footprint};

/// Reductions of one row, of rows, and of columns.
constexpr ReductionRow reductions[] = {
    {"min_max_f32", f32, 0,
     "%a = reduce_min %x {axes = [0], keep_dims = false}\n"
     "  %b = reduce_max %x {axes = [0], keep_dims = false}",
     "f32[], f32[]", "%a, %b"},
    {"max_abs_f32", f32, 0, "%a = reduce_max_abs %x {axes = [0], keep_dims = false}", "f32[]",
     "%a"},
    {"max_abs_bf16", bf16, 0, "%a = reduce_max_abs %x {axes = [0], keep_dims = false}", "bf16[]",
     "%a"},
    {"sum_f32", f32, 0, "%a = reduce_sum %x {axes = [0], keep_dims = false}", "f32[]", "%a"},
    {"max_abs_f32_inner", f32, 4096, "%a = reduce_max_abs %x {axes = [1], keep_dims = false}",
     "f32[?n]", "%a"},
    {"sum_f32_inner", f32, 4096, "%a = reduce_sum %x {axes = [1], keep_dims = false}", "f32[?n]",
     "%a"},
    {"min_max_f32_outer", f32, 1024,
     "%a = reduce_min %x {axes = [0], keep_dims = false}\n"
     "  %b = reduce_max %x {axes = [0], keep_dims = false}",
     "f32[1024], f32[1024]", "%a, %b"},
    {"sum_f32_outer", f32, 1024, "%a = reduce_sum %x {axes = [0], keep_dims = false}", "f32[1024]",
     "%a"},
    {"dynamic_quantize_linear", f32, 0, "%y, %s, %z = dynamic_quantize_linear %x : u8",
     "u8[?n], f32[], u8[]", "%y, %s, %z", 2},
};

/// Rows of 4096 elements, each quantized by its own range, which caches hold meanwhile.
constexpr ReductionRow quantized_rows[] = {
    {"dynamic_quantize_f32_i8_rows", f32, 4096,
     "%y, %s = dynamic_quantize_symmetric %x {axes = [-1]} : i8", "i8[{0}, 4096], f32[{0}, 1]",
     "%y, %s"},
    {"dynamic_quantize_f32_i8_rows_reciprocal", f32, 4096,
     "%y, %s = dynamic_quantize_symmetric %x {axes = [-1], scaling = reciprocal} : i8",
     "i8[{0}, 4096], f32[{0}, 1]", "%y, %s"},
    {"dynamic_quantize_bf16_i8_rows", bf16, 4096,
     "%f = convert %x : f32\n  %y, %s = dynamic_quantize_symmetric %f {axes = [-1]} : i8",
     "i8[{0}, 4096], f32[{0}, 1]", "%y, %s"},
    {"dynamic_quantize_bf16_i8_rows_reciprocal", bf16, 4096,
     "%f = convert %x : f32\n"
     "  %y, %s = dynamic_quantize_symmetric %f {axes = [-1], scaling = reciprocal} : i8",
     "i8[{0}, 4096], f32[{0}, 1]", "%y, %s"},
};

/// The axes before the rows' own.
std::string_view outer_axes(const ReductionCell& cell) { return cell.by_two ? "8, ?n" : "?n"; }

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
  const int64_t elements = static_cast<int64_t>(footprint.bytes) * 8 / bits_of(row.element);
  if (row.row_length == 0) return {elements};
  const int64_t rows = elements / row.row_length;
  return by_two ? Dims{8, rows / 8, row.row_length} : Dims{rows, row.row_length};
}

std::string ReductionCell::text() const {
  const std::string_view outer = outer_axes(*this);
  const std::string x = row.row_length == 0 ? "?n" : fmt::format("{}, {}", outer, row.row_length);
  return fmt::format("func @reduce(%x: {}[{}]) -> ({}) {{\n  {}\n  return {}\n}}\n",
                     castor::name_of(row.element), x, with_axes(row.results, outer), row.operations,
                     row.names);
}

std::vector<ReductionCell> reduction_cells() {
  std::vector<ReductionCell> cells;
  for (const Footprint& footprint : sizes) {
    for (const ReductionRow& row : reductions) cells.push_back({row, footprint});
    for (const ReductionRow& row : quantized_rows) cells.push_back({row, footprint});
  }
  return cells;
}

std::vector<ReductionCell> reduction_cells_by_two() {
  std::vector<ReductionCell> cells;
  for (const ReductionRow& row : reductions) {
    if (row.row_length == 0) cells.push_back({row, memory_footprint, true});
  }
  for (const ReductionRow& row : quantized_rows) cells.push_back({row, memory_footprint, true});
  return cells;
}

}  // namespace castor::bench
