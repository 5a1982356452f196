// SPDX-License-Identifier: Apache-2.0
#include "runtime/c/executor.hpp"

#include <fmt/format.h>

#include "runtime/c/structs.hpp"

namespace castor::c {

Status read_executor(const castor_executor* given, std::optional<ExecutorFromC>& executor) {
  if (given == nullptr) return {};
  castor_executor fields;
  if (Status status = read_struct(given, "castor_executor", fields); !status) return status;
  if (fields.tasks < 1) {
    return invalid(fmt::format("{} tasks of the executor, expected 1 or more", fields.tasks));
  }
  if (Status status = check_reserved(fields.reserved, "castor_executor"); !status) return status;
  if (fields.parallel_for == nullptr && fields.tasks > 1) {
    return invalid("no parallel_for of the executor (NULL)");
  }
  executor.emplace(fields);
  return {};
}

}  // namespace castor::c
