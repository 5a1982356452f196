// SPDX-License-Identifier: Apache-2.0
// Pooling in the IR: text, builder, result types, mistakes, and how large windows are split.
#include <fmt/format.h>

#include "ir/builder.hpp"
#include "ir/rewrite/split_windows.hpp"
#include "ir/shape/pooling.hpp"
#include "ir/verify/infer.hpp"
#include "tests/support/canonical_form.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/texts.hpp"

namespace castor::test {
namespace {

std::string around(std::string_view parameter, std::string_view result,
                   std::string_view operation) {
  return fmt::format("func @f(%x: {}) -> ({}) {{\n  %y = {}\n  return %y\n}}\n", parameter, result,
                     operation);
}

TEST(PoolingText, PrintsAsItStands) {
  const std::string texts[] = {
      around("f32[1, 2, 9, 9]", "f32[1, 2, 4, 4]",
             "max_pool %x {kernel_shape = [3, 3], strides = [2, 2]}"),
      around("u8[?n, 9, 8, ?c]", "u8[?n, 9, 8, ?c]",
             "max_pool %x {auto_pad = same_upper, kernel_shape = [3, 3], layout = nhwc}"),
      around("i64[?n, 2, ?w]", "i64[?n, 2, ?w]", "max_pool %x {kernel_shape = [3], pads = [1, 1]}"),
      around("f16[?n, 2, ?w]", "f16[?n, 2, ?]",
             "max_pool %x {dilations = [2], kernel_shape = [3], pads = [0, 1], strides = [2]}"),
  };
  for (const std::string& text : texts) {
    const auto function = parse_function(text);
    ASSERT_TRUE(function) << text << function.error().to_string();
    EXPECT_EQ(print(**function), text);
  }
}

TEST(PoolingBuilder, SaysWhatTheTextSays) {
  FunctionBuilder builder("f");
  const ValueId x = builder.parameter("x", {ElementType::u8, {"?n", 3, 8, 8}});
  builder.result(builder.max_pool(x, {.kernel_shape = {2, 2}, .strides = {2, 2}}));
  const auto function = builder.finish();
  ASSERT_TRUE(function) << function.error().to_string();
  EXPECT_EQ(print(**function),
            "func @f(%x: u8[?n, 3, 8, 8]) -> (u8[?n, 3, 4, 4]) {\n"
            "  %0 = max_pool %x {kernel_shape = [2, 2], strides = [2, 2]}\n  return %0\n}\n");
}

TEST(PoolingTypes, MistakesSayWhatWasFoundAndExpected) {
  struct Mistake {
    const char* parameter;
    const char* operation;
    const char* message;
  };
  constexpr Mistake mistakes[] = {
      {"f32[2, 3]", "max_pool %x {kernel_shape = []}",
       "max_pool: x has rank 2, expected 3 or more: batch, channels and spatial axes"},
      {"f32[2, 3, 4]", "max_pool %x", "max_pool"},
      {"f32[2, 3, 4]", "max_pool %x {kernel_shape = [2, 2]}",
       "max_pool: kernel_shape has 2 entries, expected 1: one for each spatial axis"},
      {"f32[2, 3, 4]", "max_pool %x {kernel_shape = [0]}",
       "max_pool: kernel_shape[0] = 0, expected 1 or more"},
      {"f32[2, 3, 4]", "max_pool %x {kernel_shape = [2], strides = [0]}",
       "max_pool: strides[0] = 0, expected 1 or more"},
      {"f32[2, 3, 4]", "max_pool %x {kernel_shape = [9]}",
       "max_pool: spatial axis 0: the kernel takes 9 positions"},
      {"f32[2, 3, 4]", "max_pool %x {kernel_shape = [3], pads = [1, 1], auto_pad = valid}",
       "max_pool: found pads with auto_pad = valid, expected it with auto_pad = notset only"},
      {"f32[2, 3, 4]", "max_pool %x {kernel_shape = [3], group = 1}", "group"},
      {"i4[2, 3, 4]", "max_pool %x {kernel_shape = [3]}",
       "max_pool: operand 0 is i4, expected an integer or a float of 8 bits or more (not boolean, "
       "f8e8m0)"},
      {"boolean[2, 3, 4]", "max_pool %x {kernel_shape = [3]}", "max_pool: operand 0 is boolean"},
  };
  for (const Mistake& mistake : mistakes) {
    const std::string error =
        texts::error_of(around(mistake.parameter, "f32[?, ?, ?]", mistake.operation));
    EXPECT_NE(error.find(mistake.message), std::string::npos) << error;
  }
}

TEST(PoolingTypes, AreThoseOfItsClass) {
  Operation operation{.op = OpKind::max_pool,
                      .attributes = attributes_of(ConvolutionOptions{.kernel_shape = {2}})};
  for (const ElementInfo& row : element_table) {
    const TensorType x = {row.type, {2, 3, 4}};
    const TensorType* const operands[] = {&x};
    const auto types = infer_types(operation, operands, {});
    ASSERT_EQ(types.ok(), admits(OperandClass::numeric_bytes, row.type)) << row.name;
    if (types) {
      EXPECT_EQ(types->front().element, row.type);
      EXPECT_EQ(types->front().shape, (Shape{2, 3, 3}));
    }
  }
}

TEST(PoolingTypes, ExtentsFollowWhenTheyAreBound) {
  const auto function = parse_function(
      around("u8[?n, 3, ?h, ?w]", "u8[?n, 3, ?, ?]",
             "max_pool %x {auto_pad = same_lower, kernel_shape = [3, 2], strides = [2, 3]}"));
  ASSERT_TRUE(function) << function.error().to_string();
  const std::vector<Dims> shapes = {{7, 3, 9, 10}};
  const auto bound = bind_shapes(**function, shapes);
  ASSERT_TRUE(bound);
  EXPECT_EQ(bound->values[(*function)->results[0]], (Dims{7, 3, 5, 4}));
  const std::vector<Dims> short_axis = {{7, 3, 0, 10}};
  ASSERT_TRUE(bind_shapes(**function, short_axis));
}

/// The largest window of a canonical function, and how many poolings it has.
struct Split {
  int64_t taps = 0;
  int poolings = 0;
};

Split split_of(std::string_view text) {
  Split split;
  const FunctionPtr canonical = canonicalize(parsed(text));
  for (const Operation& operation : canonical->operations) {
    if (operation.op != OpKind::max_pool) continue;
    ++split.poolings;
    const auto rank = static_cast<int>(canonical->type_of(operation.operands[0]).shape.size());
    split.taps =
        std::max(split.taps, static_cast<int64_t>(pooling_taps(operation, rank).begins.size()));
  }
  EXPECT_EQ(reason_windows_not_split(*canonical), "") << text;
  return split;
}

TEST(PoolingWindows, AreSplitWhereThatReadsFewerElements) {
  const auto image = [](const char* attributes) {
    return around("u8[1, 64, 56, 56]", "u8[?, ?, ?, ?]",
                  fmt::format("max_pool %x {{{}}}", attributes));
  };
  EXPECT_EQ(split_of(image("kernel_shape = [2, 2], layout = nhwc")).poolings, 1);
  EXPECT_EQ(split_of(image("kernel_shape = [3, 3], strides = [2, 2], layout = nhwc")).poolings, 1);
  EXPECT_EQ(split_of(image("kernel_shape = [3, 3], strides = [2, 2]")).poolings, 3);
  EXPECT_EQ(split_of(image("kernel_shape = [1, 1], strides = [2, 2]")).poolings, 1);
  EXPECT_EQ(split_of(image("kernel_shape = [1, 2], strides = [1, 2]")).poolings, 1);
  EXPECT_EQ(split_of(image("kernel_shape = [3, 1], strides = [2, 1]")).poolings, 1);
  EXPECT_EQ(split_of(image("kernel_shape = [3, 3]")).poolings, 2);
  const Split large = split_of(image("kernel_shape = [40, 50]"));
  EXPECT_LE(large.taps, 7);
  EXPECT_LE(large.poolings, 10);
  EXPECT_LE(
      split_of(image("kernel_shape = [1000000000000, 50], pads = [999999999999, 25, 999999999999, "
                     "25], strides = [60, 7]"))
          .poolings,
      60);
}

TEST(PoolingWindows, ThatNoNumberPadsAreInterpreted) {
  const FunctionPtr function = canonicalize(
      parsed(around("u8[1, 2, ?w]", "u8[1, 2, ?]",
                    "max_pool %x {auto_pad = same_upper, kernel_shape = [99], strides = [3]}")));
  EXPECT_NE(reason_windows_not_split(*function).find("%y = max_pool: windows of more than 16"),
            std::string::npos);
  const Kernel kernel = *Runtime::create()->compile(function);
  EXPECT_EQ(kernel.engine(), Engine::interpreter);
}

/// A kernel may exceed the input by its stride, so that half a kernel with a smaller stride may not
/// take an input that the whole one takes.
TEST(PoolingWindows, OfLongStridesAreSplitWhereAllInputsRemainValid) {
  const auto reason = [](const char* extents, const char* attributes) {
    return reason_windows_not_split(
        *canonicalize(parsed(around(fmt::format("u8[1, 2, {}]", extents), "u8[1, 2, ?]",
                                    fmt::format("max_pool %x {{{}}}", attributes)))));
  };
  EXPECT_EQ(reason("?w", "kernel_shape = [20], strides = [20]"), "");
  EXPECT_EQ(reason("?w", "kernel_shape = [17], strides = [9]"), "");
  EXPECT_EQ(reason("99", "kernel_shape = [17], strides = [18]"), "");
  EXPECT_EQ(reason("?w", "kernel_shape = [17], strides = [18], pads = [8, 8]"), "");
  EXPECT_NE(reason("?w", "kernel_shape = [17], strides = [18]").find("found strides = [18]"),
            std::string::npos);
  EXPECT_NE(reason("3", "kernel_shape = [17], strides = [18]").find("the extents [1, 2, 3]"),
            std::string::npos);
}

}  // namespace
}  // namespace castor::test
