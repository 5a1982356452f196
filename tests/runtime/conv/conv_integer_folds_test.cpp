// SPDX-License-Identifier: Apache-2.0
// Minimum and maximum of a layer's result, from which the next layer's scale comes: kernels that
// apply the epilogue fold it as they store it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/bind/bound_state.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/conv/convolution_output.hpp"
#include "runtime/state_access.hpp"
#include "tests/support/function_case.hpp"
#include "tests/support/long_form.hpp"
#include "tools/testing/thread_per_task.hpp"

namespace castor::test {
namespace {

struct FoldedLayer {
  const char* what;
  Dims x;
  Dims w;
  Dims y;
  const char* options = "{}";
  bool is_nhwc = false;
};

const FoldedLayer layers[] = {
    {"pixels", {2, 5, 9, 7}, {6, 5, 3, 3}, {2, 6, 9, 7}, "{pads = [1, 1, 1, 1]}"},
    {"interleaved by the first tile", {1, 64, 14, 14}, {40, 64, 1, 1}, {1, 40, 14, 14}},
    {"transposed channels", {1, 160, 7, 7}, {48, 160, 1, 1}, {1, 48, 7, 7}},
    {"rows of channels", {2, 9, 11, 40}, {52, 40, 3, 3}, {2, 7, 9, 52}, "{layout = nhwc}", true},
    {"pixels as one row", {3, 6, 6, 33}, {19, 33, 1, 1}, {3, 6, 6, 19}, "{layout = nhwc}", true},
    {"depthwise", {1, 6, 19, 37}, {6, 1, 3, 3}, {1, 6, 19, 37}, "{group = 6, pads = [1, 1, 1, 1]}"},
    {"depthwise, several rows in a vector",
     {1, 20, 7, 7},
     {20, 1, 3, 3},
     {1, 20, 7, 7},
     "{group = 20, pads = [1, 1, 1, 1]}"},
    {"grouped", {1, 13, 9, 48}, {24, 8, 3, 3}, {1, 11, 7, 24}, "{group = 6, layout = nhwc}", true},
    {"depthwise, dilated rows",
     {1, 13, 13, 32},
     {32, 1, 3, 3},
     {1, 13, 13, 32},
     "{group = 32, dilations = [2, 2], pads = [2, 2, 2, 2], layout = nhwc}",
     true},
    {"one pixel", {1, 300, 1, 1}, {70, 300, 1, 1}, {1, 70, 1, 1}},
    {"few lanes", {1, 3, 1, 3}, {1, 3, 1, 1}, {1, 1, 1, 3}},
};

/// The layer's result in f32 and in u8, what is folded from it, and the next layer's codes.
FunctionCase case_of(const FoldedLayer& layer, const char* signs) {
  const int64_t channels = layer.w[0];
  const Dims scale = layer.is_nhwc ? Dims{channels} : Dims{channels, 1, 1};
  const std::string text = fmt::format(
      "func @f(%x: {0}8{1}, %w: i8{2}, %s: f32{3}, %t: f32[]) -> (f32{4}, u8{4}, f32[], "
      "f32[1, 1, 1, 1], u8{4}) {{\n"
      "  %c = conv_integer %x, %w {5}\n  %f = convert %c : f32\n  %m = mul %f, %s\n"
      "  %y = add %m, %t\n  %b = convert %y {{overflow = saturate}} : u8\n"
      "  %lo = reduce_min %y\n  %hi = reduce_max %y {{keep_dims = true}}\n"
      "  %q, %qs, %qz = dynamic_quantize_linear %y : u8\n  return %y, %b, %lo, %hi, %q\n}}\n",
      signs, to_string(layer.x), to_string(layer.w), to_string(scale), to_string(layer.y),
      layer.options);
  return {text, {{layer.x}, {layer.w}, {scale}, {{}}}};
}

/// A residual alone: it decides each result, and so which of them is the least and the greatest.
FunctionCase residual_case(const FoldedLayer& layer) {
  const std::string text = fmt::format(
      "func @f(%x: u8{0}, %w: i8{1}, %r: f32{2}) -> (f32{2}, f32[], f32[]) {{\n"
      "  %c = conv_integer %x, %w {3}\n  %f = convert %c : f32\n"
      "  %zero = constant 0.0 : f32[]\n  %m = mul %f, %zero\n  %y = add %m, %r\n"
      "  %lo = reduce_min %y\n  %hi = reduce_max %y\n  return %y, %lo, %hi\n}}\n",
      to_string(layer.x), to_string(layer.w), to_string(layer.y), layer.options);
  return {text, {{layer.x}, {layer.w}, {layer.y}}};
}

const detail::ConvolutionStep& first_step(const BoundKernel& bound) {
  return std::get<detail::ConvolutionStep>(detail::StateAccess::of(bound).steps.front());
}

/// Scales are any floats, so that results have NaNs and infinities at times.
TEST(ConvFolds, AreTheInterpretersOnEveryTier) {
  uint64_t seed = 0;
  for (const FoldedLayer& layer : layers) {
    for (const char* signs : {"u", "i"}) {
      SCOPED_TRACE(fmt::format("{}, x of {}8", layer.what, signs));
      for (int draw = 0; draw < 3; ++draw) check_function(case_of(layer, signs), ++seed);
      if (HasFatalFailure()) return;
    }
  }
}

/// Wherever they apply the epilogue.
TEST(ConvFolds, AreDoneByKernels) {
  for (const auto& [tier, runtime] : tier_runtimes()) {
    int folded = 0;
    for (const FoldedLayer& layer : layers) {
      const FunctionCase row = case_of(layer, "u");
      const FunctionPtr function = *parse_function(row.text);
      CaseTensors tensors(*function, row, 1, true);
      const auto bound = runtime.compile(function)->bind(tensors.inputs(), tensors.outputs());
      ASSERT_TRUE(bound) << bound.error().to_string();
      const detail::ConvolutionStep& step = first_step(*bound);
      ASSERT_NE(step.epilogue, nullptr) << layer.what;
      EXPECT_EQ(!step.epilogue->folds.empty(), step.convolution->applies_epilogue) << layer.what;
      folded += step.epilogue->folds.empty() ? 0 : 1;
    }
    const auto all = static_cast<int>(std::size(layers));
    if (jit::Target{tier}.has_avx512()) {
      EXPECT_GE(folded, all / 2) << name_of(tier);
    } else {
      EXPECT_EQ(folded, 0) << name_of(tier);
    }
  }
}

/// Tasks fold into one number at the same time.
TEST(ConvFolds, DoNotDependOnTasks) {
  for (const FoldedLayer& layer : layers) {
    const FunctionCase row = case_of(layer, "u");
    const FunctionPtr function = *parse_function(row.text);
    for (const auto& [tier, runtime] : tier_runtimes()) {
      CaseTensors expected(*function, row, 7, true);
      CaseTensors actual(*function, row, 7, true);
      const auto bound = runtime.compile(function)->bind(expected.inputs(), expected.outputs());
      ASSERT_TRUE(bound) << bound.error().to_string();
      ASSERT_TRUE(bound->run(expected.inputs(), expected.outputs()));
      for (const int tasks : {2, 5}) {
        ThreadPerTask executor(tasks);
        const RunOptions options = {.executor = &executor};
        ASSERT_TRUE(bound->run(actual.inputs(), actual.outputs(), options));
        for (size_t i = 0; i < actual.output_tensors().size(); ++i) {
          EXPECT_TRUE(std::ranges::equal(actual.output_tensors()[i].bytes(),
                                         expected.output_tensors()[i].bytes()))
              << name_of(tier) << ": " << layer.what << ", output " << i;
        }
      }
    }
  }
}

/// Each result in turn is the least and the greatest; in the short form some of many.
TEST(ConvFolds, TakeEveryResult) {
  for (const FoldedLayer& layer : layers) {
    const FunctionCase row = residual_case(layer);
    const FunctionPtr function = *parse_function(row.text);
    for (const auto& [tier, runtime] : tier_runtimes()) {
      CaseTensors tensors(*function, row, 1, true);
      const auto inputs = tensors.inputs();
      const auto outputs = tensors.outputs();
      const auto bound = runtime.compile(function)->bind(inputs, outputs);
      ASSERT_TRUE(bound) << bound.error().to_string();
      const detail::ConvolutionStep& step = first_step(*bound);
      EXPECT_EQ(!step.epilogue->folds.empty(), step.convolution->applies_epilogue) << layer.what;
      const auto count = static_cast<size_t>(*element_count(layer.y));
      const size_t distance = long_form() || count < 400 ? 1 : 19;
      std::vector<float> residual(count, 0.0F);
      auto* const r = static_cast<std::byte*>(const_cast<void*>(inputs[2].data));
      for (size_t i = 0; i < count; i += distance) {
        for (const float value : {3.0F, -5.0F}) {
          residual[i] = value;
          std::memcpy(r, residual.data(), count * sizeof(float));
          ASSERT_TRUE(bound->run(inputs, outputs));
          std::array<float, 2> found;
          for (size_t k = 0; k < 2; ++k) std::memcpy(&found[k], outputs[k + 1].data, sizeof(float));
          ASSERT_EQ(found[0], std::min(value, 0.0F)) << name_of(tier) << ", " << layer.what << i;
          ASSERT_EQ(found[1], std::max(value, 0.0F)) << name_of(tier) << ", " << layer.what << i;
        }
        residual[i] = 0;
      }
    }
  }
}

/// One scale for all makes every result what it says.
TEST(ConvFolds, OfSpecialValues) {
  const FoldedLayer& layer = layers[0];
  FunctionCase row = case_of(layer, "u");
  for (const uint32_t bits :
       {0x7fc00000u, 0xffc00001u, 0x7f800000u, 0xff800000u, 0u, 0x80000000u}) {
    const auto replace = [&](const std::string& from, const std::string& to) {
      const size_t at = row.text.find(from);
      ASSERT_NE(at, std::string::npos);
      row.text.replace(at, from.size(), to);
    };
    row = case_of(layer, "u");
    replace("%y = add %m, %t", fmt::format("%u = constant {:#x} : f32[]\n  %y = mul %m, %u", bits));
    check_function(row, bits);
    if (HasFatalFailure()) return;
  }
}

/// Kernels may store a result twice, so they fold no sums; of several nests that fold a result,
/// they do one.
TEST(ConvFolds, OfOtherKinds) {
  for (const char* instead : {"reduce_sum", "reduce_max_abs"}) {
    FunctionCase row = case_of(layers[2], "u");
    row.text.replace(row.text.find("reduce_min"), 10, instead);
    check_function(row);
  }
  FunctionCase magnitudes = case_of(layers[2], "u");
  magnitudes.text.replace(magnitudes.text.find("reduce_min"), 10, "reduce_max_abs");
  const size_t codes = magnitudes.text.find("%q, %qs");
  magnitudes.text.replace(codes, magnitudes.text.find("\n", codes) - codes,
                          "%q = convert %y {overflow = saturate} : u8");
  check_function(magnitudes);
  FunctionCase sums = case_of(layers[2], "u");
  const size_t range = sums.text.find("%lo =");
  sums.text.replace(range, sums.text.find("  return") - range,
                    "%lo = reduce_sum %y\n  %hi = reduce_sum %y {keep_dims = true}\n"
                    "  %q = convert %y {overflow = saturate} : u8\n");
  check_function(sums);
  const FunctionPtr function = *parse_function(sums.text);
  for (const auto& [tier, runtime] : tier_runtimes()) {
    CaseTensors tensors(*function, sums, 1, true);
    const auto bound = runtime.compile(function)->bind(tensors.inputs(), tensors.outputs());
    ASSERT_TRUE(bound) << bound.error().to_string();
    const detail::ConvolutionStep& step = first_step(*bound);
    EXPECT_TRUE(!step.epilogue || step.epilogue->folds.empty()) << name_of(tier);
  }
}

TEST(ConvFolds, OfIntegers) {
  const std::string text =
      "func @f(%x: i8[1, 40, 9, 9], %w: i8[24, 40, 3, 3], %b: i32[24, 1, 1]) -> (i32[1, 24, 7, 7], "
      "i32[], i32[]) {\n  %c = conv_integer %x, %w\n  %y = add %c, %b\n"
      "  %r = reshape %y : [24, 49]\n  %lo = reduce_min %r\n  %hi = reduce_max %r\n"
      "  return %y, %lo, %hi\n}\n";
  check_function({text, {{{1, 40, 9, 9}}, {{24, 40, 3, 3}}, {{24, 1, 1}}}});
}

}  // namespace
}  // namespace castor::test
