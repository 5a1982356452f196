// SPDX-License-Identifier: Apache-2.0
// Every conversion, and the tiers to run it on.
#pragma once

#include <castor/castor.hpp>

#include <map>
#include <string>
#include <vector>

#include "ir/numerics/scalar.hpp"
#include "ir/types/convert_options.hpp"
#include "jit/core/core_tuning.hpp"
#include "tests/support/element_types.hpp"
#include "tools/testing/guarded_allocator.hpp"
#include "tools/testing/samples.hpp"

namespace castor::test {

struct Conversion {
  ElementType from;
  ElementType to;
  ConvertOptions options;

  std::string name() const {
    return std::string(name_of(from)) + " -> " + std::string(name_of(to)) + " {" +
           to_string(options) + "}";
  }
};

/// Every admitted combination of options of a pair. Spellings that mean the same are all there.
inline std::vector<Conversion> conversions_of(ElementType from, ElementType to) {
  std::vector<Conversion> all;
  for (size_t overflow = 0; overflow < overflow_names.size(); ++overflow) {
    for (size_t rounding = 0; rounding < rounding_names.size(); ++rounding) {
      for (size_t nan = 0; nan < nan_mode_names.size(); ++nan) {
        const ConvertOptions options{static_cast<Overflow>(overflow),
                                     static_cast<Rounding>(rounding), static_cast<NanMode>(nan)};
        if (check_convert_options(from, to, options).ok()) all.push_back({from, to, options});
      }
    }
  }
  return all;
}

inline std::vector<Conversion> all_conversions() {
  std::vector<Conversion> all;
  for (ElementType from : all_element_types()) {
    for (ElementType to : all_element_types()) {
      for (const Conversion& conversion : conversions_of(from, to)) all.push_back(conversion);
    }
  }
  return all;
}

/// One runtime for each tier that this machine runs. Their scratch and packed weights are guarded.
inline const std::vector<std::pair<Tier, Runtime>>& tier_runtimes() {
  static const std::vector<std::pair<Tier, Runtime>> runtimes = [] {
    std::vector<std::pair<Tier, Runtime>> made;
    for (const jit::TierInfo& row : jit::tier_table()) {
      if (!jit::host().runs(row.tier)) continue;
      RuntimeOptions options;
      options.tier = row.tier;
      options.allocator = GuardedAllocator::callbacks();
      made.emplace_back(row.tier, std::move(Runtime::create(options)).value());
    }
    return made;
  }();
  return runtimes;
}

/// A runtime for the forms of conversions that this machine's row of the tuning table does not
/// choose; none where they need a tier that the machine lacks.
inline const std::vector<std::pair<Tier, Runtime>>& other_form_runtimes() {
  static const std::vector<std::pair<Tier, Runtime>> runtimes = [] {
    std::vector<std::pair<Tier, Runtime>> made;
    if (!jit::host().runs(Tier::avx512_vbmi)) return made;
    const Core own = jit::choose_core(jit::host().identity).core;
    RuntimeOptions options;
    options.tier = Tier::avx512_vbmi;
    options.core =
        jit::tuning_of(own).conversion.avoids_two_source_permutes ? Core::zen4 : Core::golden_cove;
    options.allocator = GuardedAllocator::callbacks();
    made.emplace_back(*options.tier, std::move(Runtime::create(options)).value());
    return made;
  }();
  return runtimes;
}

/// One runtime for each tier whose code of elementwise functions differs (amx has that of
/// avx512_fp16), and for other forms of it.
inline const std::vector<std::pair<Tier, Runtime>>& elementwise_tier_runtimes() {
  static const std::vector<std::pair<Tier, Runtime>> runtimes = [] {
    std::vector<std::pair<Tier, Runtime>> some = tier_runtimes();
    std::erase_if(some, [](const auto& row) { return row.first == Tier::amx; });
    some.insert(some.end(), other_form_runtimes().begin(), other_form_runtimes().end());
    return some;
  }();
  return runtimes;
}

/// One runtime for each tier whose instructions the CPU has: megabytes take an emulator minutes.
inline const std::vector<std::pair<Tier, Runtime>>& native_tier_runtimes() {
  static const std::vector<std::pair<Tier, Runtime>> runtimes = [] {
    std::vector<std::pair<Tier, Runtime>> some = elementwise_tier_runtimes();
    std::erase_if(some, [](const auto& row) { return jit::host().emulates(row.first); });
    return some;
  }();
  return runtimes;
}

/// Source elements and what each must become, in storage.
struct ExpectedConversion {
  std::vector<uint64_t> inputs;
  std::vector<uint64_t> outputs;
  std::vector<std::byte> input_bytes;
  std::vector<std::byte> output_bytes;
};

inline ExpectedConversion expect(const Conversion& conversion, std::vector<uint64_t> inputs) {
  ExpectedConversion expected;
  expected.inputs = std::move(inputs);
  expected.outputs.reserve(expected.inputs.size());
  for (uint64_t input : expected.inputs) {
    expected.outputs.push_back(
        numerics::convert(input, conversion.from, conversion.to, conversion.options));
  }
  expected.input_bytes = samples::pack(conversion.from, expected.inputs);
  expected.output_bytes = samples::pack(conversion.to, expected.outputs);
  return expected;
}

/// The first element that differs, as text; empty when all are equal.
inline std::string first_difference(const Conversion& conversion,
                                    const ExpectedConversion& expected,
                                    std::span<const std::byte> actual, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t found = samples::load_pattern(actual, conversion.to, i);
    if (found == expected.outputs[i]) continue;
    char text[160];
    std::snprintf(text, sizeof text, "element %zu: input 0x%llx, expected 0x%llx, found 0x%llx", i,
                  static_cast<unsigned long long>(expected.inputs[i]),
                  static_cast<unsigned long long>(expected.outputs[i]),
                  static_cast<unsigned long long>(found));
    return text;
  }
  return "";
}

}  // namespace castor::test
