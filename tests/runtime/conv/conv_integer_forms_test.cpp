// SPDX-License-Identifier: Apache-2.0
// Convolutions by every candidate, not only the one with the lowest cost: dense ones that are
// pixel-vectorised or channel-vectorised, from packed input, copied rows, and the input itself, and
// sliding ones; as every core's row of the tuning table plans them; by one task, and split into
// several.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <map>

#include "ir/text/text.hpp"
#include "jit/conv/candidates.hpp"
#include "jit/memory/system_memory.hpp"
#include "jit/tile_permission.hpp"
#include "runtime/cache/code_store.hpp"
#include "runtime/call/nest_call.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/conv/convolution_step.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/convolution_cases.hpp"
#include "tests/support/convolution_loops.hpp"
#include "tools/testing/executors.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::test {
namespace {

using detail::OperandOrigin;

ConvolutionGeometry geometry_of(const ConvolutionCase& row) {
  const Operation operation{.op = OpKind::conv_integer, .attributes = attributes_of(row.options)};
  const Dims* x_zero = row.x_zero_point ? &row.x_zero_point->shape : nullptr;
  const Dims* w_zero = row.w_zero_point ? &row.w_zero_point->shape : nullptr;
  auto geometry = convolution_geometry(operation, row.x.shape, row.w.shape, x_zero, w_zero);
  EXPECT_TRUE(geometry.ok());
  return std::move(geometry).value();
}

/// An operand against a page that nobody may touch.
class GuardedBytes {
 public:
  explicit GuardedBytes(const Patterns& tensor)
      : bytes_(tensor.elements.size()), pages_(bytes_ + 1), data_(pages_.at_end(bytes_)) {
    for (size_t i = 0; i < bytes_; ++i) data_[i] = static_cast<std::byte>(tensor.elements[i]);
  }
  ConstView view(const Patterns& tensor) const {
    return {data_, tensor.type, tensor.shape, bytes_};
  }
  const std::byte* data() const { return data_; }

 private:
  size_t bytes_;
  GuardedPages pages_;
  std::byte* data_;
};

/// Scratch of some tasks, each against pages that nobody may touch, full of what results must not
/// depend on.
class GuardedScratch {
 public:
  GuardedScratch(size_t bytes, size_t tasks) : bytes_((bytes + 63) / 64 * 64) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t pages = (bytes_ + page - 1) / page * page;
    step_ = pages + page;
    size_ = tasks * step_ + page;
    void* all = ::mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(all);
    for (size_t task = 0; task < tasks; ++task) {
      std::byte* at = base_ + page + task * step_;
      if (::mprotect(at, pages, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
      std::memset(at, 0x5a, pages);
    }
    first_ = base_ + page + pages - bytes_;
  }
  ~GuardedScratch() { ::munmap(base_, size_); }
  GuardedScratch(const GuardedScratch&) = delete;
  GuardedScratch& operator=(const GuardedScratch&) = delete;

  std::byte* of_call() const { return first_; }
  /// The scratch of `count` tasks after the first.
  detail::TaskScratch of_tasks(size_t count) const { return {first_ + step_, step_, count}; }

 private:
  size_t bytes_;
  size_t step_ = 0;
  size_t size_ = 0;
  std::byte* base_ = nullptr;
  std::byte* first_ = nullptr;
};

/// Runs one convolution by one plan, split into some tasks.
class PlannedRun {
 public:
  PlannedRun(const ConvolutionCase& row, bool constant_weights, int tasks)
      : row_(row), executor_(tasks) {
    for (const Patterns& operand : row.operands()) {
      operands_.push_back(std::make_unique<GuardedBytes>(operand));
      shapes_.push_back(operand);
    }
    constant_weights_ = constant_weights;
  }

  /// The elements of y, or what is wrong.
  std::vector<uint64_t> results(const ConvolutionGeometry& geometry,
                                const jit::Candidate& candidate, const jit::Target& target,
                                CodeCache& cache) {
    std::vector<ElementType> elements;
    std::vector<const std::byte*> constants(operands_.size(), nullptr);
    for (const Patterns& operand : shapes_) elements.push_back(operand.type);
    if (constant_weights_) {
      for (size_t i = 1; i < operands_.size(); ++i) constants[i] = operands_[i]->data();
    }
    const int x_zero = row_.x_zero_point ? 2 : -1;
    const int w_zero = row_.w_zero_point ? 2 + (row_.x_zero_point ? 1 : 0) : -1;
    const bool per_channel = row_.w_zero_point && row_.w_zero_point->elements.size() > 1;
    detail::ScratchPlan scratch_plan;
    const detail::ConvolutionOperands operands = {row_.x.type == ElementType::i8,
                                                  row_.w.type == ElementType::i8, x_zero, w_zero,
                                                  per_channel};
    auto bound = detail::bind_convolution(geometry, operands, constants, target, cache,
                                          scratch_plan, {.candidate = &candidate});
    if (!bound.ok()) {
      ADD_FAILURE() << bound.error().message;
      return {};
    }
    return run(*bound, geometry, elements, scratch_plan.bytes());
  }

 private:
  std::vector<uint64_t> run(std::shared_ptr<const detail::BoundConvolution> bound,
                            const ConvolutionGeometry& geometry,
                            const std::vector<ElementType>& elements, size_t scratch_bytes) {
    const Dims extents = geometry.output_extents();
    const auto count = static_cast<size_t>(element_count(extents).value());
    GuardedPages y(4 * count + 1);
    y.fill(std::byte{0xa5});
    std::byte* data = y.at_end(4 * count);
    detail::ConvolutionStep step;
    step.convolution = std::move(bound);
    std::vector<ConstView> inputs;
    for (size_t i = 0; i < operands_.size(); ++i) {
      inputs.push_back(operands_[i]->view(shapes_[i]));
      step.operands.push_back({{OperandOrigin::Kind::input, i}, elements[i]});
    }
    step.operands.push_back({{OperandOrigin::Kind::output, 0}, ElementType::i32});
    const std::array outputs = {View{data, ElementType::i32, extents, 4 * count}};
    const auto tasks = static_cast<size_t>(executor_.tasks());
    const GuardedScratch scratch(scratch_bytes, tasks);
    detail::CallMemory memory = {.inputs = inputs, .outputs = outputs};
    memory.scratch = scratch.of_call();
    detail::CallTasks call_tasks(&executor_);
    memory.tasks = &call_tasks;
    memory.task_scratch = scratch.of_tasks(tasks - 1);
    detail::run_convolution(step, memory);
    EXPECT_TRUE(y.is_filled_but({data, 4 * count}, std::byte{0xa5}))
        << executor_.tasks() << " tasks";
    std::vector<uint64_t> results;
    for (size_t i = 0; i < count; ++i) {
      uint32_t element;
      std::memcpy(&element, data + 4 * i, sizeof(element));
      results.push_back(element);
    }
    return results;
  }

  const ConvolutionCase& row_;
  std::vector<std::unique_ptr<GuardedBytes>> operands_;
  std::vector<Patterns> shapes_;
  bool constant_weights_ = false;
  Backwards executor_;
};

class ConvForms : public testing::Test {
 protected:
  void SetUp() override {
    jit::permitted_tier(Tier::amx);  // candidates are bound as they are, without a runtime
  }

  /// Every plan of the case on every tier gives what the oracle gives.
  void check(const ConvolutionCase& row) { check(row, random_() % 2 == 0); }
  void check(const ConvolutionCase& row, bool constant) {
    const ConvolutionGeometry geometry = geometry_of(row);
    if (geometry.group_channels() == 0) return;
    if (element_count(geometry.output_extents()).value() == 0) return;
    const Patterns expected = ConvolutionLoops(row).all();
    const int tasks = random_() % 3 == 0 ? 1 : 1 + static_cast<int>(random_() % 16);
    PlannedRun run(row, constant, tasks);
    const auto core = static_cast<jit::Core>(random_() % jit::core_count);
    const jit::ConvolutionProblem problem = {.geometry = geometry,
                                             .x_is_signed = row.x.type == ElementType::i8,
                                             .w_is_signed = row.w.type == ElementType::i8,
                                             .has_weight_zero_points = row.w_zero_point.has_value(),
                                             .has_constant_weights = constant};
    for (const auto& [tier, runtime] : tier_runtimes()) {
      jit::Target target{.tier = tier, .core = core};
      if (random_() % 4 == 0) target.caches.l2 = int64_t{32} << 10;  // so that weights are far
      for (const jit::Candidate& candidate :
           with_register_tiles(candidates(problem, target), target)) {
        const auto results = run.results(geometry, candidate, target, store_.cache);
        ++seen_[name_of(candidate)];
        const auto* dense = std::get_if<jit::DensePlan>(&candidate.plan);
        const auto* planes = dense != nullptr ? dense->planes() : nullptr;
        of_input_[tier] += planes != nullptr && planes->packed_by == jit::PackedBy::first_tile;
        const auto* dot = std::get_if<jit::DotPlan>(&candidate.plan);
        dot_plans_[tier] += dot != nullptr;
        dot_blocks_[tier] += dot != nullptr ? static_cast<int>(dot->blocks) : 0;
        input_once_[tier] += planes != nullptr && planes->packed_by == jit::PackedBy::nobody;
        ASSERT_EQ(results, expected.elements) << name_of(tier) << " as " << name_of(core) << ", "
                                              << tasks << " tasks, " << name_of(candidate) << "\n"
                                              << print(*function_of(row));
      }
    }
  }

  /// Candidates, and those of tile registers again in two other forms.
  std::vector<jit::Candidate> with_register_tiles(std::vector<jit::Candidate> all,
                                                  const jit::Target& target) {
    const size_t count = all.size();
    for (size_t i = 0; i < count; ++i) {
      if (const auto* rows = std::get_if<jit::WeightRowsPlan>(&all[i].plan)) {
        blocks_by_weight_rows_ += static_cast<int>(rows->blocks());
        std::vector<jit::WeightRowsPlan> others = with_other_tiles(*rows, target);
        if (others.empty()) continue;
        all.push_back({std::move(others[random_() % others.size()]), false, {}, 0});
        continue;
      }
      const auto* plan = std::get_if<jit::DensePlan>(&all[i].plan);
      if (plan == nullptr || !plan->tile.has_tiles()) continue;
      const std::vector<jit::DensePlan> others = with_other_tiles(*plan, target);
      for (int n = 0; n < 2 && !others.empty(); ++n) {
        jit::DensePlan other = others[random_() % others.size()];
        if (!other.tile.channels_inside) other.tile.prefetched_lines = static_cast<int>(draw(0, 2));
        tiles_with_dead_positions_ += other.tile.has_dead_positions();
        tiles_by_turns_ += other.tile.pixel_tiles() > 2 && other.channel_tiles > 1;
        all.push_back({std::move(other), false, {}, 0});
      }
    }
    return all;
  }

  int64_t draw(int64_t min, int64_t max) {
    return min + static_cast<int64_t>(random_() % static_cast<uint64_t>(max - min + 1));
  }

  std::mt19937_64 random_{41};
  detail::CodeStore store_{jit::SystemCalls::real(), size_t{64} << 20};
  std::map<std::string, int> seen_;    ///< by name of the candidate
  std::map<jit::Tier, int> of_input_;  ///< candidates whose kernels may take and pack it
  std::map<jit::Tier, int> input_once_;
  std::map<jit::Tier, int> dot_plans_;
  std::map<jit::Tier, int> dot_blocks_;  ///< in all dot plans
  int blocks_by_weight_rows_ = 0;
  int tiles_with_dead_positions_ = 0;
  int tiles_by_turns_ = 0;  ///< with two registers for pixels, and several tiles of channels
};

TEST_F(ConvForms, RandomGeometries) {
  constexpr int cases = 2500;
  for (int i = 0; i < cases; ++i) {
    const ConvolutionCase row = random_convolution(random_, {.max_spatial_axes = 4});
    if (std::ranges::count(row.w.shape, 0) > 0) continue;
    check(row);
    if (HasFatalFailure()) FAIL() << i;
  }
  EXPECT_GT(seen_["pixel_vectorised nchw4c"], 1000);
  EXPECT_GT(seen_["channel_vectorised nchw4c"], 1000);
  EXPECT_GT(seen_["channel_vectorised copied_rows"], 1000);
  // Kernels without a product of bytes read widened copies.
  const bool has_byte_products =
      jit::host().runs(jit::Tier::avx2_vnni) || jit::host().runs(jit::Tier::avx512_vnni);
  const int of_input = seen_["channel_vectorised input"];
  EXPECT_EQ(of_input > 50, has_byte_products) << of_input;
  const int im2col = seen_["pixel_vectorised im2col"];
  EXPECT_EQ(im2col > 20, jit::host().runs(jit::Tier::avx512_vbmi)) << im2col;
}

/// Few channels in each group, which kernels slide down the rows for.
TEST_F(ConvForms, DepthwiseAndGroupedLayers) {
  constexpr int cases = 600;
  for (int i = 0; i < cases; ++i) {
    const ElementType x_type = draw(0, 1) == 0 ? ElementType::u8 : ElementType::i8;
    const ElementType w_type = draw(0, 3) == 0 ? ElementType::u8 : ElementType::i8;
    const int64_t groups = draw(1, 40);
    const int64_t channels = draw(0, 2) > 0 ? 1 : draw(2, 20);
    const bool nhwc = draw(0, 1) == 0;
    Dims x = nhwc ? Dims{draw(1, 2)} : Dims{draw(1, 2), groups * channels};
    Dims w = {groups * (draw(0, 2) > 0 ? 1 : draw(2, 12)), channels};
    const int64_t axes = draw(1, 3);
    ConvolutionCase row;
    row.options.group = groups;
    row.options.layout = nhwc ? ConvolutionLayout::nhwc : ConvolutionLayout::nchw;
    for (int64_t axis = 0; axis < axes; ++axis) {
      w.push_back(draw(1, 4));
      x.push_back(draw(w[w.rank() - 1], axis + 1 == axes ? 40 : 8));
      row.options.strides.push_back(draw(0, 2) > 0 ? 1 : 2);
    }
    if (nhwc) x.push_back(groups * channels);
    row.x = random_bytes(random_, x_type, x);
    row.w = random_bytes(random_, w_type, w);
    if (draw(0, 1) > 0) row.x_zero_point = random_bytes(random_, x_type, {});
    if (draw(0, 2) == 0) row.w_zero_point = random_bytes(random_, w_type, {w[0]});
    check(row);
    if (HasFatalFailure()) FAIL() << i;
  }
  EXPECT_EQ(seen_["depthwise"] > 100, jit::host().runs(jit::Tier::avx512));
  EXPECT_GT(seen_["grouped_nhwc"], 200);
}

/// Filters of one position on whole k groups of channels: kernels take their pixels from the input.
TEST_F(ConvForms, PointwiseLayers) {
  constexpr int cases = 600;
  for (int i = 0; i < cases; ++i) {
    const ElementType x_type = draw(0, 1) == 0 ? ElementType::u8 : ElementType::i8;
    const int64_t groups = draw(1, 2);
    const int64_t channels = 2 * draw(1, 12);
    Dims x = {draw(1, 2), groups * channels};
    Dims w = {groups * draw(1, 40), channels};
    for (int64_t axis = draw(1, 2); axis > 0; --axis) {
      x.push_back(draw(1, axis > 1 ? 12 : draw(0, 1) > 0 ? 60 : 150));
      w.push_back(1);
    }
    ConvolutionCase row;
    row.options.group = groups;
    row.x = random_bytes(random_, x_type, x);
    const ElementType w_type = draw(0, 2) > 0 ? ElementType::i8 : ElementType::u8;
    row.w = random_bytes(random_, w_type, w);
    if (draw(0, 2) > 0) row.x_zero_point = random_bytes(random_, x_type, {});
    if (draw(0, 2) == 0) {
      row.w_zero_point = random_bytes(random_, w_type, draw(0, 1) == 0 ? Dims{} : Dims{w[0]});
    }
    check(row);
    if (HasFatalFailure()) FAIL() << i;
  }
  for (const auto& [tier, runtime] : tier_runtimes()) {
    if (tier == jit::Tier::avx512) continue;
    EXPECT_GT(input_once_[tier], 0) << name_of(tier);
    if (tier == jit::Tier::avx512_vnni) continue;
    EXPECT_GT(of_input_[tier], 100) << name_of(tier);
  }
}

/// Pixels by weights that are stored along K as well, run-time ones or constants: with K, output
/// channels and pixels that fill their last step, four and tile or not, in one block or several.
TEST_F(ConvForms, RowsByWeightsAlongK) {
  constexpr int cases = 600;
  for (int i = 0; i < cases; ++i) {
    const auto draw_sign = [&] { return draw(0, 1) == 0 ? ElementType::u8 : ElementType::i8; };
    const int64_t groups = draw(0, 2) > 0 ? 1 : draw(2, 3);
    const int64_t channels = draw(0, 1) > 0 ? draw(60, 70) : draw(16, 200);
    const bool has_blocks = i % 40 == 0;
    const int64_t pixels = has_blocks ? draw(257, 400) : draw(1, 20);
    ConvolutionCase row;
    row.options.group = groups;
    row.options.layout = ConvolutionLayout::nhwc;
    row.x = random_bytes(random_, draw_sign(), {1, pixels, groups * channels});
    row.w = random_bytes(random_, draw_sign(), {groups * draw(4, 20), channels, 1});
    if (draw(0, 2) > 0) row.x_zero_point = random_bytes(random_, row.x.type, {});
    if (draw(0, 1) > 0) {
      const Dims extents = draw(0, 1) == 0 ? Dims{} : Dims{row.w.shape[0]};
      row.w_zero_point = random_bytes(random_, row.w.type, extents);
    }
    check(row, i % 3 == 0);
    if (HasFatalFailure()) FAIL() << i;
  }
  for (const auto& [tier, runtime] : tier_runtimes()) {
    EXPECT_GT(dot_plans_[tier], 150) << name_of(tier);
    EXPECT_GT(dot_blocks_[tier], dot_plans_[tier]) << name_of(tier);
  }
}

/// Pixels of NCHW beside rows of weights: with pixels that fill vectors, tiles and blocks or not,
/// with one tile of output channels or several, of which the last may overlap the one before.
TEST_F(ConvForms, RowsOfWeights) {
  constexpr int cases = 160;
  for (int i = 0; i < cases; ++i) {
    const auto draw_sign = [&] { return draw(0, 1) == 0 ? ElementType::u8 : ElementType::i8; };
    const int64_t groups = draw(0, 2) > 0 ? 1 : draw(2, 3);
    const int64_t channels = 4 * (draw(0, 1) > 0 ? draw(1, 16) : 2 * draw(8, 24));
    ConvolutionCase row;
    row.options.group = groups;
    Dims x = {draw(1, 2), groups * channels};
    Dims w = {groups * draw(1, 90), channels};
    for (int64_t axis = draw(1, 2); axis > 0; --axis) {
      x.push_back(axis == 2 ? draw(1, 4) : i % 10 == 0 ? draw(260, 600) : draw(16, 80));
      w.push_back(1);
    }
    row.x = random_bytes(random_, draw_sign(), x);
    row.w = random_bytes(random_, draw_sign(), w);
    if (draw(0, 2) > 0) row.x_zero_point = random_bytes(random_, row.x.type, {});
    if (draw(0, 1) > 0) {
      const Dims extents = draw(0, 1) == 0 ? Dims{} : Dims{row.w.shape[0]};
      row.w_zero_point = random_bytes(random_, row.w.type, extents);
    }
    check(row);
    if (HasFatalFailure()) FAIL() << i;
  }
  const bool runs = jit::host().runs(jit::Tier::amx);
  const int plans = seen_["tiles weight_rows"];
  EXPECT_EQ(plans > 200, runs) << plans;
  EXPECT_EQ(blocks_by_weight_rows_ > cases + 10, runs) << blocks_by_weight_rows_;
}

/// Enough channels for tile registers, with every layout, sign, zero point and stride, and with
/// channels that fill k steps or not.
TEST_F(ConvForms, LayersOfTileRegisters) {
  constexpr int cases = 400;
  for (int i = 0; i < cases; ++i) {
    const auto draw_sign = [&] { return draw(0, 1) == 0 ? ElementType::u8 : ElementType::i8; };
    const ElementType x_type = draw_sign();
    const ElementType w_type = draw_sign();
    const int64_t groups = draw(0, 3) > 0 ? 1 : draw(2, 3);
    const int64_t channels = draw(0, 1) > 0 ? 16 << draw(0, 3) : draw(1, 150);
    const bool nhwc = draw(0, 2) > 0;
    Dims x = nhwc ? Dims{draw(1, 2)} : Dims{draw(1, 2), groups * channels};
    Dims w = {groups * draw(1, 80), channels};
    ConvolutionCase row;
    row.options.group = groups;
    row.options.layout = nhwc ? ConvolutionLayout::nhwc : ConvolutionLayout::nchw;
    for (int64_t axis = draw(1, 2); axis > 0; --axis) {
      w.push_back(draw(0, 2) > 0 ? 1 : draw(2, axis == 1 ? 5 : 3));
      x.push_back(draw(w[w.rank() - 1], axis == 1 ? 36 : 4));
      row.options.strides.push_back(draw(0, 3) > 0 ? 1 : 2);
      row.options.pads.push_back(draw(0, 1));
    }
    const std::vector<int64_t> begins = row.options.pads;
    row.options.pads.insert(row.options.pads.end(), begins.begin(), begins.end());
    if (nhwc) x.push_back(groups * channels);
    row.x = random_bytes(random_, x_type, x);
    row.w = random_bytes(random_, w_type, w);
    if (draw(0, 1) > 0) row.x_zero_point = random_bytes(random_, x_type, {});
    if (draw(0, 1) > 0) row.w_zero_point = random_bytes(random_, w_type, {w[0]});
    check(row);
    if (HasFatalFailure()) FAIL() << i;
  }
  const bool runs = jit::host().runs(jit::Tier::amx);
  EXPECT_EQ(seen_["tiles copied_rows"] > 100, runs) << seen_["tiles copied_rows"];
  EXPECT_EQ(seen_["tiles input"] > 50, runs) << seen_["tiles input"];
  const int aligned = seen_["tiles copied_rows_aligned_pixels"];
  EXPECT_EQ(aligned > 100, runs) << aligned;
  EXPECT_EQ(tiles_with_dead_positions_ > 20, runs) << tiles_with_dead_positions_;
  EXPECT_EQ(tiles_by_turns_ > 20, runs) << tiles_by_turns_;
}

}  // namespace
}  // namespace castor::test
