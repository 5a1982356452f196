// SPDX-License-Identifier: Apache-2.0
// The cache of machine code, by what the code depends on and nothing else.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "ir/function.hpp"
#include "jit/emit/nest_emitter.hpp"
#include "jit/kernel/spec_key.hpp"
#include "runtime/cache/clock_cache.hpp"
#include "runtime/cache/kernel_recipe.hpp"
#include "runtime/fork_private.hpp"
#include "runtime/observe/code_watcher.hpp"
#include "runtime/observe/kernel_description.hpp"

namespace castor {

/// Code by the key of its spec, in a ClockCache: thread safe, without a lock where the code is
/// there; bounded (kernels that hold dropped code keep it alive); generated once for all who ask at
/// the same time. A failed compile leaves nothing in it. May throw std::bad_alloc.
class CodeCache {
 public:
  /// `watcher` is told of all code that is made; it may be null.
  CodeCache(jit::CodeMemory& memory, const jit::SystemCalls& system, size_t capacity_bytes,
            CodeWatcher* watcher = nullptr)
      : memory_(memory), watcher_(watcher), codes_(system, capacity_bytes) {}

  /// Sets what lets go of everything else that keeps unused code alive, before the first request.
  /// Where memory for code is refused, or its limit reached, the cache drops all code, calls this,
  /// and tries once more.
  void set_make_room(std::function<void()> make_room) { make_room_ = std::move(make_room); }

  /// The kernel of a spec, found or emitted.
  template <class Spec>
  Result<KernelCodePtr<Spec>> get(const Spec& spec, const jit::Target& target) {
    return find_or_emit(spec, target, no_epilogue,
                        KernelDescription<Spec>(spec, target, no_epilogue));
  }
  /// As above, with an epilogue, or, where that is null, without.
  template <jit::AppliesEpilogues Spec>
  Result<KernelCodePtr<Spec>> get(const Spec& spec, const jit::Target& target,
                                  const jit::TileEpilogue* epilogue) {
    return find_or_emit(spec, target, epilogue, KernelDescription<Spec>(spec, target, epilogue));
  }
  /// The code of a nest, found or compiled. `function` is the canonical one that the nest is of,
  /// for those who watch; it may be null.
  Result<KernelCodePtr<jit::NestSpec>> get(const jit::Nest& nest, const jit::NestForm& form,
                                           const jit::Target& target,
                                           const Function* function = nullptr);

  /// What the codes count for is their size, their key's, and the cache's own memory.
  CacheCounters counters() const { return codes_.get().counters(); }

 private:
  using Codes = ClockCache<std::string, AnyKernelCode>;

  template <class Spec>
  Result<KernelCodePtr<Spec>> find_or_emit(const Spec& spec, const jit::Target& target,
                                           const jit::TileEpilogue* epilogue,
                                           const CodeDescription& description) {
    Result<Codes::ValuePtr> code = find_or_emit(
        kernel_key(spec, target, epilogue), SpecRecipe<Spec>(spec, target, epilogue), description);
    if (!code.ok()) return code.error();
    // The spec's name is in the key, so that another spec's code is found only if both have one
    // name.
    if ((*code)->tag != &spec_tag<Spec>) {
      return Error{ErrorCode::internal,
                   "two specs of kernels have the name " + std::string(Spec::name)};
    }
    return std::static_pointer_cast<const KernelCode<Spec>>(std::move(code).value());
  }
  Result<Codes::ValuePtr> find_or_emit(const std::string& key, const KernelRecipe& recipe,
                                       const CodeDescription& description);
  Result<jit::CodeBlock> publish(const jit::MachineCode& code);

  jit::CodeMemory& memory_;
  CodeWatcher* const watcher_;
  std::function<void()> make_room_;
  mutable ForkPrivate<Codes, size_t> codes_;
};

}  // namespace castor
