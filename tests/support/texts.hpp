// SPDX-License-Identifier: Apache-2.0
// Good texts of functions, and the check that they read back.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "ir/text/text.hpp"
#include "ir/verify/verify.hpp"

namespace castor::texts {

/// Bytes 1, 2, 3 ... as the type takes them; @missing, and what takes over 1 MB, is refused.
inline Result<std::vector<std::byte>> bind(std::string_view name, const TensorType& type) {
  if (name == "missing") return Error{ErrorCode::io, "no file for @missing"};
  Dims extents;
  for (const Dim& dim : type.shape) extents.push_back(dim.extent);
  const int64_t size = *byte_size(type.element, *element_count(extents));
  if (size > 1'000'000) return Error{ErrorCode::io, "the file is too short"};
  std::vector<std::byte> bytes;
  for (int64_t i = 0; i < size; ++i) {
    bytes.push_back(static_cast<std::byte>(i + 1));
  }
  return bytes;
}

inline const ParseOptions with_bindings = {.bind_constant = bind};

inline std::string error_of(std::string_view text, const ParseOptions& options = {}) {
  const auto functions = parse(text, options);
  return functions ? "no error" : functions.error().to_string();
}

inline std::string printed(const std::vector<FunctionPtr>& functions) {
  std::string text;
  for (const FunctionPtr& function : functions) text += print(*function);
  return text;
}

/// Parses, prints and parses again: the same computation and the same text.
inline void expect_round_trip(std::string_view text) {
  const auto first = parse(text, with_bindings);
  ASSERT_TRUE(first.ok()) << text << first.error().to_string();
  const std::string canonical = printed(*first);
  const auto second = parse(canonical, with_bindings);
  ASSERT_TRUE(second.ok()) << canonical << second.error().to_string();
  ASSERT_EQ(first->size(), second->size());
  for (size_t i = 0; i < first->size(); ++i) {
    EXPECT_TRUE(same_computation(*(*first)[i], *(*second)[i])) << canonical;
    EXPECT_TRUE(verify(*(*second)[i]).ok());
  }
  EXPECT_EQ(printed(*second), canonical);
}

// Texts as the printer writes them.
inline constexpr std::string_view canonical_texts[] = {
    R"(func @identity(%x: f32[]) -> (f32[]) {
  return %x
}
)",
    R"(func @store(%x: u8[1, 64, ?h, ?w], %s: f32[64, 1, 1]) -> (f16[1, 64, ?h, ?w], f32[64, 1, 1]) {
  %f = convert %x : f32
  %h = convert %f {overflow = saturate} : f16
  return %h, %s
}
)",
    R"(func @options(%x: f32[?]) -> (i8[?], i8[?], u64[?]) attributes {excess_precision = allow} {
  %0 = convert %x {rounding = half_up, overflow = wrap} : i8
  %1 = convert %x {overflow = saturate, rounding = nearest_even} : i8
  %2 = convert %x {rounding = up} : u64
  return %0, %0, %2
}
)",
    R"(func @constants() -> (f32[], i32[3], i32[2, 2], boolean[3], f64[0, 5], i8[2, 3]) {
  %half = constant 0.5 : f32[]
  %list = constant [1, 2, 3] : i32[3]
  %nested = constant [[1, 2], [-3, 4]] : i32[2, 2]
  %flags = constant [true, false, 0x03] : boolean[3]
  %empty = constant [] : f64[0, 5]
  %weights = constant @weights : i8[2, 3]
  return %half, %list, %nested, %flags, %empty, %weights
}
)",
    R"(func @specials() -> (f32[2, 1, 3], f16[2], bf16[1], u64[1]) {
  %a = constant [[[inf, -inf, nan]], [[-0.0, 0x7f800001, 1e-45]]] : f32[2, 1, 3]
  %b = constant [65504.0, 0xfe00] : f16[2]
  %c = constant [0.100097656] : bf16[1]
  %d = constant [18446744073709551615] : u64[1]
  return %a, %b, %c, %d
}
)",
    R"(func @first.one$(%a-b: i64[?n-1, ?]) -> (i64[?n-1, ?]) {
  return %a-b
}
func @second(%_: u16[0]) -> (f64[0]) {
  %y = convert %_ : f64
  return %y
}
)",
};

/// A text, and what the printer makes of it.
struct Spelling {
  std::string_view text;
  std::string_view canonical;
};

inline constexpr Spelling spellings[] = {
    {"func@f(%x:f32[2])->f32[2]{return%x}", "func @f(%x: f32[2]) -> (f32[2]) {\n  return %x\n}\n"},
    {"func @f(%x: f32[]) -> f32[] attributes {} { return %x }",
     "func @f(%x: f32[]) -> (f32[]) {\n  return %x\n}\n"},
    {"// one\r\nfunc @f(%x: f32[]) // two\r\n\t-> (f32[]) {\r\n\treturn %x // three\r\n}\r\n// "
     "four",
     "func @f(%x: f32[]) -> (f32[]) {\n  return %x\n}\n"},
    {"func @f(%x: u8[2, ?n]) -> (f32[?, ?]) { %y = convert %x {} : f32[2, ?n] return %y }",
     "func @f(%x: u8[2, ?n]) -> (f32[?, ?]) {\n  %y = convert %x : f32\n  return %y\n}\n"},
    {"func @f(%x: u8[2, ?n]) -> (f32[2, ?n]) { %y = convert %x : f32[?, ?] return %y }",
     "func @f(%x: u8[2, ?n]) -> (f32[2, ?n]) {\n  %y = convert %x : f32\n  return %y\n}\n"},
    {"func @f() -> (i32[2, 2]) { %c = constant [1, 0x2, -0, 4] : i32[2, 2] return %c }",
     "func @f() -> (i32[2, 2]) {\n  %c = constant [[1, 2], [0, 4]] : i32[2, 2]\n  return %c\n}\n"},
    {"func @f() -> (i8[2, 0]) { %c = constant [[], []] : i8[2, 0] return %c }",
     "func @f() -> (i8[2, 0]) {\n  %c = constant [] : i8[2, 0]\n  return %c\n}\n"},
    {"func @f() -> (f64[1, 1]) { %c = constant [1e0] : f64[1, 1] return %c }",
     "func @f() -> (f64[1, 1]) {\n  %c = constant [[1.0]] : f64[1, 1]\n  return %c\n}\n"},
    {"func @f() -> (f32[3]) { %c = constant [10e-1, 0x3f800000, 0.1000000000000000000001] : f32[3] "
     "return %c }",
     "func @f() -> (f32[3]) {\n  %c = constant [1.0, 1.0, 0.1] : f32[3]\n  return %c\n}\n"},
};

}  // namespace castor::texts
