// SPDX-License-Identifier: Apache-2.0
// Chains of dynamic quantization, integer convolutions and epilogues, with the range by which the
// next layer quantizes, against the interpreter, which does one op after the other.
#include <fmt/format.h>

#include "runtime/bind/bound_state.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/conv/convolution_output.hpp"
#include "runtime/conv/dense.hpp"
#include "runtime/state_access.hpp"
#include "tests/support/function_case.hpp"
#include "tools/testing/executors.hpp"

namespace castor::test {
namespace {

struct Chain {
  const char* what;
  FunctionCase function;
  bool has_epilogues = true;  ///< for every convolution: no i32 tensor is in memory
};

/// %y from %x in f32: quantized by its own range, convolved, scaled, biased, relu. Each stage's
/// name goes before its values.
std::string layer(std::string_view stage, std::string_view x, std::string_view y,
                  std::string_view options) {
  return fmt::format(
      "  %{0}q, %{0}s, %{0}z = dynamic_quantize_linear %{1} : u8\n"
      "  %{0}c = conv_integer %{0}q, %w, %{0}z {3}\n  %{0}f = convert %{0}c : f32\n"
      "  %{0}t = mul %s, %{0}s\n  %{0}d = mul %{0}f, %{0}t\n  %{0}a = add %{0}d, %b\n"
      "  %{2} = relu %{0}a\n",
      stage, x, y, options);
}

/// Several tiles of channels, of which the first one packs pixels and stores their sums for the
/// others; then a residual, and the range. Integers, since most random floats quantize to nothing.
FunctionCase pointwise(std::string_view type) {
  return {fmt::format("func @f(%x: {0}[?n, 8, 20, 21], %z: {0}[], %w: {0}[40, 8, 1, 1], %o: {0}[], "
                      "%b: i32[40, 1, 1], %r: i32[?n, 40, 20, 21]) -> "
                      "(i32[?n, 40, 20, 21], i32[], i32[]) {{\n"
                      "  %c = conv_integer %x, %w, %z, %o\n  %a = add %c, %b\n"
                      "  %y = add %a, %r\n  %lo = reduce_min %y\n  %hi = reduce_max %y\n"
                      "  return %y, %lo, %hi\n}}\n",
                      type),
          {{{2, 8, 20, 21}}, {{}}, {{40, 8, 1, 1}}, {{}}, {{40, 1, 1}}, {{2, 40, 20, 21}}}};
}

std::vector<Chain> chains() {
  const std::string pads = "{pads = [1, 1, 1, 1]}";
  const std::string nchw =
      "%x: f32[?n, 5, 9, 7], %w: i8[5, 5, 3, 3], %s: f32[5, 1, 1], %b: f32[5, 1, 1]";
  const std::string nhwc = "%x: f32[?n, 9, 7, 5], %w: i8[5, 5, 3, 3], %s: f32[5], %b: f32[5]";
  const std::vector<Layout> of_nchw = {{{2, 5, 9, 7}}, {{5, 5, 3, 3}}, {{5, 1, 1}}, {{5, 1, 1}}};
  const std::vector<Layout> of_nhwc = {{{2, 9, 7, 5}}, {{5, 5, 3, 3}}, {{5}}, {{5}}};
  const std::string range = "  %lo = reduce_min %y\n  %hi = reduce_max %y\n";
  std::vector<Chain> all;
  all.push_back({"layer and range",
                 {"func @f(" + nchw + ") -> (f32[?n, 5, 9, 7], f32[], f32[]) {\n" +
                      layer("a", "x", "y", pads) + range + "  return %y, %lo, %hi\n}\n",
                  of_nchw}});
  all.push_back({"layer and range, strided result",
                 {"func @f(" + nchw + ") -> (f32[?n, 5, 9, 7], f32[], f32[]) {\n" +
                      layer("a", "x", "y", pads) + range + "  return %y, %lo, %hi\n}\n",
                  of_nchw,
                  {{{2, 5, 9, 7}, {700, 140, 14, 2}, 3}, {{}}, {{}}}},
                 false});
  all.push_back({"range alone",
                 {"func @f(" + nhwc + ") -> (f32[], f32[]) {\n" +
                      layer("a", "x", "y", "{layout = nhwc, pads = [1, 1, 1, 1]}") + range +
                      "  return %lo, %hi\n}\n",
                  of_nhwc}});
  all.push_back({"layer and next codes",
                 {"func @f(" + nhwc + ") -> (u8[?n, 9, 7, 5], f32[], u8[]) {\n" +
                      layer("a", "x", "y", "{layout = nhwc, pads = [1, 1, 1, 1]}") +
                      "  %q, %t, %o = dynamic_quantize_linear %y : u8\n  return %q, %t, %o\n}\n",
                  of_nhwc}});
  all.push_back(
      {"two layers",
       {"func @f(" + nchw + ") -> (f32[?n, 5, 9, 7], f32[?n, 5, 9, 7]) {\n" +
            layer("a", "x", "y", pads) + layer("b", "y", "z", pads) + "  return %y, %z\n}\n",
        of_nchw}});
  all.push_back(
      {"sums by channel",
       {"func @f(" + nchw + ") -> (f32[?n, 5, 9, 7], f32[?n, 5]) {\n" + layer("a", "x", "y", pads) +
            "  %m = reduce_sum %y {axes = [2, 3]}\n  return %y, %m\n}\n",
        of_nchw}});
  for (const char* type : {"u8", "i8"}) {
    all.push_back({"pointwise layer with one zero point of all weights", pointwise(type)});
  }
  all.push_back(
      {"product and range by row",
       {"func @f(%x: u8[11, 19], %w: i8[19, 33], %s: f32[33]) -> (i8[11, 33], f32[11, 1]) {\n"
        "  %c = matmul_integer %x, %w\n  %f = convert %c : f32\n  %y = mul %f, %s\n"
        "  %q, %t = dynamic_quantize_symmetric %y {axes = [1]} : i8\n"
        "  return %q, %t\n}\n",
        {{{11, 19}}, {{19, 33}}, {{33}}}}});
  return all;
}

TEST(QuantizedChain, HasTheInterpretersBits) {
  for (const Chain& chain : chains()) {
    SCOPED_TRACE(chain.what);
    for (const uint64_t seed : {1, 2, 3}) {
      ASSERT_NO_FATAL_FAILURE(check_function(chain.function, seed));
    }
  }
}

TEST(QuantizedChain, HasTheSameBitsForAnyNumberOfTasks) {
  for (const Chain& chain : chains()) {
    const FunctionPtr function = *parse_function(chain.function.text);
    CaseTensors expected(*function, chain.function, 5, true);
    ASSERT_TRUE(interpret(*function, expected.inputs(), expected.outputs()).ok());
    for (const auto& [tier, runtime] : tier_runtimes()) {
      for (const int tasks : {2, 3, 7}) {
        CaseTensors actual(*function, chain.function, 5, true);
        const auto bound = runtime.compile(function)->bind(actual.inputs(), actual.outputs());
        ASSERT_TRUE(bound.ok()) << bound.error().message;
        Backwards executor(tasks);
        RunOptions options;
        options.executor = &executor;
        ASSERT_TRUE(bound->run(actual.inputs(), actual.outputs(), options).ok());
        for (size_t i = 0; i < actual.output_tensors().size(); ++i) {
          EXPECT_TRUE(std::ranges::equal(actual.output_tensors()[i].bytes(),
                                         expected.output_tensors()[i].bytes()))
              << chain.what << ", " << name_of(tier) << ", " << tasks << " tasks, output " << i;
        }
      }
    }
  }
}

TEST(QuantizedChain, TakesPixelsFromTheInputWhereWeightsHaveOneZeroPoint) {
  RuntimeOptions options;
  options.tier = jit::Tier::avx512_vbmi;
  options.core = jit::Core::zen5;
  if (!jit::host().runs(*options.tier)) GTEST_SKIP() << "this CPU lacks AVX512-VBMI";
  const Runtime runtime = *Runtime::create(options);
  for (const char* type : {"u8", "i8"}) {
    const FunctionCase row = pointwise(type);
    const FunctionPtr function = *parse_function(row.text);
    CaseTensors tensors(*function, row, 1, true);
    const auto bound = runtime.compile(function)->bind(tensors.inputs(), tensors.outputs());
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    const auto& step = std::get<detail::ConvolutionStep>(detail::StateAccess::of(*bound).steps[0]);
    const auto* dense = step.convolution->dense();
    ASSERT_NE(dense, nullptr);
    EXPECT_NE(dense->input_code, nullptr) << type;
    EXPECT_GT(dense->plan.channel_tiles, 1) << type;
    EXPECT_EQ(dense->window_sums, jit::WindowSums::products) << type;
  }
}

TEST(QuantizedChain, KeepsNoSumsInMemory) {
  const Runtime runtime = *Runtime::create();
  for (const Chain& chain : chains()) {
    const FunctionPtr function = *parse_function(chain.function.text);
    CaseTensors tensors(*function, chain.function, 1, true);
    const auto bound = runtime.compile(function)->bind(tensors.inputs(), tensors.outputs());
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    for (const detail::Step& step : detail::StateAccess::of(*bound).steps) {
      const auto* convolution = std::get_if<detail::ConvolutionStep>(&step);
      if (convolution == nullptr) continue;
      EXPECT_EQ(convolution->epilogue != nullptr, chain.has_epilogues) << chain.what;
    }
  }
}

}  // namespace
}  // namespace castor::test
