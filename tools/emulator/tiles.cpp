// SPDX-License-Identifier: Apache-2.0
#include "tools/emulator/tiles.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>

#include "tools/emulator/permission.hpp"

namespace castor::emulator {

namespace {

constexpr int tile_count = 8;
constexpr int max_rows = 16;
constexpr int max_row_bytes = 64;

/// One tile register, with as many rows and bytes as are configured; all else is zero.
struct Tile {
  int rows = 0;
  int row_bytes = 0;
  std::array<std::array<uint8_t, max_row_bytes>, max_rows> data = {};

  bool is_configured() const { return rows > 0; }
};

/// The state that AMX adds to a thread. No configuration is 64 zeros.
struct TileState {
  TileConfigBytes config = {};
  std::array<Tile, tile_count> tiles;
};

thread_local TileState state;

constinit std::atomic<uint64_t> products{0};
constinit std::atomic<uint64_t> loads{0};
constinit std::atomic<uint64_t> stores{0};
constinit std::atomic<uint64_t> split_rows{0};

void add(std::atomic<uint64_t>& counter, uint64_t count = 1) {
  counter.fetch_add(count, std::memory_order_relaxed);
}

// ---- memory operands

uint64_t value_of(const SignalFrame& frame, ZydisRegister reg) {
  return reg == ZYDIS_REGISTER_NONE ? 0 : frame.general(ZydisRegisterGetId(reg));
}

/// The index register, scaled, is the step from row to row.
uint64_t step_of(const SignalFrame& frame, const ZydisDecodedOperand& memory) {
  return value_of(frame, memory.mem.index) * memory.mem.scale;
}

uint64_t base_of(const SignalFrame& frame, const ZydisDecodedInstruction& instruction,
                 const ZydisDecodedOperand& memory) {
  const auto displacement = static_cast<uint64_t>(memory.mem.disp.value);
  if (memory.mem.base == ZYDIS_REGISTER_RIP) {
    return reinterpret_cast<uint64_t>(frame.instruction()) + instruction.length + displacement;
  }
  return value_of(frame, memory.mem.base) + displacement;
}

uint8_t* pointer_to(uint64_t address) { return reinterpret_cast<uint8_t*>(address); }

/// Calls visit(row, address) for the configured rows of a tile.
template <class Visit>
void for_each_row(const Tile& tile, uint64_t base, uint64_t step, Visit visit) {
  constexpr uint64_t line = 64;
  for (int row = 0; row < tile.rows; ++row) {
    const uint64_t address = base + static_cast<uint64_t>(row) * step;
    if (address % line + static_cast<uint64_t>(tile.row_bytes) > line) add(split_rows);
    visit(static_cast<size_t>(row), pointer_to(address));
  }
}

// ---- configuration (Intel SDM, volume 2, LDTILECFG)

bool is_valid(const TileConfigBytes& config) {
  if (config[0] == 0) return true;
  if (config[0] != 1) return false;
  const bool has_reserved =
      std::any_of(config.begin() + 2, config.begin() + 16,
                  [](uint8_t byte) { return byte != 0; }) ||
      std::any_of(config.begin() + 56, config.end(), [](uint8_t byte) { return byte != 0; });
  for (size_t t = 0; t < tile_count; ++t) {
    const int row_bytes = config[16 + 2 * t] | config[17 + 2 * t] << 8;
    const int rows = config[48 + t];
    if (rows > max_rows || row_bytes > max_row_bytes) return false;
    if ((rows == 0) != (row_bytes == 0)) return false;
  }
  const bool has_more_tiles =
      std::any_of(config.begin() + 32, config.begin() + 48, [](uint8_t byte) { return byte != 0; });
  return !has_reserved && !has_more_tiles;
}

bool load_config(const uint8_t* from) {
  TileState loaded;
  std::memcpy(loaded.config.data(), from, loaded.config.size());
  if (!is_valid(loaded.config)) return false;
  if (loaded.config[0] == 0) loaded.config = {};
  for (size_t t = 0; t < tile_count; ++t) {
    loaded.tiles[t].row_bytes = loaded.config[16 + 2 * t];
    loaded.tiles[t].rows = loaded.config[48 + t];
  }
  state = loaded;
  return true;
}

// ---- products

template <class A, class B>
void multiply(Tile& sum, const Tile& a, const Tile& b) {
  for (size_t m = 0; m < static_cast<size_t>(sum.rows); ++m) {
    for (size_t n = 0; n < static_cast<size_t>(sum.row_bytes) / 4; ++n) {
      uint32_t value = 0;
      std::memcpy(&value, &sum.data[m][4 * n], sizeof value);
      for (size_t k = 0; k < static_cast<size_t>(a.row_bytes) / 4; ++k) {
        for (size_t i = 0; i < 4; ++i) {
          const int product =
              static_cast<A>(a.data[m][4 * k + i]) * static_cast<B>(b.data[k][4 * n + i]);
          value += static_cast<uint32_t>(product);
        }
      }
      std::memcpy(&sum.data[m][4 * n], &value, sizeof value);
    }
  }
}

/// Whether three tiles are a sum and its factors; all others raise #UD.
bool are_factors(const Tile& sum, const Tile& a, const Tile& b) {
  const bool are_configured = sum.is_configured() && a.is_configured() && b.is_configured();
  const bool are_distinct = &sum != &a && &sum != &b && &a != &b;
  return are_configured && are_distinct && a.rows == sum.rows && a.row_bytes % 4 == 0 &&
         a.row_bytes / 4 == b.rows && b.row_bytes == sum.row_bytes && sum.row_bytes % 4 == 0;
}

Tile& tile_of(const ZydisDecodedOperand& operand) {
  return state.tiles[static_cast<size_t>(ZydisRegisterGetId(operand.reg.value))];
}

bool carry_out_product(ZydisMnemonic mnemonic, const ZydisDecodedOperand* operands) {
  Tile& sum = tile_of(operands[0]);
  const Tile& a = tile_of(operands[1]);
  const Tile& b = tile_of(operands[2]);
  if (!are_factors(sum, a, b)) return false;
  add(products);
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_TDPBSSD: multiply<int8_t, int8_t>(sum, a, b); return true;
    case ZYDIS_MNEMONIC_TDPBSUD: multiply<int8_t, uint8_t>(sum, a, b); return true;
    case ZYDIS_MNEMONIC_TDPBUSD: multiply<uint8_t, int8_t>(sum, a, b); return true;
    default: multiply<uint8_t, uint8_t>(sum, a, b); return true;
  }
}

bool carry_out_load(const SignalFrame& frame, const ZydisDecodedInstruction& instruction,
                    const ZydisDecodedOperand* operands) {
  Tile& tile = tile_of(operands[0]);
  if (!tile.is_configured()) return false;
  add(loads);
  tile.data = {};
  for_each_row(tile, base_of(frame, instruction, operands[1]), step_of(frame, operands[1]),
               [&](size_t row, const uint8_t* from) {
                 std::memcpy(tile.data[row].data(), from, static_cast<size_t>(tile.row_bytes));
               });
  return true;
}

bool carry_out_store(const SignalFrame& frame, const ZydisDecodedInstruction& instruction,
                     const ZydisDecodedOperand* operands) {
  const Tile& tile = tile_of(operands[1]);
  if (!tile.is_configured()) return false;
  add(stores);
  for_each_row(tile, base_of(frame, instruction, operands[0]), step_of(frame, operands[0]),
               [&](size_t row, uint8_t* to) {
                 std::memcpy(to, tile.data[row].data(), static_cast<size_t>(tile.row_bytes));
               });
  return true;
}

/// A CPU that has tiles configures them itself: what it then has counts.
void take_config_of_cpu(const SignalFrame& frame) {
  const std::optional<TileConfigBytes> config = frame.tile_config();
  if (config && *config != state.config) load_config(config->data());
}

bool carry_out_on_data(const SignalFrame& frame, const ZydisDecodedInstruction& instruction,
                       const ZydisDecodedOperand* operands) {
  if (!is_tile_data_permitted()) return false;
  take_config_of_cpu(frame);
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_TILEZERO: {
      Tile& tile = tile_of(operands[0]);
      tile.data = {};
      return tile.is_configured();
    }
    case ZYDIS_MNEMONIC_TILELOADD:
    case ZYDIS_MNEMONIC_TILELOADDT1: return carry_out_load(frame, instruction, operands);
    case ZYDIS_MNEMONIC_TILESTORED: return carry_out_store(frame, instruction, operands);
    case ZYDIS_MNEMONIC_TDPBSSD:
    case ZYDIS_MNEMONIC_TDPBSUD:
    case ZYDIS_MNEMONIC_TDPBUSD:
    case ZYDIS_MNEMONIC_TDPBUUD: return carry_out_product(instruction.mnemonic, operands);
    default: return false;
  }
}

}  // namespace

TileCounts tile_counts() {
  return {.products = products.load(),
          .loads = loads.load(),
          .stores = stores.load(),
          .split_rows = split_rows.load()};
}

bool carry_out_tile_instruction(const SignalFrame& frame,
                                const ZydisDecodedInstruction& instruction,
                                const ZydisDecodedOperand* operands) {
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_LDTILECFG:
      return load_config(
          pointer_to(base_of(frame, instruction, operands[0]) + step_of(frame, operands[0])));
    case ZYDIS_MNEMONIC_STTILECFG:
      std::memcpy(
          pointer_to(base_of(frame, instruction, operands[0]) + step_of(frame, operands[0])),
          state.config.data(), state.config.size());
      return true;
    case ZYDIS_MNEMONIC_TILERELEASE: state = {}; return true;
    default: return carry_out_on_data(frame, instruction, operands);
  }
}

}  // namespace castor::emulator
