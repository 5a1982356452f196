// SPDX-License-Identifier: Apache-2.0
// Whether a bound kernel has streaming code that does whole blocks.
#pragma once

#include <algorithm>

#include "jit/emit/chunk_plan.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/compiled.hpp"
#include "runtime/state_access.hpp"

namespace castor::test {

inline bool streams_blocks(const BoundKernel& kernel) {
  const detail::BoundState& bound = detail::StateAccess::of(kernel);
  return std::ranges::any_of(bound.steps, [&](const detail::Step& step) {
    const auto* elementwise = std::get_if<detail::ElementwiseStep>(&step);
    if (elementwise == nullptr || elementwise->streaming == nullptr) return false;
    const detail::Compiled& compiled = *bound.kernel->compiled;
    const jit::NestForm form = jit::streaming_form(compiled.nests[elementwise->nest],
                                                   elementwise->space.form, compiled.target);
    return form.baked_period > 0;
  });
}

}  // namespace castor::test
