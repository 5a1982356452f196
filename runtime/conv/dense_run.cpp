// SPDX-License-Identifier: Apache-2.0
// One call of a dense convolution: block by block, packed input, window sums, channel tiles.
#include <algorithm>
#include <numeric>
#include <vector>

#include "runtime/conv/block_arguments.hpp"
#include "runtime/conv/interleave.hpp"
#include "runtime/conv/window_sums.hpp"

namespace castor::detail {

namespace {

/// Runs the channel tiles of a block whose input is packed.
class BlockRun {
 public:
  BlockRun(const DenseCall& call, const PackedBlock& block)
      : call_(call),
        bound_(call.bound),
        plan_(call.bound.plan),
        block_(block),
        tile_arguments_(call, block) {}

  /// Some pixel tiles of one tile of channels, which takes those of `taken_from_input` from the
  /// input.
  void run_tile(int64_t tile, PixelTiles tiles, int64_t taken_from_input) const {
    prepare_weights(tile);
    const std::optional<TileStarts> starts = tile_arguments_.inner_starts(tile);
    if (taken_from_input > 0) {
      const PixelTiles of_input = {tiles.begin, tiles.begin + taken_from_input};
      tiles.begin = of_input.end;
      run_pixel_tiles({tile, 1}, starts, block_.tables.tiles.front(), of_input, *bound_.input_code);
    }
    const bool is_last = tile + 1 == plan_.channel_tiles;
    block_.tables.for_each_run(tiles, [&](const BoundTiles& of, const PixelTiles& here) {
      run_pixel_tiles({tile, 1}, starts, of, here, is_last ? *of.last_code : *of.code);
    });
  }

  /// How many tiles of channels may be done at once, if all are whole: those whose results are
  /// written at once. Where tile registers have their pixels outside, a call has all pixels of the
  /// block, so that weights are read once.
  int64_t max_tiles_at_once() const {
    if (bound_.packs_by_tile) return 1;
    if (!plan_.tile.has_tiles()) return max_joined_tiles();
    const bool is_inside = plan_.tile.channels_inside;
    if (!is_inside && block_.tables.tiles.size() > 1) return 1;
    if (bound_.applies_epilogue) return plan_.channel_tiles;
    const int64_t pixels = is_inside ? plan_.tile.pixels() : block_.place.block.pixels();
    const int64_t results = int64_t{plan_.tile.channels} * pixels;
    return std::max<int64_t>(call_.output.max_elements() / results, 1);
  }

  /// All of the pixel tiles for some whole tiles of channels, as `max_tiles_at_once` says.
  void run_tiles(int64_t first, int64_t count, const PixelTiles& tiles) const {
    block_.tables.for_each_run(tiles, [&](const BoundTiles& of, const PixelTiles& here) {
      plan_.tile.has_tiles() ? run_pixel_tiles({first, count}, std::nullopt, of, here, *of.code)
                             : run_joined_tiles({first, count}, of, here);
    });
  }

  /// Transposes outputs that were stored channel by channel to where they are stored pixel by
  /// pixel.
  void transpose(int64_t first, int64_t last, const PixelRange& range) const {
    OutputPiece piece = tile_arguments_.piece_of({first, last + 1 - first});
    const int32_t* from = untransposed(first);
    const int64_t first_pixel = piece.pixel;
    const int64_t at_once = at_once_of(piece.channels, range.end - range.begin);
    for (int64_t pixel = range.begin; pixel < range.end; pixel += at_once) {
      piece.pixel = first_pixel + pixel;
      piece.pixels = std::min(at_once, range.end - pixel);
      const PieceMemory memory = call_.output.begin(piece, block_.scratch);
      const WorkTimer timer(call_.profile, call_.nest, Work::transpose);
      transpose_i32(from + pixel, block_.pixels(), piece.channels, piece.pixels, memory.data,
                    memory.pixel_step);
      timer.done_within_block([&] {
        const int64_t bytes = 4 * piece.channels * piece.pixels;
        return WorkAmount{.bytes_read = bytes, .bytes_written = bytes};
      });
      call_.output.end(piece, block_.scratch);
    }
  }

 private:
  /// Packs those of the tile, where that is done tile by tile.
  void prepare_weights(int64_t tile) const {
    if (!bound_.packs_by_tile) return;
    const WorkTimer timer(call_.profile, call_.nest, Work::pack_weights);
    call_.weights.prepare_tile(block_.place.group, tile, block_.scratch);
    timer.done_within_block([&] {
      return WorkAmount{
          .bytes_read = plan_.channels_of(tile) * jit::products_of_output(plan_.geometry),
          .bytes_written = 4 * tile_k_groups(plan_)};
    });
  }

  /// Tiles of channels whose results are rows that an epilogue's code takes in whole iterations, as
  /// far as a slab holds them, and their weights, which each slab goes through, stay in L2.
  int64_t max_joined_tiles() const {
    const bool may_join = call_.output.has_rows_of_channels() && !bound_.applies_epilogue &&
                          !plan_.is_pixel_vectorised() && !plan_.transposes();
    if (!may_join) return 1;
    const jit::Target& target = bound_.target;
    const int64_t channels = plan_.tile.channels;
    const int64_t row = target.tuning().partition.epilogue_row;
    const int64_t wanted = row / std::gcd(row, channels);
    const int64_t weights = plan_.weight_bytes(plan_.tile.vectors_of(plan_.lanes));
    const int64_t near = jit::near_weight_bytes(target) / std::max<int64_t>(weights, 1);
    return at_once_of(channels * plan_.tile.pixels(), std::clamp<int64_t>(near, 1, wanted));
  }

  int32_t* untransposed(int64_t tile) const {
    auto* all = reinterpret_cast<int32_t*>(block_.scratch + bound_.parts.untransposed);
    return all + plan_.first_channel(tile) * block_.pixels();
  }

  /// How many of `count` parts of that many elements are one piece of the output.
  int64_t at_once_of(int64_t elements, int64_t count) const {
    return std::clamp<int64_t>(call_.output.max_elements() / elements, 1, count);
  }

  /// Some pixel tiles of a run, of some tiles of channels.
  void run_pixel_tiles(const ChannelTiles& channels, const std::optional<TileStarts>& starts,
                       const BoundTiles& of, const PixelTiles& tiles,
                       const KernelCode<jit::DenseTile>& kernel) const {
    OutputPiece piece = tile_arguments_.piece_of(channels);
    jit::DenseArguments arguments = tile_arguments_.of_tiles(channels, starts);
    tile_arguments_.set_tiles(arguments, of.run, tiles);
    tile_arguments_.set_prefetch(channels, of, tiles, arguments);
    const auto code = kernel.entry();
    if (plan_.transposes()) {
      arguments.output = untransposed(channels.first);
      arguments.output_step = 4 * block_.pixels();
      code(&arguments);
    } else if (bound_.applies_epilogue) {
      call_.output.apply_in_kernel(piece, [&](const jit::EpilogueOperand* operands) {
        arguments.epilogue = operands;
        code(&arguments);
      });
    } else {
      run_slabs(channels, of, tiles, piece, arguments, code);
    }
  }

  /// The slabs of pixel tiles, of which `slab` has the channels and the block's first pixel:
  /// run(tiles, where results of the block's first pixel would be). `slab` is changed.
  template <class Run>
  void for_each_slab(const BoundTiles& of, const PixelTiles& tiles, OutputPiece& slab,
                     const Run& run) const {
    const int64_t tile_pixels =
        plan_.is_pixel_vectorised() ? plan_.tile.vectors * plan_.lanes : of.run.tile.pixels();
    const int64_t at_once = at_once_of(slab.channels * tile_pixels, tiles.count());
    const int64_t first_pixel = slab.pixel;
    for (int64_t first = tiles.begin; first < tiles.end; first += at_once) {
      const PixelTiles some = {first, std::min(first + at_once, tiles.end)};
      const PixelRange pixels = of.pixels_of(some);
      if (pixels.begin == pixels.end) continue;
      slab.pixel = first_pixel + pixels.begin;
      slab.pixels = pixels.end - pixels.begin;
      PieceMemory memory = call_.output.begin(slab, block_.scratch);
      memory.data = counted_back(memory.data, pixels.begin * memory.pixel_step);
      run(some, memory);
      call_.output.end(slab, block_.scratch);
    }
  }

  /// `arguments` are of all tiles. They and `slab` are changed, since copies of what has just been
  /// stored would be store forwarding stalls.
  void run_slabs(const ChannelTiles& channels, const BoundTiles& of, const PixelTiles& tiles,
                 OutputPiece& slab, jit::DenseArguments& arguments,
                 jit::KernelFunction<jit::DenseTile> code) const {
    for_each_slab(of, tiles, slab, [&](const PixelTiles& some, const PieceMemory& memory) {
      run_kernel(channels, of, some, memory, arguments, code);
    });
  }

  void run_kernel(const ChannelTiles& channels, const BoundTiles& of, const PixelTiles& tiles,
                  const PieceMemory& memory, jit::DenseArguments& arguments,
                  jit::KernelFunction<jit::DenseTile> code) const {
    const bool by_channel = plan_.geometry.layout == ConvolutionLayout::nchw;
    tile_arguments_.set_tiles(arguments, of.run, tiles);
    tile_arguments_.set_prefetch(channels, of, tiles, arguments);
    arguments.output = memory.data;
    arguments.output_step = 4 * (by_channel ? memory.channel_step : memory.pixel_step);
    code(&arguments);
  }

  /// Whole tiles of channels, one after the other for each slab. Their weights are near: what a
  /// tile prefetches of the next one's, as if all pixels came before it, makes little difference.
  void run_joined_tiles(const ChannelTiles& channels, const BoundTiles& of,
                        const PixelTiles& tiles) const {
    std::vector<std::optional<TileStarts>> starts;
    for (int64_t tile = channels.first; tile < channels.first + channels.count; ++tile) {
      starts.push_back(tile_arguments_.inner_starts(tile));
    }
    OutputPiece slab = tile_arguments_.piece_of(channels);
    const auto code = of.code->entry();
    for_each_slab(of, tiles, slab, [&](const PixelTiles& some, PieceMemory memory) {
      for (int64_t tile = 0; tile < channels.count; ++tile) {
        const ChannelTiles one = {channels.first + tile, 1};
        jit::DenseArguments arguments =
            tile_arguments_.of_tiles(one, starts[static_cast<size_t>(tile)]);
        run_kernel(one, of, some, memory, arguments, code);
        memory.data = counted_back(memory.data, -plan_.tile.channels * memory.channel_step);
      }
    });
  }

  const DenseCall& call_;
  const BoundDense& bound_;
  const jit::DensePlan& plan_;
  const PackedBlock& block_;
  const BlockArguments tile_arguments_;
};

/// Runs the tasks of one call.
class DenseRun {
 public:
  DenseRun(const DenseCall& call, const TaskTeams& teams)
      : call_(call),
        bound_(call.bound),
        plan_(call.bound.plan),
        blocks_(call.bound),
        teams_(teams) {}

  /// The tasks from `begin` to `end`, each of which works in a scratch of its own.
  void run(int64_t begin, int64_t end, std::byte* scratch) const {
    RowVectors vectors;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t member = task % teams_.members;
      blocks_.for_each_part(task / teams_.members, teams_.teams, [&](const BlockPart& part) {
        run_share(part, blocks_.share_of(part, member, teams_.members),
                  blocks_.share_of(part, member + 1, teams_.members), scratch, vectors);
      });
    }
  }

 private:
  /// A task's share of a part: the rest of a channel tile, whole ones, the beginning of another.
  void run_share(const BlockPart& part, const ShareStart& begin, const ShareStart& end,
                 std::byte* scratch, RowVectors& vectors) const {
    const PixelTiles& all = part.tiles;
    const int64_t first = begin.channel_tile;
    const int64_t last = end.pixel_tile > all.begin ? end.channel_tile : end.channel_tile - 1;
    const auto tiles_of = [&](int64_t tile) -> PixelTiles {
      return {tile == first ? begin.pixel_tile : all.begin,
              tile == end.channel_tile ? end.pixel_tile : all.end};
    };
    const PixelTiles packed = first < last ? all : tiles_of(first);
    if (first > last || packed.count() == 0) return;
    const PixelRange pixels = part.tables->pixels_of(packed);
    if (pixels.begin == pixels.end) return;
    const BlockPlace inner = DenseBlocks::part_with(part.place, pixels);
    const int64_t taken_from_input = tiles_of_input(part, first, tiles_of(first));
    const std::byte* source =
        source_of(part.place, inner, scratch, vectors, taken_from_input * pixels_of_tile());
    const PackedBlock block = {part.place, inner, *part.tables, source, scratch};
    const PixelTiles summed = {packed.begin + taken_from_input, packed.end};
    if (bound_.window_sums != jit::WindowSums::none && summed.count() > 0) {
      const WorkTimer timer(call_.profile, call_.nest, Work::window_sums);
      sum_block(bound_, block, summed, call_.weights.zero_point());
      timer.done([&] { return WorkAmount{.bytes_read = source_bytes_of(inner)}; });
    }
    const WorkTimer timer(call_.profile, call_.nest, Work::block);
    const BlockRun run(call_, block);
    const auto& configuration = part.tables->configuration;
    const jit::TileScope scope(configuration && first < last ? &*configuration : nullptr);
    const int64_t max_tiles = run.max_tiles_at_once();
    for (int64_t tile = first; tile <= last;) {
      const bool is_begun = tile == first && begin.pixel_tile > all.begin;
      const int64_t whole = is_begun || max_tiles == 1 ? 0 : whole_tiles(tile, end) - tile;
      if (whole > 1) {
        const int64_t count = std::min(whole, max_tiles);
        run.run_tiles(tile, count, all);
        tile += count;
        continue;
      }
      run.run_tile(tile, tiles_of(tile), tile == first ? taken_from_input : 0);
      ++tile;
    }
    if (plan_.transposes()) run.transpose(first, last, pixels);
    timer.done([&] {
      int64_t outputs = 0;
      for (int64_t tile = first; tile <= last; ++tile) {
        const PixelRange of_tile = part.tables->pixels_of(tiles_of(tile));
        outputs += (of_tile.end - of_tile.begin) * plan_.channels_of(tile);
      }
      return amount_of(inner, outputs, last + 1 - first);
    });
  }

  /// The end of the whole channel tiles from that one on all of whose pixel tiles are the task's.
  int64_t whole_tiles(int64_t first, const ShareStart& end) const {
    const bool is_last_whole = plan_.last_channels() == plan_.tile.channels;
    return std::max(first, std::min(end.channel_tile, plan_.channel_tiles - !is_last_whole));
  }

  // For profiles:
  /// What kernels read and write for a number of results of a part of a block.
  WorkAmount amount_of(const BlockPlace& inner, int64_t outputs, int64_t channel_tiles) const {
    const int64_t weights = jit::k_group_bytes * tile_k_groups(plan_);
    return {.bytes_read = source_bytes_of(inner) + channel_tiles * weights,
            .bytes_written = outputs * call_.output.kernel_result_bits(bound_.applies_epilogue) / 8,
            .products = outputs * jit::products_of_output(plan_.geometry)};
  }
  /// Input elements that a part of a block takes, padding left out as far as an axis has it all.
  int64_t inputs_of(const BlockPlace& inner) const {
    const jit::CacheBlock& block = inner.block;
    return plan_.slices * plan_.geometry.group_channels() *
           std::min(jit::input_extent(block.rows, plan_.rows), plan_.rows.input) *
           std::min(jit::input_extent(block.columns, plan_.columns), plan_.columns.input);
  }
  /// Bytes of the source of a part of a block: where it is packed, that part of a whole block's.
  int64_t source_bytes_of(const BlockPlace& inner) const {
    const bool is_packed = plan_.planes() && plan_.planes()->packed_by != jit::PackedBy::nobody;
    const bool is_copied = std::holds_alternative<jit::CopiedRows>(plan_.source);
    if (!is_packed && !is_copied) return inputs_of(inner);
    const auto part =
        static_cast<double>(inner.block.pixels()) / static_cast<double>(plan_.block.pixels());
    return static_cast<int64_t>(part * static_cast<double>(plan_.source_bytes()));
  }

  /// The pixels of a pixel-vectorised tile.
  int64_t pixels_of_tile() const { return plan_.tile.vectors * plan_.lanes; }

  /// How many of these tiles of pixels, the first ones, a task's first tile of channels takes from
  /// the input: all whole ones, if it has as many channels as the code for it, and all tiles of a
  /// block, from which others are to find them packed, or tiles of a single row.
  int64_t tiles_of_input(const BlockPart& part, int64_t tile, const PixelTiles& tiles) const {
    const bool has_code =
        bound_.input_code && (tile + 1 < plan_.channel_tiles || plan_.channel_tiles == 1);
    const bool packs_nothing =
        has_code && plan_.planes()->packed_by == jit::PackedBy::nobody && plan_.block.rows == 1;
    if (!has_code || (tiles.count() < part.tables->pixel_tiles && !packs_nothing)) return 0;
    const int64_t whole = part.place.block.pixels() / pixels_of_tile();
    return std::max<int64_t>(std::min(tiles.end, whole) - tiles.begin, 0);
  }

  /// The source of a block, of which the inner part is packed but for its first pixels.
  const std::byte* source_of(const BlockPlace& place, const BlockPlace& inner, std::byte* scratch,
                             RowVectors& vectors, int64_t packed_pixels) const {
    const bool keeps_values = !multiplies_bytes(plan_.engine) && !subtracts_from_pixels(plan_);
    const PlaneInput input = {call_.operands[0], bound_.operands.x_is_signed,
                              keeps_values ? 0 : call_.x_zero_point()};
    if (std::holds_alternative<jit::DirectInput>(plan_.source)) {
      return input_of(plan_, input, place);
    }
    std::byte* source = scratch + bound_.parts.source;
    std::byte* to = source + source_bytes_before(plan_, place, inner);
    if (packed_pixels < inner.block.pixels()) {
      const WorkTimer timer(call_.profile, call_.nest, Work::pack_input);
      pack_input(plan_, bound_.input_packer.get(), input, inner, to, vectors, packed_pixels);
      timer.done([&] {
        return WorkAmount{.bytes_read = inputs_of(inner), .bytes_written = source_bytes_of(inner)};
      });
    }
    return source;
  }

  const DenseCall& call_;
  const BoundDense& bound_;
  const jit::DensePlan& plan_;
  const DenseBlocks blocks_;
  const TaskTeams teams_;
};

}  // namespace

void run_plan(const BoundDense& bound, size_t scratch, const ConvolutionStep& step,
              const CallMemory& memory) {
  const TaskTeams teams = choose_teams(bound, max_tasks(memory, step.nanoseconds));
  const DenseCall call(bound, scratch, step, memory);
  const DenseRun run(call, teams);
  share_out(run, teams.tasks(), teams.tasks(), memory, scratch);
}

}  // namespace castor::detail
