// SPDX-License-Identifier: Apache-2.0
// What one more element costs in a kernel's main loop, without what the call costs.
#pragma once

#include <array>
#include <vector>

#include "bench/measure.hpp"
#include "bench/session.hpp"

namespace castor::bench {

/// Two contenders that run the same conversion on many and on about a quarter as many elements; the
/// difference of their times is the loop's alone. Each mixes four sizes in an order without
/// pattern: the branch that ends the loop is then mispredicted in (nearly) every call of both,
/// while one size alone would be predicted for some trip counts and not for others.
class LoopSlope {
 public:
  /// `iteration_elements`: of one iteration of the main loop. Fails (internal) when fewer than
  /// eight iterations fit into the workspace.
  static Result<LoopSlope> prepare(const Runtime& runtime, const TypePair& pair,
                                   const Workspace& workspace, int64_t iteration_elements);

  /// The contender with many elements, then the one with few.
  std::array<Contender, 2> contenders() const;
  /// Nanoseconds for one element in one group, from the two, measured.
  double element_ns(const Contender& many, const Contender& few, size_t group) const;

 private:
  static constexpr int sizes = 4;
  /// Calls of different sizes, all of which are made equally often.
  struct Mix {
    std::vector<BoundConversion> calls;
    int64_t elements = 0;  ///< of one call of each
  };
  static Result<Mix> mix(const Runtime& runtime, const TypePair& pair, const Workspace& workspace,
                         int64_t most_iterations, int64_t iteration_elements);
  static Contender contender(const Mix& mix);

  Mix many_;
  Mix few_;
};

}  // namespace castor::bench
