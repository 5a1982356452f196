// SPDX-License-Identifier: Apache-2.0
#include "jit/memory/code_budget.hpp"

#include <fmt/format.h>

namespace castor::jit {

Result<CodeReservation> CodeReservation::take(const std::shared_ptr<CodeBudget>& budget,
                                              size_t bytes) {
  size_t used = budget->taken_.load(std::memory_order_relaxed);
  do {
    if (used > budget->limit_ || bytes > budget->limit_ - used) {
      return Error{
          ErrorCode::limit_exceeded,
          fmt::format("machine code: {} bytes are mapped, {} more are needed; the limit is "
                      "{}",
                      used, bytes, budget->limit_)};
    }
  } while (!budget->taken_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return CodeReservation(budget, bytes);
}

}  // namespace castor::jit
