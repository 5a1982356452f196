// SPDX-License-Identifier: Apache-2.0
// What the verifier's rules look like: inside ir/ only.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "ir/function.hpp"

namespace castor::detail {

/// How a rule is broken.
struct Finding {
  std::string detail;
  const Operation* operation = nullptr;  ///< the one to be shown, of a function's rule
  ErrorCode code = ErrorCode::invalid_function;
};
using MaybeFinding = std::optional<Finding>;

/// A rule of one operation, whose ids are known to be in range.
struct OperationRule {
  std::string_view rule;  ///< a sentence for messages
  MaybeFinding (*check)(const Function&, const Operation&);
};

/// In the order of checking: later rules rely on earlier ones.
std::span<const OperationRule> operation_rules();

/// "%x", or "none".
std::string label(const Function& function, ValueId id);

/// An error as a finding.
Finding finding(const Error& error);

}  // namespace castor::detail
