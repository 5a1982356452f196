// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind/bind_tiles.hpp"

#include "runtime/cache/code_store.hpp"
#include "runtime/compiled.hpp"

namespace castor::detail {

namespace {

using AxisSteps = std::array<int64_t, max_rank>;

AxisSteps byte_steps(ElementType element, AxisSteps strides) {
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
    walk.steps.push_back(byte_steps(nest.element(k), space.strides[k]));
  }
  for (const jit::CopiedOperand& copy : tiles.copies) {
    const int bytes = bits_of(nest.element(copy.operand)) / 8;
    auto code = compiled.store->cache.get(jit::TileCopySpec{bytes}, compiled.target);
    if (!code.ok()) return code.error();
    const size_t offset = plan.take(static_cast<size_t>(tiles.columns * tiles.rows * bytes));
    const bool is_output = copy.operand >= nest.inputs.size();
    walk.copies.push_back(
        {copy.operand, copy.kind, is_output, bytes, offset, std::move(code).value()});
  }
  return walk;
}

}  // namespace castor::detail
