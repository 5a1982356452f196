// SPDX-License-Identifier: Apache-2.0
// Pooling: the interpreter's bits on every tier, for all types, windows, paddings and layouts, with
// operands that are computed first, and results that others read.
#include <fmt/format.h>

#include "ir/rewrite/canonicalize.hpp"
#include "tests/support/function_case.hpp"

namespace castor::test {
namespace {

/// "func @pool(%x: u8[?, ?, ?, ?]) -> (u8[?, ?, ?, ?])" with that one operation.
std::string pool_of(std::string_view type, int spatial_axes, std::string_view attributes) {
  std::string shape = "?, ?";
  for (int axis = 0; axis < spatial_axes; ++axis) shape += ", ?";
  return fmt::format(
      "func @pool(%x: {0}[{1}]) -> ({0}[{1}]) {{\n  %y = max_pool %x {{{2}}}\n  return %y\n}}\n",
      type, shape, attributes);
}

constexpr const char* windows_of_images[] = {
    "kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]",
    "kernel_shape = [3, 3], pads = [1, 1, 1, 1], layout = nhwc",
    "kernel_shape = [2, 2], strides = [2, 2]",
    "kernel_shape = [2, 3], strides = [1, 3], pads = [0, 2, 1, 0], dilations = [2, 1]",
    "kernel_shape = [3, 2], auto_pad = same_upper, strides = [2, 3]",
    "kernel_shape = [2, 4], auto_pad = same_lower, layout = nhwc",
    "kernel_shape = [3, 3], auto_pad = valid, strides = [3, 2], layout = nhwc",
    "kernel_shape = [1, 1], strides = [2, 2]",
    "kernel_shape = [1, 1], pads = [2, 1, 1, 3]",  // windows of padding alone
    "kernel_shape = [5, 5], pads = [2, 2, 2, 2]",
    "kernel_shape = [13, 13], pads = [6, 6, 6, 6], layout = nhwc",
    "kernel_shape = [9, 1], strides = [3, 1], pads = [4, 0, 4, 0]",
    "kernel_shape = [4, 6], dilations = [3, 2], strides = [2, 4], pads = [5, 5, 4, 6]",
};

/// Images with every remainder; strided and transposed ones, and some without elements.
std::vector<Layout> images() {
  return {
      {{2, 3, 11, 13}},
      {{1, 64, 14, 14}},
      {{1, 12, 10, 67}},
      {{2, 1, 33, 10}},
      {{1, 2, 11, 12}, {700, 2, 60, 5}, 1},
      {{2, 9, 10, 14}, {1, 2800, 28, 2}, 3},
      {{0, 3, 12, 12}},
      {{2, 0, 12, 12}},
  };
}

TEST(Pooling, OfEveryTypeHasTheInterpretersBits) {
  const std::vector<Layout> layouts = images();
  uint64_t seed = 1;
  for (const ElementInfo& row : element_table) {
    if (!admits(OperandClass::numeric_bytes, row.type)) continue;
    for (const char* attributes : windows_of_images) {
      for (int i = 0; i < 2; ++i) {  // every layout with some windows of some type
        const Layout& layout = layouts[++seed % layouts.size()];
        ASSERT_NO_FATAL_FAILURE(check_function({pool_of(row.name, 2, attributes), {layout}}, seed))
            << row.name << " " << attributes;
      }
    }
  }
}

TEST(Pooling, OfOneToSixSpatialAxes) {
  struct Row {
    int axes;
    const char* attributes;
    Dims shape;
  };
  const Row rows[] = {
      {1, "kernel_shape = [5], strides = [2], pads = [2, 2]", {2, 5, 100}},
      {1, "kernel_shape = [40], strides = [8], pads = [20, 19]", {1, 3, 333}},
      {1, "kernel_shape = [40], auto_pad = same_upper", {1, 3, 57}},
      {1, "kernel_shape = [1000], pads = [999, 999]", {1, 2, 7}},
      {3,
       "kernel_shape = [2, 3, 2], strides = [2, 1, 2], pads = [0, 1, 0, 1, 1, 0]",
       {2, 3, 5, 6, 7}},
      {3, "kernel_shape = [3, 3, 3], layout = nhwc, auto_pad = same_upper", {1, 4, 5, 6, 19}},
      {6,
       "kernel_shape = [2, 1, 2, 1, 2, 2], strides = [1, 2, 1, 1, 1, 2]",
       {1, 2, 3, 2, 3, 2, 3, 4}},
  };
  uint64_t seed = 1;
  for (const Row& row : rows) {
    for (const char* type : {"u8", "f32", "bf16", "i64"}) {
      ASSERT_NO_FATAL_FAILURE(
          check_function({pool_of(type, row.axes, row.attributes), {{row.shape}}}, ++seed));
    }
  }
}

/// Numbers alone: most random windows of floats have a NaN.
TEST(Pooling, OfNumbersHasTheInterpretersBits) {
  uint64_t seed = 1;
  for (const char* type : {"f32", "f64", "f16", "bf16", "f8e4m3", "f8e5m2fnuz"}) {
    for (const char* attributes : windows_of_images) {
      const std::string text = fmt::format(
          "func @numbers(%x: {0}[?, ?, ?, ?]) -> ({0}[?, ?, ?, ?]) {{\n"
          "  %zero = constant -0.0 : {0}[]\n  %n = is_nan %x\n  %z = select %n, %zero, %x\n"
          "  %y = max_pool %z {{{1}}}\n  return %y\n}}\n",
          type, attributes);
      ASSERT_NO_FATAL_FAILURE(check_function({text, {{{1, 5, 13, 12}}}}, ++seed));
    }
  }
}

TEST(Pooling, AmongOtherOperations) {
  constexpr const char* texts[] = {
      // The operand is computed, and a result as well; others read what is pooled.
      "func @f(%x: f32[?n, 6, ?h, ?w]) -> (f32[?n, 6, ?h, ?w], f32[?n, 6, ?h, ?w], f32[]) {\n"
      "  %r = relu %x\n"
      "  %y = max_pool %r {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}\n"
      "  %z = add %y, %r\n  %m = reduce_max %y\n  return %r, %z, %m\n}\n",
      // Two windows of one operand in one space.
      "func @f(%x: u8[?n, 6, ?h, ?w]) -> (i32[?n, 6, ?h, ?w]) {\n"
      "  %a = max_pool %x {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}\n"
      "  %b = max_pool %x {kernel_shape = [5, 5], pads = [2, 2, 2, 2]}\n"
      "  %c = convert %a : i32\n  %d = convert %b : i32\n  %e = convert %x : i32\n"
      "  %s = sub %c, %d\n  %y = mul %s, %e\n  return %y\n}\n",
      // What is pooled is broadcast, and read by blocks.
      "func @f(%x: f32[?n, 6, ?h, ?w]) -> (f32[?n, 6, ?h, ?w]) {\n"
      "  %r = reshape %x : [?n, 6, ?h, ?w]\n"
      "  %m = reduce_max %r {axes = [2], keep_dims = true}\n"
      "  %p = max_pool %m {kernel_shape = [1, 3], pads = [0, 1, 0, 1]}\n"
      "  %y = sub %x, %p\n  return %y\n}\n",
      "func @f(%x: f16[1, 6, 8, 8], %b: f16[1, 6, 16, 16]) -> (f16[1, 6, 16, 16]) {\n"
      "  %p = max_pool %x {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}\n"
      "  %y = add %b, %p {broadcast = blocked, axes = [2, 3], block = [2, 2]}\n  return %y\n}\n",
      // A reshape of a computed value, and of a result.
      "func @f(%x: i8[2, 96]) -> (i8[2, 6, 2, 2]) {\n"
      "  %n = neg %x\n  %r = reshape %n : [2, 6, 4, 4]\n"
      "  %y = max_pool %r {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}\n"
      "  return %y\n}\n",
      // Excess precision ends where a value is pooled.
      "func @f(%x: bf16[1, 3, 9, 9], %s: bf16[]) -> (bf16[1, 3, 9, 9]) "
      "attributes {excess_precision = allow} {\n"
      "  %m = mul %x, %s\n  %p = max_pool %m {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}\n"
      "  %y = add %p, %m\n  return %y\n}\n",
      // It is stored in f32, whose infinity is a NaN of its own type.
      "func @f(%x: u8[1, 3, 6, 6], %b: f8e4m3[2, 3, 6, 6]) -> "
      "(f8e4m3[2, 3, 6, 6], f8e4m3[1, 3, 6, 6]) attributes {excess_precision = allow} {\n"
      "  %f = convert %x : f8e4m3\n  %one = constant 1.0 : f8e4m3[]\n"
      "  %a = add %f, %one\n  %c = div %a, %one\n  %d = sqrt %c\n  %m = div %d, %a\n"
      "  %z = add %b, %m\n  %p = max_pool %m {kernel_shape = [2, 2], pads = [1, 1, 0, 0]}\n"
      "  return %z, %p\n}\n",
  };
  const std::vector<std::vector<Layout>> layouts = {
      {{{2, 6, 7, 9}}},
      {{{2, 6, 7, 9}}},
      {{{2, 6, 7, 9}}},
      {{{1, 6, 8, 8}}, {{1, 6, 16, 16}}},
      {{{2, 96}, {2, 4}}},
      {{{1, 3, 9, 9}}, {{}}},
      {{{1, 3, 6, 6}}, {{2, 3, 6, 6}}},
  };
  for (size_t i = 0; i < std::size(texts); ++i) {
    ASSERT_NO_FATAL_FAILURE(check_function({texts[i], layouts[i]}, i + 1)) << texts[i];
  }
}

/// One nest may compute several, but reads no more tensors than a kernel has operands.
TEST(Pooling, SeveralOfOneShape) {
  for (const int kernel : {7, 16}) {
    std::string types;
    std::string poolings;
    std::string results;
    for (int dilation = 1; dilation <= 7; ++dilation) {
      const char* comma = dilation == 1 ? "" : ", ";
      const int padding = (kernel - 1) * dilation;  // as many results as elements
      types += fmt::format("{}u8[1, 3, 8, 8]", comma);
      results += fmt::format("{}%y{}", comma, dilation);
      poolings += fmt::format(
          "  %y{1} = max_pool %x {{kernel_shape = [1, {0}], dilations = [1, {1}], "
          "pads = [0, {2}, 0, {3}]}}\n",
          kernel, dilation, padding / 2, padding - padding / 2);
    }
    const std::string text = fmt::format(
        "func @f(%x: u8[1, 3, 8, 8]) -> ({}) {{\n{}  return {}\n}}\n", types, poolings, results);
    ASSERT_NO_FATAL_FAILURE(check_function({text, {{{1, 3, 8, 8}}}}));
  }
}

/// Windows that exceed the input by up to a stride leave no results; large strides leave one.
TEST(Pooling, OfInputsThatAreShorterThanTheWindow) {
  const auto around = [](const char* extents, const char* attributes) {
    return fmt::format(
        "func @f(%x: f32[{}]) -> (f32[?, ?, ?, ?]) {{\n  %y = max_pool %x {{{}}}\n"
        "  return %y\n}}\n",
        extents, attributes);
  };
  int checked = 0;
  for (const char* attributes :
       {"kernel_shape = [17, 1], strides = [18, 1]", "kernel_shape = [17, 2], strides = [17, 2]",
        "kernel_shape = [3, 3], strides = [3, 3]", "kernel_shape = [20, 2], strides = [19, 2]",
        "kernel_shape = [40, 1], strides = [40, 1]", "kernel_shape = [2, 1], strides = [2, 1]"}) {
    for (const int64_t height : {0, 1, 2, 3, 19, 20, 39, 61}) {
      const Dims extents = {1, 2, height, 4};
      for (const std::string& written :
           {std::string("1, 2, ?h, ?w"), fmt::format("1, 2, {}, 4", height)}) {
        const auto function = parse_function(around(written.c_str(), attributes));
        const bool is_valid = function.ok() && bind_shapes(**function, std::vector{extents}).ok();
        if (!is_valid || !reason_interpreted(*canonicalize(*function)).empty()) continue;
        ++checked;
        ASSERT_NO_FATAL_FAILURE(check_function({around(written.c_str(), attributes), {{extents}}}))
            << attributes << " " << written;
      }
    }
  }
  EXPECT_GE(checked, 60);
  ASSERT_NO_FATAL_FAILURE(
      check_function({around("1, 2, 4, 4",
                             "kernel_shape = [2, 2], strides = [4611686018427387904, "
                             "4611686018427387904]"),
                      {{{1, 2, 4, 4}}}}));
}

/// Padding around nothing has no elements, however long its axes are: those of an image without
/// channels or of no images, whose operand is an input or computed first. A call whose results all
/// have none does nothing: one has.
TEST(Pooling, OfTensorsWithoutElements) {
  for (const Dims& extents : {Dims{1, 3000, 300, 0}, Dims{0, 3000, 300, 4}, Dims{1, 0, 30, 4}}) {
    for (const char* operand : {"%x", "%a"}) {
      const std::string text = fmt::format(
          "func @f(%x: f32[?, ?, ?, ?]) -> (f32[?, ?, ?, ?], f32[]) {{\n  %a = abs %x\n"
          "  %y = max_pool {} {{kernel_shape = [3, 3], pads = [2, 2, 1, 1], layout = nhwc}}\n"
          "  %m = reduce_max %y\n  return %y, %m\n}}\n",
          operand);
      ASSERT_NO_FATAL_FAILURE(check_function({text, {{extents}}}));
    }
  }
}

/// Results of convolutions: as sums, and after an epilogue.
TEST(Pooling, OfConvolutions) {
  for (const char* layout : {"nchw", "nhwc"}) {
    const bool channels_last = std::string_view(layout) == "nhwc";
    const Dims image = channels_last ? Dims{1, 10, 9, 8} : Dims{1, 8, 10, 9};
    const std::string text = fmt::format(
        "func @f(%x: u8[?, ?, ?, ?], %w: i8[5, 8, 3, 3]) -> (i32[?, ?, ?, ?], u8[?, ?, ?, ?]) {{\n"
        "  %a = conv_integer %x, %w {{pads = [1, 1, 1, 1], layout = {0}}}\n"
        "  %p = max_pool %a {{kernel_shape = [3, 3], strides = [2, 2], layout = {0}}}\n"
        "  %b = conv_integer %x, %w {{layout = {0}}}\n"
        "  %c = convert %b {{overflow = saturate}} : u8\n"
        "  %q = max_pool %c {{kernel_shape = [2, 2], pads = [1, 1, 1, 1], layout = {0}}}\n"
        "  return %p, %q\n}}\n",
        layout);
    ASSERT_NO_FATAL_FAILURE(check_function({text, {{image}, {{5, 8, 3, 3}}}}));
    // Rows alone are padded: the epilogue writes what is inside the padding.
    const std::string rows = fmt::format(
        "func @f(%x: u8[?, ?, ?, ?], %w: i8[5, 8, 3, 3]) -> u8[?, ?, ?, ?] {{\n"
        "  %b = conv_integer %x, %w {{layout = {0}}}\n"
        "  %c = convert %b {{overflow = saturate}} : u8\n"
        "  %q = max_pool %c {{kernel_shape = [3, 1], pads = [1, 0, 2, 0], layout = {0}}}\n"
        "  return %q\n}}\n",
        layout);
    ASSERT_NO_FATAL_FAILURE(check_function({rows, {{image}, {{5, 8, 3, 3}}}}));
  }
}

}  // namespace
}  // namespace castor::test
