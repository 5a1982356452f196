// SPDX-License-Identifier: Apache-2.0
// The code of nests in the words of the function that they are of.
#pragma once

#include "ir/function.hpp"
#include "jit/plan/nest.hpp"
#include "runtime/observe/code_description.hpp"

namespace castor {

class NestDescription final : public CodeDescription {
 public:
  /// `function`: the canonical one that the nest is of, or null where that is unknown.
  NestDescription(const jit::Nest& nest, const jit::NestForm& form, const jit::Target& target,
                  const Function* function)
      : nest_(nest), form_(form), target_(target), function_(function) {}

  std::string name(std::string_view key) const override;
  std::string text() const override;
  std::optional<Result<jit::MachineCode>> annotated() const override;

 private:
  /// Whether operations of the function are what the nest computes.
  bool computes_operations() const;

  const jit::Nest& nest_;
  const jit::NestForm& form_;
  const jit::Target& target_;
  const Function* function_;
};

}  // namespace castor
