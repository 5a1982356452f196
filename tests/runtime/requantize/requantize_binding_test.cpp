// SPDX-License-Identifier: Apache-2.0
// What requantize refuses when shapes are bound and when a kernel runs, and in which words.
#include <fmt/format.h>

#include "tests/support/conversions.hpp"
#include "tests/support/placed_tensors.hpp"
#include "tests/support/texts.hpp"

namespace castor::test {
namespace {

std::string function(const std::string& parameters, const std::string& operation,
                     const std::string& result) {
  return "func @f(" + parameters + ") -> (" + result + ") {\n  " + operation + "\n  return %y\n}\n";
}

struct WrongExtents {
  std::string parameters;
  std::string operation;
  std::vector<Dims> extents;
  std::string error;  ///< empty: none
};

TEST(Requantize, ExtentsThatDoNotFit) {
  const std::string axis = "%x: sa8<axis = 1, scale = ?, frac = ?, zero_point = ?>";
  const std::string three = ", %s: i16[?], %n: i8[?], %z: i16[?]";
  const std::string from = "%y = requantize %x, %s, %n, %z : f32";
  const std::string to =
      "%y = requantize %x, none, none, none, %s : "
      "sa8<axis = 1, scale = ?, frac = [1, 2, 3], zero_point = [0, 0, 0]>";
  const std::vector<WrongExtents> rows = {
      {axis + "[?, ?]" + three, from, {{2, 3}, {3}, {3}, {3}}, ""},
      {axis + "[?, ?]" + three,
       from,
       {{2, 3}, {2}, {3}, {3}},
       "requantize: scale of the source has 2 entries, expected 3: the extent of axis 1"},
      {axis + "[?, ?]" + three,
       from,
       {{2, 3}, {3}, {1}, {3}},
       "requantize: frac of the source has 1 entries, expected 3: the extent of axis 1"},
      {axis + "[?, ?]" + three,
       from,
       {{2, 3}, {3}, {3}, {0}},
       "requantize: zero_point of the source has 0 entries, expected 3: the extent of axis 1"},
      {axis + "[?, ?]" + three, from, {{2, 0}, {0}, {0}, {0}}, ""},
      {axis + "[?, ?c], %s: i16[?c], %n: i8[?c], %z: i16[?c]",
       from,
       {{2, 3}, {3}, {4}, {3}},
       "parameter 2 (%n), axis 0: found 4, expected 3, the extent of ?c in parameter 0 (%x), axis "
       "1"},
      {axis + "[?, 3], %s: i16[3], %n: i8[3], %z: i16[3]",
       from,
       {{2, 4}, {3}, {3}, {3}},
       "parameter 0 (%x), axis 1: found 4, expected 3 as in sa8<axis = 1, scale = ?, frac = ?, "
       "zero_point = ?>[?, 3]"},
      {"%x: f32[?, 3], %s: i16[?]", to, {{2, 3}, {3}}, ""},
      {"%x: f32[?, 3], %s: i16[?]",
       to,
       {{2, 3}, {2}},
       "requantize: scale of the destination has 2 entries, expected 3: the extent of axis 1"},
      {"%x: sa8<scale = ?, frac = 1>[?, 3], %s: i16[?]",
       "%y = requantize %x, %s : f32",
       {{2, 3}, {2}},
       "requantize: scale of the source has 2 entries, expected 1"},
      {"%x: sa8<scale = ?, frac = 1>[?, 3], %s: i16[?]",
       "%y = requantize %x, %s : f32",
       {{2, 3}, {1}},
       ""},
  };
  for (const WrongExtents& row : rows) {
    const bool to_sa = row.operation == to;
    const std::string result =
        to_sa ? "sa8<axis = 1, scale = ?, frac = [1, 2, 3], zero_point = [0, 0, 0]>[?, 3]"
              : "f32[?, ?]";
    const auto parsed = parse_function(function(row.parameters, row.operation, result));
    ASSERT_TRUE(parsed) << parsed.error().to_string();
    const auto bound = bind_shapes(**parsed, row.extents);
    EXPECT_EQ(bound ? "" : bound.error().message, row.error) << row.parameters;
    for (const auto& [tier, runtime] : tier_runtimes()) {
      const auto kernel = runtime.compile(*parsed);
      ASSERT_TRUE(kernel);
      const auto by_kernel = kernel->bind(row.extents);
      EXPECT_EQ(by_kernel ? "" : by_kernel.error().message, row.error) << name_of(tier);
    }
  }
}

/// A scale that is none, given at run time: refused before anything is written.
class RequantizeScales : public testing::Test {
 protected:
  void expect_refused(const std::vector<Patterns>& operands, const std::string& error) {
    std::vector<std::vector<std::byte>> sources;
    std::vector<ConstView> inputs;
    for (const Patterns& operand : operands) {
      const auto& bytes = sources.emplace_back(samples::pack(operand.type, operand.elements));
      inputs.emplace_back(bytes.data(), operand.type, operand.shape, bytes.size());
    }
    const size_t count = operands[0].elements.size();
    const std::vector<std::byte> before(count * 4, std::byte{0x5a});
    std::vector<std::byte> first = before;
    std::vector<std::byte> second = before;
    const std::vector<View> outputs = {
        {first.data(), ElementType::f32, operands[0].shape, count * 4},
        {second.data(), ElementType::i8, operands[0].shape, count}};
    const auto expect = [&](const Status& status, std::string_view engine) {
      ASSERT_EQ(status.ok(), error.empty()) << engine << error;
      if (status) {
        EXPECT_NE(first, before);
        first = second = before;
        return;
      }
      EXPECT_EQ(status.error().message, error) << engine;
      EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
      EXPECT_EQ(first, before) << engine;
      EXPECT_EQ(second, before) << engine;
    };
    expect(interpret(*function_, inputs, outputs), "interpreter");
    for (const auto& [tier, runtime] : tier_runtimes()) {
      const auto kernel = runtime.compile(function_);
      ASSERT_TRUE(kernel);
      const auto bound = kernel->bind(inputs, outputs);
      ASSERT_TRUE(bound);
      EXPECT_EQ(bound->engine(), Engine::jit);
      expect(bound->run(inputs, outputs), name_of(tier));
    }
  }

  /// The first result is computed without the scales.
  const FunctionPtr function_ = *parse_function(
      "func @f(%x: sa8<axis = 1, scale = ?, frac = [1, 2, 3], zero_point = [4, 5, 6]>[2, 3], %s: "
      "i16[3], %t: i16[]) -> "
      "(f32[2, 3], sa8<scale = ?, frac = 7>[2, 3]) {\n"
      "  %a = constant 2.5 : f32[]\n"
      "  %b = broadcast %a : [2, 3]\n"
      "  %y = requantize %x, %s, none, none, %t : sa8<scale = ?, frac = 7>\n"
      "  return %b, %y\n}\n");
};

TEST_F(RequantizeScales, MustBePositive) {
  const Patterns x{ElementType::i8, {2, 3}, {1, 2, 3, 4, 5, 6}};
  const auto scales = [](std::vector<uint64_t> all) {
    return row_of(ElementType::i16, std::move(all));
  };
  const auto one = [](uint64_t scale) { return Patterns{ElementType::i16, {}, {scale}}; };
  expect_refused({x, scales({1, 2, 3}), one(9)}, "");
  expect_refused({x, scales({32767, 1, 32767}), one(32767)}, "");
  for (const auto& [bits, number] : {std::pair{0, 0}, {0xffff, -1}, {0x8000, -32768}}) {
    const auto bad = static_cast<uint64_t>(bits);
    for (size_t entry = 0; entry < 3; ++entry) {
      std::vector<uint64_t> all = {1, 2, 3};
      all[entry] = bad;
      expect_refused({x, scales(all), one(9)},
                     fmt::format("requantize: scale of the source is {} in entry {}, expected 1 to "
                                 "32767",
                                 number, entry));
    }
    expect_refused({x, scales({1, 2, 3}), one(bad)},
                   fmt::format("requantize: scale of the destination is {} in entry 0, expected 1 "
                               "to 32767",
                               number));
    expect_refused({x, scales({1, 2, bad}), one(bad)},
                   fmt::format("requantize: scale of the source is {} in entry 2, expected 1 to "
                               "32767",
                               number));
  }
}

/// Rows of scales with gaps, and scales at a distance from their view's beginning.
TEST(RequantizeRun, ScalesMayLieInAnyWay) {
  const auto function = parse_function(
      "func @f(%x: sa8<axis = 1, scale = ?, frac = [1, 1, 1], zero_point = [4, 4, 4]>[2, 3], %s: "
      "i16[3]) -> "
      "(sa32<axis = 1, scale = ?, frac = [1, 2, 3], zero_point = [4, 5, 6]>[2, 3]) {\n"
      "  %y = requantize %x, %s, none, none, %s : "
      "sa32<axis = 1, scale = ?, frac = [1, 2, 3], zero_point = [4, 5, 6]>\n"
      "  return %y\n}\n");
  ASSERT_TRUE(function) << function.error().to_string();
  const Patterns x{ElementType::i8, {2, 3}, {1, 2, 3, 4, 5, 6}};
  const Patterns scales = row_of(ElementType::i16, {30000, 2, 300});
  const Patterns expected = interpreted(**function, {x, scales});
  for (int placing = 0; placing < placings; ++placing) {
    EXPECT_EQ(
        mistake_on_tiers(*function, {{x}, {scales, static_cast<Placing>(placing)}}, {{expected}}),
        "")
        << placing;
  }
}

}  // namespace
}  // namespace castor::test
