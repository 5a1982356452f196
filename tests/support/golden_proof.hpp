// SPDX-License-Identifier: Apache-2.0
// Golden kernels as subjects of proofs.
#pragma once

#include "jit/plan/access_pattern.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/golden_kernel.hpp"
#include "tests/support/long_form.hpp"
#include "tools/prove/kernel/nest_proof.hpp"
#include "tools/prove/solver/solver.hpp"

namespace castor::test {

/// Nests of a golden file with their code; empty where it lists something else than elementwise
/// nests: kernels of convolutions, requantizations, reductions.
struct GoldenCode {
  GoldenNest made;
  jit::MachineCode code;
};
inline Result<std::vector<GoldenCode>> elementwise_codes(const GoldenKernel& kernel) {
  std::vector<GoldenCode> codes;
  if (kernel.spec) return codes;
  for (GoldenNest& made : nests_of(kernel)) {
    const jit::Nest& nest = made.nest;
    const bool is_other = nest.convolution || nest.requantization || nest.program.folds();
    if (is_other) continue;
    if (kernel.is_likely) made.form = likely_form(*kernel.function, nest, kernel.target);
    auto code = emit_golden(kernel, made);
    if (!code) return code.error();
    codes.push_back({std::move(made), std::move(*code)});
  }
  return codes;
}

/// Asks z3, at last with float arithmetic as any function of its operands.
inline prove::Decision ask_solver(const prove::Term& truth) {
  constexpr prove::Steps limit = 100'000'000;
  using enum prove::Answer::Kind;
  const prove::Answer answer = prove::can_hold(truth, limit);
  if (answer.kind == never) return prove::Decision::never;
  if (answer.kind == possible) return prove::Decision::possible;
  const bool never_holds =
      prove::can_hold(truth, limit, prove::Arithmetic::any_function).kind == never;
  return never_holds ? prove::Decision::never : prove::Decision::unknown;
}

/// In the short form few counts of elements after whole iterations, the least and some others.
inline bool takes_tail(int64_t tail) { return long_form() || tail < 3 || tail % 29 == 5; }

}  // namespace castor::test
