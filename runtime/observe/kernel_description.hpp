// SPDX-License-Identifier: Apache-2.0
// Kernels in the words of their specs.
#pragma once

#include "jit/conv/epilogue/epilogue.hpp"
#include "jit/kernel/spec_words.hpp"
#include "runtime/observe/code_description.hpp"

namespace castor {

/// The name of a kernel's code. `epilogue`: null where there is none.
std::string kernel_name(const jit::SpecWords& words, const jit::Target& target,
                        const jit::TileEpilogue* epilogue, std::string_view key);

/// The spec's fields, and the epilogue's lanes.
std::string kernel_text(const jit::SpecWords& words, const jit::TileEpilogue* epilogue);

template <class Spec>
class KernelDescription final : public CodeDescription {
 public:
  /// `epilogue`: null where there is none.
  KernelDescription(const Spec& spec, const jit::Target& target, const jit::TileEpilogue* epilogue)
      : spec_(spec), target_(target), epilogue_(epilogue) {}

  std::string name(std::string_view key) const override {
    return kernel_name(jit::spec_words(spec_), target_, epilogue_, key);
  }
  std::string text() const override { return kernel_text(jit::spec_words(spec_), epilogue_); }
  std::optional<Result<jit::MachineCode>> annotated() const override {
    const jit::EmitOptions options = {.annotate = true};
    return jit::emit_any_kernel(spec_, target_, epilogue_, options);
  }

 private:
  const Spec& spec_;
  const jit::Target& target_;
  const jit::TileEpilogue* epilogue_;
};

}  // namespace castor
