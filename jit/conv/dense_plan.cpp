// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/dense_plan.hpp"

#include <fmt/format.h>

#include "jit/conv/candidates.hpp"

namespace castor::jit {

const InputRows& DensePlan::input_rows() const {
  if (const auto* copied = std::get_if<CopiedRows>(&source)) return *copied;
  return std::get<DirectInput>(source);
}

int64_t DensePlan::source_bytes() const {
  constexpr int64_t read_behind = 4;
  if (const auto* copied = std::get_if<CopiedRows>(&source)) {
    return std::ssize(copied->planes) * copied->plane_bytes() + read_behind;
  }
  if (planes() == nullptr) return 0;
  return 4 * (slices * k_groups * planes()->stride_phases() * planes()->plane_size +
              lane_count(block) + max_lanes_read_behind);
}

int64_t DensePlan::source_row_step() const {
  return planes() != nullptr ? 4 * planes()->pitch : rows.stride * input_rows().row_bytes;
}

int64_t DensePlan::source_column_step() const {
  return planes() != nullptr ? 4 : columns.stride * input_rows().column_bytes;
}

bool DensePlan::has_weights_in_order() const {
  const int held = channels_of_k_group(engine);
  const int64_t weights = products_of_output(geometry);
  int64_t next = 0;
  for (const KStepWeights& k_step : k_step_weights) {
    for (int i = 0; i < held; ++i, ++next) {
      if (k_step[static_cast<size_t>(i)] != (next < weights ? next : -1)) return false;
    }
  }
  return true;
}

bool DensePlan::takes_whole_rows() const {
  if (!is_pointwise(rows) || !is_pointwise(columns)) return false;
  const bool has_whole_rows = block.columns == columns.output && planes()->pitch == columns.input;
  return has_whole_rows || block.rows == 1;
}

int64_t DensePlan::lane_count(const CacheBlock& of) const {
  return (of.rows - 1) * planes()->pitch + of.columns;
}

int64_t DensePlan::vectors_of(const CacheBlock& of) const {
  return planes()->has_aligned_rows ? of.rows * ceil_div(of.columns, lanes)
                                    : ceil_div(lane_count(of), lanes);
}

bool DensePlan::has_dead_lanes() const {
  return !planes()->has_aligned_rows && block.rows > 1 && planes()->pitch != block.columns;
}

int64_t DensePlan::tiles_of(const CacheBlock& of, int vectors) const {
  if (!planes()->has_aligned_rows) return ceil_div(vectors_of(of), vectors);
  return of.rows * ceil_div(ceil_div(of.columns, lanes), vectors);
}

Status check_filter(const ConvolutionGeometry& geometry) {
  int64_t max = max_filter_weights / std::max<int64_t>(geometry.group_channels(), 1);
  for (size_t axis = 0; axis < geometry.axes.size(); ++axis) {
    const int64_t kernel = geometry.axes[axis].kernel;
    if (kernel <= max) {
      max /= std::max<int64_t>(kernel, 1);
      continue;
    }
    return Error{ErrorCode::unsupported,
                 fmt::format("conv_integer: the filter has more than {} weights for each output "
                             "channel, its kernel being {} along spatial axis {}",
                             max_filter_weights, kernel, axis)};
  }
  int64_t positions = 1;
  for (const ConvolutionAxis& axis : geometry.axes) {
    positions = saturated_product(positions, axis.kernel);
  }
  if (positions > max_filter_positions) {
    return Error{ErrorCode::unsupported,
                 fmt::format("conv_integer: the filter has {} positions, expected at most {}",
                             positions, max_filter_positions)};
  }
  return {};
}

PackInput pack_input_spec(const DensePlan& plan) {
  constexpr int64_t max_stride = 65;  // code has smaller ones
  PackInput spec = {
      .layout = plan.planes()->layout,
      .column_stride = static_cast<int>(std::min<int64_t>(plan.columns.stride, max_stride))};
  if (spec.layout != PackedLayout::im2col) return spec;
  spec.filter_rows = static_cast<int>(plan.geometry.group_channels() * plan.rows.kernel);
  spec.filter_columns = static_cast<int>(plan.columns.kernel);
  spec.dilation = static_cast<int>(plan.columns.dilation);
  return spec;
}

bool subtracts_from_pixels(const DensePlan& plan) {
  const bool takes_input = plan.planes() && plan.planes()->packed_by != PackedBy::packer;
  return !multiplies_bytes(plan.engine) && !takes_input;
}

bool has_packing_code(const DensePlan& plan, const Target& target) {
  return plan.planes() && plan.geometry.layout == ConvolutionLayout::nchw &&
         multiplies_bytes(plan.engine) && fits(pack_input_spec(plan), target);
}

bool transposes_pixels(const DensePlan& plan, int64_t pixels) {
  constexpr int64_t min_pixels = 8;    // which are transposed together
  constexpr int64_t min_k_groups = 3;  // so are eight of these
  return pixels >= min_pixels && plan.planes() && plan.geometry.layout == ConvolutionLayout::nhwc &&
         plan.planes()->layout == PackedLayout::nchw4c && plan.k_groups >= min_k_groups;
}

namespace {

/// Whether there are other weights to prefetch, and k steps of the pixel tiles of a block are
/// enough to prefetch each of their cache lines.
bool prefetches_weights(const DensePlan& plan) {
  constexpr int64_t line_bytes = 64;
  if (plan.tile.has_tiles() || plan.channel_tiles == 1) return false;
  const int64_t pixel_tiles = plan.is_pixel_vectorised()
                                  ? plan.tiles_of(plan.block, plan.tile.vectors)
                                  : plan.channel_vectorised_tiles(plan.tile);
  return 2 * 4 * plan.packed_width(plan.tile.channels) <= line_bytes * pixel_tiles;
}

}  // namespace

void set_tile(DensePlan& plan, const DenseTile& tile) {
  plan.tile = tile;
  plan.channel_tiles = ceil_div(plan.geometry.group_out_channels(), tile.channels);
  plan.tile.prefetches_weights = prefetches_weights(plan);
}

namespace {

/// The engine of vectors that takes the problem's signs as they are, or changes the fewest.
ProductEngine engine_of(const ConvolutionProblem& problem, const Target& target) {
  const ProductEngine engine = product_engine_of(target);
  const bool are_exchanged = problem.x_is_signed && !problem.w_is_signed;
  return takes_u8_by_i8(engine) && are_exchanged ? ProductEngine::i8_u8_dot : engine;
}

}  // namespace

DensePlan begin_plan(const ConvolutionProblem& problem, const Target& target) {
  const ConvolutionGeometry& geometry = problem.geometry;
  DensePlan plan;
  plan.geometry = geometry;
  set_plane_axes(plan);
  plan.engine = engine_of(problem, target);
  plan.tile.engine = plan.engine;
  plan.lanes = target.vector_bits() / 32;
  plan.k_groups = ceil_div(geometry.group_channels(), channels_of_k_group(plan.engine));
  return plan;
}

namespace {

/// The register tiles that a pixel-vectorised plan may have.
std::vector<DenseTile> pixel_tiles(const DensePlan& plan, const Target& target) {
  const int64_t channels = plan.geometry.group_out_channels();
  const int64_t vectors = plan.vectors_of(plan.block);
  std::vector<DenseTile> tiles;
  for (int m = 1; m <= std::min<int64_t>(channels, 16); ++m) {
    for (int v = 1; v <= std::min<int64_t>(vectors, 8); ++v) {
      const DenseTile tile = {.engine = plan.engine,
                              .channels = m,
                              .vectors = v,
                              .loops_k_groups = plan.tile.loops_k_groups};
      if (fits(tile, target)) tiles.push_back(tile);
    }
  }
  return tiles;
}

/// Whether the pixels of a block follow each other in whole k groups of channels, and fill a tile,
/// whose kernel may take them from the input: once, or packing them.
bool kernel_may_take_input(const DensePlan& plan, bool reads_once, const Target& target) {
  DenseTile tile = plan.tile;
  tile.reads_input_once = reads_once;
  const ConvolutionGeometry& geometry = plan.geometry;
  return geometry.layout == ConvolutionLayout::nchw && geometry.axes.size() <= 2 &&
         plan.takes_whole_rows() && plan.block.pixels() >= plan.tile.vectors * plan.lanes &&
         plan.planes()->layout == PackedLayout::nchw4c && !plan.planes()->has_aligned_rows &&
         !plan.tile.loops_k_groups &&
         geometry.group_channels() % channels_of_k_group(plan.engine) == 0 &&
         may_take_input(tile, target);
}

/// Gives a pixel-vectorised plan its tile, with the channels as an upper bound, whose kernels read
/// packed input.
void set_pixel_tile(DensePlan& plan, DenseTile tile, const Target& target) {
  const DenseTuning& tuning = target.tuning().dense;
  tile.channels = static_cast<int>(even_part(plan.geometry.group_out_channels(), tile.channels));
  tile.store = plan.has_dead_lanes() ? StorePolicy::compressed : StorePolicy::rows;
  set_tile(plan, tile);
  plan.tile.prefetches_output =
      target.has_avx512() && plan.weight_k_groups() <= tuning.max_prefetched_k_steps;
  if (!plan.has_dead_lanes() && !tile.loops_k_groups) {
    peel_k_steps(plan.tile, plan.k_steps.size(), target);
  }
  if (kernel_may_take_input(plan, false, target)) {
    std::get<PackedPlanes>(plan.source).packed_by = PackedBy::first_tile;
  }
}

/// The pixel-vectorised plan with the least cost.
DensePlan plan_pixels(const DensePlan& base, const PackedPlanes& planes, const Target& target) {
  DensePlan plan = plan_packed(base, planes, target);
  set_pixel_tile(plan, cheapest_tile(plan, pixel_tiles(plan, target), target), target);
  return plan;
}

/// The tile of all channels that takes most vectors of pixels from the input; nothing where a row
/// of it would be less than half a cache line.
std::optional<DenseTile> widest_tile_of_input(const DensePlan& plan, bool needs_window_sums,
                                              const Target& target) {
  const DenseTuning& tuning = target.tuning().dense;
  if (plan.geometry.group_out_channels() > tuning.max_input_once_channels) return std::nullopt;
  DenseTile tile = {.engine = plan.engine,
                    .channels = static_cast<int>(plan.geometry.group_out_channels()),
                    .window_sums = needs_window_sums ? WindowSums::own : WindowSums::none,
                    .source = PixelSource::input,
                    .reads_input_once = true};
  const auto pixels = [&] { return tile.vectors * plan.lanes; };
  for (tile.vectors = max_vectors_of_input; pixels() >= tuning.min_input_once_pixels;
       tile.vectors /= 2) {
    const DenseTile of_packed = {// for what fills no tile
                                 .engine = tile.engine,
                                 .channels = tile.channels,
                                 .vectors = tile.vectors};
    const bool is_filled = pixels() <= plan.columns.output;
    if (is_filled && fits(tile, target) && fits(of_packed, target)) return tile;
  }
  return std::nullopt;
}

/// The plan by which the only tile of channels reads the input, if it can.
std::optional<DensePlan> plan_input_once(const DensePlan& base, const ConvolutionProblem& problem,
                                         const Target& target) {
  const auto widest =
      widest_tile_of_input(base, subtracts_window_sums(base.engine, problem), target);
  if (!widest) return std::nullopt;
  DensePlan plan = plan_packed(base, {.packed_by = PackedBy::nobody}, target);
  DenseTile tile = plan.tile;
  tile.channels = widest->channels;
  tile.vectors = widest->vectors;
  set_tile(plan, tile);
  constexpr int64_t max_source_bytes = int64_t{2} << 20;  // for what fills no tile
  if (plan.source_bytes() > max_source_bytes) return std::nullopt;
  return kernel_may_take_input(plan, true, target) ? std::optional(std::move(plan)) : std::nullopt;
}

/// Whether k groups of columns are possible, and make fewer k steps than k groups of channels.
bool may_hold_columns(const DensePlan& plan) {
  constexpr int64_t max_stride = 16;
  constexpr int64_t max_weights = int64_t{1} << 30;
  const int64_t held = channels_of_k_group(plan.engine);
  const int64_t channels = plan.geometry.group_channels();
  if (plan.geometry.layout != ConvolutionLayout::nchw || channels >= held) return false;
  if (plan.columns.kernel == 1 || plan.columns.dilation != 1) return false;
  if (plan.columns.stride > max_stride || plan.columns.kernel > max_weights) return false;
  const int64_t rows = plan.slices * plan.rows.kernel;
  if (rows > max_weights / plan.columns.kernel / channels) return false;
  return channels * ceil_div(plan.columns.kernel, held) < plan.columns.kernel;
}

/// Whether receptive fields can be packed, and make fewer k steps than k groups of channels.
bool may_hold_receptive_fields(DensePlan plan, const Target& target) {
  constexpr int64_t max = 64;
  const ConvolutionGeometry& geometry = plan.geometry;
  if (geometry.layout != ConvolutionLayout::nchw || geometry.axes.size() > 2) return false;
  if (!multiplies_bytes(plan.engine) || geometry.group_channels() > max) return false;
  for (const ConvolutionAxis& axis : {plan.rows, plan.columns}) {
    if (std::max({axis.kernel, axis.stride, axis.dilation}) > max) return false;
  }
  plan.source = PackedPlanes{.layout = PackedLayout::im2col};
  const PackInput spec = pack_input_spec(plan);
  return fits(spec, target) &&
         spec.k_groups() < plan.k_groups * plan.rows.kernel * plan.columns.kernel;
}

/// Whether aligned rows leave few lanes dead, so that they are worth trying.
bool may_align_rows(const DensePlan& plan, const Target& target) {
  const int64_t lanes = ceil_div(plan.columns.output, plan.lanes) * plan.lanes;
  return plan.geometry.layout == ConvolutionLayout::nchw && plan.rows.output > 1 &&
         (lanes - plan.columns.output) * target.tuning().dense.max_dead_lanes <= lanes;
}

}  // namespace

std::vector<DensePlan> possible_plans(const ConvolutionProblem& problem, const Target& target) {
  const DensePlan base = begin_plan(problem, target);
  std::vector<DensePlan> plans = plan_channels(base, problem, target);
  std::vector<PackedPlanes> planes = {{.layout = PackedLayout::nchw4c}};
  if (may_align_rows(base, target)) planes.push_back({.has_aligned_rows = true});
  if (may_hold_columns(base)) {
    for (size_t i = 0, count = planes.size(); i < count; ++i) {
      planes.push_back(planes[i]);
      planes.back().layout = PackedLayout::columns4;
    }
  }
  if (may_hold_receptive_fields(base, target)) {
    planes.push_back({.layout = PackedLayout::im2col});
  }
  if (auto plan = plan_input_once(base, problem, target)) plans.push_back(std::move(*plan));
  for (const PackedPlanes& each : planes) plans.push_back(plan_pixels(base, each, target));
  if (target.supports(Feature::amx_int8)) {
    std::ranges::move(plan_tiles(base, problem, target), std::back_inserter(plans));
  }
  return plans;
}

std::vector<DensePlan> with_other_tiles(const DensePlan& plan, const Target& target) {
  if (plan.tile.has_tiles()) return with_other_register_tiles(plan, target);
  std::vector<DensePlan> others;
  if (!plan.is_pixel_vectorised() || plan.planes()->packed_by == PackedBy::nobody) return others;
  for (const DenseTile& tile : pixel_tiles(plan, target)) {
    const bool is_own = tile.channels == plan.tile.channels && tile.vectors == plan.tile.vectors;
    if (is_own) continue;
    others.push_back(plan);
    set_pixel_tile(others.back(), tile, target);
  }
  return others;
}

bool can_apply(const DensePlan& plan, const TileEpilogue& epilogue) {
  if (!plan.is_pixel_vectorised()) {
    return (plan.tile.store == StorePolicy::transposed) != epilogue.rows_of_channels;
  }
  return plan.geometry.layout == ConvolutionLayout::nchw && !epilogue.rows_of_channels;
}

std::string source_name(const DensePlan& plan) {
  if (const PackedPlanes* planes = plan.planes()) {
    const std::string_view layout = names_of(planes->layout)[static_cast<size_t>(planes->layout)];
    if (planes->packed_by == PackedBy::nobody) return "input_once";
    return fmt::format("{}{}", layout, planes->has_aligned_rows ? "_aligned_rows" : "");
  }
  const auto* copied = std::get_if<CopiedRows>(&plan.source);
  if (copied == nullptr) return "input";
  return copied->has_aligned_pixels ? "copied_rows_aligned_pixels" : "copied_rows";
}

namespace {

std::string source_text(const DensePlan& plan) {
  if (const PackedPlanes* planes = plan.planes()) {
    constexpr std::array<std::string_view, 3> packed_by = {
        "", ", packed by the first kernel but for window sums by channel",
        ", but whole tiles read the input"};
    return fmt::format("  planes   {} of {} k groups, {}, pitch {}{}\n",
                       plan.slices * plan.k_groups * planes->stride_phases(), planes->plane_size,
                       source_name(plan), planes->pitch,
                       packed_by[static_cast<size_t>(planes->packed_by)]);
  }
  const InputRows& rows = plan.input_rows();
  if (const auto* copied = std::get_if<CopiedRows>(&plan.source)) {
    return fmt::format("  copies   {} of {} input rows of {} B, {} B a column\n",
                       rows.planes.size(), copied->rows, rows.row_bytes, rows.column_bytes);
  }
  return fmt::format("  input    as it lies, {} B a row, {} B a column\n", rows.row_bytes,
                     rows.column_bytes);
}

std::string tile_text(const DensePlan& plan) {
  const DenseTile& tile = plan.tile;
  if (tile.has_tiles()) {
    return fmt::format(
        "  tile     {} output channels in tile registers of {}, by {} rows of {} pixels in tile "
        "registers of {}, {} k steps of {} B\n",
        tile.channels, plan.lanes, tile.pixel_rows, tile.columns, tile.pixels_of_tile(),
        plan.k_steps.size(), tile.step_bytes);
  }
  if (!plan.is_pixel_vectorised()) {
    return fmt::format(
        "  tile     {} output channels in vectors of {}, by {} rows of {} pixels{}, {} k steps\n",
        tile.channels, plan.lanes, tile.pixel_rows, tile.columns,
        tile.store == StorePolicy::transposed ? ", transposed" : "", plan.weight_k_groups());
  }
  return fmt::format(
      "  lanes    {}, of which {} are stored\n"
      "  tile     {} output channels by {} vectors of {} pixels, {} k steps\n",
      plan.tiles_of(plan.block, tile.vectors) * tile.vectors * plan.lanes, plan.block.pixels(),
      tile.channels, tile.vectors, plan.lanes, plan.weight_k_groups());
}

}  // namespace

std::string print(const DensePlan& plan) {
  const ConvolutionGeometry& geometry = plan.geometry;
  const std::string bytes =
      plan.source_bytes() > 0 ? fmt::format(", {} B packed", plan.source_bytes()) : "";
  return fmt::format("  groups   {} of {} to {} channels\n", geometry.groups,
                     geometry.group_channels(), geometry.group_out_channels()) +
         source_text(plan) +
         fmt::format("  block    {} of {} output rows, {} of {} columns{}\n", plan.block.rows,
                     plan.rows.output, plan.block.columns, plan.columns.output, bytes) +
         tile_text(plan);
}

}  // namespace castor::jit
