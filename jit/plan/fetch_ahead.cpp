// SPDX-License-Identifier: Apache-2.0
#include "jit/plan/fetch_ahead.hpp"

#include <algorithm>

#include "ir/support/integer_math.hpp"
#include "jit/core/core_tuning.hpp"
#include "jit/plan/fold_space.hpp"

namespace castor::jit {

namespace {

int64_t bytes_of(const Nest& nest, const IterationSpace& space, size_t operand) {
  int64_t elements = 1;
  for (int axis = 0; axis < space.extents.rank(); ++axis) {
    const bool repeats = space.strides[operand][static_cast<size_t>(axis)] == 0;
    if (!repeats) elements = saturated_product(elements, space.extents[axis]);
  }
  return saturated_product(elements, bits_of(nest.element(operand))) / 8;
}

}  // namespace

FetchAhead fetch_ahead(const Nest& nest, const IterationSpace& space, const Target& target) {
  const FetchTuning& tuning = target.tuning().fetch;
  const size_t operands = nest.program.folds() ? nest.inputs.size() : nest.operands();
  int64_t bytes = 0;
  for (size_t k = 0; k < operands; ++k) bytes = saturated_sum(bytes, bytes_of(nest, space, k));
  const bool pools = std::ranges::any_of(
      nest.inputs, [](const NestInput& input) { return input.tap.has_value(); });
  if (pools || bytes <= target.caches.l1) return {};
  return {.input_bytes = folds_in_order(nest.program) ? 0 : tuning.input_bytes,
          .output_bytes = nest.program.folds() ? 0 : tuning.output_bytes};
}

}  // namespace castor::jit
