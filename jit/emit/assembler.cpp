// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/assembler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <new>

namespace castor::jit {

namespace {

constexpr size_t field_bytes = 4;

uint64_t word_at(const uint8_t* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

/// Offsets of 32-bit fields that are zero in `before` and have another highest byte in `after`; all
/// else is equal. Searched from the end, the first byte that differs is the highest of a field. No
/// field ends within the first eight bytes, where the entry and an opcode are.
std::vector<uint32_t> changed_fields(std::span<const uint8_t> before,
                                     std::span<const uint8_t> after) {
  std::vector<uint32_t> fields;
  fields.reserve(64);
  for (size_t end = before.size(); end > sizeof(uint64_t);) {
    const size_t begin = end - sizeof(uint64_t);
    const uint64_t changes = word_at(&before[begin]) ^ word_at(&after[begin]);
    end -= static_cast<size_t>(std::countl_zero(changes)) / 8;  // 64 bits where nothing changes
    if (changes == 0) continue;
    end -= field_bytes;
    fields.push_back(static_cast<uint32_t>(end));
  }
  std::ranges::reverse(fields);
  return fields;
}

}  // namespace

MachineCode Assembler::finish() {
  constexpr uint8_t breakpoint = 0xcc;
  MachineCode machine_code;
  machine_code.instruction_bytes = static_cast<uint32_t>(getSize());
  if (!pool_bytes_.empty()) {
    while (getSize() % 64 != 0) db(breakpoint);
  }
  machine_code.pool_begin = static_cast<uint32_t>(getSize());
  machine_code.pool_references = resolve_pool();
  for (uint8_t value : pool_bytes_) db(value);
  ready();
  const auto* written = reinterpret_cast<const std::byte*>(getCode());
  machine_code.bytes.assign(written, written + getSize());
  return machine_code;
}

/// Begins the pool here, and returns the offsets of the fields that refer to it. Xbyak does not
/// tell them; but they hold zeros until the label is bound, and then they do not.
std::vector<uint32_t> Assembler::resolve_pool() {
  const std::vector<uint8_t> before(getCode(), getCode() + getSize());
  L(pool_);
  std::vector<uint32_t> fields = changed_fields(before, {getCode(), getSize()});
  for (const uint32_t field : fields) {
    uint32_t displacement = 0;
    std::memcpy(&displacement, getCode() + field, field_bytes);
    patch(field, displacement - unresolved);
  }
  return fields;
}

Result<MachineCode> assemble(std::string_view what,
                             const std::function<MachineCode(std::span<uint8_t>)>& emit) {
  constexpr size_t first_bytes = size_t{16} << 10;
  constexpr size_t max_bytes = size_t{64} << 20;
  for (size_t bytes = first_bytes;; bytes *= 4) {
    try {
      const std::unique_ptr<uint8_t[]> buffer(new uint8_t[bytes]);
      return emit({buffer.get(), bytes});
    } catch (const Xbyak::Error& error) {
      const bool too_small = static_cast<int>(error) == Xbyak::ERR_CODE_IS_TOO_BIG;
      if (too_small && bytes < max_bytes) continue;
      return Error{
          ErrorCode::internal,
          fmt::format("the assembler refused an instruction of {}: {}", what, error.what())};
    } catch (const std::bad_alloc&) {
      return Error{ErrorCode::out_of_memory, "no memory to generate code in"};
    }
  }
}

}  // namespace castor::jit
