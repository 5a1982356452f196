// SPDX-License-Identifier: Apache-2.0
// Can a term be 1? Asked of z3; no header of z3 is seen by who includes this.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// Steps of z3 (its resource units) before it gives up: unlike seconds, they are the same on a busy
/// machine. An idle core takes some 5 to 10 million a second.
using Steps = uint64_t;

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
  Steps steps = 0;  ///< that z3 took
};

/// What arithmetic means to the solver.
enum class Arithmetic : uint8_t {
  exact,
  /// What may_be_any_function is any function of its operands, so that `never` holds whatever it
  /// computes, and other answers say nothing.
  any_function,
};

/// Sums, products, quotients and roots of floats; of integers of at least 16 bits, products and
/// quotients that are not by constants.
bool may_be_any_function(const Terms& terms, const Node& node);

/// Decides whether the term, of width 1, can be 1. A `possible` was evaluated on its inputs with
/// compute(); where that gives 0, the answer is `unknown`.
Answer can_hold(const Term& truth, Steps limit, Arithmetic arithmetic = Arithmetic::exact);

/// Decides whether the assertions of a text in SMT-LIB 2 can hold together; real and whole numbers
/// may occur. `inputs` stay empty; of a `possible`, `reason` is the model.
Answer can_hold_text(const std::string& smt_lib, Steps limit);

/// The query in SMT-LIB 2, for other solvers.
std::string smt_lib(const Term& truth);

/// "4.8.12.0".
std::string solver_version();

}  // namespace castor::prove
