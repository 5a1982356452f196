// SPDX-License-Identifier: Apache-2.0
// The port model: a lower bound of the cycles that one iteration of a loop takes.
#include "jit/listing/port_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "jit/listing/tile_unit.hpp"

namespace castor::jit {
namespace {

constexpr double macro_operations_a_cycle = 6;
constexpr double gpr_loads_a_cycle = 3;
constexpr double gpr_stores_a_cycle = 2;
constexpr int pass_bits = 256;  // a vector's bits that loads, stores and pipes handle at a time

/// What the operands of one instruction say of its cost.
struct Form {
  bool vector = false;  // has a vector register
  bool wide = false;    // has a zmm register
  bool gpr = false;     // has a general register, other than in an address
  bool memory = false;
  bool mask_destination = false;
  bool under_mask = false;
  bool mask_source = false;
};

Form form_of(const DecodedInstruction& decoded) {
  Form form;
  form.under_mask = decoded.instruction.avx.mask.mode == ZYDIS_MASK_MODE_MERGING ||
                    decoded.instruction.avx.mask.mode == ZYDIS_MASK_MODE_ZEROING;
  for (const ZydisDecodedOperand& operand : decoded.written_operands()) {
    if (touches_memory(decoded, operand)) form.memory = true;
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
    switch (ZydisRegisterGetClass(operand.reg.value)) {
      case ZYDIS_REGCLASS_ZMM: form.wide = true; [[fallthrough]];
      case ZYDIS_REGCLASS_YMM:
      case ZYDIS_REGCLASS_XMM: form.vector = true; break;
      case ZYDIS_REGCLASS_MASK:
        (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? form.mask_destination
                                                           : form.mask_source) = true;
        break;
      default: form.gpr = true;
    }
  }
  return form;
}

/// x op x without a mask, in registers: the rename stage delivers zero.
bool is_zeroing(const PortRow& row, const DecodedInstruction& decoded, const Form& form) {
  if (!row.zeroes_itself || form.under_mask || form.memory) return false;
  const auto operands = decoded.written_operands();
  const auto& x = operands[operands.size() - 2];
  const auto& y = operands.back();
  return x.type == ZYDIS_OPERAND_TYPE_REGISTER && y.type == ZYDIS_OPERAND_TYPE_REGISTER &&
         x.reg.value == y.reg.value;
}

Cost cost_of(const PortRow& row, const DecodedInstruction& decoded, const Form& form) {
  const auto either = [&row](Cost special) { return special == Cost::same ? row.cost : special; };
  if (is_zeroing(row, decoded, form)) return Cost::none;
  if (form.memory && row.with_memory != Cost::same) return row.with_memory;
  if (form.gpr && row.with_gpr != Cost::same) return row.with_gpr;
  if (form.mask_destination) return either(row.to_mask);
  if (form.under_mask && !form.memory) return either(row.under_mask);
  return row.cost;
}

double load_cycles(const PortRow& row, const DecodedInstruction& decoded,
                   const ZydisDecodedOperand& memory, const Form& form) {
  if (row.load_cycles_element > 0) {
    const ZydisDecodedOperand& gathered = decoded.operands[0];
    return row.load_cycles_element * gathered.size / std::max<int>(memory.size, 1);
  }
  if (form.mask_destination && !form.vector) return 1;  // kmovq k, m64 was measured at 0.99
  if (!form.vector) return 1 / gpr_loads_a_cycle;
  return memory.size > pass_bits ? 1 : 0.5;
}

double store_cycles(const ZydisDecodedOperand& memory, const Form& form) {
  if (form.mask_source && !form.vector) return 1;
  if (!form.vector) return 1 / gpr_stores_a_cycle;
  return memory.size > pass_bits ? 2 : 1;
}

/// Sums what the instructions of a loop ask for, and bounds the time from below.
class Demand {
 public:
  Demand(PortModel model, const std::array<int, 8>& tile_rows)
      : model_(model), tile_rows_(tile_rows) {}
  Status add(const DecodedInstruction& decoded);
  PortCycles cycles() const;

 private:
  void add_tiles(const TileCycles& cycles);
  void add_memory(const PortRow& row, const DecodedInstruction& decoded, const Form& form);
  void add_pipes(const CostRow& cost, bool wide);
  void add_front_end(const CostRow& cost, const DecodedInstruction& decoded);
  void bound_pipes(PortCycles& result) const;

  const PortModel model_;
  const std::array<int, 8> tile_rows_;
  bool has_tiles_ = false;
  double tile_unit_ = 0;
  double load_ = 0;
  double store_ = 0;
  double macro_operations_ = 0;
  double jumps_taken_ = 0;
  bool fuses_with_jump_ = false;
  std::map<Pipes, double> work_;     // cycles by the set of pipes that can do the work
  std::map<Cost, double> own_work_;  // of families whose pipes are not known
};

Status Demand::add(const DecodedInstruction& decoded) {
  if (const auto cycles = tile_cycles(decoded, tile_rows_)) {
    add_tiles(*cycles);
    add_front_end(cost_row(model_, Cost::none), decoded);
    return {};
  }
  const std::string_view mnemonic = decoded.mnemonic();
  const PortRow* row = port_row(mnemonic);
  const Form form = form_of(decoded);
  const Cost cost = row == nullptr ? Cost::unmeasured : cost_of(*row, decoded, form);
  if (cost == Cost::unmeasured) {
    return Error{ErrorCode::internal,
                 fmt::format("the port model has no cost for {}{} at offset {:#x}", mnemonic,
                             form.memory ? " with a memory operand" : "", decoded.offset)};
  }
  add_memory(*row, decoded, form);
  add_pipes(cost_row(model_, cost), form.wide);
  add_front_end(cost_row(model_, cost), decoded);
  return {};
}

void Demand::add_tiles(const TileCycles& cycles) {
  has_tiles_ = true;
  load_ += cycles.load;
  store_ += cycles.store;
  tile_unit_ += cycles.product;
}

void Demand::add_memory(const PortRow& row, const DecodedInstruction& decoded, const Form& form) {
  for (const ZydisDecodedOperand& operand : decoded.all_operands()) {
    if (!touches_memory(decoded, operand)) continue;
    if (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) {
      load_ += load_cycles(row, decoded, operand, form);
    }
    if (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
      store_ += store_cycles(operand, form);
    }
  }
}

void Demand::add_pipes(const CostRow& cost, bool wide) {
  for (const PipeUse& use : {cost.first, cost.second}) {
    if (use.pipes != 0) work_[use.pipes] += use.cycles(wide);
  }
  if (cost.pipes_at_most > 0) own_work_[cost.cost] += cost.first.cycles(wide);
}

/// A flag-setting instruction and the conditional jump after it are one macro-operation (Software
/// Optimization Guide, branch fusion).
void Demand::add_front_end(const CostRow& cost, const DecodedInstruction& decoded) {
  constexpr std::array fusing = {ZYDIS_MNEMONIC_CMP, ZYDIS_MNEMONIC_TEST, ZYDIS_MNEMONIC_ADD,
                                 ZYDIS_MNEMONIC_SUB, ZYDIS_MNEMONIC_INC,  ZYDIS_MNEMONIC_DEC,
                                 ZYDIS_MNEMONIC_AND, ZYDIS_MNEMONIC_OR,   ZYDIS_MNEMONIC_XOR};
  const bool conditional = decoded.instruction.meta.category == ZYDIS_CATEGORY_COND_BR;
  if (!(conditional && fuses_with_jump_)) macro_operations_ += cost.second.pipes != 0 ? 2 : 1;
  fuses_with_jump_ = std::ranges::find(fusing, decoded.instruction.mnemonic) != fusing.end();

  const auto target = branch_target(decoded);
  const bool backward = target && *target <= decoded.offset;
  if (backward || (cost.cost == Cost::jump && !conditional)) jumps_taken_ += 1;
}

/// Work that any pipe of a set can do may be divided among them in fractions (instructions of
/// many iterations are in flight). The least time in which everything gets done is then, by the
/// max-flow min-cut theorem, the maximum over all sets S of pipes of
///     (work that can run only within S) / |S| .
/// Example: 6 cycles of shuffles (FP1 FP2) and 10 of additions (any) take max(6/2, 16/4) = 4.
void Demand::bound_pipes(PortCycles& result) const {
  Pipes busiest = 0;
  for (Pipes set = 1; set < Pipes{1} << pipe::count; ++set) {
    double work = 0;
    for (const auto& [pipes, cycles] : work_) work += (pipes & ~set) == 0 ? cycles : 0;
    const double time = work / std::popcount(set);
    if (time <= result.pipes + 1e-9) continue;
    result.pipes = time;
    busiest = set;
  }
  result.busiest = names_of(busiest);
  if (tile_unit_ > result.pipes) {
    result.pipes = tile_unit_;
    result.busiest = "TMUL";
  }
  for (const auto& [cost, cycles] : own_work_) {
    const double time = cycles / cost_row(model_, cost).pipes_at_most;
    if (time <= result.pipes + 1e-9) continue;
    result.pipes = time;
    result.busiest = cost_row(model_, cost).name;
  }
}

PortCycles Demand::cycles() const {
  PortCycles result;
  result.has_tiles = has_tiles_;
  result.load = load_;
  result.store = store_;
  result.front_end = std::max(macro_operations_ / macro_operations_a_cycle, jumps_taken_);
  bound_pipes(result);
  return result;
}

bool begins_at(std::span<const DecodedInstruction> program, uint32_t offset) {
  return std::ranges::binary_search(program, offset, {}, &DecodedInstruction::offset);
}

Status check_extent(std::span<const DecodedInstruction> program, const CodeLoop& loop) {
  const uint32_t code_end = program.empty() ? 0 : program.back().end();
  const bool end_fits = loop.end == code_end || begins_at(program, loop.end);
  if (loop.begin < loop.end && begins_at(program, loop.begin) && end_fits) return {};
  return Error{ErrorCode::internal,
               fmt::format("the loop '{}' from {:#x} to {:#x} does not consist of whole "
                           "instructions of the {} bytes of code",
                           loop.name, loop.begin, loop.end, code_end)};
}

}  // namespace

double PortCycles::bound() const { return std::max({load, store, pipes, front_end}); }

std::string_view PortCycles::limited_by() const {
  const double limit = bound();
  if (pipes == limit) return "pipes";
  if (store == limit) return "store";
  if (load == limit) return "load";
  return "front end";
}

Result<PortCycles> port_cycles(std::span<const DecodedInstruction> program, const MachineCode& code,
                               const CodeLoop& loop, PortModel model) {
  if (Status status = check_extent(program, loop); !status) return status.error();
  Demand demand(model, tile_rows_of(program, code));
  for (const DecodedInstruction& decoded : program) {
    if (decoded.offset < loop.begin || decoded.offset >= loop.end) continue;
    if (Status status = demand.add(decoded); !status) return status.error();
  }
  return demand.cycles();
}

Result<PortCycles> port_cycles(const MachineCode& code, const CodeLoop& loop, PortModel model) {
  auto program = decode(code);
  if (!program) return program.error();
  return port_cycles(*program, code, loop, model);
}

}  // namespace castor::jit
