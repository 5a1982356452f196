// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/convolution.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/conv/convolution_parts.hpp"
#include "runtime/conv/window_sums.hpp"

namespace castor::detail {

namespace {

/// Every tap counts each element of its dword that there is once.
std::vector<int32_t> ones(const jit::DensePlan& plan) {
  std::vector<int32_t> weights;
  for (const jit::KStepWeights& tap : plan.k_step_weights) {
    const auto channels = std::ranges::count_if(tap, [](int32_t weight) { return weight >= 0; });
    weights.push_back(static_cast<int32_t>(0x01010101u >> (8 * (4 - channels))));
  }
  if (!weights.empty()) return weights;
  const int64_t in_slice = plan.rows.kernel * plan.columns.kernel;
  for (int64_t tap = 0; tap < static_cast<int64_t>(plan.k_steps.size()); ++tap) {
    const int64_t part = tap / in_slice % plan.k_groups;
    const int64_t channels = std::min<int64_t>(plan.geometry.group_channels() - 4 * part, 4);
    weights.push_back(static_cast<int32_t>(0x01010101u >> (8 * (4 - channels))));
  }
  return weights;
}

/// Weights are less their zero points in the kernel's sums, or not at all without VNNI.
jit::WindowSums window_sums_of(const BoundConvolution& convolution) {
  if (convolution.plan.engine != jit::ProductEngine::u8_i8_dot) return jit::WindowSums::none;
  if (convolution.operands.w_zero_point < 0 && convolution.operands.w_is_signed)
    return jit::WindowSums::none;
  constexpr int64_t max = 255;
  int64_t elements = convolution.plan.geometry.group_channels();
  for (const ConvolutionAxis& axis : convolution.plan.geometry.axes) {
    if (elements * max >= jit::end_of_word_sums) return jit::WindowSums::dwords;
    elements *= axis.kernel;
  }
  return elements * max < jit::end_of_word_sums ? jit::WindowSums::words : jit::WindowSums::dwords;
}

/// Where kernels come from, and what they do behind the sums; null: nothing.
struct TileCodes {
  CodeCache& cache;
  const jit::TileEpilogue* epilogue;
};

/// The code of whole tiles and of the last channel tile, which has fewer channels.
Status find_tile_codes(const BoundConvolution& convolution, jit::DenseTile tile,
                       const TileCodes& codes, KernelCodePtr<jit::DenseTile>& code,
                       KernelCodePtr<jit::DenseTile>& last_code) {
  tile.window_sums = convolution.window_sums;
  auto whole = codes.cache.get(tile, convolution.target, codes.epilogue);
  if (!whole.ok()) return whole.error();
  code = std::move(whole).value();
  tile.channels = convolution.plan.last_channels();
  auto last = codes.cache.get(tile, convolution.target, codes.epilogue);
  if (!last.ok()) return last.error();
  last_code = std::move(last).value();
  return {};
}

/// The code that takes pixels from the input.
Status find_input_code(BoundConvolution& convolution, jit::DenseTile tile, const TileCodes& codes) {
  if (convolution.plan.channel_tiles == 1) tile.channels = convolution.plan.last_channels();
  tile.source =
      convolution.operands.x_is_signed ? jit::PixelSource::signed_input : jit::PixelSource::input;
  auto code = codes.cache.get(tile, convolution.target, codes.epilogue);
  if (!code.ok()) return code.error();
  convolution.input_code = std::move(code).value();
  return {};
}

Status find_codes(BoundConvolution& convolution, const TileCodes& codes) {
  const jit::DensePlan& plan = convolution.plan;
  const jit::DenseTile tile = kernel_tile(plan, codes.epilogue != nullptr);
  if (plan.is_pixel_vectorised()) {
    Status status =
        find_tile_codes(convolution, tile, codes, convolution.code, convolution.last_code);
    if (!status) return status;
  }
  if (convolution.window_sums == jit::WindowSums::none) {
    const bool kernel_packs = plan.planes() != nullptr && plan.planes()->kernel_packs;
    return kernel_packs ? find_input_code(convolution, tile, codes) : Status{};
  }
  if (plan.planes() == nullptr || plan.looped_k_groups() > 1) return {};
  auto sums_code = codes.cache.get(window_sum_tile(plan), convolution.target);
  if (!sums_code.ok()) return sums_code.error();
  convolution.sums_code = std::move(sums_code).value();
  convolution.sums_weights = ones(plan);
  return {};
}

/// The tables of one size of block.
Result<BlockTables> block_tables(const BoundConvolution& convolution, const jit::CacheBlock& block,
                                 const TileCodes& codes) {
  const jit::DensePlan& plan = convolution.plan;
  const bool pixels = plan.is_pixel_vectorised();
  BlockTables tables;
  tables.block = block;
  if (pixels) {
    tables.output = vector_stores(plan, block, plan.tile.vectors);
    tables.pixel_tiles = plan.tiles_of(block, plan.tile.vectors);
  }
  if (convolution.sums_code) {
    tables.window_sums = pixels ? all_lane_stores(plan, block)
                                : vector_stores(plan, block, window_sum_tile(plan).vectors);
  }
  if (pixels) return tables;
  for (jit::ChannelTileRun& run : channel_tile_runs(plan, block)) {
    BoundTileRun bound = {std::move(run), nullptr, nullptr};
    Status status =
        find_tile_codes(convolution, bound.tiles.tile, codes, bound.code, bound.last_code);
    if (!status) return status.error();
    tables.pixel_tiles += static_cast<int64_t>(bound.tiles.places.size());
    tables.runs.push_back(std::move(bound));
  }
  return tables;
}

/// The tables of all sizes of blocks that there are.
Status find_blocks(BoundConvolution& convolution, const TileCodes& codes) {
  const jit::DensePlan& plan = convolution.plan;
  const auto rest = [](int64_t all, int64_t part) { return all % part == 0 ? part : all % part; };
  for (int64_t rows : {plan.block.rows, rest(plan.rows.output, plan.block.rows)}) {
    for (int64_t columns : {plan.block.columns, rest(plan.columns.output, plan.block.columns)}) {
      const bool is_there = std::ranges::any_of(convolution.blocks, [&](const BlockTables& of) {
        return of.block.rows == rows && of.block.columns == columns;
      });
      if (is_there) continue;
      Result<BlockTables> tables = block_tables(convolution, {rows, columns}, codes);
      if (!tables.ok()) return tables.error();
      convolution.blocks.push_back(std::move(tables).value());
    }
  }
  return {};
}

Status find_all_codes(BoundConvolution& convolution, const TileCodes& codes) {
  convolution.blocks.clear();
  convolution.input_code.reset();
  if (Status status = find_codes(convolution, codes); !status) return status;
  return find_blocks(convolution, codes);
}

/// Dwords of window sums: of all lanes of a line, or of all pixels of a block.
int64_t window_sum_count(const BoundConvolution& convolution) {
  const jit::DensePlan& plan = convolution.plan;
  if (convolution.window_sums == jit::WindowSums::none) return 0;
  if (!plan.is_pixel_vectorised()) return plan.block.rows * plan.block.columns;
  const BlockTables& largest = convolution.blocks.front();
  const int64_t read = largest.output.back().source / 4 + plan.tile.vectors * plan.lanes;
  return std::max(read, static_cast<int64_t>(largest.window_sums.size()) * plan.lanes);
}

/// Whether each tile's weights are used once in a call, so that they need not all be packed at the
/// same time.
bool uses_tiles_once(const jit::DensePlan& plan) {
  return plan.geometry.batch * plan.outer_outputs == 1 && plan.block.rows == plan.rows.output &&
         plan.block.columns == plan.columns.output;
}

/// Dwords of weights that a call packs, and of their sums.
int64_t weight_dwords_of_calls(const BoundConvolution& convolution) {
  const jit::DensePlan& plan = convolution.plan;
  if (!convolution.packed.empty()) return 0;
  const int64_t dwords =
      convolution.packs_by_tile ? tile_dwords(plan) : static_cast<int64_t>(packed_dwords(plan));
  return dwords + plan.geometry.out_channels;
}

/// Gives each part of the scratch its place; all begin at whole lines of the cache.
ConvScratch parts_of(const BoundConvolution& convolution) {
  const jit::DensePlan& plan = convolution.plan;
  ConvScratch parts;
  size_t end = 0;
  const auto take_bytes = [&](int64_t bytes) {
    const size_t begin = end;
    end += (static_cast<size_t>(bytes) + 63) / 64 * 64;
    return begin;
  };
  const auto take = [&](int64_t dwords) { return take_bytes(4 * dwords); };
  parts.source = take_bytes(plan.source_bytes());
  // Whole vectors are read of the values of the last channels.
  parts.start = take(plan.geometry.out_channels + plan.lanes);
  parts.zero_points = take(plan.geometry.out_channels + plan.lanes);
  parts.window_sums = take(window_sum_count(convolution));
  const bool sums_rows =
      convolution.window_sums != jit::WindowSums::none && plan.planes() == nullptr;
  parts.summing = take(sums_rows ? window_sum_dwords(plan) : 0);
  parts.weights = take(weight_dwords_of_calls(convolution));
  parts.line = take(plan.transposes()
                        ? plan.geometry.group_out_channels() * plan.block.rows * plan.block.columns
                        : 0);
  parts.end = end;
  return parts;
}

/// What decides where packing puts a weight.
WeightForm weight_form(const BoundConvolution& convolution) {
  const jit::DensePlan& plan = convolution.plan;
  WeightForm form("dense", convolution.target, convolution.operands.w_is_signed);
  form.add(plan.engine, plan.tile.vectorised, plan.lanes, plan.tile.channels, plan.channel_tiles,
           plan.last_channels(), plan.geometry.groups, plan.geometry.out_channels,
           plan.geometry.group_channels(), plan.k_groups, plan.slices, plan.rows.kernel,
           plan.columns.kernel, static_cast<size_t>(plan.k_step_count()),
           plan.k_step_weights.size());
  for (const jit::KStepWeights& tap : plan.k_step_weights) form.add(tap[0], tap[1], tap[2], tap[3]);
  return form;
}

/// Packs weights that are constant, or finds them packed.
Status pack_constants(BoundConvolution& convolution, std::span<const std::byte* const> constants,
                      const WeightSharing& sharing) {
  const ConvolutionOperands& operands = convolution.operands;
  const bool takes_zero_points_off = convolution.plan.engine != jit::ProductEngine::u8_i8_dot;
  const bool zero_points_known = is_known(operands.w_zero_point, constants);
  if (constants[1] == nullptr || (takes_zero_points_off && !zero_points_known)) return {};
  const auto channels = static_cast<size_t>(convolution.plan.geometry.out_channels);
  WeightSources from;
  if (takes_zero_points_off) from = {operands.w_zero_point, operands.zero_points_per_channel};
  const auto pack = [&](int32_t* to) {
    std::vector<int32_t> values(channels);
    set_weight_zero_points(convolution, data_of(from.zero_points, constants), values);
    pack_weights(convolution.plan, convolution.weight_packers,
                 {constants[1], operands.w_is_signed, values.data()},
                 packed_weights(convolution.plan, to));
  };
  Result<PackedDwords> packed = share_weights(sharing, weight_form(convolution), from,
                                              packed_dwords(convolution.plan) + channels, pack);
  if (!packed.ok()) return packed.error();
  convolution.packed = std::move(packed).value();
  return {};
}

/// By the dense kernels, whose plan has been chosen.
Status bind_dense(BoundConvolution& convolution, std::span<const std::byte* const> constants,
                  CodeCache& cache, const jit::TileEpilogue* epilogue,
                  const WeightSharing& weights) {
  const int64_t bytes = convolution.plan.source_bytes();
  constexpr int64_t max_bytes = int64_t{1} << 30;
  if (bytes > max_bytes) {
    return Error{ErrorCode::unsupported,
                 fmt::format("conv_integer: the least block needs {} bytes of planes; at most {} "
                             "are supported",
                             bytes, max_bytes)};
  }
  convolution.multiplies = true;
  convolution.window_sums = window_sums_of(convolution);
  convolution.applies_epilogue = epilogue != nullptr;
  if (Status status = find_all_codes(convolution, {cache, epilogue}); !status) return status;
  auto input_packer = find_input_packer(convolution.plan, convolution.target, cache);
  if (!input_packer.ok()) return input_packer.error();
  convolution.input_packer = std::move(input_packer).value();
  auto weight_packers = find_weight_packers(convolution.plan, convolution.target, cache);
  if (!weight_packers.ok()) return weight_packers.error();
  convolution.weight_packers = std::move(weight_packers).value();
  if (Status status = pack_constants(convolution, constants, weights); !status) {
    return status;
  }
  convolution.packs_by_tile = convolution.packed.empty() && uses_tiles_once(convolution.plan);
  convolution.parts = parts_of(convolution);
  return {};
}

/// Binds a convolution to one candidate. Fails (unsupported) where that is to apply the epilogue
/// and its kernels have no room for it.
Status bind_candidate(BoundConvolution& convolution, const jit::Candidate& candidate,
                      const jit::ConvolutionProblem& problem,
                      std::span<const std::byte* const> constants, CodeCache& cache,
                      const ConvolutionChoice& choice) {
  const jit::TileEpilogue* epilogue = candidate.applies_epilogue ? choice.epilogue : nullptr;
  const auto bind = [&](const auto& plan, auto& to) -> Status {
    auto bound = bind_sliding(plan, convolution.operands, constants, convolution.target, cache,
                              epilogue, choice.weights);
    if (!bound.ok()) return bound.error();
    to = std::move(bound).value();
    convolution.applies_epilogue = to->applies_epilogue;
    convolution.parts.end = to->scratch_bytes;
    return {};
  };
  if (const auto* plan = std::get_if<jit::DepthwisePlan>(&candidate.plan)) {
    return bind(*plan, convolution.depthwise);
  }
  if (const auto* plan = std::get_if<jit::GroupedNhwcPlan>(&candidate.plan)) {
    return bind(*plan, convolution.grouped_nhwc);
  }
  convolution.plan = std::get<jit::DensePlan>(candidate.plan);
  convolution.cycles = candidate.cycles;
  convolution.packing_cycles = packing_cost(convolution.plan, problem, convolution.target)
                                   .cycles(costs_on(convolution.target).cycles);
  return bind_dense(convolution, constants, cache, epilogue, choice.weights);
}

/// By the candidate that is asked for, or the one with the lowest cost; `convolution` has its
/// geometry, and work.
Status bind_best(BoundConvolution& convolution, std::span<const std::byte* const> constants,
                 CodeCache& cache, const ConvolutionChoice& choice) {
  const jit::ConvolutionProblem problem = {
      .geometry = convolution.plan.geometry,
      .x_is_signed = convolution.operands.x_is_signed,
      .w_is_signed = convolution.operands.w_is_signed,
      .has_weight_zero_points = convolution.operands.w_zero_point >= 0,
      .has_constant_weights = constants[1] != nullptr};
  if (Status status = jit::check_filter(problem.geometry); !status) return status;
  jit::Candidate candidate = choice.candidate != nullptr
                                 ? *choice.candidate
                                 : choose(problem, convolution.target, choice.epilogue);
  for (;;) {
    Status status = bind_candidate(convolution, candidate, problem, constants, cache, choice);
    const bool is_refused = !status && status.error().code == ErrorCode::unsupported;
    if (!is_refused || !candidate.applies_epilogue) return status;
    candidate = without_room(std::move(candidate), problem, convolution.target, *choice.epilogue);
  }
}

}  // namespace

Result<std::shared_ptr<const BoundConvolution>> bind_convolution(
    const ConvolutionGeometry& geometry, const ConvolutionOperands& operands,
    std::span<const std::byte* const> constants, const jit::Target& target, CodeCache& cache,
    ScratchPlan& scratch, const ConvolutionChoice& choice) {
  auto bound = std::make_shared<BoundConvolution>();
  bound->target = target;
  bound->operands = operands;
  bound->plan.geometry = geometry;
  if (has_work(geometry) && geometry.group_channels() > 0) {
    if (Status status = bind_best(*bound, constants, cache, choice); !status) {
      return status.error();
    }
    if (bound->parts.end > 0) bound->scratch = scratch.take(bound->parts.end);
  }
  return std::shared_ptr<const BoundConvolution>(std::move(bound));
}

}  // namespace castor::detail
