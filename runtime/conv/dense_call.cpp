// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/dense_call.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ir/support/integer_math.hpp"
#include "runtime/conv/interleave.hpp"

namespace castor::detail {

void CallWeights::prepare() {
  const jit::DensePlan& plan = convolution_.plan;
  int32_t* zeros = zero_points();
  const auto channels = static_cast<size_t>(plan.geometry.out_channels);
  set_weight_zero_points(convolution_, operands_.w_zero_points, {zeros, channels});
  if (!convolution_.packed.empty()) {
    packed_ = packed_weights(plan, convolution_.packed.data());
  } else if (!convolution_.packs_by_tile) {
    const auto to = packed_weights(plan, int32_at(scratch_, convolution_.parts.weights));
    pack_weights(plan, convolution_.weight_packers,
                 {operands_.w, convolution_.operands.w_is_signed, zeros}, to);
    packed_ = {to.k_groups, to.sums};
  }
  if (convolution_.window_sums == jit::WindowSums::words) {
    std::transform(zeros, zeros + channels, zeros, jit::words_of_zero_point);
  }
  if (!convolution_.packs_by_tile) {
    set_starts(0, packed_.sums, int32_at(scratch_, convolution_.parts.start));
  }
}

void CallWeights::prepare_tile(int64_t group, int64_t tile, std::byte* scratch) const {
  if (!convolution_.packs_by_tile) return;
  const jit::DensePlan& plan = convolution_.plan;
  int32_t* to = int32_at(scratch, convolution_.parts.weights);
  int32_t* sums = to + tile_k_groups(plan);
  pack_weight_tile(plan, convolution_.weight_packers,
                   {operands_.w, convolution_.operands.w_is_signed, zero_points()}, group, tile, to,
                   sums);
  const bool is_last = tile + 1 == plan.channel_tiles;
  const int channels = is_last ? plan.last_channels() : plan.tile.channels;
  set_starts(first_channel(group, tile), {sums, static_cast<size_t>(channels)},
             int32_at(scratch, convolution_.parts.start));
}

void CallWeights::set_arguments(int64_t group, int64_t tile, std::byte* scratch,
                                jit::DenseArguments& arguments) const {
  const bool by_tile = convolution_.packs_by_tile;
  const int64_t channel = first_channel(group, tile);
  const int32_t* weights =
      by_tile ? int32_at(scratch, convolution_.parts.weights)
              : packed_.k_groups.data() + packed_tile(convolution_.plan, group, tile);
  arguments.weights = reinterpret_cast<const std::byte*>(weights);
  arguments.start = int32_at(by_tile ? scratch : scratch_, convolution_.parts.start) + channel;
  arguments.weight_zero_points = zero_points() + channel;
}

/// Signed ones have 128 added, unless the engine keeps signs; without VNNI the zero point is
/// subtracted.
int32_t CallWeights::padding() const {
  const jit::ProductEngine engine = convolution_.plan.engine;
  if (!multiplies_bytes(engine)) return 0;
  const bool has_sign_flip = takes_u8_by_i8(engine) && convolution_.operands.x_is_signed;
  return operands_.x_zero_point + (has_sign_flip ? 128 : 0);
}

/// (x - a)(w - b) summed is xw - b x - a w + a b summed; what does not depend on pixels comes
/// first. Modulo 2^32. Of output channels from `first` on, whose weights have these sums; `starts`
/// is of all channels.
void CallWeights::set_starts(int64_t first, std::span<const int32_t> sums, int32_t* starts) const {
  const ConvolutionGeometry& geometry = convolution_.plan.geometry;
  const int32_t* zeros = zero_points() + first;
  const auto products = static_cast<uint32_t>(jit::products_of_output(geometry));
  const auto a = static_cast<uint32_t>(padding());
  const bool has_pairs = convolution_.window_sums == jit::WindowSums::words;
  for (size_t m = 0; m < sums.size(); ++m) {
    const auto b = static_cast<uint32_t>(has_pairs ? jit::zero_point_of_words(zeros[m]) : zeros[m]);
    const uint32_t start = products * a * b - a * static_cast<uint32_t>(sums[m]);
    starts[first + static_cast<int64_t>(m)] = static_cast<int32_t>(start);
  }
}

namespace {

/// Adds up the windows of a block whose source is rows or the input: first the elements at each row
/// and column, then rows, then columns.
class RowSummer {
 public:
  /// `work` has room for window_sum_work.
  RowSummer(const jit::DensePlan& plan, const jit::CacheBlock& block, int32_t* work)
      : plan_(plan),
        block_(block),
        is_signed_(plan.tile.x_is_signed || plan.engine == jit::ProductEngine::i8_u8_dot),
        sign_flip_(plan.tile.has_sign_flip ? std::byte{0x80} : std::byte{0}),
        rows_(jit::input_extent(block.rows, plan.rows)),
        columns_(jit::input_extent(block.columns, plan.columns)),
        at_(work),
        window_rows_(work + rows_ * columns_) {}

  void sum(const std::byte* source, int32_t* to) const {
    std::fill_n(at_, rows_ * columns_, 0);
    for (int64_t plane : plan_.input_rows().planes) {
      for (int64_t row = 0; row < rows_; ++row) {
        if (row % plan_.rows.stride >= plan_.rows.window()) continue;  // no tap reads it
        add_row(source + plane + row * plan_.input_rows().row_bytes, at_ + row * columns_);
      }
    }
    for (int64_t row = 0; row < block_.rows; ++row) sum_row(row, to + row * block_.columns);
  }

 private:
  void add_row(const std::byte* from, int32_t* to) const {
    constexpr int64_t max_single = 4;  // elements that are added one by one
    const int64_t elements = plan_.input_rows().channels;
    const int64_t step = plan_.input_rows().column_bytes;
    if (elements <= max_single) {
      for (const std::byte* element = from; element < from + elements; ++element) {
        for (int64_t i = 0; i < columns_; ++i) {
          to[i] += value_of(element[i * step] ^ sign_flip_, is_signed_);
        }
      }
      return;
    }
    for (int64_t i = 0; i < columns_; ++i) {
      if (plan_.columns.stride > 1 && i % plan_.columns.stride >= plan_.columns.window()) continue;
      to[i] += sum_of(from + i * step, elements);
    }
  }

  /// The sum of elements as kernels multiply them.
  int32_t sum_of(const std::byte* from, int64_t elements) const {
    const uint8_t to_unsigned = is_signed_ ? 0x80 : std::to_integer<uint8_t>(sign_flip_);
    const auto sum = static_cast<int32_t>(sum_of_bytes(from, elements, to_unsigned));
    return is_signed_ ? sum - 128 * static_cast<int32_t>(elements) : sum;
  }

  void sum_row(int64_t row, int32_t* to) const {
    std::fill_n(window_rows_, columns_, 0);
    for (int64_t r = 0; r < plan_.rows.kernel; ++r) {
      const int32_t* from = at_ + (row * plan_.rows.stride + r * plan_.rows.dilation) * columns_;
      for (int64_t i = 0; i < columns_; ++i) window_rows_[i] += from[i];
    }
    std::fill_n(to, block_.columns, 0);
    for (int64_t s = 0; s < plan_.columns.kernel; ++s) {
      const int32_t* from = window_rows_ + s * plan_.columns.dilation;
      for (int64_t i = 0; i < block_.columns; ++i) to[i] += from[i * plan_.columns.stride];
    }
  }

  const jit::DensePlan& plan_;
  const jit::CacheBlock& block_;
  const bool is_signed_;       ///< the elements, as kernels take them
  const std::byte sign_flip_;  ///< what the kernel xors to the elements of the source
  const int64_t rows_;
  const int64_t columns_;
  int32_t* at_;           ///< sums of the elements at a row and column
  int32_t* window_rows_;  ///< of a column's rows of one window
};

/// Adds up the windows of one block.
class BlockSummer {
 public:
  /// `zero_point`: that of all weights, where there is one.
  BlockSummer(const BoundDense& convolution, const PackedBlock& block, int32_t zero_point)
      : convolution_(convolution),
        plan_(convolution.plan),
        block_(block),
        zero_point_(static_cast<uint32_t>(zero_point)),
        sums_(window_sums(convolution, block)) {}

  /// The sums of the windows of some pixel tiles, as kernels read them.
  void sum(const PixelTiles& tiles) const {
    const PixelRange sums = convolution_.sums_code      ? sum_line(tiles)
                            : plan_.planes() != nullptr ? sum_planes(tiles)
                                                        : sum_rows();
    const std::span summed(sums_ + sums.begin, sums_ + sums.end);
    if (convolution_.window_sums == jit::WindowSums::words) {
      std::ranges::transform(summed, summed.begin(), jit::words_of_sum);
    } else if (convolution_.window_sums == jit::WindowSums::products) {
      std::ranges::transform(summed, summed.begin(), [&](int32_t sum) {
        return static_cast<int32_t>(static_cast<uint32_t>(sum) * zero_point_);
      });
    }
  }

 private:
  /// The pixels of the inner part, as those of the block are numbered.
  PixelRange inner_pixels() const {
    const int64_t columns = block_.place.block.columns;
    const int64_t first =
        (block_.inner.row - block_.place.row) * columns + block_.inner.column - block_.place.column;
    return {first, first + (block_.inner.block.rows - 1) * columns + block_.inner.block.columns};
  }

  /// Gives which sums they are.
  PixelRange sum_rows() const {
    const PixelRange pixels = inner_pixels();
    auto* work = reinterpret_cast<int32_t*>(block_.scratch + convolution_.parts.summing);
    RowSummer(plan_, block_.inner.block, work)
        .sum(block_.source + source_bytes_before(plan_, block_.place, block_.inner),
             sums_ + pixels.begin);
    return pixels;
  }

  /// The lanes of the line that some tiles of pixels read.
  PixelRange lanes_of(const PixelTiles& tiles) const {
    const auto source_of_tile = [&](int64_t tile) {
      return block_.tables.tiles.front()
                 .run.stores[static_cast<size_t>(tile * plan_.tile.vectors)]
                 .source /
             4;
    };
    return {source_of_tile(tiles.begin),
            source_of_tile(tiles.end - 1) + plan_.tile.vectors * plan_.lanes};
  }

  /// Sums of all lanes of a line whose kernels loop over k groups, of which the last one of each
  /// slice may have fewer channels. Gives which sums they are.
  PixelRange sum_planes(const PixelTiles& tiles) const {
    const PixelRange lanes = lanes_of(tiles);
    std::fill(sums_ + lanes.begin, sums_ + lanes.end, 0);
    for (int64_t k_group = 0; k_group < plan_.looped_k_groups(); ++k_group) {
      const int64_t left = plan_.geometry.group_channels() - 4 * (k_group % plan_.k_groups);
      const uint32_t present = left < 4 ? (1u << (8 * left)) - 1 : ~0u;
      const std::byte* planes = block_.source + k_group * plan_.k_group_step();
      for (int32_t tap : plan_.k_steps) add_plane(planes + tap, present, lanes);
    }
    return lanes;
  }

  /// Adds the bytes of each lane's k group that are `present` to the lane's sum. Signed ones are
  /// less by 128 than with their highest bits inverted.
  void add_plane(const std::byte* plane, uint32_t present, const PixelRange& lanes) const {
    const bool is_signed = plan_.engine == jit::ProductEngine::i8_u8_dot;
    const uint32_t inverted = is_signed ? present & 0x80808080 : 0;
    const auto less = static_cast<uint32_t>(128 * std::popcount(inverted));
    for (int64_t lane = lanes.begin; lane < lanes.end; ++lane) {
      uint32_t k_group = 0;
      std::memcpy(&k_group, plane + 4 * lane, sizeof k_group);
      k_group = (k_group ^ inverted) & present;
      const uint32_t bytes = (k_group & 0xff) + (k_group >> 8 & 0xff) + (k_group >> 16 & 0xff) +
                             (k_group >> 24) - less;
      sums_[lane] = static_cast<int32_t>(static_cast<uint32_t>(sums_[lane]) + bytes);
    }
  }

  /// Sums of all lanes of a line; of channel-vectorised plans, of adjacent pixels.
  PixelRange sum_line(const PixelTiles& tiles) const {
    constexpr int32_t zero = 0;
    const bool compact = !plan_.is_pixel_vectorised();
    const int64_t lanes = plan_.lanes * jit::window_sum_tile(plan_).vectors;
    const int64_t line = source_bytes_before(plan_, block_.place, block_.inner) / 4;
    PixelRange summed = {line, line + (block_.inner.block.rows - 1) * plan_.planes()->pitch +
                                   block_.inner.block.columns};
    if (!compact) summed = lanes_of(tiles);
    const int64_t first = summed.begin / lanes;
    const int64_t last =
        std::min(ceil_div(summed.end, lanes),
                 static_cast<int64_t>(block_.tables.window_sums.size()) * plan_.lanes / lanes);
    jit::DenseArguments arguments = k_steps_of(plan_, block_);
    arguments.tiles = last - first;
    arguments.weights = reinterpret_cast<const std::byte*>(convolution_.sums_weights.data());
    arguments.start = &zero;
    arguments.stores = block_.tables.window_sums.data() + first * lanes / plan_.lanes;
    arguments.output = sums_;
    convolution_.sums_code->call(&arguments);
    return compact ? inner_pixels() : PixelRange{first * lanes, last * lanes};
  }

  const BoundDense& convolution_;
  const jit::DensePlan& plan_;
  const PackedBlock& block_;
  const uint32_t zero_point_;  ///< modulo 2^32, as sums are
  int32_t* sums_;
};

}  // namespace

int64_t window_sum_work(const jit::DensePlan& plan) {
  return (jit::input_extent(plan.block.rows, plan.rows) + 1) *
         jit::input_extent(plan.block.columns, plan.columns);
}

void sum_block(const BoundDense& convolution, const PackedBlock& block, const PixelTiles& tiles,
               int32_t zero_point) {
  BlockSummer(convolution, block, zero_point).sum(tiles);
}

}  // namespace castor::detail
