// SPDX-License-Identifier: Apache-2.0
// Binding of convolutions by rows of weights.
#include "runtime/conv/weight_rows.hpp"

#include <cstring>

#include "runtime/conv/interleave.hpp"

namespace castor::detail {

namespace {

/// Keeps weights that are known as kernels read them, and their sums.
void keep_rows(const jit::WeightRowsPlan& plan, const std::byte* from, bool is_signed,
               int32_t* to) {
  auto* bytes = reinterpret_cast<std::byte*>(to);
  const int64_t rows = plan.geometry.group_out_channels();
  const int64_t all = plan.geometry.groups * plan.weight_bytes();
  for (int64_t channel = 0; channel < plan.geometry.out_channels; ++channel) {
    const std::byte* const row = from + channel * plan.depth();
    std::byte* const group = bytes + channel / rows * plan.weight_bytes();
    for (int64_t step = 0; step < plan.steps(); ++step) {
      std::memcpy(group + (step * rows + channel % rows) * plan.row_step(),
                  row + step * plan.step_bytes(), static_cast<size_t>(plan.step_bytes()));
    }
    to[all / 4 + channel] = sum_of_row(row, plan.depth(), is_signed);
  }
}

Status keep_constants(BoundWeightRows& bound, const ConvolutionBinding& by) {
  const std::byte* const weights = by.constants[1];
  if (weights == nullptr) return {};
  const jit::WeightRowsPlan& plan = bound.plan;
  WeightForm key("weight_rows", by.target, by.operands.w_is_signed);
  key.add(plan.geometry.groups, plan.geometry.out_channels, plan.depth(), plan.step_bytes(),
          plan.row_step());
  const int64_t count = plan.geometry.groups * plan.weight_bytes() / 4 + plan.geometry.out_channels;
  auto kept = share_weights(by.weights, key, {}, static_cast<size_t>(count), [&](int32_t* to) {
    keep_rows(plan, weights, by.operands.w_is_signed, to);
  });
  if (!kept.ok()) return kept.error();
  bound.weights = std::move(kept).value();
  return {};
}

/// The tiles of output channels, with the code of whole tiles of pixels and of the image's last.
Status find_rows(BoundWeightRows& bound, const ConvolutionBinding& by) {
  const jit::WeightRowsPlan& plan = bound.plan;
  bound.rows = {.block = plan.product.block,
                .pixel_tiles = 0,
                .tiles = {},
                .window_sums = {},
                .configuration = {}};
  for (jit::TileRun& run : tile_runs(plan.product, plan.product.block, !by.has_residual)) {
    bound.rows.pixel_tiles += run.count;
    jit::DenseTile tile = kernel_tile(run.tile, by.epilogue != nullptr);
    if (bound.has_zero_points()) tile.window_sums = jit::WindowSums::i32;
    jit::DenseTile last = tile;
    last.channels = plan.last_tile_pixels();
    auto code = by.cache.get(tile, by.target, by.epilogue);
    if (!code.ok()) return code.error();
    auto last_code = by.cache.get(last, by.target, by.epilogue);
    if (!last_code.ok()) return last_code.error();
    bound.rows.tiles.push_back(
        {std::move(run), std::move(code).value(), std::move(last_code).value()});
  }
  bound.rows.configuration = jit::tile_configuration(bound.rows.tiles.front().run.tile);
  return {};
}

}  // namespace

Result<std::shared_ptr<const BoundWeightRows>> bind_plan(const jit::WeightRowsPlan& plan,
                                                         const ConvolutionBinding& by) {
  auto bound = std::make_shared<BoundWeightRows>();
  bound->plan = plan;
  bound->operands = by.operands;
  bound->applies_epilogue = by.epilogue != nullptr;
  if (Status status = find_rows(*bound, by); !status) return status.error();
  if (Status status = keep_constants(*bound, by); !status) return status.error();
  constexpr int64_t line = 64;
  const int64_t tiles = ceil_div(plan.block_pixels(), plan.tile_pixels());
  size_t& bytes = bound->scratch_bytes;
  bound->offsets.pixels = append_to_scratch(bytes, tiles * plan.packed_tile_bytes());
  bound->offsets.start = append_to_scratch(bytes, plan.geometry.group_out_channels() * line);
  if (bound->has_zero_points()) {
    bound->offsets.sums = append_to_scratch(bytes, tiles * plan.vectors() * line);
    bound->offsets.zero_points = append_to_scratch(bytes, 4 * plan.geometry.group_out_channels());
  }
  return std::shared_ptr<const BoundWeightRows>(std::move(bound));
}

}  // namespace castor::detail
