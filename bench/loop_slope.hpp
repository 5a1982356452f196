// SPDX-License-Identifier: Apache-2.0
// What one more element costs in a kernel's main loop, without what the call costs.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "bench/bound_call.hpp"
#include "bench/limits.hpp"

namespace castor::bench {

/// Two contenders that run the same function on many and on about a quarter as many elements; the
/// difference of their times is the loop's alone. Each mixes four sizes in an order without
/// pattern: the branch that ends the loop is then mispredicted in (nearly) every call of both,
/// while one size alone would be predicted for some trip counts and not for others.
class LoopSlope {
 public:
  /// Binds the function to tensors whose loops do that many elements.
  using Bind = std::function<Result<BoundCall>(int64_t elements)>;

  /// Sizes are up to `max_iterations` times `iteration_elements`, those of one iteration of the
  /// main loop. Fails (internal) when there are fewer than six, and where `bind` does.
  static Result<LoopSlope> prepare(int64_t max_iterations, int64_t iteration_elements,
                                   const Bind& bind);

  /// The contender with many elements, then the one with few.
  std::array<Contender, 2> contenders() const;
  /// The median of cycles for one element, from the two and the clock, measured in turn.
  double cycles_per_element(const Contender& clock, const Contender& many,
                            const Contender& few) const;

 private:
  static constexpr int sizes = 4;
  static constexpr int min_iterations = sizes + 2;
  /// Calls of different sizes, all of which are made equally often.
  struct Mix {
    std::vector<BoundCall> calls;
    int64_t elements = 0;  ///< elements per call of each
  };
  static Result<Mix> mix(int64_t max_iterations, int64_t iteration_elements, const Bind& bind);
  static Contender contender(const Mix& mix);
  /// Nanoseconds for one element in one group.
  double element_ns(const Contender& many, const Contender& few, size_t group) const;

  Mix many_;
  Mix few_;
};

}  // namespace castor::bench
