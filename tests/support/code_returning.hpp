// SPDX-License-Identifier: Apache-2.0
// Machine code to publish, which returns a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "jit/code.hpp"

namespace castor::test {

/// Instructions without constants.
inline jit::MachineCode machine_code(std::vector<std::byte> instructions) {
  jit::MachineCode code;
  code.bytes = std::move(instructions);
  code.instruction_bytes = static_cast<uint32_t>(code.bytes.size());
  code.pool_begin = code.instruction_bytes;
  return code;
}

/// Machine code `mov eax, value; ret`, and bytes made from `value` up to `size` (6 or more).
inline jit::MachineCode code_returning(uint32_t value, size_t size = 6) {
  std::vector<std::byte> code(size);
  for (size_t i = 0; i < size; ++i) code[i] = static_cast<std::byte>(value * 31 + i);
  code[0] = std::byte{0xb8};
  std::memcpy(code.data() + 1, &value, sizeof value);
  code[5] = std::byte{0xc3};
  return machine_code(std::move(code));
}

/// Machine code `mov eax, [rip + distance]; ret`, which returns a constant of the pool: the last
/// four of its `pool_bytes` (a multiple of 4), all of which repeat the value.
inline jit::MachineCode code_reading(uint32_t value, size_t pool_bytes = 4) {
  constexpr uint32_t pool_begin = 64;
  constexpr uint32_t after_the_load = 6;
  const auto distance = static_cast<uint32_t>(pool_begin + pool_bytes - 4 - after_the_load);
  jit::MachineCode code = machine_code(std::vector<std::byte>(pool_begin, std::byte{0xcc}));
  code.bytes[0] = std::byte{0x8b};
  code.bytes[1] = std::byte{0x05};
  std::memcpy(&code.bytes[2], &distance, sizeof distance);
  code.bytes[after_the_load] = std::byte{0xc3};
  code.instruction_bytes = after_the_load + 1;
  code.pool_begin = pool_begin;
  code.pool_references = {2};
  code.bytes.resize(pool_begin + pool_bytes);
  for (size_t at = pool_begin; at < code.bytes.size(); at += 4) {
    std::memcpy(&code.bytes[at], &value, sizeof value);
  }
  return code;
}

/// Calls such code.
inline uint32_t call(const std::byte* code) {
  return reinterpret_cast<uint32_t (*)()>(reinterpret_cast<uintptr_t>(code))();
}

}  // namespace castor::test
