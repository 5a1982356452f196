// SPDX-License-Identifier: Apache-2.0
// Binding of elementwise nests and of folds.
#include "jit/plan/access_pattern.hpp"
#include "runtime/bind/bind_fold.hpp"
#include "runtime/bind/nest_binder.hpp"

namespace castor::detail {

Status NestBinder::bind_elementwise(const jit::Nest& nest) {
  const Dims& space = origins_.extents_of(nest.space);
  jit::SplitSpace split(space);
  for (const jit::NestInput& input : nest.inputs) {
    split.admit(input, origins_.extents_of(input.seen()));
  }
  std::vector<Dims> strides;
  std::vector<size_t> copies;  // blocked inputs, expanded
  auto result = new_step<ElementwiseStep>();
  Status status = add_inputs(nest, split, result, strides, copies);
  if (!status) return status;
  add_outputs(result, nest, strides);
  for (size_t k = nest.inputs.size(); k < nest.operands(); ++k) {
    strides[k] = split.strides(strides[k]);
  }
  status = bind_codes(nest, likely(at_), split.extents(), strides, std::move(result));
  for (const size_t copy : copies) origins_.scratch().give_back(copy);
  return status;
}

/// Adds the inputs of the nest, and their strides over the split space. Where that has none for
/// a blocked input, a copy is read, whose scratch is to be given back.
Status NestBinder::add_inputs(const jit::Nest& nest, const jit::SplitSpace& split, LaneStep& result,
                              std::vector<Dims>& strides, std::vector<size_t>& copies) {
  for (size_t k = 0; k < nest.inputs.size(); ++k) {
    TensorOrigin tensor = tensor_of(nest, k);
    jit::NestInput input = nest.inputs[k];
    while (!split.has_strides(input, tensor.extents)) {
      if (Status status = expand_blocks(nest.element(k), tensor, input); !status) return status;
      copies.push_back(tensor.origin.offset);
    }
    strides.push_back(split.strides_of(input, tensor.extents, tensor.strides));
    add_operand(result, tensor.origin, nest.element(k), matches_space(nest, k));
  }
  return {};
}

/// A nest with accumulators; where these are empty, nothing is done.
Status NestBinder::bind_folds(const jit::Nest& nest) {
  if (element_count(origins_.extents_of(nest.outputs[0].value)).value_or(0) == 0) {
    bound_.steps.emplace_back(new_step<EmptyStep>());
    return {};
  }
  if (Status status = copy_what_is_not_dense(nest); !status) return status;
  if (Status status = pad_what_is_pooled(nest); !status) return status;
  const auto copy = [&](const TensorOrigin& from, const TensorOrigin& to, ElementType element) {
    const int rank = to.extents.rank();
    return bind_copy_step(jit::copy_nest(element, 0, rank, compiled_.target), from, to, false);
  };
  const Dims& extents = origins_.extents_of(nest.space);
  const jit::SplitSpace space(extents);  // blocked inputs are copied
  ElementwiseStep inputs;
  FoldInputs read;
  std::vector<size_t> copies;
  Status status;
  if (element_count(extents).value_or(0) > 0) {
    status = add_inputs(nest, space, inputs, read.strides, copies);
  }
  if (!status) return status;
  read.operands = std::move(inputs.operands);
  FoldBinder binder(bound_, origins_, codes_, at_, copy);
  status = binder.bind(std::move(read), extents);
  for (const size_t each : copies) origins_.scratch().give_back(each);
  give_back_padded(nest);
  if (status) origins_.count_reads_of(nest);
  return status;
}

/// Copies a blocked input to scratch, with each element as often as a block reads it. `tensor`
/// and `input` become the copy, and how it is read.
Status NestBinder::expand_blocks(ElementType element, TensorOrigin& tensor, jit::NestInput& input) {
  const jit::ExpandedCopy copy = jit::expanded_copy(input, tensor.extents, tensor.strides);
  const int64_t count = element_count(copy.extents).value_or(0);
  const auto bytes = static_cast<size_t>(byte_size(element, count).value_or(0));
  const TensorOrigin to = {
      {.kind = OperandOrigin::Kind::scratch, .offset = origins_.scratch().take(bytes)},
      copy.space,
      dense_strides(copy.space)};
  const TensorOrigin from = {tensor.origin, copy.space, copy.strides};
  const int rank = copy.space.rank();
  const jit::Nest nest = jit::copy_nest(element, input.value, rank, compiled_.target);
  Status status = bind_copy_step(nest, from, to, false);
  tensor = {to.origin, copy.extents, dense_strides(copy.extents)};
  input = copy.input;
  return status;
}

}  // namespace castor::detail
