// SPDX-License-Identifier: Apache-2.0
// The port model: a lower bound of the cycles that one iteration of a loop takes.
#include "jit/listing/port_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "jit/listing/fusion.hpp"
#include "jit/listing/port_balance.hpp"
#include "jit/listing/port_form.hpp"
#include "jit/listing/tile_unit.hpp"

namespace castor::jit {
namespace {

constexpr int narrow_bits = 256;  // wider accesses are `vector_512`

template <class Value>
Value value_of(const ByAccess<Value>& access, const ZydisDecodedOperand& memory,
               const OperandForm& form, bool of_mask) {
  if (of_mask && !form.vector) return access.mask;
  if (!form.vector) return access.gpr;
  return memory.size > narrow_bits ? access.vector_512 : access.vector;
}

LoadCycles load_cycles(const PortCore& core, const PortRow& row, const DecodedInstruction& decoded,
                       const ZydisDecodedOperand& memory, const OperandForm& form) {
  if (row.gathers) {
    const ZydisDecodedOperand& gathered = decoded.operands[0];
    return {.all = core.gather_element * gathered.size / std::max<int>(memory.size, 1)};
  }
  return value_of(core.load, memory, form, form.mask_destination);
}

/// Sums what the instructions of a loop ask for, and bounds the time from below.
class Demand {
 public:
  Demand(const PortCore& core, const std::array<int, 8>& tile_rows)
      : core_(core), tile_rows_(tile_rows) {}
  Status add(const DecodedInstruction& decoded);
  PortCycles cycles() const;

 private:
  void add_tiles(const TileCycles& cycles);
  void add_memory(const PortRow& row, const DecodedInstruction& decoded, const OperandForm& form);
  void add_uses(const CostRow::Form& form);
  void add_ports(Cost cost, const CostRow::Form& form);
  void add_front_end(Cost cost, size_t micro_operations, const DecodedInstruction& decoded);
  void bound_pipes(PortCycles& result) const;

  const PortCore& core_;
  const std::array<int, 8> tile_rows_;
  bool has_tiles_ = false;
  double tile_unit_ = 0;
  LoadCycles load_;
  double store_ = 0;
  double macro_operations_ = 0;
  double jumps_taken_ = 0;
  const DecodedInstruction* before_ = nullptr;  // the instruction before
  PortWork work_;
  std::map<Cost, double>
      own_work_;  // cycles by class, where ports are not known, over their number
};

Status Demand::add(const DecodedInstruction& decoded) {
  if (const auto cycles = tile_cycles(decoded, tile_rows_)) {
    add_tiles(*cycles);
    add_front_end(Cost::none, 0, decoded);
    return {};
  }
  const Weighed weighed = weigh(decoded);
  const CostRow::Form& cost = cost_row(core_, weighed.cost).form(weighed.form.wide);
  if (!cost.is_measured) return no_cost(decoded, weighed.form);
  add_memory(*weighed.row, decoded, weighed.form);
  add_ports(weighed.cost, cost);
  add_front_end(weighed.cost, cost.micro_operations, decoded);
  return {};
}

void Demand::add_tiles(const TileCycles& cycles) {
  has_tiles_ = true;
  load_ += cycles.load;
  store_ += cycles.store;
  tile_unit_ += cycles.product;
}

void Demand::add_memory(const PortRow& row, const DecodedInstruction& decoded,
                        const OperandForm& form) {
  for (const ZydisDecodedOperand& operand : decoded.all_operands()) {
    if (!touches_memory(decoded, operand)) continue;
    if (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) {
      load_ += load_cycles(core_, row, decoded, operand, form);
    }
    if (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
      store_ += value_of(core_.store, operand, form, form.mask_source);
      if (form.vector) add_uses(core_.stored_vector);
      if (form.mask_source && !form.vector) add_uses(core_.stored_mask);
    }
  }
}

void Demand::add_uses(const CostRow::Form& form) {
  for (const PortUse& use : form.all()) work_[use.ports] += use.cycles;
}

void Demand::add_ports(Cost cost, const CostRow::Form& form) {
  add_uses(form);
  for (const PortUse& use : form.all()) {
    if (use.at_most > 0) own_work_[cost] += use.cycles / use.at_most;
  }
}

/// Instructions that fuse are one macro-operation.
void Demand::add_front_end(Cost cost, size_t micro_operations, const DecodedInstruction& decoded) {
  const bool conditional = decoded.instruction.meta.category == ZYDIS_CATEGORY_COND_BR;
  const bool fuses =
      before_ != nullptr && ((conditional && fuses_with_jump(*before_)) ||
                             (core_.fuses_moves && fuses_with_move(*before_, decoded)));
  if (!fuses) macro_operations_ += static_cast<double>(std::max<size_t>(micro_operations, 1));
  before_ = &decoded;

  const auto target = branch_target(decoded);
  const bool backward = target && *target <= decoded.offset;
  if (backward || (cost == Cost::jump && !conditional)) jumps_taken_ += 1;
}

void Demand::bound_pipes(PortCycles& result) const {
  const DensestPorts densest = densest_ports(work_);
  result.pipes = densest.cycles;
  result.busiest = names_of(core_, densest.ports);
  const std::vector<double> loads = balanced_loads(work_, core_.ports.size());
  for (size_t i = 0; i < loads.size(); ++i) result.ports.push_back({core_.ports[i], loads[i]});
  if (has_tiles_) result.ports.push_back({"TMUL", tile_unit_});
  if (tile_unit_ > result.pipes) {
    result.pipes = tile_unit_;
    result.busiest = "TMUL";
  }
  for (const auto& [cost, time] : own_work_) {
    if (time <= result.pipes + 1e-9) continue;
    result.pipes = time;
    result.busiest = name_of(cost);
  }
}

PortCycles Demand::cycles() const {
  PortCycles result;
  result.core = core_.name;
  result.has_tiles = has_tiles_;
  result.has_foreign_tiles = has_tiles_ && !core_.has_tiles;
  result.load = load_.bound();
  result.store = store_;
  result.front_end = std::max(macro_operations_ / core_.width, jumps_taken_ * core_.jump_taken);
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
  Demand demand(port_core(model), tile_rows_of(program, code));
  const std::vector<DecodedInstruction> iteration = iteration_of(program, loop);
  for (const DecodedInstruction& decoded : iteration) {
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
