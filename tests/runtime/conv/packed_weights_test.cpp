// SPDX-License-Identifier: Apache-2.0
// Packed weights as an object: packed once, shared by kernels and runtimes, gone with the last one.
#include <fmt/format.h>

#include <cstring>
#include <thread>

#include "tests/support/child_process.hpp"
#include "tests/support/counting_memory.hpp"
#include "tests/support/function_case.hpp"

namespace castor {
namespace {

/// A convolution whose weights, and zero points of weights, are constants.
struct Layer {
  const char* name;
  int64_t channels;
  int64_t outputs;
  int64_t group;
  bool nhwc = false;
  bool zero_points = false;
  bool relu = false;     ///< and a conversion after it
  uint64_t content = 1;  ///< what the weights are drawn from
};

constexpr Layer dense = {"dense", 32, 48, 1};
const Layer layers[] = {
    dense,
    {"dense, channels last", 32, 48, 1, true},
    {"dense, zero points", 32, 48, 1, false, true},
    {"groups", 32, 48, 4},
    {"depthwise", 32, 32, 32},
    {"depthwise, zero points", 32, 32, 32, false, true},
    {"depthwise, channels last", 32, 32, 32, true},
    {"groups, channels last", 32, 32, 8, true},
    {"groups, channels last, zero points", 32, 32, 8, true, true},
};

Result<FunctionPtr> function_of(const Layer& layer, const char* name = "f") {
  const std::string w =
      fmt::format("u8[{}, {}, 3, 3]", layer.outputs, layer.channels / layer.group);
  const auto tensor = [&](const char* type, int64_t channels) {
    return layer.nhwc ? fmt::format("{}[?, ?, ?, {}]", type, channels)
                      : fmt::format("{}[?, {}, ?, ?]", type, channels);
  };
  const char* y = layer.relu ? "f32" : "i32";
  std::string text = fmt::format("func @{}(%x: {}) -> {} {{\n  %w = constant @w : {}\n", name,
                                 tensor("u8", layer.channels), tensor(y, layer.outputs), w);
  if (layer.zero_points) text += fmt::format("  %z = constant @z : u8[{}]\n", layer.outputs);
  text += fmt::format("  %c = conv_integer %x, %w{} {{group = {}{}}}\n",
                      layer.zero_points ? ", none, %z" : "", layer.group,
                      layer.nhwc ? ", layout = nhwc" : "");
  text += layer.relu ? "  %r = convert %c : f32\n  return %r\n}\n" : "  return %c\n}\n";
  ParseOptions options;
  options.bind_constant = [&](std::string_view of,
                              const TensorType& type) -> Result<std::vector<std::byte>> {
    int64_t count = 1;
    for (const Dim& dim : type.shape) count *= dim.extent;
    std::vector<std::byte> bytes(static_cast<size_t>(count));
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>((i * 2654435761u + of[0] * layer.content * 977) >> 7);
    }
    return bytes;
  };
  return parse_function(text, {}, options);
}

Dims shape_of(const Layer& layer, int64_t batch) {
  return layer.nhwc ? Dims{batch, 12, 13, layer.channels} : Dims{batch, layer.channels, 12, 13};
}

Result<BoundKernel> bind(const Runtime& runtime, const Layer& layer, int64_t batch = 1,
                         const char* name = "f") {
  const Result<Kernel> kernel = runtime.compile(*function_of(layer, name));
  if (!kernel.ok()) return kernel.error();
  return kernel->bind({shape_of(layer, batch)});
}

/// Whether the kernel computes what the interpreter does.
void check(const BoundKernel& bound, const Layer& layer, int64_t batch) {
  const FunctionPtr function = *function_of(layer);
  const test::FunctionCase row = {"", {{shape_of(layer, batch)}}};
  test::CaseTensors expected(*function, row, 9, true);
  test::CaseTensors actual(*function, row, 9, true);
  ASSERT_TRUE(interpret(*function, expected.inputs(), expected.outputs()).ok());
  ASSERT_EQ(bound.engine(), Engine::jit);
  const Status status = bound.run(actual.inputs(), actual.outputs());
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_TRUE(
      std::ranges::equal(actual.output_tensors()[0].bytes(), expected.output_tensors()[0].bytes()));
}

Runtime runtime_of(Tier tier, const PackedWeights& weights) {
  RuntimeOptions options;
  options.tier = tier;
  options.packed_weights = weights;
  return *Runtime::create(options);
}

TEST(PackedWeights, OneCopyForBatchesFunctionsAndRuntimes) {
  for (const auto& [tier, unused] : test::tier_runtimes()) {
    for (const Layer& layer : layers) {
      SCOPED_TRACE(fmt::format("{}, {}", layer.name, name_of(tier)));
      const PackedWeights weights = *PackedWeights::create();
      const Runtime one = runtime_of(tier, weights);
      const Runtime other = runtime_of(tier, weights);
      std::vector<BoundKernel> bound;
      bound.push_back(*bind(one, layer));
      const PackedWeightsStatistics first = weights.statistics();
      EXPECT_EQ(first.entries, 1u);
      EXPECT_EQ(first.packs, 1u);
      EXPECT_EQ(first.hits, 0u);
      EXPECT_GE(first.bytes, static_cast<size_t>(layer.outputs * layer.channels / layer.group * 9));
      EXPECT_EQ(one.memory().packed_weight_bytes, first.bytes);
      bound.push_back(*bind(one, layer, 3));       // another batch
      bound.push_back(*bind(one, layer, 3, "g"));  // another function of the same content
      bound.push_back(*bind(other, layer, 1));     // another runtime
      EXPECT_EQ(weights.statistics().packs, 1u);
      EXPECT_EQ(weights.statistics().hits, 3u);
      EXPECT_EQ(weights.statistics().bytes, first.bytes);
      const int64_t batches[] = {1, 3, 3, 1};
      for (size_t i = 0; i < bound.size(); ++i) check(bound[i], layer, batches[i]);
      bound.erase(bound.begin(), bound.begin() + 3);  // the one that packed is among them
      EXPECT_EQ(weights.statistics().entries, 1u);
      check(bound[0], layer, 1);
      bound.clear();
      EXPECT_EQ(weights.statistics().entries, 0u);
      EXPECT_EQ(weights.statistics().bytes, 0u);
    }
  }
}

/// What may not be shared: other bytes, zero points, signs, groups, layouts, tiers; the results say
/// so too.
TEST(PackedWeights, WhatDiffersIsPackedApart) {
  const PackedWeights weights = *PackedWeights::create();
  std::vector<BoundKernel> bound;
  std::vector<std::pair<Layer, Tier>> made;
  for (const auto& [tier, unused] : test::tier_runtimes()) {
    const Runtime runtime = runtime_of(tier, weights);
    for (const Layer& layer : layers) {
      for (const uint64_t content : {1, 2}) {
        Layer each = layer;
        each.content = content;
        made.emplace_back(each, tier);
        bound.push_back(*bind(runtime, each));
      }
    }
  }
  for (size_t i = 0; i < bound.size(); ++i) {
    SCOPED_TRACE(fmt::format("{}, {}", made[i].first.name, name_of(made[i].second)));
    check(bound[i], made[i].first, 1);
  }
  const PackedWeightsStatistics all = weights.statistics();
  EXPECT_EQ(all.packs, all.entries);
  // Sums of bytes leave zero points to the kernels: with and without them weights are the same.
  EXPECT_EQ(all.packs + all.hits, bound.size());
  EXPECT_GE(all.packs, bound.size() * 7 / 9);
}

TEST(PackedWeights, AreSharedAcrossEpilogues) {
  for (const auto& [tier, unused] : test::tier_runtimes()) {
    const PackedWeights weights = *PackedWeights::create();
    const Runtime runtime = runtime_of(tier, weights);
    Layer with = dense;
    with.relu = true;
    const BoundKernel plain = *bind(runtime, dense);
    const BoundKernel fused = *bind(runtime, with);
    check(plain, dense, 1);
    check(fused, with, 1);
    EXPECT_EQ(weights.statistics().packs, 1u);
  }
}

TEST(PackedWeights, RuntimesWithoutMakeTheirOwn) {
  test::CountingAllocator allocator;
  RuntimeOptions options;
  options.allocator = allocator.callbacks();
  const Runtime one = *Runtime::create(options);
  const Runtime other = *Runtime::create(options);
  const BindOptions of_caller = {.scratch = ScratchOwner::caller};
  std::optional<BoundKernel> a =
      *one.compile(*function_of(dense))->bind({shape_of(dense, 1)}, of_caller);
  const BoundKernel b = *other.compile(*function_of(dense))->bind({shape_of(dense, 1)}, of_caller);
  EXPECT_EQ(allocator.held, 2 * one.memory().packed_weight_bytes);
  EXPECT_EQ(one.memory().packed_weight_bytes, other.memory().packed_weight_bytes);
  a.reset();
  EXPECT_EQ(allocator.held, other.memory().packed_weight_bytes);
  EXPECT_EQ(one.memory().packed_weight_bytes, 0u);
  EXPECT_FALSE(PackedWeights());
  EXPECT_EQ(PackedWeights().statistics().bytes, 0u);
}

TEST(PackedWeights, TheLimitIsAnError) {
  test::CountingAllocator allocator;
  size_t bytes = 0;
  {
    const Runtime runtime = *Runtime::create();
    const BoundKernel bound = *bind(runtime, dense);
    bytes = runtime.memory().packed_weight_bytes;
  }
  const PackedWeights weights =
      *PackedWeights::create({.allocator = allocator.callbacks(), .bytes_limit = 2 * bytes - 1});
  RuntimeOptions options;
  options.packed_weights = weights;
  const Runtime runtime = *Runtime::create(options);
  std::optional<BoundKernel> first = *bind(runtime, dense);
  Layer second = dense;
  second.content = 2;
  const Result<BoundKernel> refused = bind(runtime, second);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_memory);
  EXPECT_EQ(refused.error().message,
            fmt::format("packed weights: {0} bytes are held, {0} more are needed; the limit is {1}",
                        bytes, 2 * bytes - 1));
  EXPECT_TRUE(bind(runtime, dense, 4).ok());  // needs nothing new
  first.reset();
  const Result<BoundKernel> bound = bind(runtime, second);
  ASSERT_TRUE(bound.ok()) << bound.error().message;
  check(*bound, second, 1);
  allocator.refuses = true;
  Layer third = dense;
  third.outputs = 1;
  EXPECT_EQ(bind(runtime, third).error().code, ErrorCode::out_of_memory);
  EXPECT_EQ(weights.statistics().bytes, bytes);
  EXPECT_EQ(allocator.held, bytes);
}

TEST(PackedWeights, ThreadsPackOnce) {
  constexpr int threads = 8;
  for (int round = 0; round < 10; ++round) {
    const PackedWeights weights = *PackedWeights::create();
    const Runtime runtime = runtime_of(test::tier_runtimes().back().first, weights);
    std::vector<std::optional<BoundKernel>> bound(threads);
    std::vector<std::thread> pool;
    std::atomic<int> ready = 0;
    for (size_t t = 0; t < threads; ++t) {
      pool.emplace_back([&, t] {
        ++ready;
        while (ready < threads) std::this_thread::yield();
        Layer layer = dense;
        layer.content = static_cast<uint64_t>(round) * 2 + t % 2;
        Result<BoundKernel> mine = bind(runtime, layer, static_cast<int64_t>(t / 4 + 1));
        if (mine.ok()) bound[t] = *mine;
      });
    }
    for (std::thread& thread : pool) thread.join();
    for (const auto& each : bound) ASSERT_TRUE(each.has_value());
    EXPECT_EQ(weights.statistics().packs, 2u);
    EXPECT_EQ(weights.statistics().hits, threads - 2u);
    bound.clear();
    EXPECT_EQ(weights.statistics().entries, 0u);
  }
}

TEST(PackedWeights, ChildrenPackTheirOwn) {
  const PackedWeights weights = *PackedWeights::create();
  const Runtime runtime = runtime_of(test::tier_runtimes().back().first, weights);
  std::optional<BoundKernel> before = *bind(runtime, dense);
  const int failed = test::in_child([&] {
    check(*before, dense, 1);  // the parent's work on
    if (testing::Test::HasFailure()) return 1;
    std::optional<BoundKernel> mine = *bind(runtime, dense, 2);
    if (weights.statistics().packs != 2) return 2;
    check(*mine, dense, 2);
    if (testing::Test::HasFailure()) return 3;
    before.reset();
    mine.reset();
    return weights.statistics().bytes == 0 ? 0 : 4;
  });
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(weights.statistics().entries, 1u);
}

}  // namespace
}  // namespace castor
