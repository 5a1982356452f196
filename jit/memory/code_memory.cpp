// SPDX-License-Identifier: Apache-2.0
#include "jit/memory/code_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

namespace castor::jit {

/// The arena that one process fills.
struct CodeMemory::Filling {
  std::mutex mutex;
  std::optional<OpenArena> arena;

  /// Appends to the arena, or to a new one with room for `bytes` of code and of constants each.
  Result<CodeBlock> append(const MachineCode& code, size_t bytes, const SystemCalls& system,
                           const std::shared_ptr<CodeBudget>& budget) {
    if (arena && arena->fits(code)) {
      Result<CodeBlock> block = append_to_arena(code, budget);
      if (block.ok() || !is_limit_reached(block.error()) || !holds_dead_code()) return block;
    }
    if (arena && holds_dead_code()) arena.reset();  // so that its pages may be used again
    Result<OpenArena> opened = OpenArena::open(system, bytes, bytes);
    if (!opened.ok()) return opened.error();
    arena = std::move(*opened);
    return append_to_arena(code, budget);
  }

 private:
  /// Whether the arena has code that no one holds any more; the last reference is released after
  /// all use.
  bool holds_dead_code() const { return !arena->is_empty() && arena->arena().use_count() == 1; }

  Result<CodeBlock> append_to_arena(const MachineCode& code,
                                    const std::shared_ptr<CodeBudget>& budget) {
    Result<CodeBlock> block = arena->append(code, budget);
    if (!block.ok() && !is_limit_reached(block.error())) arena.reset();
    return block;
  }
};

namespace {

/// The size of arenas under a limit: one live block keeps its arena mapped, so an arena should be a
/// small part of the limit.
size_t largest_arena(size_t limit) {
  constexpr size_t arenas = 16;
  const size_t part = limit / arenas / page_bytes * page_bytes;
  return std::clamp(part, page_bytes, CodeMemory::largest_arena_bytes);
}

}  // namespace

CodeMemory::CodeMemory(const SystemCalls& system, size_t limit)
    : system_(system),
      shared_arena_bytes_(largest_arena(limit)),
      budget_(std::make_shared<CodeBudget>(limit)),
      filling_(system_) {}

CodeMemory::~CodeMemory() {
  if (newest_ == nullptr) return;
  if (filling_.get() == newest_) {
    delete newest_;
  } else {
    leave_to_parent(newest_);
  }
}

CodeMemory::Filling& CodeMemory::own_filling() {
  if (Filling* present = filling_.get()) return *present;
  auto fresh = std::make_unique<Filling>();
  Filling* installed = filling_.install(fresh.get());
  // One thread of a process comes past here, and only it touches `newest_`.
  if (installed == fresh.get()) leave_to_parent(std::exchange(newest_, fresh.release()));
  return *installed;
}

void CodeMemory::leave_to_parent(Filling* inherited) {
  if (inherited == nullptr) return;
  // A lock that is held was held by a thread that the fork did not bring along, perhaps in the
  // middle of a change: what it guards is never touched again.
  if (!inherited->mutex.try_lock()) return;
  inherited->mutex.unlock();
  delete inherited;
}

namespace {

/// Callers take the limit for memory that the system refuses: both mean that there is no code.
Error without_code(Error error) {
  if (is_limit_reached(error)) error.code = ErrorCode::executable_memory;
  return error;
}

}  // namespace

Result<CodeBlock> CodeMemory::publish(const MachineCode& code) {
  if (code.instruction_bytes == 0) {
    return Error{ErrorCode::internal, "publish: no code, expected a byte or more"};
  }
  try {
    Result<CodeBlock> block = publish_in_arena(code);
    if (block.ok()) return block;
    if (is_limit_reached(block.error())) return without_code(block.error());
    Result<CodeBlock> own = publish_on_own_pages(system_, code, budget_);
    if (own.ok()) return own;
    return without_code({own.error().code, fmt::format("{}; before that, {}", own.error().message,
                                                       block.error().message)});
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "no memory left"};  // short: allocates nothing
  }
}

Result<CodeBlock> CodeMemory::publish_in_arena(const MachineCode& code) {
  if (filling_.refusal()) return *filling_.refusal();
  const size_t code_bytes = round_up(code.instructions().size() + code.room_after, page_bytes);
  const size_t pool_bytes = round_up(code.pool().size(), page_bytes);
  if (std::max(code_bytes, pool_bytes) > largest_arena_bytes) {
    Result<OpenArena> own = OpenArena::open(system_, code_bytes, pool_bytes);
    if (!own.ok()) return own.error();
    return own->append(code, budget_);
  }
  Filling& filling = own_filling();
  const std::lock_guard lock(filling.mutex);
  const size_t bytes = std::max({shared_arena_bytes_, code_bytes, pool_bytes});
  return filling.append(code, bytes, system_, budget_);
}

}  // namespace castor::jit
