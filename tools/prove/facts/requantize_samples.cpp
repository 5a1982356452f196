// SPDX-License-Identifier: Apache-2.0
// Every method of requantization on slices that it admits, for all elements.
#include <fmt/format.h>

#include "tools/prove/facts/requantize_cases.hpp"

namespace castor::prove {

std::vector<Fact> requantize_samples() {
  std::vector<Fact> facts;
  for (const jit::RequantizeMethod* method : all_methods()) {
    facts.push_back({fmt::format("requantize: {}, slices", method->name()),
                     "each drawn slice that it admits has the specification's results",
                     [method](const FactEffort& effort) { return check_slices(*method, effort); }});
  }
  return facts;
}

}  // namespace castor::prove
