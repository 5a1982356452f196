// SPDX-License-Identifier: Apache-2.0
// Emits the code of one nest: loops, tails, and lane programs in them.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/emit/chunk_plan.hpp"
#include "jit/plan/nest.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// The type of generated code: it takes the argument block that ArgumentLayout describes.
using NestFunction = void (*)(const int64_t* arguments);

struct EmitOptions {
  bool annotate = false;
  /// Text of the IR operation with that index, for notes.
  std::function<std::string(uint32_t)> origin_text;
};

/// Emits the nest for operands of that form. A pure function of its arguments. Fails (internal)
/// only when the assembler refuses an instruction.
Result<MachineCode> emit_nest(const Nest& nest, const NestForm& form, const Target& target,
                              const EmitOptions& options = {});

}  // namespace castor::jit
