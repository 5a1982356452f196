// SPDX-License-Identifier: Apache-2.0
#include "tools/explorer/model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/rewrite/canonicalize.hpp"
#include "ir/text/text.hpp"
#include "jit/dump/dump.hpp"
#include "jit/listing/origins.hpp"
#include "tools/explorer/made_kernels.hpp"
#include "tools/explorer/written.hpp"

namespace castor::tools::explorer {

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// ---- code

Index lane_of(const jit::MachineCode& code, const jit::CodeNote& note) {
  if (note.text.empty()) return none;
  const auto found = std::ranges::find(code.lanes, note.text, &jit::CodeLane::text);
  return found == code.lanes.end() ? none : static_cast<Index>(found - code.lanes.begin());
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

/// The first instruction at the offset or after it.
Index instruction_at(const std::vector<Instruction>& all, uint32_t offset) {
  return static_cast<Index>(std::ranges::lower_bound(all, offset, {}, &Instruction::offset) -
                            all.begin());
}

Loop explore_loop(const jit::MachineCode& code, const jit::CodeLoop& noted,
                  const std::vector<Instruction>& instructions, jit::PortModel model) {
  Loop loop = {.noted = noted,
               .first = instruction_at(instructions, noted.begin),
               .end = instruction_at(instructions, noted.end),
               .cycles = {},
               .refusal = {}};
  const Result<jit::PortCycles> cycles = port_cycles(code, noted, model);
  if (cycles) {
    loop.cycles = *cycles;
  } else {
    loop.refusal = cycles.error().message;
  }
  return loop;
}

// ---- convolutions

CandidateCost cost_of_candidate(const jit::Candidate& candidate, const jit::Target& target) {
  CandidateCost cost = {name_of(candidate), candidate.cycles, candidate.applies_epilogue, {}};
  const jit::EventCycles& cycles = costs_on(target).cycles;
  for (const jit::CostEventInfo& row : jit::cost_event_table) {
    const double count = candidate.cost[row.event];
    const double part = count * cycles[static_cast<size_t>(row.event)];
    if (part > 0) cost.parts.push_back({row.name, row.meaning, count, part});
  }
  std::ranges::stable_sort(cost.parts, std::ranges::greater(), &CostPart::cycles);
  return cost;
}

Convolution explore_convolution(const jit::DumpedConvolution& dumped, const jit::Target& target) {
  Convolution convolution = {{}, dumped.problem, dumped.chosen().plan};
  for (const jit::Candidate& candidate : dumped.candidates) {
    convolution.candidates.push_back(cost_of_candidate(candidate, target));
  }
  return convolution;
}

// ---- functions

/// The port model whose cycles the target's loops are said to take.
jit::PortModel model_of(const jit::Target& target) {
  return jit::port_model_of(target.core, jit::host().identity);
}

Result<Nest> explore_nest(const jit::DumpedNest& dumped, const jit::Target& target) {
  Nest nest = {.lines = lines_of(dumped.text),
               .operation = dumped.operation ? static_cast<Index>(*dumped.operation) : none,
               .codes = {},
               .convolution = {}};
  for (const jit::DumpedCode& each : dumped.codes) {
    Result<Code> code = explore(each.name, each.code, model_of(target));
    if (!code) return code.error();
    nest.codes.push_back(std::move(code).value());
  }
  if (dumped.convolution) nest.convolution = explore_convolution(*dumped.convolution, target);
  return nest;
}

/// Adds the kernels that binding makes beside those of dumps. Where it fails, the tier says why.
Status add_made_kernels(const FunctionPtr& function, std::span<const jit::DumpedNest> dumped,
                        TierView& tier) {
  const auto kernels = made_kernels(function, tier.target, dumped);
  if (!kernels) {
    if (kernels.error().code == ErrorCode::internal) return kernels.error();
    tier.missing = kernels.error().message;
    return {};
  }
  for (const MadeKernel& each : *kernels) {
    Result<Code> code = explore(each.name, each.code, model_of(tier.target));
    if (!code) return code.error();
    tier.nests[each.nest].codes.push_back(std::move(code).value());
  }
  return {};
}

Result<TierView> explore_tier(const FunctionPtr& function, const jit::Target& target) {
  TierView tier = {.target = target, .nests = {}, .refusal = {}, .missing = {}};
  const auto dumped = jit::dump_nests(*function, target);
  if (!dumped) {
    if (dumped.error().code != ErrorCode::unsupported) return dumped.error();
    tier.refusal = dumped.error().message;
    return tier;
  }
  for (const jit::DumpedNest& each : *dumped) {
    Result<Nest> nest = explore_nest(each, target);
    if (!nest) return nest.error();
    tier.nests.push_back(std::move(nest).value());
  }
  if (Status status = add_made_kernels(function, *dumped, tier); !status) return status.error();
  return tier;
}

Result<FunctionView> explore_function(const FunctionPtr& function, jit::Core core,
                                      bool frame_pointers) {
  const FunctionPtr canonical = canonicalize(function);
  FunctionView view = {
      .name = function->name, .written = {}, .lines = operation_lines(*canonical), .tiers = {}};
  if (canonical != function) view.written = written_lines(*function, *canonical);
  for (const jit::TierInfo& row : jit::tier_table()) {
    jit::Target target;
    target.tier = row.tier;
    target.core = core;
    target.frame_pointers = frame_pointers;
    Result<TierView> tier = explore_tier(canonical, target);
    if (!tier) return tier.error();
    view.tiers.push_back(std::move(tier).value());
  }
  return view;
}

}  // namespace

std::vector<OperationLine> operation_lines(const Function& function) {
  std::vector<OperationLine> lines;
  size_t next = 0;
  for (std::string& text : lines_of(print(function))) {
    OperationLine line = {std::move(text), none};
    const bool is_next = next < function.operations.size() &&
                         line.text == "  " + print(function, function.operations[next]);
    if (is_next) line.operation = static_cast<Index>(next++);
    lines.push_back(std::move(line));
  }
  return lines;
}

Result<Code> explore(std::string name, const jit::MachineCode& code, jit::PortModel model) {
  const auto listed = disassemble(code);
  if (!listed) return listed.error();
  const auto origins = jit::origins(code);
  if (!origins) return origins.error();
  Code made = {.name = std::move(name),
               .lanes = code.lanes,
               .origins = {},
               .instructions = {},
               .loops = {},
               .instruction_bytes = code.instruction_bytes,
               .constant_bytes = code.bytes.size() - code.pool_begin,
               .spills = code.spills};
  for (const jit::CodeNote& note : code.notes) {
    made.origins.push_back({note.section, note.number, lane_of(code, note), note.operation});
  }
  for (size_t i = 0; i < listed->size(); ++i) {
    const jit::ListedInstruction& each = (*listed)[i];
    made.instructions.push_back(
        {.offset = each.offset,
         .bytes = hexadecimal(std::span(code.bytes).subspan(each.offset, each.length)),
         .text = each.text,
         .comment = each.comment,
         .label = each.label.value_or(none),
         .origin = static_cast<Index>((*origins)[i])});
  }
  for (const jit::CodeLoop& loop : code.loops) {
    made.loops.push_back(explore_loop(code, loop, made.instructions, model));
  }
  return made;
}

Result<Model> explore(std::string file, std::span<const FunctionPtr> functions, jit::Tier selected,
                      jit::Core core, bool frame_pointers) {
  Model model = {.file = std::move(file), .selected = selected, .functions = {}};
  for (const FunctionPtr& function : functions) {
    Result<FunctionView> view = explore_function(function, core, frame_pointers);
    if (!view) return view.error();
    model.functions.push_back(std::move(view).value());
  }
  return model;
}

}  // namespace castor::tools::explorer
