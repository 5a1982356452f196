// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/window_sums.hpp"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "ir/support/integer_math.hpp"
#include "runtime/conv/row_sums.hpp"

namespace castor::detail {

namespace {

/// Adds up the taps of an axis for some lanes, modulo 2^32; offsets, 0 or more, are those of the
/// taps. Results may be stored where the first tap of the same lanes was read. Every tier has AVX2.
[[gnu::target("avx2")]] void sum_taps(std::span<const int64_t> offsets, const int32_t* from,
                                      int64_t lanes, int32_t* to) {
  using Unaligned = __m256i_u;  // eight lanes
  constexpr int64_t at_once = 4 * sizeof(Unaligned) / sizeof(*to);
  int64_t lane = 0;
  for (; lane + at_once <= lanes; lane += at_once) {
    __m256i a = _mm256_setzero_si256();  // an array would not be in registers
    __m256i b = a;
    __m256i c = a;
    __m256i d = a;
    for (const int64_t offset : offsets) {
      const auto* tap = reinterpret_cast<const Unaligned*>(from + lane + offset);
      a = _mm256_add_epi32(a, _mm256_loadu_si256(tap));
      b = _mm256_add_epi32(b, _mm256_loadu_si256(tap + 1));
      c = _mm256_add_epi32(c, _mm256_loadu_si256(tap + 2));
      d = _mm256_add_epi32(d, _mm256_loadu_si256(tap + 3));
    }
    auto* sums = reinterpret_cast<Unaligned*>(to + lane);
    _mm256_storeu_si256(sums, a);
    _mm256_storeu_si256(sums + 1, b);
    _mm256_storeu_si256(sums + 2, c);
    _mm256_storeu_si256(sums + 3, d);
  }
  constexpr int64_t vector_lanes = at_once / 4;
  for (; lane + vector_lanes <= lanes; lane += vector_lanes) {
    __m256i sum = _mm256_setzero_si256();
    for (const int64_t offset : offsets) {
      const auto* tap = reinterpret_cast<const Unaligned*>(from + lane + offset);
      sum = _mm256_add_epi32(sum, _mm256_loadu_si256(tap));
    }
    _mm256_storeu_si256(reinterpret_cast<Unaligned*>(to + lane), sum);
  }
  for (; lane < lanes; ++lane) {
    uint32_t sum = 0;
    for (const int64_t offset : offsets) sum += static_cast<uint32_t>(from[lane + offset]);
    to[lane] = static_cast<int32_t>(sum);
  }
}

/// Lanes that are summed for the largest block, for each pair of stride phases.
int64_t summed_lanes(const BoundDense& bound) {
  return std::ssize(bound.blocks.front().window_sums) * bound.plan.lanes;
}

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
    const PixelRange sums = sums_lanes_first(plan_)     ? sum_lanes(tiles)
                            : convolution_.sums.code    ? sum_line(tiles)
                            : plan_.planes() != nullptr ? sum_k_groups(tiles)
                                                        : sum_rows();
    const std::span summed(sums_ + sums.begin, sums_ + sums.end);
    if (convolution_.window_sums == jit::WindowSums::i16_pairs) {
      std::ranges::transform(summed, summed.begin(), jit::pair_of_sum);
    } else if (convolution_.window_sums == jit::WindowSums::products && !convolution_.sums.code) {
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
    auto* work = int32_at(convolution_, block_, &DenseScratch::summing);
    const std::byte* source =
        block_.source + source_bytes_before(plan_, block_.place, block_.inner);
    set_row_window_sums(plan_, block_.inner.block, convolution_.target.tuning().dense, source, work,
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
  PixelRange sum_k_groups(const PixelTiles& tiles) const {
    const PixelRange lanes = lanes_of(tiles);
    std::fill(sums_ + lanes.begin, sums_ + lanes.end, 0);
    for (int64_t k_group = 0; k_group < plan_.looped_k_groups(); ++k_group) {
      const int64_t left = plan_.geometry.group_channels() - 4 * (k_group % plan_.k_groups);
      const uint32_t present = left < 4 ? (1u << (8 * left)) - 1 : ~0u;
      const std::byte* planes = block_.source + k_group * plan_.k_group_step();
      for (int32_t tap : plan_.k_steps) add_k_group(planes + tap, present, lanes);
    }
    return lanes;
  }

  /// Adds the bytes of each lane's k group that are `present` to the lane's sum. Signed ones are
  /// less by 128 than with their highest bits inverted.
  void add_k_group(const std::byte* from, uint32_t present, const PixelRange& lanes) const {
    const bool is_signed = plan_.engine == jit::ProductEngine::i8_u8_dot;
    const uint32_t inverted = is_signed ? present & 0x80808080 : 0;
    const auto less = static_cast<uint32_t>(128 * std::popcount(inverted));
    for (int64_t lane = lanes.begin; lane < lanes.end; ++lane) {
      uint32_t k_group = 0;
      std::memcpy(&k_group, from + 4 * lane, sizeof k_group);
      k_group = (k_group ^ inverted) & present;
      const uint32_t bytes = (k_group & 0xff) + (k_group >> 8 & 0xff) + (k_group >> 16 & 0xff) +
                             (k_group >> 24) - less;
      sums_[lane] = static_cast<int32_t>(static_cast<uint32_t>(sums_[lane]) + bytes);
    }
  }

  /// The line from the inner part's first pixel to its last one.
  PixelRange inner_line() const {
    const int64_t first = source_bytes_before(plan_, block_.place, block_.inner) / 4;
    const jit::CacheBlock& inner = block_.inner.block;
    return {first, first + (inner.rows - 1) * plan_.planes()->pitch + inner.columns};
  }

  /// Adds up all channels of each lane, then the lanes of windows. Gives which sums they are.
  PixelRange sum_lanes(const PixelTiles& tiles) const {
    const auto& input = *plan_.planes();
    const bool by_lane = plan_.is_pixel_vectorised();
    PixelRange first_lanes = by_lane ? lanes_of(tiles) : inner_line();
    first_lanes.end = std::min(first_lanes.end, plan_.lane_count(block_.tables.block));
    if (first_lanes.begin >= first_lanes.end) return {0, 0};  // lanes that only fill a tile
    const PixelRange read = {first_lanes.begin, first_lanes.end + input.window_reach()};
    const int64_t lanes = summed_lanes(convolution_);
    int32_t* const work = int32_at(convolution_, block_, &DenseScratch::summing);
    const int64_t step = plan_.k_group_step() / input.stride_phases();
    for (int64_t stride_phase = 0; stride_phase < input.stride_phases(); ++stride_phase) {
      sum_channels(stride_phase * step, read, work + stride_phase * lanes);
    }
    add_rows(first_lanes, work, lanes);
    if (by_lane) {
      add_columns(first_lanes, work, sums_ + first_lanes.begin);
      return first_lanes;
    }
    const PixelRange pixels = inner_pixels();
    const jit::CacheBlock& inner = block_.inner.block;
    for (int64_t row = 0; row < inner.rows; ++row) {
      const int64_t first = first_lanes.begin + row * input.pitch;
      add_columns({first, first + inner.columns}, work,
                  sums_ + pixels.begin + row * block_.place.block.columns);
    }
    return pixels;
  }

  /// Adds up rows, wherever windows that begin at those lanes have columns. `work` has
  /// `lanes` sums for each pair of stride phases.
  void add_rows(const PixelRange& first_lanes, int32_t* work, int64_t lanes) const {
    const jit::StridePhases& columns = plan_.planes()->column_phases;
    const int64_t count = first_lanes.end + columns.max_shift - first_lanes.begin;
    for (int64_t column = 0; column < columns.count(); ++column) {
      int32_t* at = work + column * lanes + first_lanes.begin;
      sum_taps(convolution_.sums.row_taps, at, count, at);
    }
  }
  /// Adds up columns, whose rows are added up.
  void add_columns(const PixelRange& first_lanes, const int32_t* work, int32_t* to) const {
    sum_taps(convolution_.sums.column_taps, work + first_lanes.begin,
             first_lanes.end - first_lanes.begin, to);
  }

  /// The sums of the channels of some lanes, `before` bytes into the source.
  void sum_channels(int64_t before, const PixelRange& lanes, int32_t* to) const {
    const int64_t of_tile = plan_.lanes * jit::window_sum_tile(plan_).vectors;
    jit::DenseArguments arguments = k_steps_of(plan_, block_);
    arguments.source += before;
    arguments.k_steps = convolution_.sums.k_steps.data();
    arguments.k_step_count = std::ssize(convolution_.sums.k_steps);
    run_sums_code(lanes.begin / of_tile, ceil_div(lanes.end, of_tile), to, arguments);
  }

  /// Ones, or, where sums are products, zero points.
  const int32_t* weights_of_sums() const {
    if (convolution_.window_sums != jit::WindowSums::products) {
      return convolution_.sums.weights.data();
    }
    int32_t* scaled = int32_at(convolution_, block_, &DenseScratch::sums_weights);
    std::ranges::transform(convolution_.sums.weights, scaled, [&](int32_t one) {
      return static_cast<int32_t>(static_cast<uint32_t>(one) * (zero_point_ & 0xff));
    });
    return scaled;
  }

  /// Runs the kernel that sums on some of its tiles.
  void run_sums_code(int64_t first, int64_t last, int32_t* to,
                     jit::DenseArguments& arguments) const {
    constexpr int32_t zero = 0;
    const int vectors = jit::window_sum_tile(plan_).vectors;
    arguments.tiles = last - first;
    arguments.weights = reinterpret_cast<const std::byte*>(weights_of_sums());
    arguments.start = &zero;
    arguments.stores = block_.tables.window_sums.data() + first * vectors;
    arguments.output = to;
    convolution_.sums.code->call(&arguments);
  }

  /// Sums of all lanes of a line; of channel-vectorised plans, of adjacent pixels.
  PixelRange sum_line(const PixelTiles& tiles) const {
    const bool compact = !plan_.is_pixel_vectorised();
    const int64_t lanes = plan_.lanes * jit::window_sum_tile(plan_).vectors;
    const PixelRange summed = compact ? inner_line() : lanes_of(tiles);
    const int64_t first = summed.begin / lanes;
    const int64_t last =
        std::min(ceil_div(summed.end, lanes),
                 static_cast<int64_t>(block_.tables.window_sums.size()) * plan_.lanes / lanes);
    jit::DenseArguments arguments = k_steps_of(plan_, block_);
    run_sums_code(first, last, sums_, arguments);
    return compact ? inner_pixels() : PixelRange{first * lanes, last * lanes};
  }

  const BoundDense& convolution_;
  const jit::DensePlan& plan_;
  const PackedBlock& block_;
  const uint32_t zero_point_;  ///< modulo 2^32, as sums are
  int32_t* sums_;
};

/// Every k step counts each element of its k group that there is once.
int32_t ones(int64_t count) { return static_cast<int32_t>(0x01010101u >> (8 * (4 - count))); }

}  // namespace

void set_sums_k_steps(BoundDense& bound) {
  const jit::DensePlan& plan = bound.plan;
  for (const jit::KStepWeights& k_step : plan.k_step_weights) {
    bound.sums.weights.push_back(
        ones(std::ranges::count_if(k_step, [](int32_t at) { return at >= 0; })));
  }
  if (!bound.sums.weights.empty()) return;
  const bool by_lane = sums_lanes_first(plan);
  const int64_t k_steps_of_group = by_lane ? 1 : plan.rows.kernel * plan.columns.kernel;
  for (int64_t k_group = 0; k_group < plan.slices * plan.k_groups; ++k_group) {
    const int64_t left = plan.geometry.group_channels() - 4 * (k_group % plan.k_groups);
    if (by_lane) bound.sums.k_steps.push_back(static_cast<int32_t>(k_group * plan.k_group_step()));
    bound.sums.weights.insert(bound.sums.weights.end(), static_cast<size_t>(k_steps_of_group),
                              ones(std::min<int64_t>(left, 4)));
  }
}

void set_sums_taps(BoundDense& bound) {
  if (!bound.sums.code || !sums_lanes_first(bound.plan)) return;
  const auto& input = *bound.plan.planes();
  const jit::StridePhases& rows = input.row_phases;
  const jit::StridePhases& columns = input.column_phases;
  const int64_t lanes = summed_lanes(bound);
  for (size_t r = 0; r < rows.shifts.size(); ++r) {
    bound.sums.row_taps.push_back(rows.of_tap[r] * columns.count() * lanes +
                                  rows.shifts[r] * input.pitch);
  }
  for (size_t s = 0; s < columns.shifts.size(); ++s) {
    bound.sums.column_taps.push_back(columns.of_tap[s] * lanes + columns.shifts[s]);
  }
}

int64_t window_sum_work(const BoundDense& bound) {
  const jit::DensePlan& plan = bound.plan;
  if (bound.window_sums == jit::WindowSums::none) return 0;
  if (plan.planes() != nullptr) {
    return sums_lanes_first(plan) ? plan.planes()->stride_phases() * summed_lanes(bound) : 0;
  }
  return row_window_sum_work(plan);
}

void sum_block(const BoundDense& convolution, const PackedBlock& block, const PixelTiles& tiles,
               int32_t zero_point) {
  BlockSummer(convolution, block, zero_point).sum(tiles);
}

}  // namespace castor::detail
