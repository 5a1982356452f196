// SPDX-License-Identifier: Apache-2.0
// Merging conversions, against the numerics: all pairs of conversions with all admitted options.
#include "ir/rewrite/merge_conversions.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "ir/builder.hpp"
#include "ir/numerics/scalar.hpp"
#include "ir/rewrite/canonicalize.hpp"
#include "tests/support/element_types.hpp"
#include "tools/testing/samples.hpp"

namespace castor {
namespace {

using Patterns = std::vector<uint64_t>;

std::vector<ConvertOptions> admitted_options(ElementType from, ElementType to) {
  std::vector<ConvertOptions> admitted;
  for (size_t overflow = 0; overflow < overflow_names.size(); ++overflow) {
    for (size_t rounding = 0; rounding < rounding_names.size(); ++rounding) {
      for (size_t nan = 0; nan < nan_mode_names.size(); ++nan) {
        const ConvertOptions options = {static_cast<Overflow>(overflow),
                                        static_cast<Rounding>(rounding), static_cast<NanMode>(nan)};
        if (check_convert_options(from, to, options)) admitted.push_back(options);
      }
    }
  }
  return admitted;
}

bool is_canonical(ElementType from, ElementType to, const ConvertOptions& options) {
  return canonical_options(from, to, options) == options;
}

Patterns converted(const Patterns& patterns, ElementType from, ElementType to,
                   const ConvertOptions& options) {
  if (bits_of(from) <= 8 && patterns.size() > 256) {  // each distinct pattern once
    const Patterns table = converted(samples::all_patterns(from), from, to, options);
    Patterns results;
    results.reserve(patterns.size());
    for (uint64_t bits : patterns) results.push_back(table[bits]);
    return results;
  }
  Patterns results;
  results.reserve(patterns.size());
  for (uint64_t bits : patterns) results.push_back(numerics::convert(bits, from, to, options));
  return results;
}

/// A set of patterns of one type and what conversions make of them, each computed once.
class Sources {
 public:
  Sources(ElementType type, Patterns patterns) : type_(type), patterns_(std::move(patterns)) {}

  const Patterns& patterns() const { return patterns_; }
  const Patterns& converted_to(ElementType to, const ConvertOptions& options) {
    const auto [found, fresh] = results_.try_emplace({to, to_string(options)});
    if (fresh) found->second = converted(patterns_, type_, to, options);
    return found->second;
  }

 private:
  ElementType type_;
  Patterns patterns_;
  std::map<std::pair<ElementType, std::string>, Patterns> results_;
};

std::string to_string(const ConversionPair& pair) {
  return fmt::format("{} -> {} {{{}}} -> {} {{{}}}", name_of(pair.from), name_of(pair.middle),
                     to_string(pair.first), name_of(pair.to), to_string(pair.second));
}

FunctionPtr function_of(const ConversionPair& pair) {
  FunctionBuilder builder("f");
  const ValueId x = builder.parameter("x", {pair.from, {}});
  const ValueId middle = builder.convert(x, pair.middle, pair.first);
  builder.result(builder.convert(middle, pair.to, pair.second));
  const auto function = builder.finish();
  EXPECT_TRUE(function) << to_string(pair);
  return *function;
}

/// What a function of at most one conversion makes of the sources.
const Patterns& computed(const Function& function, Sources& sources) {
  if (function.operations.empty()) return sources.patterns();
  const ElementType to = function.type_of(function.results[0]).element;
  return sources.converted_to(to, convert_options(function.operations[0]));
}

/// The types for which the rules promise to miss nothing else.
bool is_plain(ElementType type) {
  return is_boolean(type) || (is_integer(type) && !is_sub_byte(type)) || bits_of(type) >= 16;
}

std::vector<ElementType> plain_types() {
  std::vector<ElementType> types = test::all_element_types();
  std::erase_if(types, [](ElementType type) { return !is_plain(type); });
  return types;
}

bool has_older_layout(const ConversionPair& pair) {
  return is_older_layout(pair.middle) || is_older_layout(pair.to);
}

/// Some of these are one conversion although no rule says so: f16 loses large and tiny numbers of
/// bf16, but a narrow integer does not show it under most roundings.
bool is_known_miss(const ConversionPair& pair) {
  return pair.from == ElementType::bf16 && pair.middle == ElementType::f16 && is_integer(pair.to);
}

class MergeConversions : public testing::TestWithParam<ElementType> {
 protected:
  /// Every pair from the parameter's type.
  template <class Visit>
  void for_each_pair(const Visit& visit) {
    const ElementType from = GetParam();
    for (ElementType middle : test::all_element_types()) {
      for (const ConvertOptions& first : admitted_options(from, middle)) {
        for (ElementType to : test::all_element_types()) {
          for (const ConvertOptions& second : admitted_options(middle, to)) {
            visit(ConversionPair{from, first, middle, second, to});
          }
        }
      }
    }
  }

  static bool is_canonical_pair(const ConversionPair& pair) {
    return is_canonical(pair.from, pair.middle, pair.first) &&
           is_canonical(pair.middle, pair.to, pair.second);
  }

  static Patterns boundaries(ElementType type) {
    Patterns patterns = samples::boundary_patterns(type);
    const Patterns random = samples::random_patterns(type, 500, 1);
    patterns.insert(patterns.end(), random.begin(), random.end());
    return patterns;
  }
  static Patterns everything(ElementType type) {
    return bits_of(type) <= 16 ? samples::all_patterns(type) : boundaries(type);
  }
};

/// Every pattern of up to 16 bits for options in their canonical spelling, boundaries and random
/// patterns for wider types, for the other spellings and for older layouts.
TEST_P(MergeConversions, KeepEveryBit) {
  Sources all(GetParam(), everything(GetParam()));
  Sources some(GetParam(), boundaries(GetParam()));
  size_t merged = 0;
  for_each_pair([&](const ConversionPair& pair) {
    const FunctionPtr canonical = canonicalize(function_of(pair));
    if (canonical->operations.size() > 1) return;
    ++merged;
    Sources& sources = is_canonical_pair(pair) && !has_older_layout(pair) ? all : some;
    const Patterns expected =
        converted(sources.converted_to(pair.middle, pair.first), pair.middle, pair.to, pair.second);
    const Patterns& actual = computed(*canonical, sources);
    if (expected == actual) return;
    const auto at = static_cast<size_t>(
        std::mismatch(expected.begin(), expected.end(), actual.begin()).first - expected.begin());
    ADD_FAILURE() << to_string(pair)
                  << fmt::format(": {:#x} gives {:#x}, merged {:#x}", sources.patterns()[at],
                                 expected[at], actual[at]);
  });
  EXPECT_GT(merged, 100u);
}

class MergePlainConversions : public MergeConversions {};

/// A pair that stays is no single conversion, whatever its options.
TEST_P(MergePlainConversions, MissNothingElse) {
  Sources sources(GetParam(), boundaries(GetParam()));
  for_each_pair([&](const ConversionPair& pair) {
    if (!is_plain(pair.middle) || !is_plain(pair.to)) return;
    if (!is_canonical_pair(pair) || is_known_miss(pair)) return;
    if (canonicalize(function_of(pair))->operations.size() < 2) return;
    const Patterns results =
        converted(sources.converted_to(pair.middle, pair.first), pair.middle, pair.to, pair.second);
    for (const ConvertOptions& options : admitted_options(pair.from, pair.to)) {
      if (!is_canonical(pair.from, pair.to, options)) continue;
      EXPECT_NE(results, sources.converted_to(pair.to, options))
          << to_string(pair) << " is one conversion {" << to_string(options) << "}";
    }
  });
}

INSTANTIATE_TEST_SUITE_P(From, MergeConversions, testing::ValuesIn(test::all_element_types()),
                         [](const auto& test) { return test::test_name(test.param); });

INSTANTIATE_TEST_SUITE_P(From, MergePlainConversions, testing::ValuesIn(plain_types()),
                         [](const auto& test) { return test::test_name(test.param); });

TEST(CopiesBits, OfEveryType) {
  for (ElementType type : test::all_element_types()) {
    const Patterns patterns =
        bits_of(type) <= 16 ? samples::all_patterns(type) : samples::boundary_patterns(type);
    for (const ConvertOptions& options : admitted_options(type, type)) {
      const bool copies = converted(patterns, type, type, options) == patterns;
      EXPECT_EQ(copies_bits(type, options, false), copies)
          << name_of(type) << " {" << to_string(options) << "}";
    }
  }
  EXPECT_TRUE(copies_bits(ElementType::boolean, {}, true));
}

}  // namespace
}  // namespace castor
