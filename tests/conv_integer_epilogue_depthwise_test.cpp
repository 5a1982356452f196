// SPDX-License-Identifier: Apache-2.0
// Epilogues of depthwise convolutions: kernels apply them, with the interpreter's bits.
#include <fmt/format.h>

#include "runtime/convolution.hpp"
#include "runtime/state.hpp"
#include "tests/support/function_case.hpp"

namespace castor::test {
namespace {

/// Signs and zero points of a convolution's operands.
struct DepthwiseBytes {
  const char* x;
  const char* w;
  const char* zero_points;  ///< operands behind x and w
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

/// Whether the kernels of the first convolution apply its epilogue.
bool kernels_apply_epilogue(const BoundKernel& bound) {
  const detail::BoundNest& nest = detail::StateAccess::of(bound).nests.front();
  return nest.convolution->depthwise != nullptr && nest.convolution->depthwise->applies_epilogue;
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

}  // namespace
}  // namespace castor::test
