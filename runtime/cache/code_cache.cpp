// SPDX-License-Identifier: Apache-2.0
#include "runtime/cache/code_cache.hpp"

#include "runtime/observe/nest_description.hpp"

namespace castor {

Result<jit::CodeBlock> CodeCache::publish(const jit::MachineCode& code) {
  Result<jit::CodeBlock> block = memory_.publish(code);
  if (block.ok() || block.error().code != ErrorCode::executable_memory) return block;
  codes_.get().clear();
  if (make_room_) make_room_();
  return memory_.publish(code);
}

/// Found, or made by the recipe.
Result<CodeCache::Codes::ValuePtr> CodeCache::find_or_emit(const std::string& key,
                                                           const KernelRecipe& recipe,
                                                           const CodeDescription& description) {
  const uint64_t hash = std::hash<std::string>()(key);
  return codes_.get().get(hash, key, [&]() -> Result<Codes::Made> {
    Result<jit::MachineCode> emitted = recipe.emit();
    if (!emitted.ok()) return emitted.error();
    if (watcher_ != nullptr) emitted->room_after = watcher_->room_after(*emitted);
    Result<jit::CodeBlock> block = publish(*emitted);
    if (!block.ok()) return block.error();
    std::shared_ptr<AnyKernelCode> code = recipe.hold(std::move(block).value());
    if (watcher_ != nullptr) {
      code->watch = watcher_->code_made(description, key, *emitted, code->block);
    }
    const size_t bytes = code->held_bytes() + block_bytes(key.size() + 1);
    return Codes::Made{std::move(code), bytes};
  });
}

Result<KernelCodePtr<jit::NestSpec>> CodeCache::get(const jit::Nest& nest,
                                                    const jit::NestForm& form,
                                                    const jit::Target& target,
                                                    const Function* function) {
  const jit::NestSpec spec{&nest, &form};
  return find_or_emit(spec, target, no_epilogue, NestDescription(nest, form, target, function));
}

}  // namespace castor
