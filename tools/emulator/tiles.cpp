// SPDX-License-Identifier: Apache-2.0
#include "tools/emulator/tiles.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <optional>

#include "tools/emulator/permission.hpp"
#include "tools/machine/tiles.hpp"

namespace castor::emulator {

namespace {

using machine::Numbers;
using machine::tile_count;
using Tile = machine::Tile<Numbers>;

/// The state that AMX adds to a thread. No configuration is 64 zeros.
struct TileState {
  TileConfigBytes config = {};
  std::array<Tile, tile_count> tiles = {};
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
  for (int row = 0; row < tile.shape.rows; ++row) {
    const uint64_t address = base + static_cast<uint64_t>(row) * step;
    if (address % line + static_cast<uint64_t>(tile.shape.row_bytes) > line) add(split_rows);
    visit(static_cast<size_t>(row), pointer_to(address));
  }
}

bool load_config(const uint8_t* from) {
  TileState loaded;
  std::memcpy(loaded.config.data(), from, loaded.config.size());
  const auto shapes = machine::tile_shapes(loaded.config);
  if (!shapes) return false;
  if (loaded.config[0] == 0) loaded.config = {};
  for (size_t t = 0; t < tile_count; ++t) loaded.tiles[t].shape = (*shapes)[t];
  state = loaded;
  return true;
}

Tile& tile_of(const ZydisDecodedOperand& operand) {
  return state.tiles[static_cast<size_t>(ZydisRegisterGetId(operand.reg.value))];
}

bool carry_out_product(const machine::Row& row, const ZydisDecodedOperand* operands) {
  Tile& sum = tile_of(operands[0]);
  const Tile& a = tile_of(operands[1]);
  const Tile& b = tile_of(operands[2]);
  const bool are_distinct = &sum != &a && &sum != &b && &a != &b;
  if (!are_distinct || !machine::are_factors(sum.shape, a.shape, b.shape)) return false;
  add(products);
  Numbers numbers;
  machine::multiply_tiles(numbers, row, sum, a, b);
  return true;
}

bool carry_out_load(const SignalFrame& frame, const ZydisDecodedInstruction& instruction,
                    const ZydisDecodedOperand* operands) {
  Tile& tile = tile_of(operands[0]);
  if (!tile.is_configured()) return false;
  add(loads);
  tile.rows = {};
  for_each_row(tile, base_of(frame, instruction, operands[1]), step_of(frame, operands[1]),
               [&](size_t row, const uint8_t* from) {
                 std::memcpy(tile.rows[row].data(), from,
                             static_cast<size_t>(tile.shape.row_bytes));
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
                 std::memcpy(to, tile.rows[row].data(), static_cast<size_t>(tile.shape.row_bytes));
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
      tile.rows = {};
      return tile.is_configured();
    }
    case ZYDIS_MNEMONIC_TILELOADD:
    case ZYDIS_MNEMONIC_TILELOADDT1: return carry_out_load(frame, instruction, operands);
    case ZYDIS_MNEMONIC_TILESTORED: return carry_out_store(frame, instruction, operands);
    default: break;
  }
  const machine::Row* row = machine::row_of(instruction, operands);
  const bool is_product = row != nullptr && row->effect == machine::Effect::tile_product;
  return is_product && carry_out_product(*row, operands);
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
