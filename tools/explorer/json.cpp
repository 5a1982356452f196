// SPDX-License-Identifier: Apache-2.0
// The model as JSON.
#include <castor/castor.hpp>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "jit/conv/dot_product.hpp"
#include "jit/listing/port_core.hpp"
#include "tools/explorer/page.hpp"

namespace castor::tools::explorer {

namespace {

using nlohmann::json;

// ---- code

/// A hundredth of a cycle is as much as anybody reads.
double rounded(double cycles) { return std::round(cycles * 100) / 100; }

json cycles_json(const jit::PortCycles& cycles) {
  json ports = json::array();
  for (const jit::PortLoad& each : cycles.ports) {
    ports.push_back({each.port, rounded(each.cycles)});
  }
  return {{"ports", ports},
          {"bound", rounded(cycles.bound())},
          {"limit", cycles.limited_by()},
          {"load", rounded(cycles.load)},
          {"store", rounded(cycles.store)},
          {"pipes", rounded(cycles.pipes)},
          {"busiest", cycles.busiest},
          {"frontEnd", rounded(cycles.front_end)},
          {"hasForeignTiles", cycles.has_foreign_tiles}};
}

json loop_json(const Loop& loop) {
  const jit::CodeLoop& noted = loop.noted;
  json made = {{"name", noted.name},
               {"first", loop.first},
               {"end", loop.end},
               {"bytes", noted.end - noted.begin},
               {"elements", noted.elements},
               {"read", noted.load_bytes},
               {"written", noted.store_bytes}};
  if (loop.cycles) {
    made["cycles"] = cycles_json(*loop.cycles);
  } else {
    made["refusal"] = loop.refusal;
  }
  return made;
}

json code_json(const Code& code) {
  json made = {{"name", code.name},
               {"instructionBytes", code.instruction_bytes},
               {"constantBytes", code.constant_bytes},
               {"spills", code.spills},
               {"lanes", json::array()},
               {"origins", json::array()},
               {"instructions", json::array()},
               {"loops", json::array()}};
  for (const jit::CodeLane& lane : code.lanes) {
    made["lanes"].push_back({lane.text, lane.operation, lane.is_constant});
  }
  for (const Origin& origin : code.origins) {
    made["origins"].push_back(
        {static_cast<int>(origin.section), origin.number, origin.lane, origin.operation});
  }
  for (const Instruction& each : code.instructions) {
    made["instructions"].push_back(
        {each.offset, each.bytes, each.text, each.comment, each.label, each.origin});
  }
  for (const Loop& loop : code.loops) made["loops"].push_back(loop_json(loop));
  return made;
}

// ---- convolutions

json axis_json(const ConvolutionAxis& axis) {
  return {{"input", axis.input},   {"kernel", axis.kernel},     {"stride", axis.stride},
          {"output", axis.output}, {"dilation", axis.dilation}, {"padBegin", axis.pad_begin},
          {"padEnd", axis.pad_end}};
}

json geometry_json(const ConvolutionGeometry& geometry) {
  json axes = json::array();
  for (const ConvolutionAxis& axis : geometry.axes) axes.push_back(axis_json(axis));
  return {{"layout", geometry.layout == ConvolutionLayout::nchw ? "NCHW" : "NHWC"},
          {"batch", geometry.batch},
          {"groups", geometry.groups},
          {"channels", geometry.channels},
          {"outChannels", geometry.out_channels},
          {"axes", axes}};
}

json source_json(const jit::DensePlan& plan) {
  json made = {{"name", source_name(plan)}, {"bytes", plan.source_bytes()}};
  if (const jit::PackedPlanes* planes = plan.planes()) {
    made["kind"] = "planes";
    made["layout"] = names_of(planes->layout)[static_cast<size_t>(planes->layout)];
    made["hasAlignedRows"] = planes->has_aligned_rows;
    made["pitch"] = planes->pitch;
    made["planeSize"] = planes->plane_size;
    made["planes"] = plan.slices * plan.k_groups * planes->stride_phases();
    made["phases"] = planes->stride_phases();
    made["isPackedByKernel"] = planes->packed_by != jit::PackedBy::packer;
    return made;
  }
  const jit::InputRows& rows = plan.input_rows();
  const auto* copied = std::get_if<jit::CopiedRows>(&plan.source);
  made["kind"] = copied != nullptr ? "copies" : "input";
  made["rowBytes"] = rows.row_bytes;
  made["columnBytes"] = rows.column_bytes;
  if (copied != nullptr) made["rows"] = copied->rows;
  return made;
}

json plan_json(const jit::DensePlan& plan) {
  const jit::DenseTile& tile = plan.tile;
  json k_step_weights = json::array();
  const size_t drawn = std::min<size_t>(plan.k_step_weights.size(), 3);
  for (const jit::KStepWeights& each : std::span(plan.k_step_weights).first(drawn)) {
    k_step_weights.push_back(each);
  }
  return {{"kind", "dense"},
          {"engine", names_of(plan.engine)[static_cast<size_t>(plan.engine)]},
          {"lanes", plan.lanes},
          {"rows", axis_json(plan.rows)},
          {"columns", axis_json(plan.columns)},
          {"source", source_json(plan)},
          {"block", {{"rows", plan.block.rows}, {"columns", plan.block.columns}}},
          {"hasDeadLanes", plan.planes() != nullptr && plan.has_dead_lanes()},
          {"channelTiles", plan.channel_tiles},
          {"kSteps", plan.weight_k_groups()},
          {"kStepWeights", k_step_weights},
          {"tile",
           {{"vectorised", names_of(tile.vectorised)[static_cast<size_t>(tile.vectorised)]},
            {"channels", tile.channels},
            {"pixelRows", tile.pixel_rows},
            {"columns", tile.columns},
            {"mr", tile.rows()},
            {"nr", tile.vectors_of(plan.lanes)},
            {"store", names_of(tile.store)[static_cast<size_t>(tile.store)]},
            {"peeledKSteps", tile.peeled_k_steps},
            {"hasTileRegisters", tile.has_tiles()}}}};
}

/// Which bytes of a row of the filter a lane of packed weights has: the first, and a bit for each
/// of four.
json packed_json(const jit::PackedWeights& weights) {
  int mask = 0;
  for (int i = 0; i < 4; ++i) mask |= static_cast<int>(weights.mask >> (8 * i) & 1) << i;
  return {weights.first, mask};
}

/// What both kinds of sliding plans have.
template <class Plan>
json sliding_json(const Plan& plan) {
  const auto& spec = plan.spec;
  json row_weights = json::array();
  for (const jit::PackedWeights& each : plan.row_weights) row_weights.push_back(packed_json(each));
  return {{"panels", plan.panels()},
          {"panelSize", panel_size(spec)},
          {"filterRows", spec.rows},
          {"rowWeights", row_weights},
          {"weightStep", plan.weight_step},
          {"weightParts", spec.weight_parts()},
          {"zeroPoints", spec.has_pairs() ? 0 : spec.zero_points()},
          {"engine", names_of(spec.engine)[static_cast<size_t>(spec.engine)]},
          {"lanes", plan.lanes},
          {"rows", axis_json(plan.rows)},
          {"columns", axis_json(plan.columns)},
          {"rangeOutputs", plan.range_outputs},
          {"rowPhases", plan.row_phases},
          {"rowsOfVector", plan.rows_of_vector},
          {"codes", std::ssize(spec.ranges)}};
}

json plan_json(const jit::DepthwisePlan& plan) {
  json made = sliding_json(plan);
  made["kind"] = "depthwise";
  made["kGroups"] = plan.spec.k_groups;
  made["ranges"] = std::ssize(plan.ranges);
  for (int64_t part = 0; part <= plan.column_parts(); ++part) {
    made["columnParts"].push_back(plan.column_at(part));
  }
  return made;
}

json plan_json(const jit::GroupedNhwcPlan& plan) {
  json made = sliding_json(plan);
  made["kind"] = "grouped_nhwc";
  made["kGroups"] = plan.spec.k_groups;
  made["outputs"] = plan.spec.outputs;
  made["vectors"] = std::ssize(plan.vectors);
  made["ranges"] = std::ssize(plan.ranges);
  return made;
}

json plan_json(const jit::DotPlan& plan) {
  return {{"kind", "dot"},
          {"engine", names_of(plan.tile.engine)[static_cast<size_t>(plan.tile.engine)]},
          {"tilePixels", plan.tile.pixels},
          {"tileChannels", jit::DotTile::channels},
          {"depth", plan.depth()},
          {"step", plan.step},
          {"steps", plan.steps()}};
}

json plan_json(const jit::WeightRowsPlan& plan) {
  return {{"kind", "weight_rows"},
          {"tilePixels", plan.tile_pixels()},
          {"tileChannels", plan.product.tile.pixels()},
          {"depth", plan.depth()},
          {"step", plan.step_bytes()},
          {"steps", plan.steps()}};
}

json candidate_json(const CandidateCost& candidate) {
  json parts = json::array();
  for (const CostPart& part : candidate.parts) {
    parts.push_back({part.name, part.meaning, rounded(part.count), rounded(part.cycles)});
  }
  return {{"name", candidate.name},
          {"cycles", rounded(candidate.cycles)},
          {"appliesEpilogue", candidate.applies_epilogue},
          {"parts", parts}};
}

json convolution_json(const Convolution& convolution) {
  jit::ConvolutionPlan kernels_plan = convolution.plan;
  if (auto* dense = std::get_if<jit::DensePlan>(&kernels_plan)) {
    dense->tile = kernel_tile(dense->tile, convolution.candidates.front().applies_epilogue);
  }
  json candidates = json::array();
  for (const CandidateCost& each : convolution.candidates) {
    candidates.push_back(candidate_json(each));
  }
  return {{"candidates", candidates},
          {"geometry", geometry_json(convolution.problem.geometry)},
          {"plan", std::visit([&](const auto& plan) { return plan_json(plan); }, kernels_plan)}};
}

// ---- functions

json nest_json(const Nest& nest) {
  json made = {{"lines", nest.lines}, {"operation", nest.operation}, {"codes", json::array()}};
  for (const Code& code : nest.codes) made["codes"].push_back(code_json(code));
  if (nest.convolution) made["convolution"] = convolution_json(*nest.convolution);
  return made;
}

json tier_json(const TierView& tier) {
  json made = {
      {"name", name_of(tier.target.tier)},
      {"core", name_of(tier.target.core)},
      {"model", port_core(jit::port_model_of(tier.target.core, jit::host().identity)).name},
      {"refusal", tier.refusal},
      {"missing", tier.missing},
      {"vectorBits", tier.target.vector_bits()},
      {"nests", json::array()}};
  for (const Nest& nest : tier.nests) made["nests"].push_back(nest_json(nest));
  return made;
}

json function_json(const FunctionView& function) {
  json made = {{"name", function.name},
               {"written", json::array()},
               {"lines", json::array()},
               {"tiers", json::array()}};
  for (const OperationLine& line : function.lines) {
    made["lines"].push_back({line.text, line.operation});
  }
  for (const WrittenLine& line : function.written) {
    made["written"].push_back({line.text, line.operation, line.became});
  }
  for (const TierView& tier : function.tiers) made["tiers"].push_back(tier_json(tier));
  return made;
}

}  // namespace

std::string to_json(const Model& model) {
  json made = {{"file", model.file},
               {"version", version()},
               {"selected", name_of(model.selected)},
               {"sections", json::array()},
               {"functions", json::array()}};
  for (const jit::SectionInfo& row : jit::code_sections()) {
    made["sections"].push_back({row.name, name_of(row.kind), row.meaning});
  }
  for (const FunctionView& function : model.functions) {
    made["functions"].push_back(function_json(function));
  }
  // Bytes of the text that are no UTF-8 become U+FFFD.
  return made.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace castor::tools::explorer
