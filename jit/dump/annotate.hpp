// SPDX-License-Identifier: Apache-2.0
// Notes that name the operations of a function.
#pragma once

#include <string>

#include "ir/function.hpp"
#include "jit/code.hpp"
#include "jit/emit/emit_options.hpp"

namespace castor::jit {

/// Text of the IR operation with that index; empty where there is none.
std::string operation_text(const Function& function, uint32_t index);

/// Code with notes that name the function's operations; refers to the function.
EmitOptions annotated_with(const Function& function);

/// Whose code is said to be of an operation: the frame (SectionKind::frame) never is.
enum class NotedCode : uint8_t {
  without_operation,  ///< code whose notes name none: a kernel, beside its epilogue
  all,                ///< all code: a lane program that no operation was lowered to
};
void note_operation(const Function& function, uint32_t operation, NotedCode noted,
                    MachineCode& code);

}  // namespace castor::jit
