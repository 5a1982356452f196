// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind/bind_row_blocks.hpp"

#include <algorithm>

#include "ir/support/integer_math.hpp"
#include "runtime/bind/bind_nest.hpp"
#include "runtime/compiled.hpp"

namespace castor::detail {

namespace {

/// The tensors of a block, with the strides of the whole ones.
Result<std::vector<BoundTensor>> block_tensors(std::span<const BoundTensor> whole,
                                               std::span<const ValueId> values,
                                               const RowBlocks& blocks, int64_t rows,
                                               bool are_outputs) {
  std::vector<BoundTensor> tensors;
  for (size_t i = 0; i < whole.size(); ++i) {
    const BoundTensor& each = whole[i];
    const Dims extents = blocks.extents_in_block(values[i], each.shape, rows);
    Result<BoundTensor> tensor =
        bind_tensor(each.what, each.element, extents, each.strides, are_outputs);
    if (!tensor) return tensor.error();
    tensors.push_back(std::move(tensor).value());
  }
  return tensors;
}

/// The function bound to a block of `rows` rows. `blocks_in_all` such blocks are a call.
Result<std::shared_ptr<BoundState>> bind_block(const BoundState& bound, const BoundShapes& shapes,
                                               const RowBlocks& blocks, int64_t rows,
                                               int64_t blocks_in_all) {
  const Function& function = *bound.kernel->compiled->canonical;
  auto block = std::make_shared<BoundState>();
  block->kernel = bound.kernel;
  block->target = bound.target;
  auto inputs = block_tensors(bound.inputs, function.parameters, blocks, rows, false);
  if (!inputs) return inputs.error();
  auto outputs = block_tensors(bound.outputs, function.results, blocks, rows, true);
  if (!outputs) return outputs.error();
  block->inputs = std::move(inputs).value();
  block->outputs = std::move(outputs).value();
  BoundShapes own = shapes;
  for (ValueId value = 0; value < own.values.size(); ++value) {
    own.values[value] = blocks.extents_in_block(value, own.values[value], rows);
  }
  if (Status status = bind_steps(*block, std::move(own), blocks_in_all); !status) {
    return status.error();
  }
  return block;
}

/// By row axis, the strides of a tensor.
RowBlockStep::Strides row_strides(const RowBlocks& blocks, ValueId value,
                                  const BoundTensor& tensor) {
  RowBlockStep::Strides strides = Dims::filled(blocks.extents.rank(), 0);
  const auto axes = blocks.axes.find(value);
  for (int axis = 0; axis < strides.rank() && axes != blocks.axes.end(); ++axis) {
    const auto own = static_cast<int>(axes->second[axis]);
    if (own >= 0) strides[axis] = tensor.strides[own];
  }
  return strides;
}

struct Nanoseconds {
  int64_t operator()(const LaneStep& step) const { return step.main.nanoseconds; }
  int64_t operator()(const StepBase&) const { return 0; }
};

/// The estimated time of a block.
int64_t nanoseconds_of(const BoundState& block) {
  int64_t sum = 0;
  for (const Step& step : block.steps) sum = saturated_sum(sum, std::visit(Nanoseconds(), step));
  return sum;
}

}  // namespace

Status bind_row_blocks(BoundState& bound, const BoundShapes& shapes, const RowBlocks& blocks) {
  const Function& function = *bound.kernel->compiled->canonical;
  RowBlockStep step;
  step.extents = blocks.extents;
  step.rows = blocks.rows;
  for (size_t i = 0; i < bound.inputs.size(); ++i) {
    step.input_strides.push_back(row_strides(blocks, function.parameters[i], bound.inputs[i]));
  }
  for (size_t o = 0; o < bound.outputs.size(); ++o) {
    step.output_strides.push_back(row_strides(blocks, function.results[o], bound.outputs[o]));
  }
  const int64_t count = step.count();
  auto block = bind_block(bound, shapes, blocks, blocks.rows, count);
  if (!block) return block.error();
  size_t scratch = (*block)->scratch_bytes;
  step.nanoseconds = saturated_product(nanoseconds_of(**block), count);
  step.block = std::move(block).value();
  const int64_t remainder = blocks.extents[blocks.extents.rank() - 1] % blocks.rows;
  if (remainder > 0) {
    auto last = bind_block(bound, shapes, blocks, remainder, count);
    if (!last) return last.error();
    scratch = std::max(scratch, (*last)->scratch_bytes);
    step.remainder = std::move(last).value();
  }
  step.views = jit::round_up(scratch, alignof(ConstView));
  bound.scratch_bytes =
      step.views + bound.inputs.size() * sizeof(ConstView) + bound.outputs.size() * sizeof(View);
  bound.steps.emplace_back(std::move(step));
  return {};
}

}  // namespace castor::detail
