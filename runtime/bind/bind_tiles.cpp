// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind/bind_tiles.hpp"

#include "runtime/cache/code_store.hpp"
#include "runtime/call/bit_rows.hpp"
#include "runtime/compiled.hpp"

namespace castor::detail {

namespace {

using AxisSteps = std::array<int64_t, max_rank>;

AxisSteps steps_of(ElementType element, AxisSteps strides) {
  if (is_sub_byte(element)) return strides;
  const auto bytes = static_cast<uint64_t>(bits_of(element) / 8);
  for (int64_t& step : strides) step = static_cast<int64_t>(static_cast<uint64_t>(step) * bytes);
  return strides;
}

}  // namespace

Result<TileLoops> bind_tile_loops(const jit::Nest& nest, const jit::IterationSpace& space,
                                  const jit::Tiles& tiles, const Compiled& compiled,
                                  ScratchPlan& plan) {
  TileLoops walk;
  walk.extents = space.extents;
  walk.axis = tiles.axis;
  walk.columns = tiles.columns;
  walk.rows = tiles.rows;
  for (size_t k = 0; k < nest.operands(); ++k) {
    walk.steps.push_back(steps_of(nest.element(k), space.strides[k]));
  }
  const int64_t elements = tiles.columns * tiles.rows;
  for (const jit::CopiedOperand& copy : tiles.copies) {
    const ElementType element = nest.element(copy.operand);
    const bool is_output = copy.operand >= nest.inputs.size();
    if (copy.kind == jit::TileCopyKind::packed) {
      const auto packed_bytes = static_cast<size_t>(byte_size(element, elements).value_or(0));
      const size_t offset = plan.take(packed_bytes + bit_rows_slack);
      walk.copies.push_back({copy.operand, copy.kind, is_output, 0, offset, nullptr});
      continue;
    }
    const int bytes = bits_of(element) / 8;
    auto code = compiled.store->cache.get(jit::TileCopySpec{bytes}, compiled.target);
    if (!code.ok()) return code.error();
    const size_t offset = plan.take(static_cast<size_t>(elements * bytes));
    walk.copies.push_back(
        {copy.operand, copy.kind, is_output, bytes, offset, std::move(code).value()});
  }
  return walk;
}

}  // namespace castor::detail
