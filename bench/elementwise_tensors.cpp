// SPDX-License-Identifier: Apache-2.0
#include "bench/elementwise_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/data.hpp"
#include "tools/testing/samples.hpp"

namespace castor::bench {

namespace {

constexpr size_t page = 4096;
constexpr size_t result_in_page = page - 512;
constexpr size_t input_step_in_page = 320;

int64_t count_of(const Dims& extents) { return element_count(extents).value_or(0); }

size_t bytes_for(ElementType element, int64_t count) {
  return static_cast<size_t>(byte_size(element, count).value_or(0));
}

template <class Pointer>
size_t element_bytes(const BasicView<Pointer>& view) {
  return bytes_for(view.element, count_of(view.shape));
}

/// Numbers that no op of the table takes out of its type's range.
ElementType moderate_type(ElementType element) {
  return is_integer(element) && !is_signed_integer(element) ? ElementType::u8 : ElementType::i8;
}

}  // namespace

Result<ElementwiseTensors> place_tensors(const ElementwiseCase& each, const Extents& extents,
                                         std::span<std::byte> memory) {
  ElementwiseTensors tensors;
  size_t next = 0;
  for (size_t i = 0; i < each.row.inputs.size(); ++i) {
    tensors.inputs.push_back(memory.data() + next + i * input_step_in_page / 64 * 64);
    next += (span_bytes(each, i, extents) + 2 * page - 1) / page * page;
  }
  tensors.result = memory.data() + next + result_in_page;
  const Result<Dims> result = each.result_shape(extents);
  if (!result) return result.error();
  const size_t end = next + result_in_page + bytes_for(each.result_type(), count_of(*result));
  if (end > memory.size()) {
    return Error{ErrorCode::internal, fmt::format("{} bytes of tensors do not fit", end)};
  }
  return tensors;
}

void fill_inputs(const ElementwiseCase& each, const Extents& extents,
                 const ElementwiseTensors& tensors) {
  for (size_t i = 0; i < tensors.inputs.size(); ++i) {
    const ElementType element = each.input_type(i);
    std::vector<std::byte> tile = ordinary_tile(element, moderate_type(element), tile_elements);
    const auto shift = static_cast<std::ptrdiff_t>(i * tile.size() / 8 / 64 * 64);
    std::rotate(tile.begin(), tile.begin() + shift, tile.end());
    fill({tensors.inputs[i], span_bytes(each, i, extents)}, tile);
  }
}

void fill_inputs_with_patterns(const ElementwiseCase& each, const Extents& extents,
                               const ElementwiseTensors& tensors) {
  for (size_t i = 0; i < tensors.inputs.size(); ++i) {
    const ElementType element = each.input_type(i);
    const auto patterns = samples::random_patterns(element, tile_elements, i + 1);
    fill({tensors.inputs[i], span_bytes(each, i, extents)}, samples::pack(element, patterns));
  }
}

std::vector<ConstView> input_views(const ElementwiseCase& each, const Extents& extents,
                                   const ElementwiseTensors& tensors,
                                   std::optional<Layout> layout) {
  std::vector<ConstView> views;
  for (size_t i = 0; i < tensors.inputs.size(); ++i) {
    const InputShape& input = each.row.inputs[i];
    const Dims shape = extents.of(input.extents);
    views.emplace_back(tensors.inputs[i], each.input_type(i), shape,
                       strides_of(shape, layout.value_or(input.layout)), 0,
                       span_bytes(each, i, extents));
  }
  return views;
}

Result<View> result_view(const ElementwiseCase& each, const Extents& extents,
                         const ElementwiseTensors& tensors) {
  const Result<Dims> shape = each.result_shape(extents);
  if (!shape) return shape.error();
  const ElementType element = each.result_type();
  return View(tensors.result, element, *shape, bytes_for(element, count_of(*shape)));
}

PlainTensors plain_tensors(std::span<const ConstView> inputs, const View& result) {
  constexpr size_t small_share = 30;
  const size_t all = operand_bytes(inputs, result);
  PlainTensors plain;
  for (const ConstView& input : inputs) {
    const size_t bytes = element_bytes(input);
    if (bytes * small_share < all) continue;
    plain.sources.emplace_back(static_cast<const std::byte*>(input.data), bytes);
  }
  plain.destination = {static_cast<std::byte*>(result.data), element_bytes(result)};
  return plain;
}

size_t operand_bytes(std::span<const ConstView> inputs, const View& result) {
  size_t bytes = element_bytes(result);
  for (const ConstView& input : inputs) bytes += element_bytes(input);
  return bytes;
}

std::string shapes_text(std::span<const ConstView> inputs, const View& result) {
  std::string text;
  for (const ConstView& input : inputs) {
    text += fmt::format("{}{} ", name_of(input.element), to_string(input.shape));
  }
  return fmt::format("{}-> {}{}", text, name_of(result.element), to_string(result.shape));
}

}  // namespace castor::bench
