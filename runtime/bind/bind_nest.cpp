// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind/bind_nest.hpp"

#include "jit/plan/access_pattern.hpp"
#include "runtime/bind/bind_row_blocks.hpp"
#include "runtime/bind/nest_binder.hpp"

namespace castor::detail {

Status NestBinder::run() {
  bound_.steps.reserve(compiled_.nests.size());
  for (at_ = 0; at_ < compiled_.nests.size(); ++at_) {
    const jit::Nest& nest = compiled_.nests[at_];
    if (is_folded_[at_]) {
      auto nothing = new_step<EmptyStep>();
      nothing.is_folded = true;
      bound_.steps.emplace_back(std::move(nothing));
      origins_.count_reads_of(nest);
      continue;
    }
    if (!nest.reduced.empty() || nest.program.folds()) {
      if (Status status = bind_folds(nest); !status) return status;
      continue;
    }
    if (element_count(origins_.extents_of(nest.space)).value_or(0) == 0) {
      bound_.steps.emplace_back(new_step<EmptyStep>());
      continue;
    }
    if (Status status = copy_what_is_not_dense(nest); !status) return status;
    if (Status status = pad_what_is_pooled(nest); !status) return status;
    if (Status status = pad_outputs(nest); !status) return status;
    const Result<bool> is_fused = bind_fused(nest);
    if (!is_fused.ok()) return is_fused.error();
    if (*is_fused) {
      origins_.count_reads_of(nest);
      origins_.count_reads_of(compiled_.nests[++at_]);
      continue;
    }
    Status status = nest.convolution      ? bind_convolution_nest(nest)
                    : nest.requantization ? bind_requantization_nest(nest)
                                          : bind_elementwise(nest);
    if (!status) return status;
    give_back_padded(nest);
    origins_.count_reads_of(nest);
  }
  bound_.scratch_bytes = origins_.scratch().bytes();
  return {};
}

/// Copies to scratch of tables that are not dense, and of what no strides can reshape.
Status NestBinder::copy_what_is_not_dense(const jit::Nest& nest) {
  for (size_t k = 0; k < nest.inputs.size(); ++k) {
    const ValueId value = nest.inputs[k].value;
    const ValueId root = origins_.root_of(value);
    const bool any_strides = root == value && !nest.is_table(k);
    if (any_strides || origins_.has_scratch(root)) continue;
    const TensorOrigin origin = origins_.of_root(root, nest.element(k));
    if (is_readable(nest, k, origin)) continue;
    if (Status status = bind_copy(root, nest.element(k)); !status) return status;
  }
  return {};
}

/// Whether the nest can read its input where the root of the value is stored.
bool NestBinder::is_readable(const jit::Nest& nest, size_t input, const TensorOrigin& root) const {
  const ValueId value = nest.inputs[input].value;
  if (nest.is_table(input)) return origins_.is_dense(value, root);
  return jit::reshaped_strides(root.extents, root.strides, origins_.extents_of(value)).has_value();
}

Status NestBinder::bind_copy(ValueId root, ElementType element) {
  const Dims& extents = origins_.extents_of(root);
  const jit::Nest nest = jit::copy_nest(element, root, extents.rank(), compiled_.target);
  const TensorOrigin from = origins_.of_root(root, element);
  const TensorOrigin to = origins_.in_scratch(root, element, extents);
  return bind_copy_step(nest, from, to);
}

/// A step that copies a tensor to another by the code of that nest.
Status NestBinder::bind_copy_step(const jit::Nest& nest, const TensorOrigin& from,
                                  const TensorOrigin& to, bool matches_space) {
  auto result = new_step<ElementwiseStep>();
  result.program = StepProgram::copy;
  add_operand(result, from.origin, nest.element(0), matches_space);
  add_operand(result, to.origin, nest.element(1), true);
  const std::vector<Dims> strides = {from.strides, to.strides};
  return bind_codes(nest, nullptr, to.extents, strides, std::move(result));
}

/// The origin of an input of the nest, and its strides over the axes that the nest sees.
TensorOrigin NestBinder::tensor_of(const jit::Nest& nest, size_t k) {
  const ValueId value = nest.inputs[k].value;
  const int accumulator = nest.inputs[k].accumulator;
  if (accumulator >= 0) return origins_.of_accumulator(value, accumulator, nest.element(k));
  return nest.inputs[k].tap ? pooled(nest.inputs[k], nest.element(k))
                            : stored(value, nest.element(k));
}

/// The origin of a value, and its strides.
TensorOrigin NestBinder::stored(ValueId value, ElementType element) {
  const Dims& extents = origins_.extents_of(value);
  const ValueId root = origins_.root_of(value);
  TensorOrigin tensor = origins_.of_root(root, element);
  if (root != value) {
    tensor.strides = *jit::reshaped_strides(tensor.extents, tensor.strides, extents);
    tensor.extents = extents;
  }
  return tensor;
}

/// Whether an input is the tensor of its origin, element by element.
bool NestBinder::matches_space(const jit::Nest& nest, size_t k) const {
  const jit::NestInput& input = nest.inputs[k];
  return input.accumulator < 0 && origins_.root_of(input.value) == input.value &&
         input.is_identity() && origins_.extents_of(input.value) == origins_.extents_of(nest.space);
}

void NestBinder::add_outputs(LaneStep& result, const jit::Nest& nest, std::vector<Dims>& strides) {
  const Dims& space = origins_.extents_of(nest.space);
  for (size_t k = nest.inputs.size(); k < nest.operands(); ++k) {
    const TensorOrigin origin =
        origins_.of_output(nest.outputs[k - nest.inputs.size()], nest.element(k), space);
    strides.push_back(origin.strides);
    add_operand(result, origin.origin, nest.element(k), true);
  }
}

/// A value that is read densely, copied first where it is not stored so.
Status NestBinder::add_dense_operand(StepBase& result, ValueId value, ElementType element) {
  const ValueId root = origins_.root_of(value);
  if (!origins_.is_dense(value, origins_.of_root(root, element))) {
    if (Status status = bind_copy(root, element); !status) return status;
  }
  add_operand(result, origins_.of_root(root, element).origin, element, false);
  return {};
}

/// Copies dense scratch to a tensor that is not dense; then the scratch is free.
Status NestBinder::copy_to(const TensorOrigin& to, const TensorOrigin& from, ValueId value) {
  const jit::Nest nest =
      jit::copy_nest(ElementType::i32, value, to.extents.rank(), compiled_.target);
  Status status = bind_copy_step(nest, from, to);
  origins_.give_back(value);
  return status;
}

Status NestBinder::bind_codes(const jit::Nest& nest, const LikelyCode* likely, const Dims& extents,
                              std::span<const Dims> strides, ElementwiseStep result) {
  Status status = codes_.bind(nest, likely, extents, strides, result);
  if (!status) return status;
  bound_.steps.emplace_back(std::move(result));
  return {};
}

Status bind_steps(BoundState& bound, BoundShapes shapes, int64_t repetitions) {
  return NestBinder(bound, std::move(shapes), repetitions).run();
}

Status bind_nests(BoundState& bound, std::span<const Dims> input_shapes, int64_t block_bytes) {
  const Compiled& compiled = *bound.kernel->compiled;
  if (!compiled.interpreted_because.empty()) return {};
  Result<BoundShapes> shapes = bind_shapes(*compiled.canonical, input_shapes);
  if (!shapes.ok()) return shapes.error();
  if (const auto blocks = plan_row_blocks(bound, *shapes, block_bytes)) {
    return bind_row_blocks(bound, *shapes, *blocks);
  }
  return bind_steps(bound, std::move(shapes).value(), 1);
}

}  // namespace castor::detail
