// SPDX-License-Identifier: Apache-2.0
// Functions of blocks with stores past the caches.
#pragma once

#include <algorithm>

#include "jit/dump/dump.hpp"
#include "jit/emit/chunk_plan.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/compiled.hpp"
#include "runtime/state_access.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/published.hpp"

namespace castor::test {

/// Whether a bound kernel has streaming code that does whole blocks: that of their form.
inline bool streams_blocks(const BoundKernel& kernel) {
  const detail::BoundState& bound = detail::StateAccess::of(kernel);
  return std::ranges::any_of(bound.steps, [&](const detail::Step& step) {
    const auto* elementwise = std::get_if<detail::ElementwiseStep>(&step);
    if (elementwise == nullptr || elementwise->streaming == nullptr) return false;
    const detail::Compiled& compiled = *bound.kernel->compiled;
    const jit::NestForm form = jit::streaming_form(compiled.nests[elementwise->nest],
                                                   elementwise->space.form, compiled.target);
    if (form.baked_period == 0) return false;
    const Result<jit::MachineCode> code = jit::emit_annotated(
        *compiled.canonical, compiled.nests[elementwise->nest], form, compiled.target);
    return code.ok() && is_published(*code, elementwise->streaming->block);
  });
}

/// Checks a function of two operands, of 1 MiB and more, with outputs that begin at a line and
/// within one. `has_blocks`: whether streaming code with AVX512-VBMI does whole blocks of it.
inline void check_streaming(const FunctionPtr& function, const std::vector<Patterns>& operands,
                            bool has_blocks) {
  const Patterns expected = interpreted(*function, operands);
  const std::vector<std::byte> bytes = samples::pack(expected.type, expected.elements);
  GuardedPatterns x(operands[0]);
  GuardedPatterns s(operands[1]);
  GuardedPages pages(bytes.size() + 256);
  for (const auto& [tier, runtime] : native_tier_runtimes()) {
    for (const size_t shift : {0, 2, 24, 64, 3}) {
      std::byte* out = pages.at_end(bytes.size() + shift);
      pages.fill(std::byte{0xc5});
      const std::vector<ConstView> inputs = {x.view(), s.view()};
      const std::vector<View> outputs = {{out, expected.type, expected.shape, bytes.size()}};
      const Result<Kernel> kernel = runtime.compile(function);
      ASSERT_TRUE(kernel.ok()) << kernel.error().message;
      const Result<BoundKernel> bound = kernel->bind(inputs, outputs);
      ASSERT_TRUE(bound.ok()) << bound.error().message;
      EXPECT_EQ(streams_blocks(*bound), has_blocks && tier >= jit::Tier::avx512_vbmi)
          << name_of(tier);
      ASSERT_TRUE(bound->run(inputs, outputs, {StorePolicy::streaming}).ok());
      EXPECT_TRUE(std::ranges::equal(bytes, std::span(out, bytes.size())))
          << name_of(tier) << ", shifted by " << shift << " bytes, " << name_of(expected.type);
      EXPECT_TRUE(pages.is_filled_but({out, bytes.size()}, std::byte{0xc5}));
    }
  }
}

}  // namespace castor::test
