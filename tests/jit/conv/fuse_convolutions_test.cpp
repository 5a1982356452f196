// SPDX-License-Identifier: Apache-2.0
// Which elementwise chains are fused with convolutions, and what the dump says of the others.
#include "jit/conv/epilogue/epilogue.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/function_case.hpp"

namespace castor::test {
namespace {

/// What the dump says of each convolution's epilogue.
std::string fusions_of(const std::string& text) {
  const Result<FunctionPtr> function = parse_function(text);
  if (!function) return function.error().to_string();
  std::string fusions;
  for (const jit::Nest& nest : plan_nests(**function, jit::Target{Tier::avx512})) {
    if (!nest.fusion) continue;
    fusions += (fusions.empty() ? "" : "; ") + text_of(**function, *nest.fusion);
  }
  return fusions;
}

struct PlanRow {
  const char* name;
  const char* text;  ///< the function's text after its convolution
  const char* expected;
  const char* parameters = "";
  const char* results = "f32[2, 6, 5, 7]";
};

constexpr const char* fused = "the next nest, piece by piece";

const PlanRow plans[] = {
    {"chain", "%f = convert %y : f32\n %m = mul %f, %s\n %r = add %m, %s\n return %r", fused,
     ", %s: f32[6, 1, 1]"},
    {"read_twice_by_one_nest", "%f = convert %y : f32\n %r = mul %f, %f\n return %r", fused},
    {"returned_and_read", "%r = convert %y : f32\n return %r, %y", fused, "",
     "f32[2, 6, 5, 7], i32[2, 6, 5, 7]"},
    {"residual", "%f = convert %y : f32\n %r = add %f, %t\n return %r", fused,
     ", %t: f32[2, 6, 5, 7]"},
    {"residual_of_one_image", "%f = convert %y : f32\n %r = add %f, %t\n return %r", fused,
     ", %t: f32[6, 5, 7]"},
    {"by_image", "%f = convert %y : f32\n %r = add %f, %t\n return %r", fused,
     ", %t: f32[2, 1, 1, 1]"},
    {"by_image_and_channel", "%f = convert %y : f32\n %r = add %f, %t\n return %r", fused,
     ", %t: f32[2, 6, 1, 1]"},
    {"returned", "return %y", "none: the i32 result is the function's", "", "i32[2, 6, 5, 7]"},
    {"by_column", "%f = convert %y : f32\n %r = add %f, %t\n return %r",
     "none: %t lies along some of the spatial axes only", ", %t: f32[7]"},
    {"by_row", "%f = convert %y : f32\n %r = add %f, %t\n return %r",
     "none: %t lies along some of the spatial axes only", ", %t: f32[6, 5, 1]"},
    {"two_nests",
     "%f = convert %y : f32\n %b = broadcast %f : [3, 2, 6, 5, 7]\n %r = abs %f\n return %r, %b",
     "none: several nests read the i32 result", "", "f32[2, 6, 5, 7], f32[3, 2, 6, 5, 7]"},
    {"larger", "%f = convert %y : f32\n %r = add %f, %t\n return %r",
     "none: %r, which is computed from the i32 result, has another shape",
     ", %t: f32[3, 2, 6, 5, 7]", "f32[3, 2, 6, 5, 7]"},
    {"reshaped", "%v = reshape %y : [2, 6, 35]\n %r = convert %v : f32\n return %r",
     "none: %v is a reshape of the i32 result", "", "f32[2, 6, 35]"},
    {"reshaped_behind", "%f = convert %y : f32\n %r = reshape %f : [12, 35]\n return %r", fused, "",
     "f32[12, 35]"},
    {"odd_rows_of_u4", "%r = convert %y : u4\n return %r", "none: rows of %r end inside bytes", "",
     "u4[2, 6, 5, 7]"},
    {"odd_rows_of_a_residual",
     "%f = convert %y : f32\n %g = convert %t : f32\n %r = add %f, %g\n"
     " return %r",
     "none: rows of %t end inside bytes", ", %t: i4[2, 6, 5, 7]"},
    {"sub_byte_channels",
     "%g = convert %t : i32\n %a = mul %y, %g\n %r = convert %a : f32\n"
     " return %r",
     fused, ", %t: i4[6, 1, 1]"},
    {"two_convolutions",
     "%z = conv_integer %x, %w {pads = [1, 1, 1, 1]}\n %a = add %y, %z\n %r = convert %a : f32\n"
     " return %r",
     "none: the nest that reads the i32 result is that of %z; the next nest, piece by piece"},
    {"one_after_the_other",
     "%q = convert %y {overflow = saturate} : u8\n %v = constant [1, 2, 3, 4, 5, 6] : i8[1, 6, 1, "
     "1]\n %z = conv_integer %q, %v\n %r = convert %z : f32\n return %r",
     "the next nest, piece by piece; the next nest, piece by piece", "", "f32[2, 1, 5, 7]"},
};

TEST(FuseConvolutions, WhatIsPlanned) {
  for (const PlanRow& row : plans) {
    const std::string text = fmt::format(
        "func @f(%x: u8[2, 3, 5, 7], %w: i8[6, 3, 3, 3]{}) -> ({}) {{\n"
        " %y = conv_integer %x, %w {{pads = [1, 1, 1, 1]}}\n {}\n}}\n",
        row.parameters, row.results, row.text);
    EXPECT_EQ(fusions_of(text), row.expected) << row.name << "\n" << text;
  }
}

TEST(FuseConvolutions, PlansOfChannelsLast) {
  const auto fusion = [](const char* type, const char* chain, const char* result) {
    return fusions_of(
        fmt::format("func @f(%x: u8[1, 5, 7, 3], %w: i8[6, 3, 1, 1], %t: {}) -> {}[1, 5, 7, 6] {{\n"
                    " %y = conv_integer %x, %w {{layout = nhwc}}\n {}\n return %r\n}}\n",
                    type, result, chain));
  };
  const char* add = "%f = convert %y : f32\n %r = add %f, %t";
  EXPECT_EQ(fusion("f32[6]", add, "f32"), fused);
  EXPECT_EQ(fusion("f32[1, 5, 7, 1]", add, "f32"), fused) << "by pixel";
  EXPECT_EQ(fusion("f32[7, 6]", add, "f32"), "none: %t lies along some of the spatial axes only");
  EXPECT_EQ(fusion("f32[6]", "%r = convert %y : u4", "u4"), fused) << "channels fill bytes";
}

/// Unknown extents: what is planned holds where it does when they are known.
TEST(FuseConvolutions, PlansOfUnknownExtents) {
  EXPECT_EQ(fusions_of("func @f(%x: u8[?, ?, ?, ?], %w: i8[?, ?, 3, 3], %t: f32[?, ?, ?, ?]) -> "
                       "f32[?, ?, ?, ?] {\n %y = conv_integer %x, %w\n %f = convert %y : f32\n"
                       " %r = add %f, %t\n return %r\n}\n"),
            fused);
}

}  // namespace
}  // namespace castor::test
