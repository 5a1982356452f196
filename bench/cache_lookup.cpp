// SPDX-License-Identifier: Apache-2.0
// CacheLookup/<what>: finding what is known, by one thread and by two at once. Both kinds of
// figures come from threads of their own, pinned to a core each: the C++ library counts references
// without atomic instructions while a process has one thread.
#include <fmt/format.h>

#include <array>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/lookup_threads.hpp"
#include "runtime/state.hpp"

namespace castor::bench {

namespace {

using enum ElementType;

/// Functions that compute different things, and one runtime that has compiled them.
struct Known {
  Runtime runtime;
  std::vector<FunctionPtr> functions;
};

/// The n-th conversion from f32 to i8 of its own constant shape.
Result<FunctionPtr> function_of(int64_t n) {
  FunctionBuilder builder("known");
  const ValueId x = builder.parameter("x", {f32, Shape({Dim(n + 1)})});
  builder.result(builder.convert(x, i8));
  return builder.finish();
}

}  // namespace

}  // namespace castor::bench
