// SPDX-License-Identifier: Apache-2.0
// How the cache makes the code of a spec that it does not have yet.
#pragma once

#include <memory>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/conv/epilogue/epilogue.hpp"
#include "runtime/cache/kernel_code.hpp"

namespace castor {

/// The epilogue of kernels that apply none.
inline constexpr const jit::TileEpilogue* no_epilogue = nullptr;

class KernelRecipe {
 public:
  virtual Result<jit::MachineCode> emit() const = 0;
  /// The object that the cache keeps for published code.
  virtual std::shared_ptr<AnyKernelCode> hold(jit::CodeBlock block) const = 0;

 protected:
  ~KernelRecipe() = default;
};

/// The kernel of a spec by its `emit_kernel`; refers to what it is made from.
template <class Spec>
class SpecRecipe final : public KernelRecipe {
 public:
  /// `epilogue` is null where there is none, and for specs that apply none.
  SpecRecipe(const Spec& spec, const jit::Target& target, const jit::TileEpilogue* epilogue)
      : spec_(spec), target_(target), epilogue_(epilogue) {}

  Result<jit::MachineCode> emit() const override {
    return jit::emit_any_kernel(spec_, target_, epilogue_);
  }
  std::shared_ptr<AnyKernelCode> hold(jit::CodeBlock block) const override {
    static_assert(sizeof(KernelCode<Spec>) == sizeof(AnyKernelCode));  // held_bytes counts the one
    return std::make_shared<KernelCode<Spec>>(std::move(block));
  }

 private:
  const Spec& spec_;
  const jit::Target& target_;
  const jit::TileEpilogue* epilogue_;
};

}  // namespace castor
