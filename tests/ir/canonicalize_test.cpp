// SPDX-License-Identifier: Apache-2.0
// What canonicalising does to whole functions, and the merges and folds that must happen.
#include "ir/rewrite/canonicalize.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/builder.hpp"
#include "tests/support/canonical_form.hpp"

namespace castor {
namespace {

using test::expect_canonical;
using test::parsed;

/// `source -> middle {first} -> to {second}` and the one conversion that it must become: "copy",
/// or the options; "keep" for pairs that must stay.
struct Row {
  const char* source;
  const char* first;
  const char* middle;
  const char* second;
  const char* to;
  const char* merged;
};

void expect_row(const Row& row) {
  const auto conversion = [](const char* operand, const std::string& options, const char* to) {
    return fmt::format("convert %{}{} : {}", operand, options.empty() ? "" : " {" + options + "}",
                       to);
  };
  const std::string head =
      fmt::format("func @f(%x: {}[?n, 3]) -> ({}[?n, 3]) {{\n", row.source, row.to);
  const std::string first = fmt::format("%m = {}\n", conversion("x", row.first, row.middle));
  const std::string second = fmt::format("%y = {}\n", conversion("m", row.second, row.to));
  const std::string before = head + first + second + "return %y }";
  const std::string_view merged = row.merged;
  SCOPED_TRACE(before);
  if (merged == "keep") return expect_canonical(before, before);
  if (merged == "copy") return expect_canonical(before, head + "return %x }");
  expect_canonical(
      before, fmt::format("{}%y = {}\nreturn %y }}", head, conversion("x", row.merged, row.to)));
}

TEST(Canonicalize, MergesThatMustHappen) {
  const Row rows[] = {
      // Widening first.
      {"u8", "", "i32", "", "f32", ""},
      {"u8", "", "i32", "", "u8", "copy"},
      {"i8", "", "i64", "overflow = saturate", "i8", "copy"},
      {"i8", "overflow = saturate", "i16", "", "i32", ""},
      {"boolean", "", "u8", "", "f16", ""},
      {"boolean", "", "f32", "", "boolean", ""},
      {"f16", "", "f32", "", "f64", ""},
      {"f16", "", "f64", "", "f32", ""},
      {"bf16", "", "f32", "", "f16", ""},
      {"bf16", "", "f32", "overflow = saturate", "f16", "overflow = saturate"},
      {"f16", "", "f32", "overflow = wrap, rounding = half_up", "u8",
       "overflow = wrap, rounding = half_up"},
      {"f16", "overflow = saturate", "f32", "", "bf16", ""},
      {"f16", "overflow = saturate", "f32", "rounding = up", "i64", "rounding = up"},
      // Float to integer saturates by default, integer to integer wraps.
      {"i32", "", "f64", "", "i8", "overflow = saturate"},
      {"i32", "", "f64", "overflow = wrap", "i8", ""},
      {"u16", "", "f32", "rounding = down", "i16", "overflow = saturate"},
      {"u8", "", "f16", "", "i16", ""},
      {"u8", "", "f32", "overflow = wrap, rounding = up", "u8", "copy"},
      // What the middle loses, the end clamps.
      {"i64", "", "f32", "", "u8", "overflow = saturate"},
      {"u64", "", "f32", "", "f16", ""},
      {"i64", "overflow = saturate", "i32", "overflow = saturate", "i8", "overflow = saturate"},
      {"i8", "overflow = saturate", "u8", "", "i32", "keep"},
      {"i8", "overflow = saturate", "u8", "", "u32", "overflow = saturate"},
      // Modulo.
      {"i64", "", "i32", "", "u8", ""},
      {"u8", "", "i8", "", "u8", "copy"},
      // Float to integer, then narrower.
      {"f32", "rounding = nearest_even", "i32", "overflow = saturate", "u8",
       "rounding = nearest_even"},
      {"f32", "overflow = wrap", "i32", "", "u8", "overflow = wrap"},
      // Nonzero is all that boolean asks for.
      {"i64", "", "bf16", "", "boolean", ""},
      {"u32", "overflow = saturate", "u8", "", "boolean", ""},
      {"f64", "", "boolean", "", "boolean", ""},
      // The same type.
      {"f32", "", "f16", "", "f16", ""},
      {"f32", "", "f16", "overflow = saturate", "f16", "overflow = saturate"},
      {"f32", "", "f32", "", "f32", "copy"},
      {"f32", "overflow = saturate", "f32", "", "f32", "overflow = saturate"},
      {"f32", "overflow = saturate", "f32", "", "f16", ""},
      {"f32", "overflow = saturate", "f32", "", "f64", "keep"},
      {"i32", "overflow = saturate", "i32", "", "i32", "copy"},
      {"boolean", "", "boolean", "", "boolean", ""},
  };
  for (const Row& row : rows) expect_row(row);
}

TEST(Canonicalize, PairsThatMustStay) {
  const Row rows[] = {
      {"f16", "", "f32", "", "f16", "keep"},  // the round trip quiets signalling NaNs
      {"f16", "overflow = saturate", "f32", "", "f64", "keep"},  // inf became f32's largest
      {"f16", "overflow = saturate", "f16", "", "i32", "keep"},  // inf became 65504
      {"f64", "", "f32", "", "f16", "keep"},                     // rounds twice
      {"f64", "", "f32", "", "u8", "keep"},
      {"i64", "", "f64", "", "i64", "keep"},
      {"i32", "", "f32", "", "f64", "keep"},
      {"i32", "", "u8", "", "i32", "keep"},
      {"u8", "", "i8", "", "i32", "keep"},
      {"i64", "", "i32", "overflow = saturate", "u8", "keep"},
      {"i64", "overflow = saturate", "i32", "", "u8", "keep"},
      {"f32", "", "i32", "", "u8", "keep"},  // clamps, then wraps
      {"f32", "", "i32", "", "f32", "keep"},
      {"f64", "overflow = wrap", "u64", "", "i64", "keep"},  // 2^63 fits one and not the other
      {"f32", "", "u8", "", "boolean", "keep"},              // 0.5 becomes 0
      {"f64", "", "f32", "", "boolean", "keep"},             // 2^-1074 becomes 0
      {"i8", "overflow = saturate", "u8", "", "boolean", "keep"},
      {"u8", "", "boolean", "", "u8", "keep"},
  };
  for (const Row& row : rows) expect_row(row);
}

TEST(Canonicalize, BooleanCopiesOnlyWhatIsNormalised) {
  const std::string_view kept =
      "func @f(%x: boolean[]) -> (boolean[]) { %y = convert %x : boolean return %y }";
  expect_canonical(kept, kept);
  expect_canonical(
      "func @f(%x: boolean[]) -> (boolean[], boolean[]) {"
      " %y = convert %x : boolean %z = convert %y : boolean return %y, %z }",
      "func @f(%x: boolean[]) -> (boolean[], boolean[]) {"
      " %y = convert %x : boolean return %y, %y }");
}

TEST(Canonicalize, BooleansOfComparisonsAndLogicAreNormalised) {
  const std::string head = "func @f(%x: f32[], %y: boolean[]) -> (boolean[]) { ";
  const auto folds = [&](const std::string& operation) {
    expect_canonical(head + operation + " %c = convert %b : boolean return %c }",
                     head + operation + " return %b }");
  };
  folds("%b = less %x, %x");
  folds("%b = is_nan %x");
  folds("%b = logical_xor %y, %y");
  folds("%b = not %y");
  folds("%b = bitwise_or %y, %y");
  // What copies bits copies the bytes 2 to 255.
  const std::pair<const char*, const char*> copies[] = {
      {"select %y, %y, %y", "[]"},
      {"reshape %y : [1]", "[1]"},
      {"broadcast %y : [2]", "[2]"},
  };
  for (const auto& [operation, shape] : copies) {
    const std::string kept = fmt::format(
        "func @f(%y: boolean[]) -> (boolean{}) {{ %b = {} %c = convert %b : boolean return %c }}",
        shape, operation);
    expect_canonical(kept, kept);
  }
}

TEST(Canonicalize, PromotionsAreTwoConversions) {
  expect_canonical(
      "func @f(%x: u8[2], %y: i8[]) -> (i16[2], i16[]) {"
      " %a, %b = convert_promote_types %x, %y {promote_unsafe = true} return %a, %b }",
      "func @f(%x: u8[2], %y: i8[]) -> (i16[2], i16[]) {"
      " %a = convert %x : i16 %b = convert %y : i16 return %a, %b }");
  // Copies fold, conversions merge, and what nothing needs goes.
  expect_canonical(
      "func @f(%x: f16[2], %y: f32[]) -> (f32[], f64[2]) {"
      " %a, %b = convert_promote_types %x, %y %c = convert %a : f64 return %b, %c }",
      "func @f(%x: f16[2], %y: f32[]) -> (f32[], f64[2]) {"
      " %c = convert %x : f64 return %y, %c }");
  expect_canonical(
      "func @f(%x: boolean[2], %y: boolean[]) -> (boolean[2]) {"
      " %a, %b = convert_promote_types %x, %y return %a }",
      "func @f(%x: boolean[2], %y: boolean[]) -> (boolean[2]) {"
      " %a = convert %x : boolean return %a }");
  expect_canonical(
      "func @f(%x: nf4[2], %y: nf4[]) -> (nf4[2], nf4[]) {"
      " %a, %b = convert_promote_types %x, %y return %a, %b }",
      "func @f(%x: nf4[2], %y: nf4[]) -> (nf4[2], nf4[]) { return %x, %y }");
}

TEST(Canonicalize, ShapesThatAreSurelyTheSameFold) {
  const auto text = [](const char* type, const char* result, const std::string& body) {
    return fmt::format("func @f(%x: u3{}, %n: u8[?n, ?m]) -> (u3{}) {{ {} }}", type, result, body);
  };
  const auto folds = [&](const char* type, const std::string& operation) {
    expect_canonical(text(type, type, "%y = " + operation + " return %y"),
                     text(type, type, "return %x"));
  };
  const auto stays = [&](const char* type, const char* result, const std::string& operation) {
    const std::string kept = text(type, result, "%y = " + operation + " return %y");
    expect_canonical(kept, kept);
  };
  folds("[2, 3]", "reshape %x : [2, 3]");
  folds("[2, 3]", "reshape %x : [2, ?]");
  folds("[?n, 3]", "reshape %x : [?n, 3]");
  folds("[]", "reshape %x : []");
  folds("[2, 3]", "broadcast %x : [2, 3]");
  folds("[?n, 3]", "broadcast %x : [?n, 3]");
  folds("[2, 3]", "broadcast %x {mode = bidirectional} : [3]");
  folds("[?n, 3]", "broadcast %x {mode = bidirectional} : [1]");
  folds("[2, 3]", "broadcast %x {mode = explicit, axes = [0, 1]} : [2, 3]");
  folds("[2, 3]", "broadcast %x {mode = pdpd} : [2, 3]");
  stays("[2, 3]", "[3, 2]", "reshape %x : [3, 2]");
  stays("[?, 3]", "[?, 3]", "reshape %x : [?, 3]");
  stays("[?n, 3]", "[?m, 3]", "reshape %x : [?m, 3]");
  stays("[?n]", "[?m]", "broadcast %x : [?m]");
  stays("[1]", "[1, 1]", "broadcast %x : [1, 1]");
  stays("[?]", "[?]", "broadcast %x {mode = bidirectional} : [1]");
}

TEST(Canonicalize, RoundingIntegersChangesNothing) {
  const auto text = [](const char* type, const std::string& body) {
    return fmt::format("func @f(%x: {0}[2]) -> ({0}[2]) {{ {1} }}", type, body);
  };
  const std::pair<const char*, const char*> folds[] = {
      {"i4", "floor"},      {"u6", "ceil"}, {"i64", "trunc"},
      {"u1", "round_even"}, {"u8", "relu"}, {"u3", "abs"},
  };
  for (const auto& [type, op] : folds) {
    expect_canonical(text(type, fmt::format("%y = {} %x return %y", op)), text(type, "return %x"));
  }
  const std::pair<const char*, const char*> stay[] = {
      {"f32", "floor"}, {"i8", "relu"}, {"i8", "abs"}, {"u8", "neg"}, {"f4e2m1", "trunc"},
  };
  for (const auto& [type, op] : stay) {
    const std::string kept = text(type, fmt::format("%y = {} %x return %y", op));
    expect_canonical(kept, kept);
  }
}

/// A conversion that saturates at 0 needs no relu before it.
TEST(Canonicalize, SaturationAtZeroIsRelu) {
  struct ReluRow {
    const char* from;
    const char* to;
    const char* options;
    bool is_dropped;
  };
  const ReluRow rows[] = {
      {"f32", "u8", "overflow = saturate, rounding = nearest_even", true},
      {"f32", "u8", "rounding = down", true},
      {"f32", "u4", "", true},
      {"f16", "u64", "rounding = half_up", true},
      {"i32", "u16", "overflow = saturate", true},
      {"i32", "u16", "", false},
      {"f32", "u8", "overflow = wrap", false},
      {"f32", "i8", "overflow = saturate", false},
      {"f32", "boolean", "", false},
      {"f32", "bf16", "overflow = saturate", false},
  };
  for (const ReluRow& row : rows) {
    const auto text = [&](bool with_relu) {
      return fmt::format(
          "func @f(%x: {}[?n]) -> ({}[?n]) {{\n{} %y = convert %{}{} : {}\n return %y }}", row.from,
          row.to, with_relu ? " %m = relu %x\n" : "", with_relu ? "m" : "x",
          *row.options ? fmt::format(" {{{}}}", row.options) : "", row.to);
    };
    expect_canonical(text(true), text(!row.is_dropped));
  }
}

TEST(Canonicalize, KeepsTargetsAndTheSecondOfTwoResults) {
  expect_canonical(
      "func @f(%x: u8[2, 1], %y: i8[?n]) -> (i16[2, ?], i16[?n]) {"
      " %u = convert %x : u8 %a, %b = convert_promote_types %u, %y {promote_unsafe = true}"
      " %c = broadcast %a {mode = bidirectional} : [?n] return %c, %b }",
      "func @f(%x: u8[2, 1], %y: i8[?n]) -> (i16[2, ?], i16[?n]) {"
      " %a = convert %x : i16 %b = convert %y : i16"
      " %c = broadcast %a {mode = bidirectional} : [?n] return %c, %b }");
}

/// A value that is carried in f32 is none of its own type.
TEST(Canonicalize, ConversionsOfCarriedValuesRound) {
  const auto text = [](const char* result, const std::string& body, bool allowed) {
    return fmt::format("func @f(%x: f16[2], %y: f16[2]) -> ({}[2]){} {{ %a = add %x, %y {} }}",
                       result, allowed ? " attributes {excess_precision = allow}" : "", body);
  };
  const auto becomes = [&](const char* result, const std::string& before, const std::string& after,
                           bool allowed) {
    expect_canonical(text(result, before, allowed), text(result, after, allowed));
  };
  // To its own type: a rounding, which must stay.
  const std::string rounded = "%b = convert %a : f16 return %b";
  becomes("f16", rounded, "return %a", false);
  becomes("f16", rounded, rounded, true);
  const std::string then_used = "%b = convert %a : f16 %c = mul %b, %y return %c";
  becomes("f16", then_used, then_used, true);
  const std::string promoted = "%b, %c = convert_promote_types %a, %y return %b";
  becomes("f16", promoted, "return %a", false);
  becomes("f16", promoted, rounded, true);
  // From f32: through f32 and back to f16 rounds once; of an f16 it would quiet NaNs.
  const std::string there_and_back = "%b = convert %a : f32 %c = convert %b : f16 return %c";
  becomes("f16", there_and_back, there_and_back, false);
  becomes("f16", there_and_back, "%c = convert %a : f16 return %c", true);
  // Rounding to f16 on the way to bf16 counts, though an f16 is held by f32.
  const std::string twice = "%b = convert %a : f16 %c = convert %b : bf16 return %c";
  becomes("bf16", twice, "%c = convert %a : bf16 return %c", false);
  becomes("bf16", twice, twice, true);
  // Moving rounds.
  const std::string moved = "%b = reshape %a : [2] return %b";
  becomes("f16", moved, "return %a", false);
  becomes("f16", moved, moved, true);
  // The result of a conversion is not carried.
  becomes("f16", "%b = convert %a : f16 %c = convert %b : f16 return %c", rounded, true);
  expect_canonical(
      text("f16", "%b = convert %x : f16 return %b", true),
      "func @f(%x: f16[2], %y: f16[2]) -> (f16[2]) attributes {excess_precision = allow} {"
      " return %x }");
}

TEST(Canonicalize, DropsWhatNoResultNeeds) {
  expect_canonical(
      "func @f(%x: u8[2], %unused: f32[?n]) -> (u8[2]) {"
      " %c = constant [1, 2] : i32[2] %d = convert %c : f32 %e = convert %x : f16 return %x }",
      "func @f(%x: u8[2], %unused: f32[?n]) -> (u8[2]) { return %x }");
}

TEST(Canonicalize, KeepsSharedOperandsThatAreStillNeeded) {
  expect_canonical(
      "func @f(%x: u8[2]) -> (f32[2], f16[2], i64[2]) {"
      " %a = convert %x : f32 %b = convert %a : f16 %c = convert %a {rounding = up} : i64"
      " return %a, %b, %c }",
      "func @f(%x: u8[2]) -> (f32[2], f16[2], i64[2]) {"
      " %a = convert %x : f32 %b = convert %x : f16 %c = convert %x : i64 return %a, %b, %c }");
}

TEST(Canonicalize, KeepsResultsOrderDeclaredTypesAndAttributes) {
  expect_canonical(
      "func @f(%x: u8[?n], %y: i8[?]) -> (u8[?m], i8[?], u8[?]) attributes {excess_precision = "
      "allow} { %a = convert %x : i32 %b = convert %a : u8 return %b, %y, %b }",
      "func @f(%x: u8[?n], %y: i8[?]) -> (u8[?m], i8[?], u8[?]) attributes {excess_precision = "
      "allow} { return %x, %y, %x }");
}

TEST(Canonicalize, KeepsNamesAndPositionsOfWhatSurvives) {
  const FunctionPtr function = parsed(
      "func @f(%x: u8[2]) -> (f16[2]) {\n"
      "  %a = convert %x : i32\n"
      "  %b = convert %a : f16\n"
      "  return %b\n"
      "}\n");
  ASSERT_TRUE(function);
  const FunctionPtr canonical = canonicalize(function);
  ASSERT_EQ(canonical->operations.size(), 1u);
  const TextPosition where = function->operations[1].where;
  EXPECT_EQ(where.line, 3u);
  EXPECT_EQ(canonical->operations[0].where.line, where.line);
  EXPECT_EQ(canonical->operations[0].where.column, where.column);
  EXPECT_EQ(print(*canonical),
            "func @f(%x: u8[2]) -> (f16[2]) {\n  %b = convert %x : f16\n  return %b\n}\n");
}

TEST(Canonicalize, SharesConstantsAndTheirHash) {
  const FunctionPtr function = parsed(
      "func @f(%x: u8[2]) -> (u8[2]) {"
      " %c = constant [1, 2] : u8[2] %a = add %x, %c %b = convert %a : u8 return %b }");
  ASSERT_TRUE(function);
  const FunctionPtr canonical = canonicalize(function);
  ASSERT_EQ(canonical->operations.size(), 2u);
  EXPECT_EQ(canonical->operations[0].data, function->operations[0].data);
  EXPECT_EQ(canonical->operations[0].data_hash, content_hash(function->operations[0].data->bytes));
}

TEST(Canonicalize, FindsExtremesBeforeTheyAreWidened) {
  const auto reduction = [](const char* from, const char* to, const char* op, bool is_narrow) {
    const std::string head = fmt::format("func @f(%x: {}[?n, 3]) -> ({}[?n, 1]) {{\n", from, to);
    const std::string options = "{axes = [1], keep_dims = true}";
    const auto convert = fmt::format("%f = convert %x : {}\n", to);
    const auto wide = fmt::format("{}{}%y = {} %f {} return %y }}", head, convert, op, options);
    const auto narrow =
        fmt::format("{}%m = {} %x {} %y = convert %m : {} return %y }}", head, op, options, to);
    expect_canonical(wide, is_narrow ? narrow : wide);
  };
  for (const char* op : {"reduce_min", "reduce_max", "reduce_max_abs"}) {
    for (const char* from : {"f16", "bf16"}) {
      for (const char* to : {"f32", "f64"}) reduction(from, to, op, true);
    }
    reduction("f8e4m3", "f32", op, false);
    reduction("f32", "f64", op, false);
    reduction("f32", "f16", op, false);
  }
  reduction("bf16", "f32", "reduce_sum", false);
}

TEST(Canonicalize, ReducesWhatIsCarriedInF32AsSuch) {
  const std::string allowed =
      "func @f(%x: bf16[?n, 3], %y: bf16[?n, 3]) -> (f32[3])"
      " attributes {excess_precision = allow} {"
      " %s = add %x, %y %f = convert %s : f32 %m = reduce_max %f {axes = [0]} return %m }";
  expect_canonical(allowed, allowed);
}

/// x -> cycle[0] -> cycle[1] -> ... of `length` conversions.
FunctionPtr chain(ElementType source, std::span<const ElementType> cycle, size_t length) {
  FunctionBuilder builder("f");
  ValueId value = builder.parameter("x", {source, {"?"}});
  for (size_t i = 0; i < length; ++i) value = builder.convert(value, cycle[i % cycle.size()]);
  builder.result(value);
  const auto function = builder.finish();
  EXPECT_TRUE(function);
  return *function;
}

TEST(Canonicalize, CollapsesLongChains) {
  using enum ElementType;
  for (size_t length : {40u, 60000u}) {
    const ElementType widths[] = {i32, f64, i64, u8};
    const FunctionPtr copied = canonicalize(chain(u8, widths, length));
    EXPECT_TRUE(copied->operations.empty());
    EXPECT_EQ(copied->results, copied->parameters);

    const ElementType floats[] = {f32, f16};  // rounds once, quiets, and then changes nothing
    const FunctionPtr rounded = canonicalize(chain(f64, floats, length));
    EXPECT_EQ(canonicalize(rounded), rounded);
    EXPECT_LE(rounded->operations.size(), length);
  }
}

}  // namespace
}  // namespace castor
