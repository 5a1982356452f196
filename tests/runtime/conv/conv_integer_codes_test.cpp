// SPDX-License-Identifier: Apache-2.0
// Which code a convolution gets: what its kernel runs and nothing else, by the plan that the dump
// shows.
#include <fmt/format.h>

#include "jit/dump/dump_convolution.hpp"
#include "jit/plan/access_pattern.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/cache/code_store.hpp"
#include "runtime/compiled.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/conv/dense.hpp"
#include "runtime/conv/sliding.hpp"
#include "runtime/state_access.hpp"
#include "tests/support/function_case.hpp"

namespace castor::test {
namespace {

const detail::ConvolutionStep& convolution_of(const detail::BoundState& bound) {
  const auto is_one = [](const detail::Step& step) {
    return std::holds_alternative<detail::ConvolutionStep>(step);
  };
  return std::get<detail::ConvolutionStep>(*std::ranges::find_if(bound.steps, is_one));
}

/// 16 to 32 channels with an epilogue and its range: kernels apply both, so no code is made for the
/// nests that could.
TEST(ConvCodes, NothingIsMadeThatDoesNotRun) {
  const FunctionCase row = {
      "func @f(%x: u8[1, 16, 12, 12], %w: i8[32, 16, 3, 3], %s: f32[]) -> (f32[1, 32, 10, 10], "
      "f32[]) {\n"
      "  %c = conv_integer %x, %w\n  %f = convert %c : f32\n  %y = mul %f, %s\n"
      "  %m = reduce_max_abs %y\n  return %y, %m\n}\n",
      {{{1, 16, 12, 12}}, {{32, 16, 3, 3}}, {{}}}};
  const FunctionPtr function = *parse_function(row.text);
  for (const auto& [tier, shared] : tier_runtimes()) {
    const Runtime runtime = *Runtime::create({.tier = tier});
    CaseTensors tensors(*function, row, 1, true);
    const Result<Kernel> kernel = runtime.compile(function);
    ASSERT_TRUE(kernel) << kernel.error().to_string();
    EXPECT_EQ(runtime.statistics().codes, 1u) << name_of(tier);  // what gives the range as a result
    const auto bound = kernel->bind(tensors.inputs(), tensors.outputs());
    ASSERT_TRUE(bound) << bound.error().to_string();
    const detail::BoundState& state = detail::StateAccess::of(*bound);
    const bool applies = convolution_of(state).convolution->applies_epilogue;
    EXPECT_EQ(applies, jit::Target{tier}.has_avx512()) << name_of(tier);
    const detail::Compiled& compiled = *state.kernel->compiled;
    const jit::LikelyForms forms(*compiled.canonical);
    const jit::Nest& epilogue = compiled.nests[1];
    ASSERT_TRUE(epilogue.epilogue && epilogue.folded);
    for (const jit::Nest* nest : {&epilogue, &compiled.nests[epilogue.folded->nest]}) {
      if (!applies) continue;
      const uint64_t misses = runtime.statistics().code_misses;
      ASSERT_TRUE(compiled.store->cache.get(*nest, forms.form_of(*nest, compiled.target),
                                            compiled.target, nullptr));
      EXPECT_EQ(runtime.statistics().code_misses, misses + 1) << name_of(tier);
    }
  }
}

/// Weights that come with each call are packed by it: another plan may win, and the dump says so.
TEST(ConvCodes, TheDumpShowsThePlanThatRuns) {
  struct Row {
    const char* shapes;
    const char* options;
    std::vector<Layout> inputs;
  };
  const Row rows[] = {
      {"%x: i8[1, 8, 8, 7], %w: i8[256, 7, 5, 5]",
       "{layout = nhwc}",
       {{{1, 8, 8, 7}}, {{256, 7, 5, 5}}}},
      {"%x: u8[1, 64, 7, 7], %w: i8[512, 64, 7, 7]", "{}", {{{1, 64, 7, 7}}, {{512, 64, 7, 7}}}},
      {"%x: u8[1, 24, 9, 9], %w: u8[24, 1, 3, 3]",
       "{group = 24}",
       {{{1, 24, 9, 9}}, {{24, 1, 3, 3}}}},
  };
  for (const Row& row : rows) {
    const std::string text = fmt::format(
        "func @f({}) -> i32[?a, ?b, ?c, ?d] {{\n  %c = conv_integer %x, %w {}\n"
        "  return %c\n}}\n",
        row.shapes, row.options);
    const FunctionPtr function = *parse_function(text);
    for (const auto& [tier, runtime] : tier_runtimes()) {
      CaseTensors tensors(*function, {text, row.inputs}, 1, true);
      const auto bound = runtime.compile(function)->bind(tensors.inputs(), tensors.outputs());
      ASSERT_TRUE(bound) << bound.error().to_string();
      const detail::BoundState& state = detail::StateAccess::of(*bound);
      const detail::Compiled& compiled = *state.kernel->compiled;
      const auto dumped = dumped_convolution(*compiled.canonical, compiled.nests, 0, state.target);
      ASSERT_TRUE(dumped) << dumped.error().to_string();
      const detail::BoundConvolution& convolution = *convolution_of(state).convolution;
      const jit::ConvolutionPlan& plan = dumped->chosen().plan;
      const auto* dense = std::get_if<jit::DensePlan>(&plan);
      ASSERT_EQ(dense != nullptr, convolution.dense() != nullptr) << name_of(tier) << ", " << text;
      if (dense == nullptr) continue;
      EXPECT_EQ(dense->tile, convolution.dense()->plan.tile) << name_of(tier) << ", " << text;
    }
  }
}

}  // namespace
}  // namespace castor::test
