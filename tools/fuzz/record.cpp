// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/record.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "ir/rewrite/canonicalize.hpp"
#include "ir/types/excess_precision.hpp"
#include "ir/verify/infer.hpp"
#include "jit/emit/chunk_plan.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/compiled.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/conv/convolution_output.hpp"
#include "runtime/state_access.hpp"
#include "tools/fuzz/layout.hpp"
#include "tools/fuzz/planned_lanes.hpp"

namespace castor::fuzz {

namespace {

using detail::BoundState;
using detail::ConvolutionStep;
using detail::ElementwiseStep;
using detail::LaneStep;
using detail::OperandOrigin;
using detail::StepOperand;
using detail::StepProgram;

template <class T>
bool contains(const std::vector<T>& all, const T& wanted) {
  return std::find(all.begin(), all.end(), wanted) != all.end();
}

/// The address, modulo 64, of the byte in which the first element begins. Pages end and begin at
/// multiples of 64.
int misalignment(const Image& image) {
  const size_t in_image = image.front + first_byte_of(image.element, image.place.offset);
  const size_t address = in_image - (image.place.at_end ? image.bytes : image.hidden);
  return static_cast<int>(address & 63);
}

bool starts_unaligned(const Image& image) {
  return image.place.offset % aligned_elements(image.element) != 0;
}

/// Extents by ValueId, as the program binds them.
std::vector<Dims> extents_of(const Prepared& prepared, const Function& function) {
  std::vector<Dims> shapes;
  for (const Image& input : prepared.inputs) shapes.push_back(input.shape);
  const Result<BoundShapes> bound = bind_shapes(function, shapes);
  return bound ? bound->values : std::vector<Dims>(function.values.size());
}

/// The image of an operand in the caller's memory, else null.
const Image* image_of(const Prepared& prepared, const OperandOrigin& origin) {
  if (origin.kind == OperandOrigin::Kind::input) return &prepared.inputs[origin.index];
  if (origin.kind == OperandOrigin::Kind::output) return &prepared.outputs[origin.index];
  return nullptr;
}

/// Whether sub-byte operands begin inside a byte, so that other code runs.
bool runs_any_start(const Prepared& prepared, const LaneStep& step) {
  return step.any_start && std::ranges::any_of(step.operands, [&](const StepOperand& operand) {
           const Image* image = image_of(prepared, operand.origin);
           return image != nullptr && starts_unaligned(*image);
         });
}

bool reads_scratch(const LaneStep& step) {
  return std::ranges::any_of(step.operands, [](const StepOperand& operand) {
    return operand.origin.kind == OperandOrigin::Kind::scratch;
  });
}

void hit(Coverage& coverage, NestCell cell, size_t tier) {
  coverage.hit(CellGroup::nests, static_cast<size_t>(cell), tier);
}

void mark_plan(Coverage& coverage, size_t tier, const jit::Nest& nest, const ElementwiseStep& step,
               const jit::NestForm& form, const jit::Target& target) {
  const int lanes = jit::plan_chunks(nest, form, target).lanes;
  const auto remainder = static_cast<int>(step.space.extents[0] % lanes);
  if (const auto tail = find_tail({lanes, remainder})) coverage.hit(CellGroup::tails, *tail, tier);
  for (size_t number : planned_lanes(nest, form, target)) {
    coverage.hit(CellGroup::lanes, number, tier);
  }
  const jit::ChunkPlan plan = jit::plan_chunks(nest, form, target);
  if (plan.tables() != nullptr) {
    hit(coverage, plan.has_row_tables() ? NestCell::row_table : NestCell::block_table, tier);
  }
  if (plan.scales_codes() || plan.scales_nibbles()) {
    hit(coverage, form.has_periods() ? NestCell::scaled_blocks : NestCell::scaled_rows, tier);
  }
  if (plan.encodes_powers()) hit(coverage, NestCell::encoded_blocks, tier);
  if (plan.encodes_quotients()) hit(coverage, NestCell::divided_blocks, tier);
}

void mark_period(Coverage& coverage, size_t tier, jit::Access access, int64_t period) {
  if (access != jit::Access::periodic && access != jit::Access::repeated) return;
  const PeriodCell cell{access == jit::Access::repeated,
                        period <= longest_period ? static_cast<int>(period) : 0};
  coverage.hit(CellGroup::periods, number_of(cell), tier);
}

void mark_tiles(Coverage& coverage, size_t tier, const detail::TileLoops& walk) {
  for (const detail::BoundTileCopy& copy : walk.copies) {
    if (copy.kind == jit::TileCopyKind::packed) {
      hit(coverage, NestCell::packed_tiles, tier);
      continue;
    }
    const int64_t step = walk.steps[copy.operand][static_cast<size_t>(walk.axis)];
    const bool is_transposed = walk.axis > 0 && step == copy.element_bytes;
    hit(coverage, is_transposed ? NestCell::transposed_tiles : NestCell::strided_tiles, tier);
  }
  const bool more_columns = walk.extents[0] > walk.columns;
  const bool more_rows = walk.axis > 0 && walk.extents[walk.axis] > walk.rows;
  if (more_columns || more_rows) hit(coverage, NestCell::several_tiles, tier);
}

void mark_operand(Coverage& coverage, size_t tier, const Image& image, bool is_output) {
  coverage.hit(CellGroup::ranks, static_cast<size_t>(image.shape.rank()), tier);
  const AlignmentCell cell{is_output, misalignment(image)};
  coverage.hit(CellGroup::alignments, number_of(cell), tier);
}

EpilogueForm form_of(const jit::Nest& plan, const ConvolutionStep& step) {
  using enum EpilogueForm;
  switch (plan.fusion->kind) {
    case jit::Fusion::Kind::fused: break;
    case jit::Fusion::Kind::is_result: return is_result;
    case jit::Fusion::Kind::reshaped: return reshaped;
    case jit::Fusion::Kind::several_nests: return several_nests;
    case jit::Fusion::Kind::other_convolution: return other_convolution;
    case jit::Fusion::Kind::other_shape:
    case jit::Fusion::Kind::blocked:
    case jit::Fusion::Kind::reduced: return other_shape;
    case jit::Fusion::Kind::pooled:
    case jit::Fusion::Kind::tables:
    case jit::Fusion::Kind::partly_repeated: return partly_repeated;
    case jit::Fusion::Kind::split_bytes: return split_bytes;
  }
  if (step.epilogue == nullptr) return apart;
  constexpr std::array widths = {sub_byte, one_byte, two_bytes, four_bytes, eight_bytes};
  const int bits = bits_of(step.epilogue->operands.back().element);
  return widths[bits < 8 ? 0
                         : static_cast<size_t>(std::countr_zero(static_cast<unsigned>(bits)) - 2)];
}

void mark_epilogue(Coverage& coverage, size_t tier, const jit::Nest& plan,
                   const ConvolutionStep& step) {
  const ConvolutionGeometry& geometry = step.convolution->geometry;
  const EpilogueCell cell{kind_of(geometry.groups, geometry.channels), geometry.layout,
                          form_of(plan, step)};
  coverage.hit(CellGroup::epilogues, number_of(cell), tier);
}

/// Marks the cells of a bound kernel's steps.
class StepMarker {
 public:
  StepMarker(const Prepared& prepared, const detail::Compiled& compiled, Coverage& coverage,
             size_t tier)
      : prepared_(prepared), compiled_(compiled), coverage_(coverage), tier_(tier) {}

  /// The steps, and epilogues, that run code on lanes.
  size_t elementwise_nests() const { return count_; }

  void operator()(const detail::EmptyStep&) const {}
  void operator()(const detail::PaddingStep&) const {}

  void operator()(const ElementwiseStep& step) {
    ++count_;
    const bool any_start = runs_any_start(prepared_, step);
    if (any_start) hit(coverage_, NestCell::any_start, tier_);
    if (!step.periods.empty()) hit(coverage_, NestCell::copied_periods, tier_);
    if (step.space.form.baked_period > 0) hit(coverage_, NestCell::baked_period, tier_);
    if (step.tiles) mark_tiles(coverage_, tier_, *step.tiles);
    if (reads_scratch(step)) hit(coverage_, NestCell::through_scratch, tier_);
    if (step.space.form.rank <= max_drawn_rank) {
      coverage_.hit(CellGroup::loops, static_cast<size_t>(step.space.form.rank) - 1, tier_);
    }
    mark_operands(step, step.space);
    if (step.program == StepProgram::requantization) {
      hit(coverage_, NestCell::bound_slices, tier_);
    }
    if (step.program != StepProgram::planned) return;
    const jit::Nest& nest = compiled_.nests[step.nest];
    const jit::NestForm form =
        any_start ? jit::bitwise_form(step.space.form, nest.storage()) : step.space.form;
    mark_plan(coverage_, tier_, nest, step, form, compiled_.target);
  }

  void operator()(const detail::FoldStep&) const {}

  void operator()(const ConvolutionStep& step) {
    mark_epilogue(coverage_, tier_, compiled_.nests[step.nest], step);
    if (step.epilogue == nullptr) return;
    ++count_;
    mark_operands(*step.epilogue, step.epilogue->walk.space);
  }

  void operator()(const detail::RequantizeStep&) const {
    hit(coverage_, NestCell::called_slices, tier_);
  }

  void operator()(const detail::RowBlockStep& step) {
    for (const detail::Step& each : step.block->steps) std::visit(*this, each);
  }
  void operator()(const detail::TableStep& step) const {
    const bool is_of_call = std::holds_alternative<detail::CallTables>(step.tables);
    hit(coverage_, is_of_call ? NestCell::called_bytes : NestCell::bound_bytes, tier_);
  }

 private:
  void mark_operands(const LaneStep& step, const jit::IterationSpace& space) const {
    const detail::BoundCode& code = runs_any_start(prepared_, step) ? *step.any_start : step.main;
    // An epilogue that microkernels apply has no code of its own.
    const auto& access = step.main.code == nullptr ? space.form.access : code.access;
    for (size_t k = 0; k < step.operands.size(); ++k) {
      const auto& [origin, element, matches_space] = step.operands[k];
      const Image* image = image_of(prepared_, origin);
      const bool is_output = origin.kind == OperandOrigin::Kind::output;
      const AccessCell cell{is_output, access[k], bits_of(element) / 8};
      mark_period(coverage_, tier_, access[k], space.period);
      const bool is_read_or_result = is_output || image != nullptr;
      if (is_read_or_result) coverage_.hit(CellGroup::access, number_of(cell), tier_);
      if (image != nullptr) mark_operand(coverage_, tier_, *image, is_output);
    }
  }

  const Prepared& prepared_;
  const detail::Compiled& compiled_;
  Coverage& coverage_;
  const size_t tier_;
  size_t count_ = 0;
};

CallCell refused_cell(BadCall::Kind kind) {
  switch (kind) {
    case BadCall::Kind::none:
    case BadCall::Kind::extents:
    case BadCall::Kind::shape: break;
    case BadCall::Kind::bytes: return CallCell::refused_bytes;
    case BadCall::Kind::overlap: return CallCell::refused_overlap;
    case BadCall::Kind::null: return CallCell::refused_null;
    case BadCall::Kind::scale: return CallCell::refused_scale;
  }
  return CallCell::refused_shape;
}

/// Whether operand `index` repeats elements along the result.
bool repeats(const Dims& operand, const Dims& result) { return !(operand == result); }

bool is_composition(const Operation& operation) {
  return info(operation.op).family == OpFamily::composition;
}

/// The cell of the operation's way to broadcast, if it has one.
std::optional<ModeCell> mode_of(const Operation& operation, const std::vector<Dims>& extents) {
  const bool is_broadcast = operation.op == OpKind::broadcast;
  const bool has_no_mode = stands_alone(operation.op) || operation.op == OpKind::look_up;
  if ((operation.operands.size() < 2 && !is_broadcast) || has_no_mode) return {};
  if (is_composition(operation)) return {};
  const Result<BroadcastRule> rule = broadcast_rule(operation);
  if (!rule) return {};
  const OpKind op = is_broadcast || operation.op == OpKind::select ? operation.op : OpKind::add;
  ModeCell cell{.op = op, .mode = rule->mode};
  const Dims& result = extents[operation.results[0]];
  const Dims& first = extents[operation.operands[0]];
  const Dims& last = extents[operation.operands.back()];
  if (rule->mode == BroadcastMode::pdpd) {
    cell.with_axis = rule->axis != -1;
    cell.trailing_ones = cell.with_axis && rule->axis + last.rank() > result.rank();
  } else if (rule->mode == BroadcastMode::bidirectional) {
    cell.both_repeat = repeats(first, result) && operation.target->size() > 0 &&
                       !(to_shape(result) == *operation.target);
  } else if (rule->mode == BroadcastMode::numpy && !is_broadcast) {
    if (!repeats(first, result) && !repeats(last, result)) return {};
    cell.both_repeat = repeats(first, result) && repeats(last, result);
  }
  return cell;
}

}  // namespace

ProgramRecord::ProgramRecord(const Prepared& prepared)
    : prepared_(prepared), canonical_(canonicalize(prepared.function)) {
  find_operations(*canonical_, false);
  if (canonical_ != prepared.function) find_operations(*prepared.function, true);
}

void ProgramRecord::find_operations(const Function& function, bool only_alone) {
  const std::vector<Dims> extents = extents_of(prepared_, function);
  for (const Operation& operation : function.operations) {
    const ValueId result = operation.results[0];
    if (count_of(extents[result]) == 0) continue;
    const bool is_result =
        contains(function.results, result) || contains(function.results, operation.results.back());
    const bool is_alone =
        is_result && std::ranges::all_of(operation.operands, [&](ValueId operand) {
          return operand == no_value || contains(function.parameters, operand);
        });
    if (only_alone && !is_alone && !(is_result && is_composition(operation))) continue;
    find_operation(function, operation);
    const std::optional<ModeCell> mode = mode_of(operation, extents);
    if (!mode) continue;
    if (const auto number = find_mode(*mode)) operations_.push_back({CellGroup::modes, *number});
  }
}

void ProgramRecord::find_operation(const Function& function, const Operation& operation) {
  operations_.push_back({CellGroup::operations, static_cast<size_t>(operation.op)});
  if (operation.op == OpKind::convert) return find_conversion_of(function, operation);
  if (is_composition(operation)) return;
  const bool by_first = stands_alone(operation.op) || operation.op == OpKind::look_up;
  const ValueId typed = operation.operands.empty() ? operation.results[0]
                        : by_first                 ? operation.operands.front()
                                                   : operation.operands.back();
  const auto number = find_operation_type({operation.op, function.type_of(typed).element});
  if (number) operations_.push_back({CellGroup::operation_types, *number});
  if (operation.op != OpKind::requantize) return;
  operations_.push_back(
      {CellGroup::requantizations, number_of(requantize_cell_of(function, operation))});
  operations_.push_back({CellGroup::slices, number_of(slice_cell_of(function, operation))});
}

void ProgramRecord::find_conversion_of(const Function& function, const Operation& operation) {
  const ElementType from = function.type_of(operation.operands[0]).element;
  const ElementType to = function.type_of(operation.results[0]).element;
  const auto number =
      find_conversion(from, to, canonical_options(from, to, convert_options(operation)));
  if (number) operations_.push_back({CellGroup::conversions, *number});
  find_layout({from, false});
  find_layout({to, true});
}

void ProgramRecord::find_layout(const LayoutCell& cell) {
  const auto number = fuzz::find_layout(cell);
  if (number) operations_.push_back({CellGroup::layouts, *number});
}

void ProgramRecord::mark(Coverage& coverage, size_t tier, const CallTrace& trace) const {
  mark_calls(coverage, tier, trace);
  if (!trace.bound || trace.refused_in_place) return;
  for (const Cell& cell : operations_) coverage.hit(cell, tier);
  mark_steps(coverage, tier, *trace.bound);
  if (!allows_excess_precision(*canonical_)) return;
  const std::vector<ElementType> carried = carried_types(*canonical_);
  for (size_t id = 0; id < carried.size(); ++id) {
    const bool is_wide = carried[id] != canonical_->values[id].type.element;
    if (is_wide) hit(coverage, NestCell::excess_precision, tier);
  }
}

void ProgramRecord::mark_steps(Coverage& coverage, size_t tier, const BoundKernel& kernel) const {
  const BoundState& bound = detail::StateAccess::of(kernel);
  StepMarker marker(prepared_, *bound.kernel->compiled, coverage, tier);
  for (const detail::Step& step : bound.steps) std::visit(marker, step);
  constexpr std::array cells = {NestCell::one, NestCell::two, NestCell::three,
                                NestCell::four_and_more};
  const size_t count = marker.elementwise_nests();
  if (count > 0) hit(coverage, cells[std::min(count, cells.size()) - 1], tier);
}

void ProgramRecord::mark_calls(Coverage& coverage, size_t tier, const CallTrace& trace) const {
  for (size_t i = 0; i < prepared_.outputs.size(); ++i) {
    const bool is_empty = count_of(prepared_.outputs[i].shape) == 0;
    if (is_empty) coverage.hit(CallCell::no_elements, tier);
    const bool is_in_place = prepared_.is_in_place(i) && !trace.refused_in_place;
    if (!is_empty && is_in_place) coverage.hit(CallCell::in_place, tier);
    if (!is_empty && prepared_.is_interleaved_behind(i)) {
      coverage.hit(CallCell::interleaved_outputs, tier);
    }
  }
  if (can_spoil(prepared_)) coverage.hit(refused_cell(prepared_.program.bad_call.kind), tier);
  if (trace.refused_extents) coverage.hit(CallCell::refused_extents, tier);
  if (trace.refused_in_place) coverage.hit(CallCell::refused_in_place, tier);
  if (trace.found_function) coverage.hit(CallCell::repeated_function, tier);
  if (trace.found_code) coverage.hit(CallCell::repeated_code, tier);
  if (trace.emitted_code) coverage.hit(CallCell::new_code, tier);
  if (prepared_.program.streams) coverage.hit(CallCell::streaming, tier);
}

}  // namespace castor::fuzz
