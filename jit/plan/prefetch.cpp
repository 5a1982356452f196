// SPDX-License-Identifier: Apache-2.0
#include "jit/plan/prefetch.hpp"

#include <algorithm>

#include "ir/support/integer_math.hpp"
#include "jit/core/core_tuning.hpp"
#include "jit/plan/fold_space.hpp"

namespace castor::jit {

namespace {

/// Whether what is `ahead` bytes from an operand's element is used soon: its rows are long, or
/// follow one another.
bool is_used_soon(const Nest& nest, const IterationSpace& space, size_t operand, int ahead) {
  constexpr int64_t min_row_distances = 4;
  const int64_t row = space.extents[0];
  if (space.form.access[operand] != Access::contiguous || is_sub_byte(nest.element(operand))) {
    return false;
  }
  const bool follows = space.extents.rank() == 1 || space.strides[operand][1] == row;
  const int64_t row_bytes = saturated_product(row, bits_of(nest.element(operand)) / 8);
  return follows || row_bytes >= min_row_distances * ahead;
}

}  // namespace

Prefetch prefetch_of(const Nest& nest, const IterationSpace& space, const Target& target) {
  const PrefetchTuning& tuning = target.tuning().prefetch;
  const size_t inputs = nest.inputs.size();
  const size_t operands = nest.program.folds() ? inputs : nest.operands();
  int64_t bytes = 0;
  for (size_t k = 0; k < operands; ++k) bytes = saturated_sum(bytes, operand_bytes(nest, space, k));
  const bool pools = std::ranges::any_of(
      nest.inputs, [](const NestInput& input) { return input.tap.has_value(); });
  const bool has_no_loop = space.form.folded_row > 0 || space.form.has(Access::strided);
  if (pools || has_no_loop || bytes <= target.caches.l1) return {};
  Prefetch prefetch;
  const bool sums_in_order = folds_in_order(nest.program);
  for (size_t k = 0; k < operands; ++k) {
    const bool is_output = k >= inputs;
    const int ahead = is_output ? tuning.output_bytes : tuning.input_bytes;
    if ((sums_in_order && !is_output) || !is_used_soon(nest, space, k, ahead)) continue;
    (is_output ? prefetch.output_bytes : prefetch.input_bytes) = ahead;
  }
  // Without their outputs' lines, loops gain nothing from their inputs' (copies take 1.03 of the
  // time), unless outputs are packed, and few (i16 to i2: 0.95).
  const bool packs = std::ranges::all_of(
      nest.program.sinks, [](const MemoryOperand& sink) { return is_sub_byte(sink.element); });
  return nest.program.folds() || packs || prefetch.output_bytes > 0 ? prefetch : Prefetch{};
}

}  // namespace castor::jit
