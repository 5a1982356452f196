// SPDX-License-Identifier: Apache-2.0
// Every op in the text form: it prints as it stands, and what does not read is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "ir/text/text.hpp"
#include "tests/support/texts.hpp"

namespace castor {
namespace {

using texts::error_of;

/// A function of these parameters and results around operations.
std::string around(std::string_view parameters, std::string_view results,
                   std::string_view operations, std::string_view returned) {
  return fmt::format("func @f({}) -> ({}) {{\n  {}\n  return {}\n}}\n", parameters, results,
                     operations, returned);
}

/// Ops of one or two operands of their class, in every spelling of their attributes.
std::vector<std::string> elementwise_texts() {
  std::vector<std::string> texts;
  for (const OpInfo& row : op_table()) {
    const bool is_binary = row.operands == 2;
    if (row.op == OpKind::convert_promote_types || (!is_binary && row.operands != 1)) continue;
    if (row.suffix != TypeSuffix::optional_type || row.family != OpFamily::elementwise) continue;
    for (const ElementInfo& element : element_table) {
      if (!admits(row.types, element.type)) continue;
      const std::string_view result = row.infer == InferRule::comparison ? "boolean" : element.name;
      const auto add = [&](std::string_view operands, std::string_view attributes) {
        texts.push_back(around(fmt::format("%a: {0}[?n, 3], %b: {0}[1, 3]", element.name),
                               fmt::format("{}[?n, 3]", result),
                               fmt::format("%y = {} {}{}", row.name, operands, attributes), "%y"));
      };
      add(is_binary ? "%a, %b" : "%a", "");
      if (!is_binary) continue;
      for (const char* attributes :
           {" {broadcast = numpy}", " {broadcast = pdpd}", " {broadcast = pdpd, axis = 0}"}) {
        add("%a, %b", attributes);
      }
    }
  }
  return texts;
}

const std::vector<std::string> other_texts = {
    around("%x: f32[2]", "i8[2]", "%y = convert %x {overflow = wrap} : i8", "%y"),
    around("", "i8[2]", "%c = constant [1, 2] : i8[2]", "%c"),
    around("%x: u8[2], %y: i8[]", "i16[2], i16[]",
           "%a, %b = convert_promote_types %x, %y {promote_unsafe = true}", "%a, %b"),
    around("%x: u64[2], %y: i8[]", "nf4[2], nf4[]",
           "%a, %b = convert_promote_types %x, %y {promote_unsafe = true, pytorch_scalar_promotion "
           "= false, u64_integer_promotion_target = nf4}",
           "%a, %b"),
    around("%x: nf4[3], %n: u8[?n]", "nf4[2, ?n, 3]", "%y = broadcast %x : [2, ?n, 3]", "%y"),
    around("%x: nf4[3]", "nf4[3, 2]", "%y = broadcast %x {mode = pdpd, axis = 0} : [3, 2]", "%y"),
    around("%x: nf4[3]", "nf4[3, 2]", "%y = broadcast %x {mode = explicit, axes = [0]} : [3, 2]",
           "%y"),
    around("%x: nf4[3, 1]", "nf4[2, 3, 6]", "%y = broadcast %x {mode = bidirectional} : [2, 1, 6]",
           "%y"),
    around("%x: nf4[?m], %n: u8[?n]", "nf4[?]", "%y = broadcast %x {mode = bidirectional} : [?n]",
           "%y"),
    around("%x: nf4[3, 1]", "nf4[]", "%y = broadcast %x : [4, 3, 0]\n  %z = constant 0.0 : nf4[]",
           "%z"),
    around("%x: f32[?n, 4]", "f32[?n]", "%y = reduce_max %x {axes = [1]}", "%y"),
    around("%x: f32[?n, 4]", "f32[]", "%y = reduce_min %x", "%y"),
    around("%x: f32[?n, 4]", "f32[1, 4]", "%y = reduce_max_abs %x {axes = [-2], keep_dims = true}",
           "%y"),
    around("%x: f32[?n, 4]", "u8[?n, 4], f32[], u8[]",
           "%y, %s, %z = dynamic_quantize_linear %x : u8", "%y, %s, %z"),
    around("%x: f32[?n, 4]", "i8[?n, 4], f32[?n, 1]",
           "%y, %s = dynamic_quantize_symmetric %x {axes = [1]} : i8", "%y, %s"),
    around("%x: bf16[?n, 64]", "f4e2m1[?n, 64], f8e8m0[?n, 2]",
           "%y, %s = quantize_mx %x {format = mxfp4, scale_rule = even_round} : f4e2m1", "%y, %s"),
    around("%x: bf16[?n, 64]", "f32[]", "%y = nvfp4_tensor_scale %x", "%y"),
    around("%x: u8[?n, 4]", "i64[]", "%y = reduce_sum %x {accumulator = i64}", "%y"),
    around("%x: u3[?n, 4]", "u3[2, ?]", "%y = reshape %x : [2, ?]", "%y"),
    around("%x: u3[?n, 4]", "u3[4, ?n]", "%y = reshape %x : [4, ?n]", "%y"),
    around("%x: u3[]", "u3[1, 1]", "%y = reshape %x : [1, 1]", "%y"),
    around("%x: f16[2]", "f16[2]", "%y = clamp %x {lo = 0, hi = 6.5}", "%y"),
    around("%x: f16[2]", "f16[2]", "%y = clamp %x {lo = -inf, hi = inf}", "%y"),
    around("%x: u8[2]", "u8[2]", "%y = clamp %x {hi = -3}", "%y"),
    around("%c: boolean[2, 1], %x: nf4[3], %y: nf4[]", "nf4[2, 3]", "%z = select %c, %x, %y", "%z"),
    around("%c: boolean[3], %x: u1[3]", "u1[3]", "%z = select %c, %x, %x {broadcast = none}", "%z"),
    around("%x: i4[2, ?c], %t: nf4[?c, 16]", "nf4[2, ?c]", "%y = look_up %x, %t {axis = 1}", "%y"),
    around("%x: u8[1, 2, 5], %w: i8[4, 1, 3], %z: i8[4]", "i32[1, 4, 5]",
           "%y = conv_integer %x, %w, none, %z {group = 2, pads = [2, 0]}", "%y"),
    around("%a: u8[?n, 2, 5], %b: i8[5, 4], %z: i8[4]", "i32[?n, 2, 4]",
           "%y = matmul_integer %a, %b, none, %z", "%y"),
    around(
        "%x: f32[?n, 6], %s: f16[?, 2], %z: f8e5m2[?, 2]", "f8e5m2[?n, 6]",
        "%y = quantize_linear %x, %s, %z {axis = -1, block_size = 3, saturate = false, precision "
        "= f64, scaling = reciprocal} : f8e5m2",
        "%y"),
    around("%x: i4[?n, 6], %s: f16[6]", "f32[?n, 6]", "%y = dequantize_linear %x, %s : f32", "%y"),
    around(
        "%x: u8[1, 2, 5], %s: f32[], %z: u8[], %w: i8[4, 1, 3], %t: f32[4], %v: i8[4], %b: i32[4]",
        "u8[1, 4, 5]",
        "%y = qlinear_conv %x, %s, %z, %w, %t, %v, %s, %z, %b {group = 2, pads = [2, 0]}", "%y"),
    around("%x: f4e2m1[?n, 40], %s: f8e4m3[?n, ?], %t: f32[]", "bf16[?n, 40]",
           "%y = dequantize_mx %x, %s, %t {format = nvfp4, axis = 1, block = 16} : bf16", "%y"),
    around("%a: u8[?n, 2, 5], %s: f16[], %z: u8[], %b: i8[5, 4], %t: f16[4], %v: i8[4]",
           "u8[?n, 2, 4]", "%y = qlinear_matmul %a, %s, %z, %b, %t, %v, %s, %z", "%y"),
    around(
        "%x: f16[?n, 5, 4, 3]", "f16[?n, 1, 2, 3]",
        "%y = max_pool %x {dilations = [2, 1], kernel_shape = [2, 3], layout = nhwc, pads = [0, 1, "
        "0, 1], strides = [3, 2]}",
        "%y"),
    around(
        "%x: fx8<frac = 7>[2, 3], %s: i16[3]",
        "sa32<axis = 1, scale = ?, frac = [1, -2, 3], zero_point = [0, 5, -6]>[2, 3]",
        "%y = requantize %x, none, none, none, %s {arithmetic = embarc, rounding = nearest_even} "
        ": sa32<axis = 1, scale = ?, frac = [1, -2, 3], zero_point = [0, 5, -6]>",
        "%y"),
};

TEST(TextOfOps, PrintsAsItStands) {
  std::vector<std::string> texts = elementwise_texts();
  texts.insert(texts.end(), other_texts.begin(), other_texts.end());
  std::set<OpKind> seen;
  for (const std::string& text : texts) {
    const auto function = parse_function(text);
    ASSERT_TRUE(function) << text << function.error().to_string();
    EXPECT_EQ(print(**function), text);
    const auto back = parse_function(print(**function));
    ASSERT_TRUE(back);
    EXPECT_TRUE(same_computation(**function, **back)) << text;
    for (const Operation& operation : (*function)->operations) seen.insert(operation.op);
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(op_count));
}

/// The example of the design.
TEST(TextOfOps, ReadsAWholeFunction) {
  texts::expect_round_trip(
      "// scale u8 features per channel and store them as f16\n"
      "func @scale(%x: u8[1, 64, ?h, ?w], %s: f32[64, 1, 1]) -> (f16[1, 64, ?h, ?w]) {\n"
      "  %f = convert %x : f32\n"
      "  %y = mul %f, %s\n"
      "  %h = convert %y {overflow = saturate} : f16\n"
      "  return %h\n"
      "}\n");
}

struct Spelling {
  const char* written;
  const char* printed;
};

TEST(TextOfOps, OtherSpellingsPrintCanonically) {
  const Spelling rows[] = {
      {"%z = add %x, %y : f32[2, 3]", "%z = add %x, %y"},
      {"%z = add %x, %y : f32", "%z = add %x, %y"},
      {"%z = add %x, %y : [2, ?]", "%z = add %x, %y"},
      {"%z = broadcast %x : f32[2, 3]", "%z = broadcast %x : [2, 3]"},
      {"%z = clamp %x { lo = 1e3 }", "%z = clamp %x {lo = 1000.0}"},
      {"%a, %b = convert_promote_types %x, %y : f32", "%a, %b = convert_promote_types %x, %y"},
  };
  for (const Spelling& row : rows) {
    const std::string head = "func @f(%x: f32[2, 3], %y: f32[3]) -> (f32[3]) {\n  ";
    const auto function = parse_function(head + row.written + "\n  return %y\n}\n");
    ASSERT_TRUE(function) << row.written << ": " << function.error().to_string();
    EXPECT_EQ(print(**function), head + row.printed + "\n  return %y\n}\n");
  }
}

/// What two targets tell apart, result types being equal.
TEST(TextOfOps, TargetsArePartOfTheComputation) {
  const auto with_target = [](const char* target) {
    return *parse_function(
        around("%x: nf4[3, 1]", "nf4[3, 4]",
               fmt::format("%y = broadcast %x {{mode = bidirectional}} : {}", target), "%y"));
  };
  EXPECT_TRUE(same_computation(*with_target("[1, 4]"), *with_target("[1, 4]")));
  EXPECT_FALSE(same_computation(*with_target("[1, 4]"), *with_target("[4]")));
}

struct BadText {
  std::string operations;
  std::string error;
};

TEST(TextOfOps, MistakesHavePositionAndMessage) {
  const BadText rows[] = {
      {"%z = ad %x, %y", "found 'ad', expected an operation such as add"},
      {"%z = maximum %x, %y", "found 'maximum', expected an operation such as max"},
      {"%z = logical_nor %x, %y",
       "found 'logical_nor', expected an operation such as logical_or, logical_xor"},
      {"%z = lest %x, %y", "found 'lest', expected an operation such as less"},
      {"%z = add %x", "add: found 1 operands, expected 2"},
      {"%z = add %x, none", "add: operand 1 is none, but it is not optional"},
      {"%z = neg %x {lo = 1}", "found 'lo', expected '}': neg has no attributes"},
      {"%z, %w = add %x, %y", "add: found 2 names for results, expected 1"},
      {"%z = convert_promote_types %x, %y",
       "convert_promote_types: found 1 names for results, expected 2"},
      {"%z = broadcast %x", "found 'return', expected ':' and the result's shape"},
      {"%z = reshape %x : f32", "found 'return', expected '['"},
      {"%z = reshape %x : u8[6]", "reshape: %z has type f32[6], but u8[6] is written"},
      {"%z = add %x, %y : [3]", "add: %z has type f32[2, 3], but [3] is written"},
      {"%z = clamp %x {lo = nan}",
       "%z = clamp %x {lo = nan}: numbers are not NaN: lo = nan, expected a number, inf or -inf"},
      {"%z = clamp %x {lo = true}",
       "%z = clamp %x {lo = true}: attributes have the kind that the row says: lo = true is true "
       "or "
       "false, expected a number"},
      {"%z = clamp %x {hi = 0x3f80}",
       "found '0x3f80', expected a value: a number, true, false, an identifier, a string or a "
       "list"},
  };
  for (const BadText& row : rows) {
    const std::string text =
        "func @f(%x: f32[2, 3], %y: f32[3]) -> (f32[3]) {\n" + row.operations + "\nreturn %y }";
    const std::string error = error_of(text);
    EXPECT_TRUE(error.starts_with("line 2, column ") || error.starts_with("line 3, column 1: "))
        << error;
    EXPECT_EQ(error.substr(error.find(": ") + 2), row.error);
  }
}

TEST(TextOfOps, WithoutANearNameAllAreListed) {
  const std::string error = error_of("func @f(%x: f32[]) -> (f32[]) { %y = frobnicate %x }");
  for (const OpInfo& row : op_table()) {
    EXPECT_NE(error.find(row.name), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace castor
