// SPDX-License-Identifier: Apache-2.0
// Quotients of which a lane program only makes integers that are saturated to 16 bits at most.
#pragma once

#include <functional>
#include <vector>

#include "jit/lane/program.hpp"

namespace castor::jit {

/// By instruction: the float_quotient that it cuts at an upper limit and converts to the nearest
/// even integer, or no_lane; and whether it is such a quotient or cut, which nothing else reads.
/// Whoever reads the integer makes the same of all numbers beyond the limit and beyond -2^17.
struct RoundedQuotients {
  std::vector<LaneId> quotient;
  std::vector<bool> is_absorbed;
};

/// Looks among the quotients that `is_candidate` accepts.
RoundedQuotients rounded_quotients(const LaneProgram& program,
                                   const std::function<bool(LaneId)>& is_candidate);

}  // namespace castor::jit
