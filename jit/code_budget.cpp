// SPDX-License-Identifier: Apache-2.0
#include "jit/code_budget.hpp"

#include <fmt/format.h>

namespace castor::jit {

namespace {

/// How the errors of `CodeShare::take` begin, and no others.
constexpr std::string_view limit_error = "machine code: ";

}  // namespace

Result<CodeShare> CodeShare::take(const std::shared_ptr<CodeBudget>& budget, size_t bytes) {
  size_t used = budget->taken_.load(std::memory_order_relaxed);
  do {
    if (used > budget->limit_ || bytes > budget->limit_ - used) {
      return Error{ErrorCode::executable_memory,
                   fmt::format("{}{} bytes are mapped, {} more are needed; the limit is {}",
                               limit_error, used, bytes, budget->limit_)};
    }
  } while (!budget->taken_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return CodeShare(budget, bytes);
}

bool is_limit_reached(const Error& error) { return error.message.starts_with(limit_error); }

}  // namespace castor::jit
