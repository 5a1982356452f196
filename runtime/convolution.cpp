// SPDX-License-Identifier: Apache-2.0
#include "runtime/convolution.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/convolution_parts.hpp"

namespace castor::detail {

namespace {

/// Every position of the taps counts each channel that there is once.
std::vector<int32_t> ones(const jit::ConvPlan& plan) {
  const int64_t in_slice = plan.rows.kernel * plan.columns.kernel;
  std::vector<int32_t> weights;
  for (int64_t tap = 0; tap < static_cast<int64_t>(plan.taps.size()); ++tap) {
    const int64_t part = tap / in_slice % plan.dwords;
    const int64_t channels = std::min<int64_t>(plan.geometry.group_channels() - 4 * part, 4);
    weights.push_back(static_cast<int32_t>(0x01010101u >> (8 * (4 - channels))));
  }
  return weights;
}

std::vector<LineTables> line_tables(const jit::ConvPlan& plan, const jit::Target& target,
                                    bool window_sums) {
  std::vector<LineTables> lines;
  const auto rest = [](int64_t all, int64_t part) { return all % part == 0 ? part : all % part; };
  for (int64_t rows : {plan.block.rows, rest(plan.output_rows(), plan.block.rows)}) {
    for (int64_t columns : {plan.block.columns, rest(plan.output_columns(), plan.block.columns)}) {
      const jit::ConvBlock block = {rows, columns};
      const bool is_there = std::ranges::any_of(lines, [&](const LineTables& line) {
        return line.block.rows == rows && line.block.columns == columns;
      });
      if (is_there) continue;
      lines.push_back(
          {block, plan.line_tiles(block, target), line_stores(plan, block, target), {}});
      if (window_sums) lines.back().window_sums = plain_stores(plan, block, target);
    }
  }
  return lines;
}

/// Whether weights are less their zero points in the kernel's sums.
bool subtracts_window_sums(const BoundConvolution& convolution) {
  if (convolution.plan.dot != jit::DotProduct::bytes) return false;
  return convolution.w_zero_point >= 0 || !convolution.w_is_signed;
}

Status find_codes(BoundConvolution& convolution, CodeCache& cache) {
  jit::ConvTile tile = convolution.plan.tile;
  tile.subtracts_window_sums = subtracts_window_sums(convolution);
  Result<NestCodePtr> code = cache.get_convolution(tile, convolution.target);
  if (!code.ok()) return code.error();
  convolution.code = std::move(code).value();
  tile.channels = convolution.plan.last_channels;
  Result<NestCodePtr> last = cache.get_convolution(tile, convolution.target);
  if (!last.ok()) return last.error();
  convolution.last_code = std::move(last).value();
  if (!tile.subtracts_window_sums) return {};
  const jit::ConvTile sums = {.channels = 1, .vectors = tile.vectors};
  Result<NestCodePtr> sums_code = cache.get_convolution(sums, convolution.target);
  if (!sums_code.ok()) return sums_code.error();
  convolution.sums_code = std::move(sums_code).value();
  return {};
}

/// Gives each part of the scratch its place; all begin at whole lines of the cache.
ConvScratch parts_of(const BoundConvolution& convolution) {
  const jit::ConvPlan& plan = convolution.plan;
  ConvScratch parts;
  size_t end = 0;
  const auto take = [&](int64_t dwords) {
    const size_t begin = end;
    end += (static_cast<size_t>(dwords) * 4 + 63) / 64 * 64;
    return begin;
  };
  const int64_t lanes = plan.line_tiles(plan.block, convolution.target) * plan.tile.vectors *
                        plan.lanes(convolution.target);
  parts.planes = take(plan.planes_dwords());
  parts.start = take(plan.geometry.out_channels);
  parts.zero_points = take(plan.geometry.out_channels);
  parts.window_sums = take(convolution.sums_code ? lanes : 0);
  const bool packs = convolution.packed.empty();
  parts.weights =
      take(packs ? static_cast<int64_t>(packed_dwords(plan)) + plan.geometry.out_channels : 0);
  const bool nhwc = plan.geometry.layout == ConvolutionLayout::nhwc;
  parts.line =
      take(nhwc ? plan.geometry.group_out_channels() * plan.block.rows * plan.block.columns : 0);
  parts.end = end;
  return parts;
}

}  // namespace

Result<std::shared_ptr<const BoundConvolution>> bind_convolution(
    const ConvolutionGeometry& geometry, std::span<const ElementType> elements,
    std::span<const std::byte* const> constants, int x_zero_point, int w_zero_point,
    bool zero_points_per_channel, const jit::Target& target, CodeCache& cache,
    ScratchPlan& scratch) {
  auto bound = std::make_shared<BoundConvolution>();
  bound->target = target;
  bound->x_is_signed = elements[0] == ElementType::i8;
  bound->w_is_signed = elements[1] == ElementType::i8;
  bound->x_zero_point = x_zero_point;
  bound->w_zero_point = w_zero_point;
  bound->zero_points_per_channel = zero_points_per_channel;
  bound->plan.geometry = geometry;
  if (!has_work(geometry) || geometry.group_channels() == 0) {
    return std::shared_ptr<const BoundConvolution>(std::move(bound));
  }
  bound->plan = jit::plan_convolution(geometry, target);
  constexpr int64_t most_plane_bytes = int64_t{1} << 30;
  if (4 * bound->plan.planes_dwords() > most_plane_bytes) {
    return Error{ErrorCode::unsupported,
                 fmt::format("conv_integer: the least block needs {} bytes of planes; at most {} "
                             "are supported",
                             4 * bound->plan.planes_dwords(), most_plane_bytes)};
  }
  if (Status status = find_codes(*bound, cache); !status) return status.error();
  if (bound->sums_code) bound->sums_weights = ones(bound->plan);
  bound->lines = line_tables(bound->plan, target, bound->sums_code != nullptr);
  const bool zero_points_known =
      w_zero_point < 0 || constants[static_cast<size_t>(w_zero_point)] != nullptr;
  const bool needs_zero_points = bound->plan.dot != jit::DotProduct::bytes;
  if (constants[1] != nullptr && (zero_points_known || !needs_zero_points)) {
    const std::byte* zeros =
        w_zero_point < 0 ? nullptr : constants[static_cast<size_t>(w_zero_point)];
    const auto channels = static_cast<size_t>(geometry.out_channels);
    std::vector<int32_t> values(channels);
    if (zero_points_known) set_weight_zero_points(*bound, zeros, values);
    bound->packed.resize(packed_dwords(bound->plan) + channels);
    pack_weights(bound->plan, constants[1], bound->w_is_signed, values.data(),
                 packed_weights(bound->plan, bound->packed.data()));
  }
  bound->parts = parts_of(*bound);
  bound->scratch = scratch.take(bound->parts.end);
  return std::shared_ptr<const BoundConvolution>(std::move(bound));
}

}  // namespace castor::detail
