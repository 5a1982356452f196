// SPDX-License-Identifier: Apache-2.0
// Emits the code of one nest: loops, tails, and lane programs in them.
#pragma once

#include <span>
#include <string_view>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/emit/chunk_plan.hpp"
#include "jit/emit/emit_options.hpp"
#include "jit/kernel/spec.hpp"
#include "jit/plan/nest.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// The spec of a nest's code in one form; refers to both, which must outlive it. The code takes the
/// argument block that ArgumentLayout describes.
struct NestSpec {
  static constexpr std::string_view name = "nest";
  using Arguments = const int64_t;

  const Nest* nest = nullptr;
  const NestForm* form = nullptr;

  static constexpr auto fields(const auto& list) {
    return list(field("nest", &NestSpec::nest), field("form", &NestSpec::form));
  }
};

/// Emits the nest for operands of that form. A pure function of its arguments. Fails (internal)
/// only when the assembler refuses an instruction.
Result<MachineCode> emit_nest(const Nest& nest, const NestForm& form, const Target& target,
                              const EmitOptions& options = {});
inline Result<MachineCode> emit_kernel(const NestSpec& spec, const Target& target,
                                       const EmitOptions& options = {}) {
  return emit_nest(*spec.nest, *spec.form, target, options);
}

}  // namespace castor::jit
