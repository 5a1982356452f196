// SPDX-License-Identifier: Apache-2.0
// Chunks whose wide lanes are done for one half after the other: which functions have them, and
// that these compute the same on every tier.
#include "ir/rewrite/canonicalize.hpp"
#include "jit/dump/dump.hpp"
#include "tests/support/on_every_engine.hpp"

namespace castor::test {
namespace {

struct Row {
  const char* what;
  std::string text;
  bool has_halves;
};

std::string converted(const std::string& from, const std::string& to) {
  return "func @f(%x: " + from + "[37]) -> " + to + "[37] { %y = convert %x : " + to +
         " return %y }";
}

const Row rows[] = {
    {"f64 to a small float", converted("f64", "f8e4m3"), true},
    {"64-bit integers to a small float", converted("u64", "f8e5m2fnuz"), true},
    {"nothing is computed of 32-bit lanes", converted("f64", "f32"), false},
    {"no wide lanes", converted("f32", "f8e4m3"), false},
    {"two results of other widths",
     "func @f(%x: f64[37]) -> (f8e4m3[37], f64[37]) { %y = convert %x : f8e4m3 %z = add %x, %x"
     " return %y, %z }",
     false},
    {"narrow lanes that are computed with",
     "func @f(%x: f64[37]) -> f32[37] { %a = convert %x : f32 %b = mul %a, %a %c = add %b, %a"
     " return %c }",
     true},
    {"a wide constant that is converted later",
     "func @f(%x: u64[37]) -> f32[37] attributes {excess_precision = allow} {"
     " %a = convert %x : f8e5m2fnuz %s = constant 0.0 : f64[] %y = dequantize_linear %a, %s : f32"
     " return %y }",
     false},
};

TEST(Halves, AreOfNestsWithOneWayFromWideLanes) {
  for (const Row& row : rows) {
    const Result<FunctionPtr> function = parse_function(row.text);
    ASSERT_TRUE(function.ok()) << row.what << ": " << function.error().message;
    const std::string dump =
        jit::dump_nest(*castor::canonicalize(*function), {jit::Tier::avx512}).value();
    EXPECT_EQ(dump.find("in two halves") != std::string::npos, row.has_halves) << row.what;
  }
}

TEST(Halves, ComputeTheSame) {
  for (const Row& row : rows) {
    const FunctionPtr function = parse_function(row.text).value();
    if (function->results.size() > 1) continue;  // mistake_anywhere takes functions of one
    Patterns x{function->type_of(function->parameters[0]).element, Dims{37}, {}};
    const uint64_t mask = bits_of(x.type) == 64 ? ~uint64_t{0} : 0xffffffff;
    for (uint64_t i = 0; i < 37; ++i) {
      x.elements.push_back((0x3fe0000000000000 + (i << (i + 26))) & mask);
    }
    EXPECT_EQ(mistake_anywhere(function, {x}, interpreted(*function, {x})), "") << row.what;
  }
}

}  // namespace
}  // namespace castor::test
