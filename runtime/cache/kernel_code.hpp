// SPDX-License-Identifier: Apache-2.0
// Machine code that can be called, typed by the spec that it is of (jit/kernel/spec.hpp).
#pragma once

#include <cstdint>
#include <memory>

#include "jit/kernel/spec.hpp"
#include "jit/memory/code_memory.hpp"
#include "runtime/cache/block_bytes.hpp"

namespace castor {

/// Its address tells the types of specs apart.
template <class Spec>
inline constexpr char spec_tag = 0;

/// Executable code of a kernel of any kind.
struct AnyKernelCode {
  AnyKernelCode(jit::CodeBlock published, const char* of_spec)
      : block(std::move(published)), tag(of_spec) {}

  jit::CodeBlock block;
  const char* tag;  ///< the spec_tag of its spec's type
  /// What those who watch the code keep as long as it lives; usually null.
  std::shared_ptr<const void> watch{};
  /// Executable memory and the object itself.
  size_t held_bytes() const {
    return jit::round_up(block.held_bytes(), jit::CodeMemory::code_alignment) +
           shared_block_bytes<AnyKernelCode>();
  }
};

/// Executable code of a spec. Adds nothing but its type.
template <class Spec>
struct KernelCode final : AnyKernelCode {
  explicit KernelCode(jit::CodeBlock published)
      : AnyKernelCode(std::move(published), &spec_tag<Spec>) {}

  jit::KernelFunction<Spec> entry() const {
    return reinterpret_cast<jit::KernelFunction<Spec>>(reinterpret_cast<uintptr_t>(block.code()));
  }
  void call(typename Spec::Arguments* arguments) const { entry()(arguments); }
};
template <class Spec>
using KernelCodePtr = std::shared_ptr<const KernelCode<Spec>>;

}  // namespace castor
