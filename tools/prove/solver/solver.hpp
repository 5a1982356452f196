// SPDX-License-Identifier: Apache-2.0
// Can a term be 1? Asked of z3; no header of z3 is seen by who includes this.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tools/prove/term/term.hpp"

namespace castor::prove {

struct Answer {
  enum class Kind : uint8_t {
    never,     ///< the term is 0 for all inputs
    possible,  ///< the term is 1 for `inputs`
    unknown,   ///< not decided; `reason` says why
  };
  Kind kind = Kind::unknown;
  std::vector<Bits> inputs = {};  ///< by input number; 0 where the term does not depend on one
  std::string reason = {};
  double seconds = 0;
};

/// Decides whether the term, of width 1, can be 1. A `possible` was evaluated on its inputs with
/// compute(); where that gives 0, the answer is `unknown`.
Answer can_hold(const Term& truth, std::chrono::milliseconds limit);

/// The query in SMT-LIB 2, for other solvers.
std::string smt_lib(const Term& truth);

/// "4.8.12.0".
std::string solver_version();

}  // namespace castor::prove
