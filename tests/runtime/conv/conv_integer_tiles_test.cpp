// SPDX-License-Identifier: Apache-2.0
// Convolutions by tile registers (AMX): what they do is what the plan counts, no row of a tile
// crosses a cache line where the layout promises it, and the configuration of a caller that has
// tiles of its own stays.
#include <gtest/gtest.h>
#include <xbyak/xbyak.h>

#include <array>
#include <cstring>
#include <random>

#include "castor/castor.hpp"
#include "jit/conv/candidates.hpp"
#include "jit/tile_permission.hpp"
#include "tests/support/conversions.hpp"
#include "tools/emulator/tiles.hpp"

namespace castor::test {
namespace {

constexpr const char* layer =
    "func @f(%x: u8[1, 14, 14, 64], %w: i8[64, 64, 3, 3]) -> (i32[1, 14, 14, 64]) {\n"
    "  %y = conv_integer %x, %w {layout = nhwc, pads = [1, 1, 1, 1]}\n  return %y\n}\n";

jit::DensePlan plan_of_layer() {
  const ConvolutionOptions options = {.layout = ConvolutionLayout::nhwc, .pads = {1, 1, 1, 1}};
  const Operation operation{.op = OpKind::conv_integer, .attributes = attributes_of(options)};
  jit::ConvolutionProblem problem;
  problem.geometry =
      convolution_geometry(operation, {1, 14, 14, 64}, {64, 64, 3, 3}, nullptr, nullptr).value();
  problem.has_constant_weights = false;
  const jit::Candidate chosen = choose(problem, {Tier::amx, jit::host().caches});
  return std::get<jit::DensePlan>(chosen.plan);
}

/// The layer on tier amx with random operands.
class LayerCall {
 public:
  LayerCall() {
    RuntimeOptions options;
    options.tier = Tier::amx;
    options.core = Core::generic;  // as plan_of_layer
    runtime_ = Runtime::create(options).value();
    std::mt19937_64 random(1);
    for (auto& x : x_) x = static_cast<uint8_t>(random());
    for (auto& w : w_) w = static_cast<int8_t>(random());
    kernel_ = runtime_->compile(layer).value();
    views_ = {ConstView{x_.data(), ElementType::u8, {1, 14, 14, 64}, x_.size()},
              ConstView{w_.data(), ElementType::i8, {64, 64, 3, 3}, w_.size()}};
    const View y = output();
    bound_ = kernel_->bind(views_, {&y, 1}).value();
  }

  void run() {
    const View y = output();
    ASSERT_TRUE(bound_->run(views_, {&y, 1}).ok());
  }

  /// One result, by the definition.
  int32_t expected(int row, int column, int channel) const {
    int32_t sum = 0;
    for (int r = 0; r < 3; ++r) {
      for (int s = 0; s < 3; ++s) {
        const int y = row + r - 1;
        const int x = column + s - 1;
        if (y < 0 || y >= 14 || x < 0 || x >= 14) continue;
        for (int c = 0; c < 64; ++c) {
          sum += x_[static_cast<size_t>((y * 14 + x) * 64 + c)] *
                 w_[static_cast<size_t>(((channel * 64 + c) * 3 + r) * 3 + s)];
        }
      }
    }
    return sum;
  }
  int32_t result(int row, int column, int channel) const {
    return y_[static_cast<size_t>((row * 14 + column) * 64 + channel)];
  }

 private:
  View output() { return {y_.data(), ElementType::i32, {1, 14, 14, 64}, 4 * y_.size()}; }

  alignas(64) std::array<uint8_t, 14 * 14 * 64> x_;
  std::array<int8_t, 64 * 64 * 9> w_;
  alignas(64) std::array<int32_t, 14 * 14 * 64> y_ = {};
  std::vector<ConstView> views_;
  std::optional<Runtime> runtime_;
  std::optional<Kernel> kernel_;
  std::optional<BoundKernel> bound_;
};

class ConvIntegerTiles : public testing::Test {
 protected:
  void SetUp() override {
    if (!jit::host().runs(Tier::amx)) GTEST_SKIP() << "the CPU has no AVX-512 to emulate AMX with";
  }
};

TEST_F(ConvIntegerTiles, DoWhatThePlanCounts) {
  if (!jit::host().emulates(Tier::amx)) GTEST_SKIP() << "the CPU's own tiles are not counted";
  const jit::DensePlan plan = plan_of_layer();
  ASSERT_TRUE(plan.tile.has_tiles()) << print(plan);
  uint64_t products = 0;
  uint64_t loads = 0;
  uint64_t stores = 0;
  const auto blocks = static_cast<uint64_t>(plan.rows.output / plan.block.rows *
                                            (plan.columns.output / plan.block.columns));
  for (const jit::TileRun& run : tile_runs(plan, plan.block)) {
    const auto pixels = static_cast<uint64_t>(run.tile.pixel_tiles());
    const auto vectors = static_cast<uint64_t>(run.tile.vectors_of(plan.lanes));
    const auto tiles =
        blocks * static_cast<uint64_t>(run.count) * static_cast<uint64_t>(plan.channel_tiles);
    products += tiles * plan.k_steps.size() * pixels * vectors;
    loads += tiles * (plan.k_steps.size() * (pixels + vectors) + pixels * vectors);  // first values
    stores += tiles * pixels * vectors;
  }
  LayerCall call;
  const emulator::TileCounts before = emulator::tile_counts();
  call.run();
  const emulator::TileCounts after = emulator::tile_counts();
  EXPECT_EQ(after.products - before.products, products);
  EXPECT_EQ(after.loads - before.loads, loads);
  EXPECT_EQ(after.stores - before.stores, stores);
  EXPECT_EQ(products, 14u * 4 * 9) << "each row of 14 pixels by 64 channels, of K = 9 x 64";
}

TEST_F(ConvIntegerTiles, LoadNoRowAcrossCacheLines) {
  if (!jit::host().emulates(Tier::amx)) GTEST_SKIP() << "the CPU's own tiles are not counted";
  LayerCall call;
  const uint64_t before = emulator::tile_counts().split_rows;
  call.run();
  EXPECT_EQ(emulator::tile_counts().split_rows - before, 0u) << print(plan_of_layer());
}

TEST_F(ConvIntegerTiles, GiveWhatTheDefinitionSays) {
  LayerCall call;
  call.run();
  for (int row : {0, 1, 7, 13}) {
    for (int column : {0, 5, 13}) {
      for (int channel : {0, 15, 16, 63}) {
        EXPECT_EQ(call.result(row, column, channel), call.expected(row, column, channel));
      }
    }
  }
}

// ---- a caller with tiles of its own

using Config = std::array<uint8_t, 64>;

/// Loads a configuration, or stores the one there is.
class ConfigCode : public Xbyak::CodeGenerator {
 public:
  explicit ConfigCode(bool loads) {
    loads ? ldtilecfg(ptr[rdi]) : sttilecfg(ptr[rdi]);
    ret();
  }
  void run(Config& config) { getCode<void (*)(Config*)>()(&config); }
};

/// A program that configures its tiles once, as inference engines do: y += a b of 8 rows.
class TileProgram : public Xbyak::CodeGenerator {
 public:
  TileProgram() {
    mov(eax, 64);
    tileloadd(tmm0, ptr[rdx + rax]);
    tileloadd(tmm1, ptr[rdi + rax]);
    tileloadd(tmm2, ptr[rsi + rax]);
    tdpbusd(tmm0, tmm1, tmm2);
    tilestored(ptr[rdx + rax], tmm0);
    ret();
  }
  void run(const void* a, const void* b, void* y) {
    getCode<void (*)(const void*, const void*, void*)>()(a, b, y);
  }
};

Config config_of_8_rows() {
  Config config = {1};
  for (size_t tile = 0; tile < 3; ++tile) {
    config[16 + 2 * tile] = tile == 1 ? 32 : 64;  // bytes of a row: a has 8 k groups
    config[48 + tile] = 8;
  }
  return config;
}

TEST_F(ConvIntegerTiles, LeaveNoConfigurationWhereThereWasNone) {
  ASSERT_TRUE(jit::permit_tiles().ok());
  Config none = {};
  ConfigCode(true).run(none);
  LayerCall call;
  call.run();
  Config found;
  found.fill(0xff);
  ConfigCode(false).run(found);
  EXPECT_EQ(found, Config{});
}

TEST_F(ConvIntegerTiles, RunAlternatelyWithAProgramThatKeepsItsConfiguration) {
  ASSERT_TRUE(jit::permit_tiles().ok());
  Config config = config_of_8_rows();
  ConfigCode(true).run(config);
  TileProgram program;
  LayerCall call;
  std::array<uint8_t, 8 * 64> a = {};
  std::array<int8_t, 8 * 64> b = {};
  std::array<int32_t, 8 * 16> y = {};
  a.fill(2);
  b.fill(-3);
  for (int turn = 1; turn <= 3; ++turn) {
    program.run(a.data(), b.data(), y.data());
    for (const int32_t value : y) ASSERT_EQ(value, turn * 32 * 2 * -3);
    call.run();
    ASSERT_EQ(call.result(3, 4, 5), call.expected(3, 4, 5));
  }
  Config found = {};
  ConfigCode(false).run(found);
  EXPECT_EQ(found, config);
  Config none = {};
  ConfigCode(true).run(none);
}

}  // namespace
}  // namespace castor::test
