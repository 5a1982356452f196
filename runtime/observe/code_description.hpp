// SPDX-License-Identifier: Apache-2.0
// What those who watch code are told of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/support/result.hpp"
#include "jit/code.hpp"

namespace castor {

/// Refers to what it was made from, which must outlive it. Words are made when they are asked for.
class CodeDescription {
 public:
  /// See code_name.hpp; `key` is the code's key.
  virtual std::string name(std::string_view key) const = 0;
  /// What the code is, in lines of words.
  virtual std::string text() const = 0;
  /// The code with notes; nothing where its emitter writes none.
  virtual std::optional<Result<jit::MachineCode>> annotated() const { return std::nullopt; }

 protected:
  ~CodeDescription() = default;
};

}  // namespace castor
