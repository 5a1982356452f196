// SPDX-License-Identifier: Apache-2.0
// Drawing reductions.
#include "ir/shape/reduction.hpp"
#include "tools/fuzz/generate_operations.hpp"

namespace castor::fuzz {

bool OperationDrawer::draw_reduction(OpKind op) {
  const std::optional<size_t> value = operand_of(info(op).types);
  if (!value) return false;
  const int64_t rank = program_.shape_of(*value).rank();
  ReductionOptions options;
  if (random_.percent(85)) {
    options.axes.emplace();
    for (int64_t axis = 0; axis < rank; ++axis) {
      if (random_.percent(50)) options.axes->push_back(random_.percent(20) ? axis - rank : axis);
    }
  }
  options.keep_dims = random_.percent(50);
  const ElementType type = program_.element_of(*value);
  if (op == OpKind::reduce_sum && is_integer(type) && random_.percent(50)) {
    const bool takes_i32 = bits_of(type) <= 32 && random_.percent(50);
    options.accumulator = takes_i32 ? ElementType::i32 : ElementType::i64;
  }
  return add({.op = op, .operands = {*value}, .attributes = attributes_of(options)});
}

}  // namespace castor::fuzz
