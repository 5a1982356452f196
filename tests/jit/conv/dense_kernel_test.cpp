// SPDX-License-Identifier: Apache-2.0
// The dense microkernel in every register tile that fits: its instructions belong to the tier,
// tiers that this machine cannot run included, and on its own it computes sums of products.
#include "jit/conv/dense/tile_spec.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/conversions.hpp"
#include "tests/support/dense_tiles.hpp"
#include "tests/support/kernel_code.hpp"

namespace castor::jit {
namespace {

class DenseKernel : public testing::TestWithParam<Tier> {};

TEST_P(DenseKernel, InstructionsBelongToTheTier) {
  const Target target{GetParam()};
  for (const auto& tiles : {input_tiles_of(target), tiles_of(target), channel_tiles_of(target)}) {
    for (const DenseTile& tile : tiles) {
      test::check_kernel_code([&] { return emit_kernel(tile, target); }, target, name_of(tile));
      if (HasFatalFailure()) return;
    }
  }
}

/// Products are those of the tier: saturating ones are nowhere.
TEST_P(DenseKernel, MultipliesAsTheTierCan) {
  const Target target{GetParam()};
  const bool bytes = product_engine_of(target) == ProductEngine::u8_i8_dot;
  EXPECT_EQ(bytes, target.supports(Feature::avx_vnni) || target.supports(Feature::avx512_vnni));
  for (const DenseTile& tile : tiles_of(target)) {
    const int64_t products = test::dot_products_in(*emit_kernel(tile, target), target);
    EXPECT_GE(products, tile.channels * tile.vectors) << name_of(tile);
    EXPECT_EQ(products % (tile.channels * tile.vectors), 0) << name_of(tile);
  }
  for (const DenseTile& tile : channel_tiles_of(target)) {
    const int64_t products = test::dot_products_in(*emit_kernel(tile, target), target);
    const int in_a_k_step = tile.rows() * tile.vectors_of(target.vector_bits() / 32);
    EXPECT_EQ(products, 3 * in_a_k_step) << name_of(tile);  // two in the loop, an odd or peeled one
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, DenseKernel, testing::ValuesIn(test::all_tiers), test::name_of_row);

/// Random operands of a kernel, and its sums.
class KernelOperands {
 public:
  const DenseArguments* arguments() const { return &arguments_; }
  const std::vector<int32_t>& output() const { return output_; }

 protected:
  static constexpr int max_offset = 40;
  static constexpr int32_t untouched = 0x5a5a5a5a;

  /// `inputs` k groups of input, `channels` of each k step's weights, `sums` window sums.
  KernelOperands(const DenseTile& tile, int inputs, int channels, int sums, int k_steps,
                 std::mt19937_64& random)
      : tile_(tile), channels_(channels), random_(random) {
    fill(inputs_, inputs + max_offset);
    fill(weights_, k_steps * channels);
    fill(start_, channels);
    fill(zero_points_, channels);
    fill(window_sums_, sums);
    for (int i = 0; i < k_steps; ++i) offsets_.push_back(4 * draw(max_offset + 1));
  }

  void set_arguments(int output_size, int output_step, int tiles) {
    output_.assign(static_cast<size_t>(output_size), untouched);
    arguments_ = {.source = reinterpret_cast<const std::byte*>(inputs_.data()),
                  .k_steps = offsets_.data(),
                  .k_step_count = static_cast<int64_t>(offsets_.size()),
                  .weights = reinterpret_cast<const std::byte*>(weights_.data()),
                  .start = start_.data(),
                  .weight_zero_points = zero_points_.data(),
                  .window_sums = window_sums_.data(),
                  .output = output_.data(),
                  .output_step = 4 * output_step,
                  .tiles = tiles};
  }

  int draw(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }
  void fill(std::vector<int32_t>& to, int count) {
    for (int i = 0; i < count; ++i) {
      const int kind = draw(8);  // extremes of bytes and words among them
      to.push_back(kind == 0   ? -1
                   : kind == 1 ? int32_t(0x80808080)
                               : static_cast<int32_t>(random_()));
    }
  }

  /// Modulo 2^32; each product of words is of 32 bits.
  uint32_t dot(int32_t pixels, int32_t weights) const {
    uint32_t sum = 0;
    const bool bytes = multiplies_bytes(tile_.engine);
    const int width = bytes ? 8 : 16;
    if (tile_.engine == ProductEngine::i8_u8_dot) std::swap(pixels, weights);
    if (tile_.has_sign_flip) pixels ^= static_cast<int32_t>(0x80808080);
    for (int shift = 0; shift < 32; shift += width) {
      const auto a = static_cast<uint32_t>(pixels) >> shift;
      const auto b = static_cast<uint32_t>(weights) >> shift;
      sum += bytes ? static_cast<uint32_t>(static_cast<uint8_t>(a) * static_cast<int8_t>(b))
                   : static_cast<uint32_t>(static_cast<int16_t>(a) * static_cast<int16_t>(b));
    }
    return sum;
  }

  /// The sum of a channel at a pixel: the number of its k group, and of its window sum.
  int32_t value(int channel, int pixel, int window_sum) const {
    const auto m = static_cast<size_t>(channel);
    auto sum = static_cast<uint32_t>(start_[m]);
    for (size_t k = 0; k < offsets_.size(); ++k) {
      sum += dot(inputs_[static_cast<size_t>(pixel + offsets_[k] / 4)],
                 weights_[k * static_cast<size_t>(channels_) + m]);
    }
    const int32_t window = window_sums_[static_cast<size_t>(window_sum)];
    if (tile_.window_sums == WindowSums::products) {
      sum -= static_cast<uint32_t>(window);
    } else if (tile_.window_sums == WindowSums::i32) {
      sum -= static_cast<uint32_t>(window) * static_cast<uint32_t>(zero_points_[m]);
    } else if (tile_.window_sums == WindowSums::i16_pairs) {
      for (int word = 0; word < 2; ++word) {
        sum += static_cast<uint32_t>(static_cast<int16_t>(window >> 16 * word) *
                                     static_cast<int16_t>(zero_points_[m] >> 16 * word));
      }
    }
    return static_cast<int32_t>(sum);
  }

  const DenseTile& tile_;
  const int channels_;
  std::mt19937_64& random_;
  std::vector<int32_t> inputs_, weights_, start_, zero_points_, window_sums_, offsets_, output_;
  DenseArguments arguments_;
};

/// One call of a pixel-vectorised kernel, and what it must leave.
class KernelCall : public KernelOperands {
 public:
  KernelCall(const DenseTile& tile, const Target& target, int k_steps, int tiles,
             std::mt19937_64& random)
      : KernelOperands(tile, pixels(tile, target, tiles), tile.channels,
                       pixels(tile, target, tiles), k_steps, random),
        lanes_(target.vector_bits() / 32),
        vectors_(tiles * tile.vectors) {
    draw_stores();
    set_arguments(tile.channels * channel_dwords_, channel_dwords_, tiles);
    arguments_.stores = stores_.data();
  }

  std::vector<int32_t> expected() const {
    std::vector<int32_t> all(output_.size(), untouched);
    for (int channel = 0; channel < tile_.channels; ++channel) {
      for (int vector = 0; vector < vectors_; ++vector) {
        const ConvStore& store = stores_[static_cast<size_t>(vector)];
        auto to = static_cast<size_t>(channel * channel_dwords_ + store.pixel);
        for (int lane = 0; lane < lanes_; ++lane) {
          if ((store.lanes >> lane & 1) != 0) {
            const int pixel = vector * lanes_ + lane;
            all[to++] = value(channel, pixel, pixel);
          }
        }
      }
    }
    return all;
  }

 private:
  static int pixels(const DenseTile& tile, const Target& target, int tiles) {
    return tiles * tile.vectors * target.vector_bits() / 32;
  }

  /// Without gaps all lanes but the last ones of the line.
  void draw_stores() {
    const int of_last_tile = draw(tile_.vectors * lanes_ + 1);
    const int stored_lanes = (vectors_ - tile_.vectors) * lanes_ + of_last_tile;
    int stored = 3;
    for (int vector = 0; vector < vectors_; ++vector) {
      const uint32_t all = (1u << lanes_) - 1;
      ConvStore store;
      store.pixel = stored;
      store.source = int64_t{4} * vector * lanes_;
      store.lanes = has_dead_lanes(tile_) ? static_cast<uint32_t>(random_()) & all : all;
      const int end = std::clamp(stored_lanes - vector * lanes_, 0, lanes_);
      store.lanes &= all >> (lanes_ - end);
      int count = 0;
      for (int lane = 0; lane < lanes_; ++lane) {
        if ((store.lanes >> lane & 1) == 0) continue;
        store.order[count] = lane;
        store.stored[count++] = -1;
      }
      store.first_lanes = (1u << count) - 1;
      stored += count;
      stores_.push_back(store);
    }
    channel_dwords_ = stored + 5;
  }

  const int lanes_;
  const int vectors_;
  std::vector<ConvStore> stores_;
  int channel_dwords_ = 0;
};

/// One call of a channel-vectorised kernel, and what it must leave: tiles whose pixels follow each
/// other in the output, and begin anywhere in the input.
class ChannelKernelCall : public KernelOperands {
 public:
  ChannelKernelCall(const DenseTile& tile, const Target& target, int k_steps, int tiles,
                    std::mt19937_64& random)
      : KernelOperands(tile, max_source + max_extent, width(tile, target), tiles * tile.pixels(),
                       k_steps, random),
        transposes_(tile.store == StorePolicy::transposed),
        step_((transposes_ ? tiles * tile.pixels() : tile.channels) + 3) {
    for (int i = 0; i < tiles; ++i) {
      origins_.push_back({int64_t{i} * tile.pixels(), 4 * draw(max_source)});
    }
    const int rows = transposes_ ? tile.channels : tiles * tile.pixels();
    set_arguments(rows * step_, step_, tiles);
    arguments_.places = origins_.data();
  }

  std::vector<int32_t> expected() const {
    std::vector<int32_t> all(output_.size(), untouched);
    for (const TileOrigin& first : origins_) {
      for (int i = 0; i < tile_.pixels(); ++i) {
        const auto source = (first.source + i / tile_.columns * tile_.row_step +
                             i % tile_.columns * tile_.pixel_step) /
                            4;
        const int pixel = static_cast<int>(first.pixel) + i;
        for (int channel = 0; channel < tile_.channels; ++channel) {
          const int to = transposes_ ? channel * step_ + pixel : pixel * step_ + channel;
          all[static_cast<size_t>(to)] = value(channel, static_cast<int>(source), pixel);
        }
      }
    }
    return all;
  }

 private:
  static constexpr int max_source = 60;
  static constexpr int max_extent = 3 * 512 / 4;

  static int width(const DenseTile& tile, const Target& target) {
    const int lanes = target.vector_bits() / 32;
    return tile.vectors_of(lanes) * lanes;
  }

  const bool transposes_;
  const int step_;
  std::vector<TileOrigin> origins_;
};

/// Words of sums and zero points multiply to what they stand for.
TEST(DenseKernelValues, WindowSumsAsWords) {
  for (int32_t zero_point = -255; zero_point <= 255; ++zero_point) {
    for (int32_t sum = 0; sum < end_of_pair_sums; sum += sum < 70'000 ? 1 : 9973) {
      const int32_t sums = pair_of_sum(sum);
      const int32_t zeros = pair_of_zero_point(zero_point);
      int64_t product = 0;
      for (int word = 0; word < 2; ++word) {
        product +=
            static_cast<int16_t>(sums >> 16 * word) * static_cast<int16_t>(zeros >> 16 * word);
      }
      ASSERT_EQ(product, -int64_t{sum} * zero_point) << sum;
    }
  }
}

template <class Call>
void check_values(const std::vector<DenseTile>& tiles, const Target& target,
                  std::mt19937_64& random) {
  for (const DenseTile& tile : tiles) {
    const PublishedKernel run(tile, target);
    ASSERT_TRUE(run.ok()) << name_of(tile);
    for (const int k_steps : {1, 2, 3, 4, 10, 11}) {
      if (!can_have_k_steps(tile, k_steps)) continue;
      for (const int count : {1, 3}) {
        const Call call(tile, target, k_steps, count, random);
        run(call.arguments());
        ASSERT_EQ(call.output(), call.expected())
            << jit::name_of(target.tier) << ", " << name_of(tile) << ", " << k_steps << " k steps";
      }
    }
  }
}

TEST(DenseKernelValues, EveryTile) {
  std::mt19937_64 random(7);
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    const Target target{tier};
    check_values<KernelCall>(tiles_of(target), target, random);
    check_values<ChannelKernelCall>(channel_tiles_of(target), target, random);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace castor::jit
