// SPDX-License-Identifier: Apache-2.0
#include "jit/memory/code_arena.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace castor::jit {

namespace {

/// Lets the references to constants lead to a pool that begins `pool_distance` bytes after
/// `bytes`.
void move_pool(const MachineCode& code, size_t pool_distance, std::span<std::byte> bytes) {
  const auto move = static_cast<uint32_t>(pool_distance - code.pool_begin);
  for (const uint32_t offset : code.pool_references) {
    uint32_t displacement = 0;
    std::memcpy(&displacement, &bytes[offset], sizeof displacement);
    displacement += move;
    std::memcpy(&bytes[offset], &displacement, sizeof displacement);
  }
}

/// Takes the page faults of bytes that are written, up to the end of a page.
void touch(std::span<const std::byte> bytes) {
  for (size_t after = 0; after < bytes.size(); after += page_bytes) {
    [[maybe_unused]] const std::byte read =
        static_cast<const volatile std::byte&>(bytes[bytes.size() - 1 - after]);
  }
}

}  // namespace

std::vector<std::byte> instructions_for(const MachineCode& code, size_t pool_distance) {
  const std::span<const std::byte> emitted = code.instructions();
  std::vector<std::byte> bytes(emitted.begin(), emitted.end());
  move_pool(code, pool_distance, bytes);
  return bytes;
}

Result<OpenArena> OpenArena::open(const SystemCalls& system, size_t code_bytes, size_t pool_bytes) {
  Result<CodeFile> file = CodeFile::create(system, code_bytes + pool_bytes);
  if (!file.ok()) return file.error();
  Result<MappedPages> pages = file->map(code_bytes);
  if (!pages.ok()) return pages.error();
  return OpenArena(std::make_shared<CodeArena>(std::move(*pages), CodeMapping::arena),
                   std::move(*file), code_bytes, pool_bytes);
}

bool OpenArena::fits(const MachineCode& code) const {
  return code_.fits(code.instructions().size() + code.room_after) && pool_.fits(code.pool().size());
}

Result<CodeBlock> OpenArena::append(const MachineCode& code,
                                    const std::shared_ptr<CodeBudget>& budget) {
  const size_t code_size = code.instructions().size();
  const size_t pool_size = code.pool().size();
  const size_t taken = code_size + code.room_after;
  Result<Pages> pages = take_pages(taken, pool_size, budget);
  if (!pages.ok()) return pages.error();
  FileRange ranges[] = {range_for(code_, code.instructions(), pages->code),
                        range_for(pool_, code.pool(), pages->pool)};
  move_pool(code, pool_.end() - code_.end(), ranges[0].bytes);
  arena_->add(std::move(pages->reservation));  // even if the system gives only a part of them
  if (Status written = file_.write(ranges); !written) return written.error();
  const std::span<const std::byte> code_at = publish(code_, code_size, taken, pages->code);
  const std::span<const std::byte> pool_at = publish(pool_, pool_size, pool_size, pages->pool);
  return CodeBlock(arena_, code_at, pool_at);
}

/// Whole steps, or near the limit what there must be.
Result<OpenArena::Pages> OpenArena::take_pages(size_t code_size, size_t pool_size,
                                               const std::shared_ptr<CodeBudget>& budget) {
  const size_t present = code_.written + pool_.written;
  Pages pages = {code_.wanted(code_size), pool_.wanted(pool_size), {}};
  Result<CodeReservation> reservation =
      CodeReservation::take(budget, pages.code + pages.pool - present);
  if (!reservation.ok()) {
    pages = {code_.min(code_size), pool_.min(pool_size), {}};
    reservation = CodeReservation::take(budget, pages.code + pages.pool - present);
  }
  if (!reservation.ok()) return reservation.error();
  pages.reservation = std::move(*reservation);
  return pages;
}

/// Bytes for the end of a part, and after them, up to the end of new pages, what traps when it is
/// executed.
FileRange OpenArena::range_for(const Part& part, std::span<const std::byte> bytes, size_t pages) {
  constexpr std::byte breakpoint{0xcc};
  const size_t filling = pages > part.written ? pages - part.used - bytes.size() : 0;
  FileRange range{.bytes = {}, .offset = part.end()};
  range.bytes.reserve(bytes.size() + filling);
  range.bytes.assign(bytes.begin(), bytes.end());
  range.bytes.insert(range.bytes.end(), filling, breakpoint);
  return range;
}

/// Where the bytes that were written can be executed or read; takes their page faults.
std::span<const std::byte> OpenArena::publish(Part& part, size_t size, size_t taken, size_t pages) {
  const std::byte* at = arena_->begin() + part.end();
  if (pages > part.written) touch({at, pages - part.used});
  part.used = round_up(part.used + taken, alignment);
  part.written = pages;
  return {at, size};
}

Result<CodeBlock> publish_on_own_pages(const SystemCalls& system, const MachineCode& code,
                                       const std::shared_ptr<CodeBudget>& budget) {
  const size_t code_size = code.instructions().size();
  const size_t code_bytes = round_up(code_size + code.room_after, page_bytes);
  const size_t pool_bytes = round_up(code.pool().size(), page_bytes);
  Result<CodeReservation> reservation = CodeReservation::take(budget, code_bytes + pool_bytes);
  if (!reservation.ok()) return reservation.error();
  Result<MappedPages> pages =
      MappedPages::map(system, "mmap(PROT_READ | PROT_WRITE)", code_bytes + pool_bytes,
                       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (!pages.ok()) return pages.error();
  const std::vector<std::byte> instructions = instructions_for(code, code_bytes);
  std::byte* const pool = pages->begin() + code_bytes;
  std::memcpy(pages->begin(), instructions.data(), code_size);
  if (pool_bytes > 0) {
    std::memcpy(pool, code.pool().data(), code.pool().size());
    if (system.mprotect(pool, pool_bytes, PROT_READ) != 0) {
      return refused("mprotect(PROT_READ)", pool_bytes, errno);
    }
  }
  if (system.mprotect(pages->begin(), code_bytes, PROT_READ | PROT_EXEC) != 0) {
    return refused("mprotect(PROT_READ | PROT_EXEC)", code_bytes, errno);
  }
  auto arena = std::make_shared<CodeArena>(std::move(*pages), CodeMapping::own_pages);
  arena->add(std::move(*reservation));
  return CodeBlock(arena, {arena->begin(), code_size}, {pool, code.pool().size()});
}

}  // namespace castor::jit
