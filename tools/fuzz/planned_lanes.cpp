// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/planned_lanes.hpp"

#include <array>
#include <mutex>
#include <span>

#include "ir/builder.hpp"
#include "ir/rewrite/canonicalize.hpp"
#include "jit/emit/nest_emitter.hpp"

namespace castor::fuzz {

namespace {

size_t lane_cell_count() { return group_table()[static_cast<size_t>(CellGroup::lanes)].size; }

/// What one tier's plans reach.
struct Reach {
  std::once_flag planned;
  ReachingConversions conversions;
  std::vector<bool> cells;
};

void plan_conversion(const ConversionCell& conversion, const jit::Target& target, Reach& reach) {
  FunctionBuilder builder("f");
  const ValueId x = builder.parameter("x", {conversion.from, {Dim::any()}});
  builder.result(builder.convert(x, conversion.to, conversion.options));
  const Result<FunctionPtr> function = builder.finish();
  if (!function) return;
  for (const jit::Nest& nest : jit::plan_nests(*canonicalize(*function), target)) {
    const jit::NestForm dense = jit::NestForm::dense(nest.operands());
    for (size_t number : planned_lanes(nest, dense, target)) {
      if (!reach.conversions[number]) reach.conversions[number] = conversion;
      reach.cells[number] = true;
    }
  }
}

void plan_all(jit::Tier tier, Reach& reach) {
  jit::Target target;
  target.tier = tier;
  reach.conversions.resize(lane_cell_count());
  reach.cells.resize(lane_cell_count());
  for (const ConversionCell& conversion : conversion_cells()) {
    plan_conversion(conversion, target, reach);
  }
  for (ElementType layout : older_layouts) {
    for (const ElementInfo& other : element_table) {
      plan_conversion({layout, other.type, {}}, target, reach);
      plan_conversion({other.type, layout, {}}, target, reach);
    }
  }
}

const Reach& reach_of(jit::Tier tier) {
  static std::array<Reach, jit::tier_count> all;
  Reach& reach = all[static_cast<size_t>(tier)];
  std::call_once(reach.planned, [&] { plan_all(tier, reach); });
  return reach;
}

}  // namespace

std::vector<size_t> planned_lanes(const jit::Nest& nest, const jit::NestForm& form,
                                  const jit::Target& target) {
  std::vector<size_t> numbers;
  const int lanes = jit::plan_chunks(nest, form, target).lanes;
  for (const jit::LaneInst& inst : nest.program.code) {
    if (inst.op != jit::LaneOp::load && inst.op != jit::LaneOp::store) continue;
    const bool of_sink = inst.op == jit::LaneOp::store;
    const auto& operands = of_sink ? nest.program.sinks : nest.program.sources;
    const ElementType element = operands[static_cast<size_t>(inst.imm)].element;
    const auto number = find_lane_cell({of_sink, bits_of(element), jit::bits_of(inst.type), lanes});
    if (number) numbers.push_back(*number);
  }
  return numbers;
}

const ReachingConversions& reaching_conversions(jit::Tier tier) {
  return reach_of(tier).conversions;
}

const std::vector<bool>& reachable_lanes(jit::Tier tier) { return reach_of(tier).cells; }

}  // namespace castor::fuzz
