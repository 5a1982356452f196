// SPDX-License-Identifier: Apache-2.0
// Binding of dense convolutions.
#include "runtime/conv/dense.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/conv/window_sums.hpp"

namespace castor::detail {

namespace {

/// None without VNNI: weights are less their zero points then.
jit::WindowSums window_sums_of(const jit::DensePlan& plan, const ConvolutionBinding& by) {
  const ConvolutionOperands& operands = by.operands;
  if (!subtracts_window_sums(plan.engine, by.problem)) return jit::WindowSums::none;
  if (operands.w_zero_point < 0 || !operands.zero_points_per_channel) {
    return jit::WindowSums::products;
  }
  // Words hold no negative sums, which those of signed bytes are.
  if (!takes_u8_by_i8(plan.engine) && operands.x_is_signed) return jit::WindowSums::i32;
  const int64_t max = 255 * jit::products_of_output(plan.geometry);
  return max < jit::end_of_pair_sums ? jit::WindowSums::i16_pairs : jit::WindowSums::i32;
}

/// What decides where packing puts a weight.
WeightForm weight_form(const BoundDense& bound) {
  const jit::DensePlan& plan = bound.plan;
  WeightForm key("dense", bound.target, bound.operands.w_is_signed);
  key.add(plan.engine, plan.tile.vectorised, plan.lanes, plan.tile.channels, plan.channel_tiles,
          plan.geometry.groups, plan.geometry.out_channels, plan.geometry.group_channels(),
          plan.k_groups, plan.slices, plan.rows.kernel, plan.columns.kernel, plan.weight_k_groups(),
          subtracts_from_pixels(plan), plan.k_step_weights.size());
  for (const auto& weights : plan.k_step_weights) {
    key.add(weights[0], weights[1], weights[2], weights[3]);
  }
  return key;
}

/// Makes a convolution of its plan.
class DenseBinder {
 public:
  DenseBinder(BoundDense& bound, const ConvolutionBinding& by)
      : bound_(bound), plan_(bound.plan), by_(by) {}

  Status bind() {
    bound_.applies_epilogue = by_.epilogue != nullptr;
    bound_.window_sums = window_sums_of(plan_, by_);
    // A kernel's own sums, beside which others may be, are as they are.
    if (sums_windows() && packed_by() == jit::PackedBy::nobody) {
      bound_.window_sums = jit::WindowSums::i32;
    }
    if (Status status = find_window_sums(); !status) return status;
    if (Status status = find_blocks(); !status) return status;
    set_sums_taps(bound_);
    if (Status status = find_packers(); !status) return status;
    if (Status status = pack_constants(); !status) return status;
    bound_.packs_by_tile =
        bound_.packed.empty() && uses_weights_once(plan_) && !packs_groups_at_once(plan_);
    set_parts();
    return {};
  }

 private:
  Status get(const jit::DenseTile& tile, const jit::TileEpilogue* epilogue,
             KernelCodePtr<jit::DenseTile>& to) {
    auto code = by_.cache.get(tile, bound_.target, epilogue);
    if (!code.ok()) return code.error();
    to = std::move(code).value();
    return {};
  }

  bool sums_windows() const { return bound_.window_sums != jit::WindowSums::none; }

  Status find_window_sums() {
    if (!sums_windows() || plan_.planes() == nullptr || plan_.tile.loops_k_groups) return {};
    set_sums_k_steps(bound_);
    return get(window_sum_tile(plan_), nullptr, bound_.sums.code);
  }

  /// The tables of all sizes of blocks that there are.
  Status find_blocks() {
    const auto rest = [](int64_t all, int64_t part) { return all % part == 0 ? part : all % part; };
    const auto& [rows, columns] = plan_.block;
    const int64_t last_rows = rest(plan_.rows.output, rows);
    const int64_t last_columns = rest(plan_.columns.output, columns);
    for (const jit::CacheBlock& block :
         {plan_.block, {rows, last_columns}, {last_rows, columns}, {last_rows, last_columns}}) {
      if (std::ranges::find(bound_.blocks, block, &BlockTables::block) != bound_.blocks.end()) {
        continue;
      }
      if (Status status = add_block(block); !status) return status;
    }
    return {};
  }

  Status add_block(const jit::CacheBlock& block) {
    BlockTables tables = {
        .block = block, .pixel_tiles = 0, .tiles = {}, .window_sums = {}, .configuration = {}};
    if (bound_.sums.code) tables.window_sums = window_sum_stores(plan_, block);
    for (jit::TileRun& run : tile_runs(plan_, block, !by_.has_residual)) {
      tables.pixel_tiles += run.count;
      tables.tiles.push_back({std::move(run), nullptr, nullptr});
      if (Status status = find_codes(tables.tiles.back()); !status) return status;
    }
    const jit::DenseTile& tile = tables.tiles.front().run.tile;
    if (tile.has_tiles()) tables.configuration = jit::tile_configuration(tile);
    bound_.blocks.push_back(std::move(tables));
    return {};
  }

  /// The code of whole tiles and of the last channel tile, which has fewer channels; and of the one
  /// that packs.
  Status find_codes(BoundTiles& tiles) {
    jit::DenseTile tile = kernel_tile(tiles.run.tile, by_.epilogue != nullptr);
    tile.window_sums = bound_.window_sums;
    jit::DenseTile last = tile;
    last.channels = plan_.last_channels();
    if (Status status = get(tile, by_.epilogue, tiles.code); !status) return status;
    if (Status status = get(last, by_.epilogue, tiles.last_code); !status) return status;
    const auto packing = input_tile(plan_.channel_tiles == 1 ? last : tile);
    return packing ? get(*packing, by_.epilogue, bound_.input_code) : Status();
  }

  jit::PackedBy packed_by() const {
    return plan_.planes() != nullptr ? plan_.planes()->packed_by : jit::PackedBy::packer;
  }

  /// The tile whose kernel takes its pixels from the input, if there is one.
  std::optional<jit::DenseTile> input_tile(jit::DenseTile tile) const {
    const bool is_only_tile = packed_by() == jit::PackedBy::nobody;
    if (packed_by() == jit::PackedBy::packer) return std::nullopt;
    const bool is_signed = bound_.operands.x_is_signed && !keeps_signs(plan_.engine);
    tile.source = is_signed ? jit::PixelSource::signed_input : jit::PixelSource::input;
    tile.reads_input_once = is_only_tile;
    tile.prefetches_weights = false;
    if (!sums_windows()) return tile;
    if (!is_only_tile && bound_.window_sums != jit::WindowSums::products) return std::nullopt;
    tile.window_sums = is_only_tile ? jit::WindowSums::own : jit::WindowSums::own_products;
    if (!fits(tile, bound_.target)) return std::nullopt;
    return tile;
  }

  Status find_packers() {
    auto input_packer = find_input_packer(plan_, bound_.target, by_.cache);
    if (!input_packer.ok()) return input_packer.error();
    bound_.input_packer = std::move(input_packer).value();
    auto weight_packers = find_weight_packers(plan_, bound_.target, by_.cache);
    if (!weight_packers.ok()) return weight_packers.error();
    bound_.weight_packers = std::move(weight_packers).value();
    return {};
  }

  /// Packs weights that are constant, or finds them packed.
  Status pack_constants() {
    const auto& constants = by_.constants;
    const ConvolutionOperands& operands = bound_.operands;
    const bool takes_zero_points_off = !multiplies_bytes(plan_.engine);
    const bool zero_points_known = is_known(operands.w_zero_point, constants);
    if (constants[1] == nullptr || (takes_zero_points_off && !zero_points_known)) return {};
    const auto channels = static_cast<size_t>(plan_.geometry.out_channels);
    WeightSources from;
    if (takes_zero_points_off) from = {operands.w_zero_point, operands.zero_points_per_channel};
    const auto pack = [&](int32_t* to) {
      std::vector<int32_t> values(channels);
      set_weight_zero_points(bound_, data_of(from.zero_points, constants), values);
      pack_weights(plan_, bound_.weight_packers,
                   {constants[1], operands.w_is_signed, values.data()}, packed_weights(plan_, to));
    };
    Result<PackedDwords> packed = share_weights(by_.weights, weight_form(bound_), from,
                                                packed_k_groups(plan_) + channels, pack);
    if (!packed.ok()) return packed.error();
    bound_.packed = std::move(packed).value();
    return {};
  }

  /// Gives each part of the scratch its place; all begin at whole lines of the cache.
  void set_parts() {
    DenseScratch& parts = bound_.parts;
    const auto take = [&](int64_t lanes) {
      return append_to_scratch(bound_.scratch_bytes, 4 * lanes);
    };
    const int64_t channels = plan_.geometry.out_channels;
    parts.source = append_to_scratch(bound_.scratch_bytes, plan_.source_bytes());
    // Whole vectors are read of the values of the last channels.
    parts.start = take(channels + plan_.lanes);
    parts.zero_points = take(channels + plan_.lanes);
    parts.window_sums = take(sums_windows() ? window_sum_count() : 0);
    parts.summing = take(window_sum_work(bound_));
    const bool scales_ones = bound_.window_sums == jit::WindowSums::products;
    parts.sums_weights = take(scales_ones ? std::ssize(bound_.sums.weights) : 0);
    const int64_t weights =
        bound_.packs_by_tile ? tile_k_groups(plan_) : static_cast<int64_t>(packed_k_groups(plan_));
    parts.weights = take(bound_.packed.empty() ? weights + channels : 0);
    const int64_t outputs = plan_.geometry.group_out_channels() * plan_.block.pixels();
    parts.untransposed = take(plan_.transposes() ? outputs : 0);
  }

  /// Window sums: of all lanes that tiles read, or of all pixels of a block.
  int64_t window_sum_count() const {
    if (!plan_.is_pixel_vectorised()) return plan_.block.pixels();
    const BlockTables& largest = bound_.blocks.front();
    const int64_t last_tile = largest.tiles.front().run.stores.back().source / 4;
    return std::max(last_tile + plan_.tile.vectors * plan_.lanes,
                    std::ssize(largest.window_sums) * plan_.lanes);
  }

  BoundDense& bound_;
  const jit::DensePlan& plan_;
  const ConvolutionBinding& by_;
};

}  // namespace

void set_weight_zero_points(const BoundDense& bound, const std::byte* zero_points,
                            std::span<int32_t> to) {
  const bool is_shifted = takes_u8_by_i8(bound.plan.engine) && !bound.operands.w_is_signed;
  const int32_t shift = is_shifted ? 128 : 0;
  for (size_t m = 0; m < to.size(); ++m) {
    to[m] = weight_zero_point(bound.operands, zero_points, static_cast<int64_t>(m)) - shift;
  }
}

Result<std::shared_ptr<const BoundDense>> bind_plan(const jit::DensePlan& plan,
                                                    const ConvolutionBinding& by) {
  constexpr int64_t max_bytes = int64_t{1} << 30;
  if (plan.source_bytes() > max_bytes) {
    return Error{ErrorCode::unsupported,
                 fmt::format("conv_integer: the least block needs {} bytes of planes; at most {} "
                             "are supported",
                             plan.source_bytes(), max_bytes)};
  }
  auto bound = std::make_shared<BoundDense>();
  bound->plan = plan;
  const jit::EventCycles& cycles = costs_on(by.target).cycles;
  bound->cycles = cost_of(plan, by.problem, by.target).cycles(cycles);
  bound->packing_cycles = packing_cost(plan, by.problem, by.target).cycles(cycles);
  bound->target = by.target;
  bound->operands = by.operands;
  if (Status status = DenseBinder(*bound, by).bind(); !status) return status.error();
  return std::shared_ptr<const BoundDense>(std::move(bound));
}

}  // namespace castor::detail
