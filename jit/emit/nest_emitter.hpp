// SPDX-License-Identifier: Apache-2.0
// Emits the code of one nest: loops, tails, and lane programs in them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/emit/chunk_plan.hpp"
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

  static constexpr auto fields() {
    return std::tuple(field("nest", &NestSpec::nest), field("form", &NestSpec::form));
  }
};

struct EmitOptions {
  bool annotate = false;
  /// Text of the IR operation with that index, for notes.
  std::function<std::string(uint32_t)> origin_text;
};

/// Emits the nest for operands of that form. A pure function of its arguments. Fails (internal)
/// only when the assembler refuses an instruction.
Result<MachineCode> emit_nest(const Nest& nest, const NestForm& form, const Target& target,
                              const EmitOptions& options = {});
inline Result<MachineCode> emit_kernel(const NestSpec& spec, const Target& target) {
  return emit_nest(*spec.nest, *spec.form, target);
}

}  // namespace castor::jit
