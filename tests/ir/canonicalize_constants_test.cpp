// SPDX-License-Identifier: Apache-2.0
// What canonicalising makes of constants: what follows from them is computed, and integer steps of
// quantization that they make needless go.
#include <fmt/format.h>

#include "tests/support/canonical_form.hpp"

namespace castor {
namespace {

using test::expect_canonical;

TEST(CanonicalizeConstants, ComputesWhatFollowsFromConstants) {
  expect_canonical(
      "func @f(%x: f32[2]) -> (f32[2]) { %a = constant [2, 3] : f32[2] %b = constant 4 : f32[]"
      " %c = mul %a, %b %d = convert %c : i8 %e = convert %d : f32 %y = add %x, %e return %y }",
      "func @f(%x: f32[2]) -> (f32[2]) { %e = constant [8, 12] : f32[2]"
      " %y = add %x, %e return %y }");
  const std::string_view outer_product =
      "func @f(%x: f32[2, 2]) -> (f32[2, 2]) { %a = constant [2, 3] : f32[2]"
      " %b = constant [[4], [5]] : f32[2, 1] %c = mul %a, %b %y = add %x, %c return %y }";
  expect_canonical(outer_product, outer_product);
}

TEST(CanonicalizeConstants, ComputesWhatOtherRewritesMakeConstant) {
  expect_canonical(
      "func @f(%x: i32[2]) -> (i32[2]) { %a = constant [2] : u8[1]"
      " %p, %q = convert_promote_types %x, %a {promote_unsafe = true} %y = add %p, %q return %y }",
      "func @f(%x: i32[2]) -> (i32[2]) { %q = constant [2] : i32[1] %y = add %x, %q return %y }");
  expect_canonical(
      "func @f(%x: i32[2]) -> (i32[2]) { %a = constant [2, 3] : i32[2] %b = broadcast %a : [2]"
      " %c = neg %b %y = add %x, %c return %y }",
      "func @f(%x: i32[2]) -> (i32[2]) { %c = constant [-2, -3] : i32[2] %y = add %x, %c"
      " return %y }");
}

TEST(CanonicalizeConstants, ComputesTheCorrectionOfConstantZeroPoints) {
  expect_canonical(
      "func @f(%a: u8[2, 2]) -> (i32[2, 2]) { %b = constant [[2, 0], [55, -28]] : i8[2, 2]"
      " %az = constant [[22], [249]] : u8[2, 1] %bz = constant [7] : i8[1]"
      " %y = matmul_integer %a, %b, %az, %bz return %y }",
      "func @f(%a: u8[2, 2]) -> (i32[2, 2]) { %b = constant [[2, 0], [55, -28]] : i8[2, 2]"
      " %bz = constant [7] : i8[1] %p = matmul_integer %a, %b, none, %bz"
      " %sums = constant [43, -42] : i32[2] %az = constant [[22], [249]] : i32[2, 1]"
      " %c = mul %az, %sums %y = sub %p, %c return %y }");
}

TEST(CanonicalizeConstants, ZerosAreNotAddedToIntegers) {
  const auto becomes = [](const char* sum, const char* result) {
    expect_canonical(fmt::format("func @f(%x: i16[2, 3]) -> (i16[2, 3]) {{"
                                 " %z = constant [0, 0, 0] : i16[3] %y = {} return %y }}",
                                 sum),
                     fmt::format("func @f(%x: i16[2, 3]) -> (i16[2, 3]) {{ return {} }}", result));
  };
  becomes("add %x, %z", "%x");
  becomes("add %z, %x", "%x");
  becomes("sub %x, %z", "%x");
  for (const char* kept :
       {"func @f(%x: i16[3]) -> (i16[3]) { %z = constant [0, 0, 0] : i16[3]"
        " %y = sub %z, %x return %y }",
        "func @f(%x: i16[3]) -> (i16[2, 3]) { %z = constant [[0], [0]] : i16[2, 1]"
        " %y = add %x, %z return %y }",
        "func @f(%x: i16[?]) -> (i16[?]) { %z = constant [0, 0, 0] : i16[3]"
        " %y = add %x, %z return %y }",
        "func @f(%x: f32[3]) -> (f32[3]) { %z = constant [0, 0, 0] : f32[3]"
        " %y = add %x, %z return %y }"}) {
    expect_canonical(kept, kept);
  }
}

TEST(CanonicalizeConstants, SaturatingConversionsNeedNoWiderClamps) {
  const auto clamped = [](const char* bounds, const char* to) {
    return fmt::format(
        "func @f(%x: i32[2]) -> ({1}[2]) {{ %c = clamp %x {{{0}}}"
        " %y = convert %c {{overflow = saturate}} : {1} return %y }}",
        bounds, to);
  };
  const auto plain = [](const char* to) {
    return fmt::format(
        "func @f(%x: i32[2]) -> ({0}[2]) {{"
        " %y = convert %x {{overflow = saturate}} : {0} return %y }}",
        to);
  };
  expect_canonical(clamped("lo = 0, hi = 255", "u8"), plain("u8"));
  expect_canonical(clamped("lo = -70000.5, hi = 70000", "i16"), plain("i16"));
  for (const char* bounds : {"lo = 1, hi = 255", "lo = 0, hi = 254", "hi = 254"}) {
    expect_canonical(clamped(bounds, "u8"), clamped(bounds, "u8"));
  }
}

TEST(CanonicalizeConstants, QuantizedNumbersThatAreDequantizedAtOnceAreClamped) {
  const auto steps = [](const char* bounds, int added, int subtracted, const char* narrow) {
    return fmt::format(
        "func @f(%x: i32[2]) -> (i32[2]) {{ %c = clamp %x {{{}}} %a = constant {} : i32[]"
        " %s = add %c, %a %n = convert %s {{overflow = saturate}} : {} %w = convert %n : i32"
        " %b = constant {} : i32[] %y = sub %w, %b return %y }}",
        bounds, added, narrow, subtracted);
  };
  const auto clamp = [](const char* bounds) {
    return fmt::format("func @f(%x: i32[2]) -> (i32[2]) {{ %y = clamp %x {{{}}} return %y }}",
                       bounds);
  };
  expect_canonical(steps("lo = -131072.0, hi = 131072.0", 130, 130, "u8"),
                   clamp("lo = -130.0, hi = 125.0"));
  expect_canonical(steps("lo = -131072.0, hi = 131072.0", -7, -7, "i8"),
                   clamp("lo = -121.0, hi = 134.0"));
  expect_canonical(steps("lo = -5, hi = 1000", 100, 100, "u8"), clamp("lo = -5.0, hi = 155.0"));
  expect_canonical(steps("lo = 400, hi = 500", 100, 100, "u8"), clamp("lo = 155.0, hi = 155.0"));
  for (const std::string& kept : {steps("lo = -131072.0, hi = 131072.0", 130, 129, "u8"),
                                  steps("lo = -131072.0, hi = 2000000", 130, 130, "u8"),
                                  steps("lo = -131072.0, hi = 131072.0", 2000000, 2000000, "u8"),
                                  steps("hi = 131072.0", 130, 130, "u8")}) {
    expect_canonical(kept, kept);
  }
}

}  // namespace
}  // namespace castor
