// SPDX-License-Identifier: Apache-2.0
// Sources of 32 and 64 bits at every point where the result turns: for each destination of up to
// 16 bits all its numbers and all the points halfway between neighbours, each with the source's
// next numbers on either side, with every option on every tier. And: samples::boundary_patterns,
// which other tests rely on, holds all of them for destinations of up to 8 bits, and in every
// binade of f16 and bf16 the ties to either side.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/types/nf4.hpp"
#include "tests/support/on_every_tier.hpp"

namespace castor {
namespace {

using test::Conversion;

/// The finite numbers of a type of at most 16 bits, ascending; all of them are exact in f64.
std::vector<double> numbers_of(ElementType type) {
  std::vector<double> numbers;
  for (uint64_t code : samples::all_patterns(type)) {
    const double number =
        std::bit_cast<double>(numerics::convert(code, type, ElementType::f64, {}));
    if (std::isfinite(number)) numbers.push_back(number == 0 ? 0.0 : number);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

/// One more number at either end, as if the format went on: what is beyond half way overflows.
std::vector<double> with_both_ends_extended(std::vector<double> numbers, ElementType type) {
  const bool powers = kind_of(type) == ElementKind::power_of_two;
  const size_t last = numbers.size() - 1;
  const double below = powers ? numbers[0] / 2 : 2 * numbers[0] - numbers[1];
  const double above = powers ? numbers[last] * 2 : 2 * numbers[last] - numbers[last - 1];
  numbers.insert(numbers.begin(), below);
  numbers.push_back(above);
  return numbers;
}

/// Points halfway between neighbouring numbers; for nf4 its table of thresholds.
std::vector<double> midpoints_of(ElementType type) {
  if (type == ElementType::nf4) {
    return {nf4_thresholds.begin(), nf4_thresholds.end()};
  }
  const std::vector<double> numbers = with_both_ends_extended(numbers_of(type), type);
  std::vector<double> midpoints;
  for (size_t i = 1; i < numbers.size(); ++i) {
    midpoints.push_back((numbers[i - 1] + numbers[i]) / 2);
  }
  return midpoints;
}

/// The integers at or next to `point`, as patterns of an integer type: where it has them.
void add_integers(std::vector<uint64_t>& patterns, ElementType type, double point) {
  const double end = std::ldexp(1.0, bits_of(type) - (is_signed_integer(type) ? 1 : 0));
  const double begin = is_signed_integer(type) ? -end : 0.0;
  const double floor = std::floor(point);
  if (floor < begin || floor >= end) return;
  const uint64_t at =
      floor < 0 ? static_cast<uint64_t>(static_cast<int64_t>(floor)) : static_cast<uint64_t>(floor);
  const uint64_t mask = ~uint64_t{0} >> (64 - bits_of(type));
  for (uint64_t near : {at - 1, at, at + 1}) patterns.push_back(near & mask);
}

/// The patterns of a wide type at `point` and next to it.
void add_near(std::vector<uint64_t>& patterns, ElementType type, double point) {
  if (!is_float(type)) return add_integers(patterns, type, point);
  const bool narrow = type == ElementType::f32;
  const uint64_t at =
      narrow ? std::bit_cast<uint32_t>(static_cast<float>(point)) : std::bit_cast<uint64_t>(point);
  patterns.push_back(at);
  patterns.push_back(at + 1);
  if (at != 0) patterns.push_back(at - 1);
}

std::vector<uint64_t> near_all(const std::vector<double>& points, ElementType type) {
  std::vector<uint64_t> patterns;
  for (double point : points) add_near(patterns, type, point);
  std::sort(patterns.begin(), patterns.end());
  patterns.erase(std::unique(patterns.begin(), patterns.end()), patterns.end());
  return patterns;
}

std::vector<ElementType> wide_types() {
  std::vector<ElementType> types;
  for (ElementType type : test::value_types()) {
    if (bits_of(type) >= 32) types.push_back(type);
  }
  return types;
}

class ConvertMidpoints : public testing::TestWithParam<ElementType> {};

TEST_P(ConvertMidpoints, AgreeWithTheInterpreterOnEveryTier) {
  const ElementType from = GetParam();
  for (ElementType to : test::value_types()) {
    if (bits_of(to) > 16) continue;
    std::vector<double> points = midpoints_of(to);
    const std::vector<double> numbers = numbers_of(to);  // where directed roundings turn
    points.insert(points.end(), numbers.begin(), numbers.end());
    const std::vector<uint64_t> inputs = near_all(points, from);
    for (const Conversion& conversion : test::conversions_of(from, to)) {
      test::check_on_every_tier(conversion, test::expect(conversion, inputs));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(ConvertMidpoints, OfTypesUpToEightBitsAreAllAmongTheBoundaries) {
  const std::vector<uint64_t> boundaries = samples::boundary_patterns(GetParam());
  for (ElementType to : test::value_types()) {
    if (bits_of(to) > 8) continue;
    for (uint64_t pattern : near_all(midpoints_of(to), GetParam())) {
      ASSERT_TRUE(std::binary_search(boundaries.begin(), boundaries.end(), pattern))
          << name_of(to) << ": 0x" << std::hex << pattern;
    }
  }
}

/// Integers are next to a point that is none, but are no ties: every one is exact there.
bool is_tie_of(ElementType type, double point) {
  return is_float(type) || point == std::floor(point);
}

/// In each binade the first two midpoints, which go to the even number below and above, and the
/// last, which goes to the next binade or, in the last one, overflows.
TEST_P(ConvertMidpoints, OfHalfFormatsAreAmongTheBoundariesInEveryBinade) {
  const std::vector<uint64_t> boundaries = samples::boundary_patterns(GetParam());
  for (ElementType to : {ElementType::f16, ElementType::bf16}) {
    const FloatFormat& format = info(to).format;
    const int ulps = 1 << format.mantissa_bits;  // in a binade
    for (int exponent = 1 - format.bias; exponent <= format.bias; ++exponent) {
      for (double half_ulps : {1, 3, 2 * ulps - 1}) {
        const double point = std::ldexp(2 * ulps + half_ulps, exponent - format.mantissa_bits - 1);
        if (!is_tie_of(GetParam(), point)) continue;
        for (uint64_t pattern : near_all({point, -point}, GetParam())) {
          ASSERT_TRUE(std::binary_search(boundaries.begin(), boundaries.end(), pattern))
              << name_of(to) << ", 2^" << exponent << ": 0x" << std::hex << pattern;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(From, ConvertMidpoints, testing::ValuesIn(wide_types()),
                         [](const auto& row) { return test::test_name(row.param); });

}  // namespace
}  // namespace castor
