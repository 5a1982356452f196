// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/code_map.hpp"

namespace castor::jit {

namespace {

bool keeps_low_bits(Narrowing narrowing) {
  return narrowing == Narrowing::truncate || narrowing == Narrowing::fits_signed ||
         narrowing == Narrowing::fits_unsigned;
}

uint8_t entry_of(const ByteTable& table, uint8_t index) {
  if (table.index_bits == 4 && (index & 0x80) != 0) return 0;
  return static_cast<uint8_t>(table.entries[index & ((1u << table.index_bits) - 1)]);
}

/// The byte that an instruction makes, of those that the ones before it made of a code.
std::optional<uint8_t> evaluated(const LaneProgram& program, const LaneInst& inst, uint8_t code,
                                 const std::vector<uint8_t>& bytes) {
  if (inst.type != LaneType::i8 || inst.mask != no_lane) return std::nullopt;
  const auto byte = [&](LaneId id) -> int { return bytes[static_cast<size_t>(id)]; };
  const auto low_byte = [](int64_t value) { return static_cast<uint8_t>(value); };
  switch (inst.op) {
    case LaneOp::load: return code;
    case LaneOp::constant: return low_byte(inst.imm);
    case LaneOp::add: return low_byte(byte(inst.a) + byte(inst.b));
    case LaneOp::sub: return low_byte(byte(inst.a) - byte(inst.b));
    case LaneOp::bit_and: return low_byte(byte(inst.a) & byte(inst.b));
    case LaneOp::bit_or: return low_byte(byte(inst.a) | byte(inst.b));
    case LaneOp::bit_xor: return low_byte(byte(inst.a) ^ byte(inst.b));
    case LaneOp::look_up:
      return entry_of(program.tables[static_cast<size_t>(inst.table)], low_byte(byte(inst.a)));
    case LaneOp::store:
      if (!keeps_low_bits(inst.narrowing) || inst.b != no_lane) return std::nullopt;
      return low_byte(byte(inst.a) & ((1 << bits_of(program.sinks[0].element)) - 1));
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<std::vector<uint8_t>> code_map(const LaneProgram& program) {
  if (program.sources.size() != 1 || program.sinks.size() != 1 || program.folds()) return {};
  const ElementType from = program.sources[0].element;
  if (!is_sub_byte(from) || !is_sub_byte(program.sinks[0].element)) return {};
  if (program.code.empty() || program.code.back().op != LaneOp::store) return {};
  std::vector<uint8_t> map;
  for (int code = 0; code < 1 << bits_of(from); ++code) {
    std::vector<uint8_t> bytes;
    for (const LaneInst& inst : program.code) {
      const auto byte = evaluated(program, inst, static_cast<uint8_t>(code), bytes);
      if (!byte) return {};
      bytes.push_back(*byte);
    }
    map.push_back(bytes.back());
  }
  return map;
}

bool moves_bits(const std::vector<uint8_t>& map) {
  for (size_t code = 0; code < map.size(); ++code) {
    uint8_t sum = 0;
    for (size_t bit = 1; bit < map.size(); bit *= 2) {
      if ((code & bit) != 0) sum ^= map[bit];
    }
    if (sum != map[code]) return false;
  }
  return true;
}

}  // namespace castor::jit
