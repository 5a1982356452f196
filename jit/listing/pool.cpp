// SPDX-License-Identifier: Apache-2.0
// Finding the constants of the pool and printing their values.
#include "jit/listing/pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace castor::jit {
namespace {

constexpr uint32_t bytes_a_line = 32;

uint64_t element_at(const PoolConstant& constant, uint32_t index, const MachineCode& code) {
  uint64_t value = 0;
  const size_t begin = code.pool_begin + constant.offset + index * constant.element_bytes;
  for (uint32_t i = 0; i < constant.element_bytes; ++i) {
    value |= std::to_integer<uint64_t>(code.bytes[begin + i]) << (8 * i);
  }
  return value;
}

uint32_t element_count(const PoolConstant& constant) {
  return constant.bytes / constant.element_bytes;
}

bool is_uniform(const PoolConstant& constant, const MachineCode& code) {
  for (uint32_t i = 1; i < element_count(constant); ++i) {
    if (element_at(constant, i, code) != element_at(constant, 0, code)) return false;
  }
  return true;
}

std::string hex(const PoolConstant& constant, uint32_t index, const MachineCode& code) {
  return fmt::format("0x{:0{}x}", element_at(constant, index, code), 2 * constant.element_bytes);
}

std::string hex_run(const PoolConstant& constant, uint32_t first, uint32_t count,
                    const MachineCode& code) {
  std::string text;
  for (uint32_t i = first; i < first + count; ++i) {
    if (i != first) text += ' ';
    text += hex(constant, i, code);
  }
  return text;
}

std::string float_value(const PoolConstant& constant, const MachineCode& code) {
  const uint64_t bits = element_at(constant, 0, code);
  if (constant.element_bytes == 8) return fmt::format(" = {}", std::bit_cast<double>(bits));
  return fmt::format(" = {}", std::bit_cast<float>(static_cast<uint32_t>(bits)));
}

/// Zydis gives integer logic one element as wide as the vector; a listing shows 32-bit numbers
/// then.
uint32_t element_bytes_of(const ZydisDecodedOperand& operand) {
  const uint32_t bytes = operand.element_size / 8u;
  const bool usable = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
  if (usable) return bytes;
  return operand.size % 32 == 0 ? 4 : 1;
}

/// What the instructions read, without overlaps, and the gaps between.
std::vector<PoolConstant> cover(std::vector<PoolConstant> read, uint32_t pool_bytes) {
  std::ranges::stable_sort(read, {}, &PoolConstant::offset);
  std::vector<PoolConstant> all;
  uint32_t done = 0;
  const auto fill_gap = [&](uint32_t until) {
    if (until <= done) return;
    const bool is_whole = done % 4 == 0 && until % 4 == 0;
    all.push_back({.offset = done, .bytes = until - done, .element_bytes = is_whole ? 4u : 1u});
  };
  for (const PoolConstant& constant : read) {
    if (constant.offset < done) continue;
    fill_gap(constant.offset);
    all.push_back(constant);
    done = constant.end();
  }
  fill_gap(pool_bytes);
  return all;
}

std::string constant_text(const PoolConstant& constant, const MachineCode& code) {
  if (is_uniform(constant, code)) {
    return fmt::format("  pool+{:#06x}  {}\n", constant.offset, value_text(constant, code));
  }
  std::string text;
  const uint32_t elements_a_line = bytes_a_line / constant.element_bytes;
  for (uint32_t i = 0; i < element_count(constant); i += elements_a_line) {
    const uint32_t count = std::min(elements_a_line, element_count(constant) - i);
    std::string line = fmt::format("  pool+{:#06x} ", constant.offset + i * constant.element_bytes);
    for (uint32_t k = i; k < i + count; ++k) line += " " + hex(constant, k, code).substr(2);
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::optional<PoolConstant> pool_constant(const DecodedInstruction& decoded,
                                          const MachineCode& code) {
  for (const ZydisDecodedOperand& operand : decoded.written_operands()) {
    const auto target = rip_relative_target(decoded, operand);
    if (!target || *target < code.pool_begin || !touches_memory(decoded, operand)) continue;
    const uint32_t element_bytes = element_bytes_of(operand);
    const bool is_float = operand.element_type == ZYDIS_ELEMENT_TYPE_FLOAT32 ||
                          operand.element_type == ZYDIS_ELEMENT_TYPE_FLOAT64;
    return PoolConstant{static_cast<uint32_t>(*target) - code.pool_begin, operand.size / 8u,
                        element_bytes, is_float};
  }
  return std::nullopt;
}

std::string value_text(const PoolConstant& constant, const MachineCode& code) {
  const uint32_t count = element_count(constant);
  if (!is_uniform(constant, code)) {
    const uint32_t shown = std::min(count, 4u);
    return hex_run(constant, 0, shown, code) + (shown < count ? " .." : "");
  }
  return hex(constant, 0, code) + (constant.is_float ? float_value(constant, code) : "") +
         (count > 1 ? fmt::format(" (x{})", count) : "");
}

std::string pool_text(std::span<const DecodedInstruction> program, const MachineCode& code) {
  std::vector<PoolConstant> read;
  for (const DecodedInstruction& decoded : program) {
    if (const auto constant = pool_constant(decoded, code)) read.push_back(*constant);
  }
  const auto pool_bytes = static_cast<uint32_t>(code.bytes.size()) - code.pool_begin;
  std::string text;
  for (const PoolConstant& constant : cover(std::move(read), pool_bytes)) {
    text += constant_text(constant, code);
  }
  return text;
}

}  // namespace castor::jit
