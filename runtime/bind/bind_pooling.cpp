// SPDX-License-Identifier: Apache-2.0
// Binding of what nests pool: each tap is a view of the operand. Where windows reach beyond it, it
// has its padding around it: nests that compute it for one pooling alone write it there, anything
// else is copied.
#include <fmt/format.h>

#include <algorithm>

#include "ir/numerics/scalar.hpp"
#include "ir/shape/pooling.hpp"
#include "ir/support/integer_math.hpp"
#include "ir/types/storage.hpp"
#include "jit/lower/reduction.hpp"
#include "runtime/bind/nest_binder.hpp"

namespace castor::detail {

namespace {

/// The first axis from `begin` on that has padding; the rank where none has.
int first_padded_axis(const PaddingStep& step, int begin = 0) {
  int axis = begin;
  while (axis < step.extents.rank() && !step.has_padding(axis)) ++axis;
  return axis;
}

/// Whether no element is padding: no axis has any, or another one's extent is 0.
bool pads_nothing(const PaddingStep& step) {
  return first_padded_axis(step) == step.extents.rank() || element_count(step.extents) == 0;
}

/// Whether the first spatial axis alone has padding: then the pixels of the inside are one axis, as
/// epilogues want them.
bool keeps_pixels_together(const PaddingStep& step, const PoolingGeometry& geometry) {
  return first_padded_axis(step, geometry.first_axis + 1) == step.extents.rank();
}

/// The tensor inside its padding.
TensorOrigin inside_of(const TensorOrigin& padded, const PaddingStep& step) {
  TensorOrigin inside = padded;
  for (int axis = 0; axis < padded.extents.rank(); ++axis) {
    inside.extents[axis] = step.ends[axis] - step.begins[axis];
    inside.origin.displacement += step.begins[axis] * padded.strides[axis] * step.element_bytes;
  }
  return inside;
}

/// The result of the pooling that alone reads a value, tap by tap; else no_value.
ValueId only_pooling_of(const std::vector<jit::Nest>& nests, const ValueOrigins& origins,
                        ValueId value) {
  ValueId result = no_value;
  for (const jit::Nest& nest : nests) {
    for (const jit::NestInput& input : nest.inputs) {
      if (input.accumulator >= 0 || origins.root_of(input.value) != value) continue;
      const bool is_other = result != no_value && input.tap && input.tap->result != result;
      if (!input.tap || input.value != value || is_other) return no_value;
      result = input.tap->result;
    }
  }
  return result;
}

}  // namespace

/// What a tap takes of its operand, or of the operand with its padding.
TensorOrigin NestBinder::pooled(const jit::NestInput& input, ElementType element) {
  const jit::PoolingTap& tap = *input.tap;
  const auto padded = padded_.find(tap.result);
  TensorOrigin tensor =
      padded == padded_.end() ? stored(input.value, element) : padded->second.tensor;
  const int64_t bytes = bits_of(element) / 8;
  for (int axis = 0; axis < tensor.strides.rank(); ++axis) {
    tensor.origin.displacement += tap.begins[axis] * tensor.strides[axis] * bytes;
    tensor.strides[axis] = wrapped_product(tensor.strides[axis], tap.steps[axis]);
  }
  tensor.extents = origins_.extents_of(tap.result);
  return tensor;
}

PoolingGeometry NestBinder::pooling_of(ValueId result, const Dims& operand) const {
  const auto& operations = compiled_.canonical->operations;
  const auto pooling = std::ranges::find_if(
      operations, [&](const Operation& operation) { return operation.results[0] == result; });
  return pooling_geometry(*pooling, operand).value();
}

/// The padding of an operand whose elements are stored as `element`, without a tensor.
Result<PaddingStep> NestBinder::padding_of(ValueId operand, const PoolingGeometry& geometry,
                                           ElementType element) const {
  const Dims& own = origins_.extents_of(operand);
  auto step = new_step<PaddingStep>();
  step.extents = step.ends = own;
  step.begins = Dims::filled(own.rank(), 0);
  for (size_t i = 0; i < geometry.axes.size(); ++i) {
    const int axis = geometry.axis_at(i);
    step.begins[axis] = geometry.axes[i].pad_begin;
    step.ends[axis] = step.begins[axis] + own[axis];
    step.extents[axis] = step.ends[axis] + geometry.axes[i].pad_end;
  }
  step.element_bytes = bits_of(element) / 8;
  const ElementType own_type = compiled_.canonical->type_of(operand).element;
  step.value = numerics::convert(jit::lowest_bits(own_type), own_type, element, {});
  const std::optional<int64_t> count = element_count(step.extents);
  if (count && byte_size(element, *count)) return step;
  return Error{
      ErrorCode::invalid_argument,
      fmt::format("%{}: {}{}, with the padding of a max_pool, is too large: its bytes must "
                  "not exceed 2^63 - 1",
                  compiled_.canonical->values[operand].name, name_of(element),
                  to_string(step.extents))};
}

/// Adds the step, which fills the padding, and gives what is inside it.
TensorOrigin NestBinder::bind_padding(PaddingStep step, ValueId result, ElementType element,
                                      bool is_copy) {
  const int64_t bytes = byte_size(element, *element_count(step.extents)).value();
  const TensorOrigin padded = {{.kind = OperandOrigin::Kind::scratch,
                                .offset = origins_.scratch().take(static_cast<size_t>(bytes))},
                               step.extents,
                               dense_strides(step.extents)};
  padded_[result] = {padded, is_copy};
  TensorOrigin inside = inside_of(padded, step);
  add_operand(step, padded.origin, element, false);
  bound_.steps.emplace_back(std::move(step));
  return inside;
}

/// Copies operands whose windows reach beyond them, and that are not padded yet.
Status NestBinder::pad_what_is_pooled(const jit::Nest& nest) {
  for (size_t k = 0; k < nest.inputs.size(); ++k) {
    const jit::NestInput& input = nest.inputs[k];
    if (!input.tap || padded_.contains(input.tap->result)) continue;
    const ElementType element = nest.element(k);
    const ValueId result = input.tap->result;
    const Dims& own = origins_.extents_of(input.value);
    Result<PaddingStep> step = padding_of(input.value, pooling_of(result, own), element);
    if (!step.ok()) return step.error();
    if (pads_nothing(*step)) continue;
    const TensorOrigin to = bind_padding(std::move(step).value(), result, element, true);
    if (element_count(own).value_or(0) == 0) continue;
    const jit::Nest copy = jit::copy_nest(element, input.value, own.rank(), compiled_.target);
    if (Status status = bind_copy_step(copy, stored(input.value, element), to, false); !status) {
      return status;
    }
  }
  return {};
}

/// Lets a nest, or the epilogue of a convolution, write what one pooling alone reads into its
/// padding.
Status NestBinder::pad_outputs(const jit::Nest& nest) {
  const bool is_fused = nest.fusion && nest.fusion->is_fused();
  if ((nest.convolution && !is_fused) || nest.requantization) return {};
  const jit::Nest& writing = is_fused ? compiled_.nests[at_ + 1] : nest;
  for (size_t k = 0; k < writing.outputs.size(); ++k) {
    const ValueId value = writing.outputs[k].value;
    const ValueId result = writing.outputs[k].is_scratch() && !origins_.has_scratch(value)
                               ? only_pooling_of(compiled_.nests, origins_, value)
                               : no_value;
    if (result == no_value) continue;
    const ElementType element = writing.element(writing.inputs.size() + k);
    const PoolingGeometry geometry = pooling_of(result, origins_.extents_of(value));
    Result<PaddingStep> step = padding_of(value, geometry, element);
    if (!step.ok()) return step.error();
    if (pads_nothing(*step) || (is_fused && !keeps_pixels_together(*step, geometry))) continue;
    TensorOrigin inside = bind_padding(std::move(step).value(), result, element, false);
    const size_t offset = inside.origin.offset;
    origins_.pad(value, offset, std::move(inside));
  }
  return {};
}

/// The nest is bound: what runs later may use the memory of copies.
void NestBinder::give_back_padded(const jit::Nest& nest) {
  for (const jit::NestInput& input : nest.inputs) {
    const auto padded = input.tap ? padded_.find(input.tap->result) : padded_.end();
    if (padded == padded_.end()) continue;
    if (padded->second.is_copy) {
      origins_.scratch().give_back(padded->second.tensor.origin.offset);
    }
    padded_.erase(padded);
  }
}

}  // namespace castor::detail
