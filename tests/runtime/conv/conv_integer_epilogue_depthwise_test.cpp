// SPDX-License-Identifier: Apache-2.0
// Epilogues of depthwise convolutions: kernels apply them, with the interpreter's bits.
#include <fmt/format.h>

#include "jit/dump/dump.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/state_access.hpp"
#include "tests/support/function_case.hpp"

namespace castor::test {
namespace {

/// Signs and zero points of a convolution's operands.
struct DepthwiseBytes {
  const char* x;
  const char* w;
  const char* zero_points;  ///< operands after x and w
};

constexpr DepthwiseBytes depthwise_bytes[] = {
    {"u8", "i8", ""},      {"i8", "i8", ", %xz"},       {"i8", "u8", ", %xz, %wz"},
    {"u8", "u8", ", %xz"}, {"u8", "u8", ", none, %wz"}, {"i8", "i8", ", none, %wz"},
};

/// A depthwise convolution with an epilogue of each kind of operand.
FunctionCase depthwise_case(const DepthwiseBytes& bytes, int64_t size, const char* kernel,
                            const Dims& w) {
  const Dims image = {2, 6, size, size};
  const std::string text = fmt::format(
      "func @f(%x: {0}{3}, %w: {1}{4}, %xz: {0}[], %wz: {1}[12], %s: f32[12, 1, 1], %t: "
      "f16[2, 12, {5}, {5}]) -> (u8[2, 12, {5}, {5}], f32[2, 12, {5}, {5}]) {{\n"
      " %y = conv_integer %x, %w{2} {{group = 6, auto_pad = same_upper{6}}}\n"
      " %f = convert %y : f32\n %m = mul %f, %s\n %g = convert %t : f32\n %q = add %m, %g\n"
      " %r = convert %q {{overflow = saturate, rounding = nearest_even}} : u8\n"
      " return %r, %q\n}}\n",
      bytes.x, bytes.w, bytes.zero_points, to_string(image), to_string(w), size, kernel);
  return {text, {{image}, {w}, {{}}, {{12}}, {{12, 1, 1}}, {{2, 12, size, size}}}};
}

/// The convolution of the first step. Throws where that is of another kind.
const detail::BoundConvolution& convolution_of(const BoundKernel& bound) {
  const detail::BoundState& state = detail::StateAccess::of(bound);
  return *std::get<detail::ConvolutionStep>(state.steps.front()).convolution;
}

/// Whether the kernels of the first convolution apply its epilogue.
bool kernels_apply_epilogue(const BoundKernel& bound) {
  const auto* depthwise = convolution_of(bound).depthwise();
  return depthwise != nullptr && depthwise->applies_epilogue;
}

TEST(ConvEpilogue, DepthwiseKernelsApplyIt) {
  uint64_t seed = 100;
  for (const int64_t size : {5, 7, 14, 18, 33, 56}) {
    for (const DepthwiseBytes& bytes : depthwise_bytes) {
      const FunctionCase rows[] = {
          depthwise_case(bytes, size, "", {12, 1, 3, 3}),
          depthwise_case(bytes, size, "", {12, 1, 5, 5}),
          depthwise_case(bytes, size, "", {12, 1, 1, 7}),
          depthwise_case(bytes, size, ", dilations = [2, 2]", {12, 1, 3, 3}),
      };
      for (const FunctionCase& row : rows) {
        check_function(row, ++seed);
        if (testing::Test::HasFatalFailure()) return;
        for (const auto& [tier, runtime] : tier_runtimes()) {
          if (!jit::Target{tier}.has_avx512()) continue;
          CaseTensors tensors(**parse_function(row.text), row, seed, true);
          const auto bound =
              runtime.compile(*parse_function(row.text))->bind(tensors.inputs(), tensors.outputs());
          ASSERT_TRUE(bound) << bound.error().to_string();
          EXPECT_TRUE(kernels_apply_epilogue(*bound)) << name_of(tier) << ": " << row.text;
        }
      }
    }
  }
}

/// What the dump says of the kernels, which runs have with the same blocks of rows.
TEST(ConvEpilogue, DumpShowsDepthwiseKernelsThatApplyIt) {
  for (const int64_t size : {7, 33, 56}) {
    const FunctionCase row = depthwise_case(depthwise_bytes[0], size, "", {12, 1, 3, 3});
    const FunctionPtr function = *parse_function(row.text);
    CaseTensors tensors(*function, row, 1, true);
    for (const auto& [tier, runtime] : tier_runtimes()) {
      if (!jit::Target{tier}.has_avx512()) continue;
      const auto bound = runtime.compile(function)->bind(tensors.inputs(), tensors.outputs());
      ASSERT_TRUE(bound && kernels_apply_epilogue(*bound));
      const auto& depthwise = *convolution_of(*bound).depthwise();
      const std::string text = *jit::dump_nest(*function, jit::Target{tier});
      EXPECT_NE(text.find("on each tile, by the kernel itself"), std::string::npos) << text;
      EXPECT_NE(text.find(jit::print(depthwise.plan)), std::string::npos) << text;
    }
  }
}

/// A function after a depthwise convolution to %y, with results of bytes.
struct ByteResults {
  const char* body;     ///< from %y, %s: f32 by channel and %t: i8 by element to the results
  const char* types;    ///< the results' types, each with {0} for its shape
  const char* results;  ///< their names
};

constexpr ByteResults byte_results[] = {
    {"%f = convert %y : f32\n %m = mul %f, %s\n"
     " %r = convert %m {overflow = saturate, rounding = nearest_even} : u8",
     "u8{0}", "%r"},
    {"%f = convert %y : f32\n %m = mul %f, %s\n %g = convert %t : f32\n %q = add %m, %g\n"
     " %r = convert %q {overflow = saturate, rounding = down} : i8\n"
     " %p = convert %m {overflow = saturate, rounding = nearest_even} : u8",
     "i8{0}, u8{0}, f32{0}", "%r, %p, %q"},
    {"%g = convert %t : i32\n %a = add %y, %g\n %r = convert %a : u8\n %q = less %y, %g",
     "u8{0}, boolean{0}", "%r, %q"},
};

FunctionCase byte_case(const ByteResults& of, const Dims& plane, int64_t kernel, int64_t stride) {
  const Dims x = {2, 5, plane[0] * stride, plane[1] * stride};
  const Dims w = {5, 1, kernel, kernel};
  const Dims y = {2, 5, plane[0], plane[1]};
  const std::string text = fmt::format(
      "func @f(%x: u8{}, %w: i8{}, %xz: u8[], %s: f32[5, 1, 1], %t: i8{}) -> ({}) {{\n"
      " %y = conv_integer %x, %w, %xz {{group = 5, auto_pad = same_upper, strides = [{}, {}]}}\n"
      " {}\n return {}\n}}\n",
      to_string(x), to_string(w), to_string(y), fmt::format(fmt::runtime(of.types), to_string(y)),
      stride, stride, of.body, of.results);
  return {text, {{x}, {w}, {{}}, {{5, 1, 1}}, {y}}};
}

/// Rows whose vectors come in fours and others, blocks of any number of rows.
TEST(ConvEpilogue, DepthwiseKernelsPackBytes) {
  uint64_t seed = 500;
  for (const int64_t width : {4, 8, 12, 20, 22, 56, 64}) {
    for (const int64_t height : {1, 2, 3, 4, 5, 9, 14, 33}) {
      for (const ByteResults& of : byte_results) {
        check_function(byte_case(of, {height, width}, 3, 1), ++seed);
        check_function(byte_case(of, {height, width}, 5, 1), ++seed);
        check_function(byte_case(of, {height, width}, 3, 2), ++seed);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace castor::test
