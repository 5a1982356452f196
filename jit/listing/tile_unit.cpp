// SPDX-License-Identifier: Apache-2.0
#include "jit/listing/tile_unit.hpp"

#include <algorithm>

namespace castor::jit {

namespace {

constexpr size_t rows_in_config = 48;  // offset of the bytes that hold them (ldtilecfg)

/// Offset in the code of the configuration that an instruction loads, if it is a constant.
std::optional<size_t> constant_config(const DecodedInstruction& decoded) {
  if (decoded.instruction.mnemonic != ZYDIS_MNEMONIC_LDTILECFG) return std::nullopt;
  const auto target = rip_relative_target(decoded, decoded.operands[0]);
  return target ? std::optional(static_cast<size_t>(*target)) : std::nullopt;
}

int rows_of(const ZydisDecodedOperand& tile, std::span<const int, 8> rows) {
  return rows[static_cast<size_t>(ZydisRegisterGetId(tile.reg.value))];
}

/// Measured: 16.0 of 16 rows, 14.7 of 14, 13.3 of 12, 9.25 of 1 to 7.
double product_cycles(int rows) { return std::max<double>(9.25, rows); }

/// Measured: 8.1 of 16 rows, 7.3 of 14, 4.2 of 8, so each row is a load of 512 bits.
LoadCycles load_cycles(int rows) { return {.all = rows / 3.0, .wide = rows / 2.0}; }

/// Measured of any number of rows.
constexpr double store_cycles = 15.6;

}  // namespace

std::array<int, 8> tile_rows_of(std::span<const DecodedInstruction> program,
                                const MachineCode& code) {
  std::array<int, 8> rows;
  rows.fill(16);
  for (const DecodedInstruction& decoded : program) {
    const auto config = constant_config(decoded);
    if (!config) continue;
    for (size_t tile = 0; tile < rows.size(); ++tile) {
      rows[tile] = std::to_integer<int>(code.bytes[*config + rows_in_config + tile]);
    }
    break;
  }
  return rows;
}

std::optional<TileCycles> tile_cycles(const DecodedInstruction& decoded,
                                      std::span<const int, 8> rows) {
  switch (decoded.instruction.mnemonic) {
    case ZYDIS_MNEMONIC_TDPBSSD:
    case ZYDIS_MNEMONIC_TDPBSUD:
    case ZYDIS_MNEMONIC_TDPBUSD:
    case ZYDIS_MNEMONIC_TDPBUUD:
      return TileCycles{.product = product_cycles(rows_of(decoded.operands[0], rows))};
    case ZYDIS_MNEMONIC_TILELOADD:
    case ZYDIS_MNEMONIC_TILELOADDT1:
      return TileCycles{.load = load_cycles(rows_of(decoded.operands[0], rows))};
    case ZYDIS_MNEMONIC_TILESTORED: return TileCycles{.store = store_cycles};
    case ZYDIS_MNEMONIC_TILEZERO: return TileCycles{};
    default: return std::nullopt;
  }
}

}  // namespace castor::jit
