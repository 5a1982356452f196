// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/record.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "ir/rewrite/canonicalize.hpp"
#include "ir/types/excess_precision.hpp"
#include "ir/verify/infer.hpp"
#include "jit/emit/chunk_plan.hpp"
#include "runtime/conv/epilogue.hpp"
#include "runtime/requantize/requantization.hpp"
#include "runtime/state.hpp"
#include "tools/fuzz/layout.hpp"
#include "tools/fuzz/planned_lanes.hpp"

namespace castor::fuzz {

namespace {

using detail::BoundNest;
using detail::BoundState;
using detail::OperandOrigin;

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
bool runs_any_start(const Prepared& prepared, const BoundNest& nest) {
  return nest.any_start.code &&
         std::ranges::any_of(nest.operands, [&](const OperandOrigin& origin) {
           const Image* image = image_of(prepared, origin);
           return image != nullptr && starts_unaligned(*image);
         });
}

bool reads_scratch(const BoundNest& nest) {
  return std::ranges::any_of(nest.operands, [](const OperandOrigin& origin) {
    return origin.kind == OperandOrigin::Kind::scratch;
  });
}

/// What a bound nest was planned as. Copies for reshapes were not planned with the function.
class Plans {
 public:
  explicit Plans(const BoundState& bound) : nests_(bound.kernel->compiled->nests) {}

  /// The next bound nest's plan; null for a copy, and for a requantization, whose lanes are not
  /// planned.
  const jit::Nest* next(const BoundNest& bound) {
    if (next_ == nests_.size()) return nullptr;
    const jit::Nest& nest = nests_[next_];
    if (nest.requantization) {
      if (is_requantization(nest, bound)) ++next_;
      return nullptr;
    }
    bool is_planned = bound.elements.size() == nest.operands();
    for (size_t k = 0; is_planned && k < nest.operands(); ++k) {
      is_planned = bound.elements[k] == nest.element(k);
    }
    if (is_planned || bound.elements.empty()) ++next_;
    return is_planned ? &nest : nullptr;
  }

 private:
  /// Not a copy of a parameter that is not dense. f32 to f32 is a nest of its own.
  static bool is_requantization(const jit::Nest& nest, const BoundNest& bound) {
    return bound.elements.empty() || bound.requantization || bound.tables || bound.keeps ||
           nest.operands() == bound.elements.size();
  }

  const std::vector<jit::Nest>& nests_;
  size_t next_ = 0;
};

void hit(Coverage& coverage, NestCell cell, size_t tier) {
  coverage.hit(CellGroup::nests, static_cast<size_t>(cell), tier);
}

void mark_plan(Coverage& coverage, size_t tier, const jit::Nest& nest, const BoundNest& bound,
               const jit::NestForm& form, const jit::Target& target) {
  const int lanes = jit::plan_chunks(nest, form, target).lanes;
  const auto remainder = static_cast<int>(bound.space.extents[0] % lanes);
  if (const auto tail = find_tail({lanes, remainder})) coverage.hit(CellGroup::tails, *tail, tier);
  for (size_t number : planned_lanes(nest, form, target)) {
    coverage.hit(CellGroup::lanes, number, tier);
  }
  if (jit::plan_chunks(nest, form, target).table_operand >= 0) {
    hit(coverage, NestCell::row_table, tier);
  }
}

void mark_period(Coverage& coverage, size_t tier, jit::Access access, int64_t period) {
  if (access != jit::Access::periodic && access != jit::Access::repeated) return;
  const PeriodCell cell{access == jit::Access::repeated,
                        period <= longest_period ? static_cast<int>(period) : 0};
  coverage.hit(CellGroup::periods, number_of(cell), tier);
}

void mark_tiles(Coverage& coverage, size_t tier, const detail::TiledWalk& walk) {
  for (const detail::BoundTileCopy& copy : walk.copies) {
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

EpilogueForm form_of(const jit::Nest& plan, const BoundNest& nest) {
  using enum EpilogueForm;
  switch (plan.fusion->kind) {
    case jit::Fusion::Kind::fused: break;
    case jit::Fusion::Kind::is_result: return is_result;
    case jit::Fusion::Kind::reshaped: return reshaped;
    case jit::Fusion::Kind::several_nests: return several_nests;
    case jit::Fusion::Kind::other_convolution: return other_convolution;
    case jit::Fusion::Kind::other_shape: return other_shape;
    case jit::Fusion::Kind::partly_repeated: return partly_repeated;
    case jit::Fusion::Kind::split_bytes: return split_bytes;
  }
  if (nest.epilogue == nullptr) return apart;
  constexpr std::array widths = {sub_byte, one_byte, two_bytes, four_bytes, eight_bytes};
  const int bits = bits_of(nest.epilogue->nest.elements.back());
  return widths[bits < 8 ? 0
                         : static_cast<size_t>(std::countr_zero(static_cast<unsigned>(bits)) - 2)];
}

void mark_epilogue(Coverage& coverage, size_t tier, const jit::Nest& plan, const BoundNest& nest) {
  const ConvolutionGeometry& geometry = nest.convolution->plan.geometry;
  const EpilogueCell cell{kind_of(geometry.groups, geometry.channels), geometry.layout,
                          form_of(plan, nest)};
  coverage.hit(CellGroup::epilogues, number_of(cell), tier);
}

void mark_requantization(Coverage& coverage, size_t tier, const BoundNest& nest) {
  const bool is_of_call = nest.requantization != nullptr;
  if (nest.tables) {
    hit(coverage, is_of_call ? NestCell::called_bytes : NestCell::bound_bytes, tier);
  } else if (is_of_call || nest.keeps) {
    hit(coverage, is_of_call ? NestCell::called_slices : NestCell::bound_slices, tier);
  }
}

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

/// The cell of the operation's way to broadcast, if it has one.
std::optional<ModeCell> mode_of(const Operation& operation, const std::vector<Dims>& extents) {
  const bool is_broadcast = operation.op == OpKind::broadcast;
  if ((operation.operands.size() < 2 && !is_broadcast) || stands_alone(operation.op)) return {};
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
    if (only_alone && !is_alone) continue;
    find_operation(function, operation);
    const std::optional<ModeCell> mode = mode_of(operation, extents);
    if (!mode) continue;
    if (const auto number = find_mode(*mode)) operations_.push_back({CellGroup::modes, *number});
  }
}

void ProgramRecord::find_operation(const Function& function, const Operation& operation) {
  operations_.push_back({CellGroup::operations, static_cast<size_t>(operation.op)});
  if (operation.op == OpKind::convert) return find_conversion_of(function, operation);
  const ValueId typed = operation.operands.empty()   ? operation.results[0]
                        : stands_alone(operation.op) ? operation.operands.front()
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
  mark_nests(coverage, tier, *trace.bound);
  if (!allows_excess_precision(*canonical_)) return;
  const std::vector<ElementType> carried = carried_types(*canonical_);
  for (size_t id = 0; id < carried.size(); ++id) {
    const bool is_wide = carried[id] != canonical_->values[id].type.element;
    if (is_wide) hit(coverage, NestCell::excess_precision, tier);
  }
}

void ProgramRecord::mark_nests(Coverage& coverage, size_t tier, const BoundKernel& kernel) const {
  const BoundState& bound = detail::StateAccess::of(kernel);
  const jit::Target& target = bound.kernel->compiled->target;
  Plans plans(bound);
  size_t count = 0;
  for (const BoundNest& nest : bound.nests) {
    const jit::Nest* plan = plans.next(nest);
    if (nest.convolution != nullptr && plan != nullptr) {
      mark_epilogue(coverage, tier, *plan, nest);
    }
    if (nest.epilogue != nullptr) {
      plans.next(nest.epilogue->nest);
      ++count;
      mark_operands(coverage, tier, nest.epilogue->nest);
    }
    mark_requantization(coverage, tier, nest);
    if (nest.main.code == nullptr) continue;
    ++count;
    mark_nest(coverage, tier, nest);
    const jit::NestForm form = runs_any_start(prepared_, nest) && plan != nullptr
                                   ? jit::bitwise_form(nest.space.form, plan->storage())
                                   : nest.space.form;
    if (plan != nullptr) mark_plan(coverage, tier, *plan, nest, form, target);
  }
  constexpr std::array cells = {NestCell::one, NestCell::two, NestCell::three,
                                NestCell::four_and_more};
  if (count > 0) hit(coverage, cells[std::min(count, cells.size()) - 1], tier);
}

void ProgramRecord::mark_nest(Coverage& coverage, size_t tier, const BoundNest& nest) const {
  const bool any_start = runs_any_start(prepared_, nest);
  if (any_start) hit(coverage, NestCell::any_start, tier);
  if (!nest.periods.empty()) hit(coverage, NestCell::copied_periods, tier);
  if (nest.space.form.baked_period > 0) hit(coverage, NestCell::baked_period, tier);
  if (nest.tiles) mark_tiles(coverage, tier, *nest.tiles);
  if (reads_scratch(nest)) hit(coverage, NestCell::through_scratch, tier);
  if (nest.space.form.rank <= most_rank) {
    coverage.hit(CellGroup::loops, static_cast<size_t>(nest.space.form.rank) - 1, tier);
  }
  mark_operands(coverage, tier, nest);
}

void ProgramRecord::mark_operands(Coverage& coverage, size_t tier, const BoundNest& nest) const {
  const bool any_start = runs_any_start(prepared_, nest);
  const std::vector<jit::Access>& access = (any_start ? nest.any_start : nest.main).access;
  for (size_t k = 0; k < nest.operands.size(); ++k) {
    const Image* image = image_of(prepared_, nest.operands[k]);
    const bool is_output = nest.operands[k].kind == OperandOrigin::Kind::output;
    const AccessCell cell{is_output, access[k], bits_of(nest.elements[k]) / 8};
    mark_period(coverage, tier, access[k], nest.space.period);
    const bool is_read_or_result = is_output || image != nullptr;
    if (is_read_or_result) coverage.hit(CellGroup::access, number_of(cell), tier);
    if (image != nullptr) mark_operand(coverage, tier, *image, is_output);
  }
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
