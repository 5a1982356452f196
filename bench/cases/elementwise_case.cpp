// SPDX-License-Identifier: Apache-2.0
#include "bench/cases/elementwise_case.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/text/text.hpp"
#include "ir/verify/infer.hpp"

namespace castor::bench {

namespace {

constexpr std::array<int64_t, 3> square_sizes = {512, 1024, 4096};

int64_t count_of(const Dims& extents) { return element_count(extents).value_or(0); }

size_t bytes_for(ElementType element, int64_t count) {
  return static_cast<size_t>(byte_size(element, count).value_or(0));
}

int64_t step_of(Layout layout) {
  switch (layout) {
    case Layout::every_second: return 2;
    case Layout::every_third: return 3;
    default: return 1;
  }
}

Result<size_t> footprint_of(const ElementwiseCase& each, const Extents& extents) {
  const Result<Dims> result = each.result_shape(extents);
  if (!result) return result.error();
  size_t bytes = bytes_for(each.result_type(), count_of(*result));
  for (size_t i = 0; i < each.row.inputs.size(); ++i) bytes += span_bytes(each, i, extents);
  return bytes;
}

}  // namespace

Dims strides_of(const Dims& extents, Layout layout) {
  if (layout == Layout::transposed) return {1, extents[0]};
  Dims strides = dense_strides(extents);
  for (int64_t& stride : strides) stride *= step_of(layout);
  return strides;
}

size_t span_bytes(const ElementwiseCase& each, size_t input, const Extents& extents) {
  const InputShape& shape = each.row.inputs[input];
  const int64_t count = count_of(extents.of(shape.extents));
  return bytes_for(each.input_type(input), count * step_of(shape.layout));
}

Result<ElementwiseCase> ElementwiseCase::read(const ElementwiseRow& row) {
  const Result<FunctionPtr> function = parse_function(row.text);
  if (!function) return function.error();
  return ElementwiseCase{row, *function};
}

ElementType ElementwiseCase::input_type(size_t input) const {
  return function->values[function->parameters[input]].type.element;
}

ElementType ElementwiseCase::result_type() const {
  return function->values[function->results.front()].type.element;
}

bool ElementwiseCase::has_columns() const {
  return std::ranges::any_of(row.inputs, [](const InputShape& input) {
    return std::ranges::find(input.extents, columns) != input.extents.end();
  });
}

Result<Dims> ElementwiseCase::result_shape(const Extents& extents) const {
  std::vector<Dims> shapes;
  for (const InputShape& input : row.inputs) shapes.push_back(extents.of(input.extents));
  const Result<BoundShapes> bound = bind_shapes(*function, shapes);
  if (!bound) return bound.error();
  return bound->values[function->results.front()];
}

Result<Extents> extents_for(const ElementwiseCase& each, size_t footprint_bytes,
                            int64_t column_count) {
  // Bytes are linear in rows; of sub-byte elements every eighth row begins at a byte.
  constexpr int64_t sample = 8;
  const Result<size_t> first = footprint_of(each, {sample, column_count});
  const Result<size_t> second = footprint_of(each, {2 * sample, column_count});
  if (!first) return first.error();
  if (!second) return second.error();
  const auto samples_bytes = static_cast<double>(*second - *first);
  const double fixed = static_cast<double>(*first) - samples_bytes;
  const double count = (static_cast<double>(footprint_bytes) - fixed) / samples_bytes * sample;
  const auto row_count = static_cast<int64_t>(count);
  if (row_count < 1) {
    return Error{ErrorCode::internal, fmt::format("{}: no row fits", each.row.name)};
  }
  constexpr int64_t many_rows = 1024;
  return Extents{row_count < many_rows ? row_count : row_count / 64 * 64, column_count};
}

std::string ElementwiseCell::name() const {
  const std::string size =
      square > 0 ? fmt::format("{0}x{0}", square) : std::string(footprint.name);
  return fmt::format("Elementwise/{}/{}", row.name, size);
}

Result<Extents> ElementwiseCell::extents(const ElementwiseCase& each) const {
  if (square > 0) return Extents{square, square};
  const int64_t column_count = footprint.bytes <= large_l1_footprint.bytes ? 256 : 1024;
  return extents_for(each, footprint.bytes, column_count);
}

std::vector<ElementwiseCell> elementwise_cells() {
  std::vector<ElementwiseCell> cells;
  for (const Footprint& footprint : elementwise_footprints) {
    for (const ElementwiseRow& row : elementwise_rows()) cells.push_back({row, footprint});
  }
  for (const ElementwiseRow& row : square_rows()) {
    for (const int64_t size : square_sizes) {
      const bool fits = 3 * size * size * int64_t{sizeof(float)} <=
                        static_cast<int64_t>(outer_cache_footprint.bytes);
      cells.push_back({row, fits ? outer_cache_footprint : memory_footprint, size});
    }
  }
  return cells;
}

}  // namespace castor::bench
