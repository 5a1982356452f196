// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/dot.hpp"

#include <algorithm>
#include <cstring>

namespace castor::detail {

namespace {

/// Keeps weights that are known: the operand itself may be stored otherwise.
Status keep_constants(BoundDot& bound, const ConvolutionBinding& by) {
  const std::byte* const weights = by.constants[1];
  if (weights == nullptr) return {};
  const auto bytes = static_cast<size_t>(bound.plan.geometry.out_channels * bound.plan.depth());
  WeightForm key(jit::DotTile::name, by.target, by.operands.w_is_signed);
  key.add(bound.plan.geometry.out_channels, bound.plan.depth());
  auto kept = share_weights(by.weights, key, {}, (bytes + 3) / 4,
                            [&](int32_t* to) { std::memcpy(to, weights, bytes); });
  if (!kept.ok()) return kept.error();
  bound.weights = std::move(kept).value();
  return {};
}

}  // namespace

uint8_t BoundDot::sign_flip() const {
  if (!multiplies_bytes(plan.tile.engine)) return 0;
  return operands.x_is_signed == takes_u8_by_i8(plan.tile.engine) ? 0x80 : 0;
}

Result<std::shared_ptr<const BoundDot>> bind_plan(const jit::DotPlan& plan,
                                                  const ConvolutionBinding& by) {
  auto bound = std::make_shared<BoundDot>();
  bound->plan = plan;
  bound->operands = by.operands;
  jit::DotTile& tile = bound->plan.tile;
  const bool has_zero_point = by.operands.x_zero_point >= 0 || bound->sign_flip() != 0;
  tile.sums_weights = tile.sums_weights && has_zero_point;
  auto code = by.cache.get(tile, by.target);
  if (!code.ok()) return code.error();
  bound->code = std::move(code).value();
  if (Status status = keep_constants(*bound, by); !status) return status.error();
  std::fill_n(bound->tail_ones.data() + plan.step - plan.remainder(), plan.remainder(),
              std::byte{1});
  const int64_t pixels = plan.block_tiles() * tile.pixels;
  size_t& bytes = bound->scratch_bytes;
  bound->offsets.pixels = append_to_scratch(bytes, pixels * plan.pixel_bytes());
  if (tile.has_zero_points) {
    bound->offsets.pixel_sums = append_to_scratch(bytes, 4 * pixels);
    bound->offsets.zero_points = append_to_scratch(bytes, 4 * plan.geometry.group_out_channels());
  }
  return std::shared_ptr<const BoundDot>(std::move(bound));
}

}  // namespace castor::detail
