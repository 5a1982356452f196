// SPDX-License-Identifier: Apache-2.0
#include "jit/code_memory.hpp"

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
  size_t next_arena_bytes = first_arena_bytes;

  /// Makes sure that `arena` has room for `code_bytes`. Arenas that hold several codes have at most
  /// `largest_bytes`.
  Status make_room(size_t code_bytes, size_t largest_bytes, const SystemCalls& system,
                   const std::shared_ptr<CodeBudget>& budget) {
    if (arena && arena->fits(code_bytes)) return {};
    leave_if_dead();
    const size_t least = round_up(code_bytes, page_bytes);
    const size_t left = budget->left() / page_bytes * page_bytes;
    const size_t bytes = std::max(std::min({next_arena_bytes, largest_bytes, left}), least);
    Result<OpenArena> opened = OpenArena::map(system, bytes, budget);
    if (!opened.ok()) return opened.error();
    arena = std::move(*opened);
    next_arena_bytes = std::clamp(2 * bytes, first_arena_bytes, largest_arena_bytes);
    return {};
  }

  /// Unmaps the arena where nobody holds code in it, so that its bytes may be mapped anew.
  void leave_if_dead() {
    if (!arena || arena->arena().use_count() > 1) return;
    arena.reset();  // giving up the last reference comes behind all use of its code
  }
};

namespace {

/// Of memory with a limit: small enough that one code alone, which keeps an arena mapped, takes but
/// a small part.
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
  if (inherited->arena) inherited->arena->forget_writable();
  inherited->mutex.unlock();
  delete inherited;
}

Result<CodeBlock> CodeMemory::publish(std::span<const std::byte> code) {
  if (code.empty()) return Error{ErrorCode::internal, "publish: no code, expected a byte or more"};
  try {
    Result<CodeBlock> dual = publish_dual(code);
    if (dual.ok()) return dual;
    Result<CodeBlock> own = publish_protected(code);
    if (own.ok()) return own;
    if (own.error().message == dual.error().message) return own;  // the limit
    return Error{own.error().code,
                 fmt::format("{}; before that, {}", own.error().message, dual.error().message)};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "no memory left"};  // short: allocates nothing
  }
}

Result<CodeBlock> CodeMemory::publish_dual(std::span<const std::byte> code) {
  if (filling_.refusal()) return *filling_.refusal();
  if (code.size() > largest_arena_bytes) {
    Result<OpenArena> own = OpenArena::map(system_, round_up(code.size(), page_bytes), budget_);
    if (!own.ok()) return own.error();
    const std::byte* at = own->append(code, code_alignment);
    return CodeBlock(own->arena(), at, code.size());
  }
  Filling& filling = own_filling();
  const std::lock_guard lock(filling.mutex);
  if (Status room = filling.make_room(code.size(), shared_arena_bytes_, system_, budget_);
      !room.ok()) {
    return room.error();
  }
  const std::byte* at = filling.arena->append(code, code_alignment);
  return CodeBlock(filling.arena->arena(), at, code.size());
}

Result<CodeBlock> CodeMemory::publish_protected(std::span<const std::byte> code) {
  Result<std::shared_ptr<CodeArena>> pages = map_protected(system_, code, budget_);
  if (!pages.ok()) return pages.error();
  return CodeBlock(*pages, (*pages)->begin(), code.size());
}

}  // namespace castor::jit
