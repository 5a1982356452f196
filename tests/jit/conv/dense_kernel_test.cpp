// SPDX-License-Identifier: Apache-2.0
// The dense microkernel in every register tile that fits: its instructions belong to the tier,
// tiers that this machine cannot run included, and on its own it computes sums of products.
#include "jit/conv/dense/tile_spec.hpp"

#include <gtest/gtest.h>

#include <random>

#include "jit/kernel/spec_words.hpp"
#include "jit/memory/code_memory.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/kernel_code.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::jit {
namespace {

/// Ways to subtract window sums.
std::vector<WindowSums> sums_of(const Target& target) {
  std::vector<WindowSums> all = {WindowSums::none, WindowSums::products, WindowSums::i32};
  if (product_engine_of(target) == ProductEngine::u8_i8_dot) all.push_back(WindowSums::i16_pairs);
  return all;
}

/// Pixel-vectorised tiles.
std::vector<DenseTile> tiles_of(const Target& target) {
  std::vector<DenseTile> tiles;
  for (int channels = 1; channels <= target.vector_registers(); ++channels) {
    for (int vectors = 1; vectors <= target.vector_registers(); ++vectors) {
      for (const WindowSums sums : sums_of(target)) {
        for (const bool gaps : {false, true}) {
          for (const int peeled : {0, 1, 3, 4}) {
            if (peeled > 0 && (gaps || !target.has_avx512())) continue;
            DenseTile tile = {.engine = product_engine_of(target),
                              .channels = channels,
                              .vectors = vectors,
                              .window_sums = sums,
                              .store = gaps ? StorePolicy::compressed : StorePolicy::rows,
                              .peeled_k_steps = peeled,
                              .group_rows = rows_of_group(vectors, target)};
            if (!fits(tile, target)) continue;
            tiles.push_back(tile);
            if (tile.engine != ProductEngine::u8_i8_dot || channels % 3 != 2) continue;
            tile.engine = ProductEngine::i8_u8_dot;
            tiles.push_back(tile);
          }
        }
      }
    }
  }
  return tiles;
}

/// Channel-vectorised tiles: of one row of pixels, of every size, and of several rows.
std::vector<DenseTile> channel_tiles_of(const Target& target) {
  const int lanes = target.vector_bits() / 32;
  const std::vector<WindowSums> sums = sums_of(target);
  std::vector<DenseTile> tiles;
  for (int channels = 1; channels <= 6 * lanes; channels += channels % lanes < 2 ? 1 : lanes / 2) {
    for (int columns = 1; columns <= target.vector_registers(); ++columns) {
      for (int rows : {1, 2, 3}) {
        for (int options = 0; options < 32; ++options) {
          const size_t way = 1 + static_cast<size_t>(channels + columns) % (sums.size() - 1);
          DenseTile tile = {
              .vectorised = Vectorised::channels,
              .engine = product_engine_of(target),
              .channels = channels,
              .pixel_rows = rows,
              .columns = columns,
              .pixel_step = 8,
              .row_step = rows > 1 ? 512 : 0,
              .window_sums = (options & 1) != 0 ? sums[way] : WindowSums::none,
              .store = (options & 2) != 0 ? StorePolicy::transposed : StorePolicy::rows,
              .peeled_k_steps = (options & 4) != 0 ? 4 : 0,
              .group_rows = rows_of_group(1 + (channels - 1) / lanes, target)};
          tile.has_sign_flip = (options & 8) != 0;
          tile.transposes_registers = (options & 16) != 0;
          if (fits(tile, target)) tiles.push_back(tile);
        }
      }
    }
  }
  return tiles;
}

bool has_dead_lanes(const DenseTile& tile) { return tile.store == StorePolicy::compressed; }

/// Peeled k steps follow an even number of others.
bool can_have_k_steps(const DenseTile& tile, int k_steps) {
  if (tile.peeled_k_steps == 0) return true;
  return k_steps >= tile.peeled_k_steps && (k_steps - tile.peeled_k_steps) % 2 == 0;
}

std::string name_of(const DenseTile& tile) { return short_name(spec_words(tile)); }

class DenseKernel : public testing::TestWithParam<Tier> {};

/// Tiles that take their pixels from the input.
std::vector<DenseTile> input_tiles_of(const Target& target) {
  std::vector<DenseTile> tiles;
  if (!target.supports(Feature::avx512_vbmi)) return tiles;
  for (DenseTile tile : tiles_of(target)) {
    if (has_dead_lanes(tile) || tile.window_sums != WindowSums::none) continue;
    for (const PixelSource source : {PixelSource::input, PixelSource::signed_input}) {
      tile.source = source;
      tiles.push_back(tile);
      DenseTile once = tile;
      once.reads_input_once = true;
      once.peeled_k_steps = once.group_rows = 0;
      tiles.push_back(once);
      once.window_sums = WindowSums::own;
      if (fits(once, target)) tiles.push_back(once);
      DenseTile stores_sums = tile;
      stores_sums.window_sums = WindowSums::own_products;
      if (fits(stores_sums, target)) tiles.push_back(stores_sums);
    }
  }
  return tiles;
}

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
    int stored = 3;
    for (int vector = 0; vector < vectors_; ++vector) {
      const uint32_t all = (1u << lanes_) - 1;
      ConvStore store;
      store.pixel = stored;
      store.source = int64_t{4} * vector * lanes_;
      store.lanes = has_dead_lanes(tile_) ? static_cast<uint32_t>(random_()) & all : all;
      if (vector + 1 == vectors_) store.lanes &= all >> draw(lanes_ + 1);
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

/// A kernel that can be called.
class PublishedKernel {
 public:
  PublishedKernel(const DenseTile& tile, const Target& target)
      : block_(memory_.publish(*emit_kernel(tile, target))) {}
  void operator()(const DenseArguments* arguments) const {
    reinterpret_cast<KernelFunction<DenseTile>>(reinterpret_cast<uintptr_t>(block_->code()))(
        arguments);
  }
  bool ok() const { return block_.ok(); }

 private:
  CodeMemory memory_;
  Result<CodeBlock> block_;
};

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

/// A call of a kernel that takes its pixels from the input: channels between pages that nobody may
/// touch, nchw4c planes that must hold them afterwards.
void check_tile_of_input(const DenseTile& tile, const PublishedKernel& run, int taps, int tiles,
                         std::mt19937_64& random) {
  const int pixels = tiles * tile.vectors * 16;
  test::GuardedPages pages(static_cast<size_t>(4 * taps * pixels));
  std::byte* input = pages.at_end(static_cast<size_t>(4 * taps * pixels));
  for (int i = 0; i < 4 * taps * pixels; ++i) input[i] = static_cast<std::byte>(random());
  std::vector<int32_t> weights(static_cast<size_t>(taps * tile.channels));
  for (int32_t& weight : weights) weight = static_cast<int32_t>(random());
  std::vector<int32_t> start(static_cast<size_t>(tile.channels));
  for (int32_t& value : start) value = static_cast<int32_t>(random());
  std::vector<int32_t> zero_points(static_cast<size_t>(tile.channels));
  for (int32_t& value : zero_points) value = static_cast<int32_t>(random() % 511) - 255;
  std::vector<uint32_t> planes(static_cast<size_t>(taps * pixels));
  std::vector<int32_t> output(static_cast<size_t>(tile.channels * pixels));
  std::vector<int32_t> offsets;
  for (int tap = 0; tap < taps; ++tap) offsets.push_back(4 * tap * pixels);
  std::vector<ConvStore> stores(static_cast<size_t>(tiles * tile.vectors));
  for (size_t i = 0; i < stores.size(); ++i) {
    stores[i].pixel = static_cast<int64_t>(16 * i);
    stores[i].source = 4 * stores[i].pixel;
    stores[i].lanes = stores[i].first_lanes = 0xffff;
  }
  std::vector<int32_t> stored_sums(static_cast<size_t>(pixels), 0x5a5a5a5a);
  const auto zero_point = static_cast<int8_t>(random());
  const DenseArguments arguments = {
      .source = reinterpret_cast<const std::byte*>(planes.data()),
      .k_steps = offsets.data(),
      .k_step_count = taps,
      .weights = reinterpret_cast<const std::byte*>(weights.data()),
      .start = start.data(),
      .weight_zero_points = zero_points.data(),
      .window_sums = stored_sums.data(),
      .stores = stores.data(),
      .output = output.data(),
      .output_step = 4 * pixels,
      .tiles = tiles,
      .input = input,
      .input_step = pixels,
      .zero_point_bytes = static_cast<uint8_t>(zero_point) * 0x01010101u};
  run(&arguments);
  const uint8_t flip = tile.source == PixelSource::signed_input ? 0x80 : 0;
  const bool is_exchanged = tile.engine == ProductEngine::i8_u8_dot;
  for (int pixel = 0; pixel < pixels; ++pixel) {
    std::vector<uint32_t> sums(start.begin(), start.end());
    uint32_t window_sum = 0;
    for (int tap = 0; tap < taps; ++tap) {
      uint32_t dword = 0;
      for (int i = 0; i < 4; ++i) {
        const auto x = static_cast<uint8_t>(
            static_cast<uint8_t>(input[(4 * tap + i) * pixels + pixel]) ^ flip);
        dword |= uint32_t{x} << (8 * i);
        const int value = is_exchanged ? static_cast<int8_t>(x) : x;
        window_sum += static_cast<uint32_t>(value);
        for (int m = 0; m < tile.channels; ++m) {
          const auto w = static_cast<uint8_t>(
              static_cast<uint32_t>(weights[static_cast<size_t>(tap * tile.channels + m)]) >>
              8 * i);
          sums[static_cast<size_t>(m)] +=
              static_cast<uint32_t>(value * (is_exchanged ? w : static_cast<int8_t>(w)));
        }
      }
      const uint32_t packed = planes[static_cast<size_t>(tap * pixels + pixel)];
      ASSERT_EQ(packed, tile.reads_input_once ? 0 : dword) << name_of(tile);
    }
    const uint32_t products = window_sum * static_cast<uint32_t>(int32_t{zero_point});
    const bool stores_sums = tile.window_sums == WindowSums::own_products;
    ASSERT_EQ(static_cast<uint32_t>(stored_sums[static_cast<size_t>(pixel)]),
              stores_sums ? products : 0x5a5a5a5a)
        << name_of(tile);
    for (int m = 0; m < tile.channels; ++m) {
      if (stores_sums) sums[static_cast<size_t>(m)] -= products;
      if (tile.window_sums == WindowSums::own) {
        sums[static_cast<size_t>(m)] -=
            window_sum * static_cast<uint32_t>(zero_points[static_cast<size_t>(m)]);
      }
      ASSERT_EQ(static_cast<uint32_t>(output[static_cast<size_t>(m * pixels + pixel)]),
                sums[static_cast<size_t>(m)])
          << name_of(tile) << ", " << taps << " taps";
    }
  }
}

TEST(DenseKernelValues, EveryTileOfInput) {
  std::mt19937_64 random(8);
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    const Target target{tier};
    for (const DenseTile& tile : input_tiles_of(target)) {
      const PublishedKernel run(tile, target);
      ASSERT_TRUE(run.ok()) << name_of(tile);
      for (const int taps : {1, 3, 4, 6, 7}) {
        if (!can_have_k_steps(tile, taps)) continue;
        check_tile_of_input(tile, run, taps, 2, random);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace castor::jit
