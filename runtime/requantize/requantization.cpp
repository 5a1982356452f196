// SPDX-License-Identifier: Apache-2.0
// Binding of requantizations.
#include "runtime/requantize/requantization.hpp"

#include <algorithm>

#include "ir/verify/requantize.hpp"
#include "jit/float_environment.hpp"
#include "jit/requantize/plan.hpp"
#include "runtime/bind/nest_binding.hpp"
#include "runtime/bind/work_estimate.hpp"
#include "runtime/cache/code_store.hpp"
#include "runtime/call/tiled_call.hpp"
#include "runtime/compiled.hpp"
#include "runtime/memory/runtime_memory.hpp"
#include "runtime/memory/scratch_plan.hpp"
#include "runtime/requantize/requantization_parameters.hpp"

namespace castor::detail {

namespace {

constexpr int64_t table_entries = 256;

/// Memory that vectors are read from: none of them crosses a cache line.
struct alignas(scratch_alignment) VectorBytes {
  std::byte bytes[scratch_alignment];
};

/// Every byte, in order.
const std::array<std::byte, table_entries>& every_byte() {
  static constexpr auto bytes = [] {
    std::array<std::byte, table_entries> all{};
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i);
    return all;
  }();
  return bytes;
}

bool has_run_time_parameters(const BoundSide& side) {
  return std::ranges::any_of(side.operands, [](int operand) { return operand >= 0; });
}

/// A step over such tensors, without code, tables and operands.
TableStep table_step(const jit::Target& target, const jit::RequantizedTensors& tensors,
                     const jit::SliceRun& run) {
  TableStep step;
  step.nanoseconds = byte_tables_ns(target, *element_count(tensors.extents));
  step.run = run.elements;
  for (int i = 0; i < run.first; ++i) {
    step.extents.push_back(tensors.extents[i]);
    step.source_strides.push_back(tensors.source_strides[i]);
    step.destination_strides.push_back(tensors.destination_strides[i]);
    step.slice_steps.push_back(i == tensors.axis ? 1 : 0);
  }
  return step;
}

/// Tensors of the requantization that makes tables: every byte for each slice, the axis being 0.
jit::RequantizedTensors table_tensors(int64_t slices) {
  return {{slices, table_entries}, {0, 1}, {table_entries, 1}, 0};
}

/// What a method reads and writes, but for its constants.
struct MethodOperands {
  jit::RequantizedTensors tensors;
  OperandOrigin x;
  OperandOrigin y;
};

/// Runs a method's step to its end, without streaming stores.
void run_method(const ElementwiseStep& step, const CallMemory& memory) {
  step.tiles ? call_tiled(step, *step.main.code, memory)
             : call(step, *step.main.code, step.main, memory);
}

/// Binds one requantization.
class RequantizationBinder {
 public:
  RequantizationBinder(const jit::RequantizeForm& form, const BoundSide& from, const BoundSide& to,
                       const jit::RequantizedTensors& tensors, const Compiled& compiled,
                       ScratchPlan& scratch, StepBase base)
      : compiled_(compiled), tensors_(tensors), scratch_(scratch), base_(std::move(base)) {
    bound_.form = form;
    bound_.from = from;
    bound_.to = to;
    bound_.slices = tensors.axis < 0 ? 1 : tensors.extents[tensors.axis];
  }

  Result<Step> bind() {
    const bool is_open = has_run_time_parameters(bound_.from) || has_run_time_parameters(bound_.to);
    const jit::SliceRun run = jit::slice_run(tensors_);
    const int64_t of_slice = *element_count(tensors_.extents) / bound_.slices;
    if (!jit::takes_byte_tables(bound_.form, compiled_.target, run.elements, of_slice, is_open)) {
      return is_open ? bind_open() : bind_closed();
    }
    TableStep step = table_step(compiled_.target, tensors_, run);
    auto code = compiled_.store->cache.get(jit::ByteTableSpec{}, compiled_.target);
    if (!code.ok()) return code.error();
    step.code = std::move(code).value();
    if (Status status = is_open ? bind_open(step) : bind_closed(step); !status) {
      return status.error();
    }
    static_cast<StepBase&>(step) = std::move(base_);
    return Step(std::move(step));
  }

 private:
  /// Code for one method over such tensors: operands are x, the constants, y.
  Status bind_method(const jit::RequantizeMethod& method, const MethodOperands& operands,
                     std::span<const OperandOrigin> constants, ScratchPlan& scratch,
                     ElementwiseStep& result) const {
    const jit::Nest nest = jit::requantize_nest(method, bound_.form, compiled_.target);
    result.nest = base_.nest;
    result.program = StepProgram::requantization;
    const auto add = [&](const OperandOrigin& origin, bool matches_space) {
      result.operands.push_back({origin, nest.element(result.operands.size()), matches_space});
    };
    add(operands.x, true);
    for (const OperandOrigin& constant : constants) add(constant, false);
    add(operands.y, true);
    const jit::RequantizedTensors& over = operands.tensors;
    const std::vector<Dims> strides = jit::requantize_strides(nest, over);
    return NestBinding(compiled_, scratch).bind(nest, nullptr, over.extents, strides, result);
  }

  ConstantArrays arrays_of(const jit::RequantizeMethod& method) const {
    return {.types = method.constants(bound_.form),
            .slices = bound_.slices,
            .copies = bound_.copies,
            .data = {}};
  }

  /// Every method that takes the form, with constants in scratch.
  Status bind_methods(const MethodOperands& operands) {
    for (const jit::RequantizeMethod* method : jit::requantize_methods(bound_.form)) {
      BoundMethod& bound = bound_.methods.emplace_back();
      bound.method = method;
      const ConstantArrays arrays = arrays_of(*method);
      std::vector<OperandOrigin> constants;
      for (size_t i = 0; i < arrays.types.size(); ++i) {
        bound.constants[i] = scratch_.take(arrays.bytes_of(i));
        constants.push_back({.kind = OperandOrigin::Kind::scratch, .offset = bound.constants[i]});
      }
      Status status = bind_method(*method, operands, constants, scratch_, bound.step);
      for (size_t i = 0; i < constants.size(); ++i) scratch_.give_back(bound.constants[i]);
      if (!status) return status;
    }
    return {};
  }

  /// The tensors themselves, in rows that are not too short for these methods.
  MethodOperands own_operands(std::span<const jit::RequantizeMethod* const> methods, bool is_open) {
    const jit::LongSlices joined =
        jit::join_rows(tensors_, jit::max_joined_elements(methods, bound_.form, is_open));
    bound_.copies = joined.copies;
    return {joined.tensors, base_.operands.front().origin, base_.operands.back().origin};
  }
  /// Operands of the requantization that makes tables at `to`.
  MethodOperands table_operands(const OperandOrigin& to) const {
    const OperandOrigin from{.kind = OperandOrigin::Kind::constant,
                             .constant = every_byte().data()};
    return {table_tensors(bound_.slices), from, to};
  }

  Result<Step> bind_open() {
    const MethodOperands operands = own_operands(jit::requantize_methods(bound_.form), true);
    if (Status status = bind_methods(operands); !status) return status.error();
    RequantizeStep step;
    static_cast<StepBase&>(step) = std::move(base_);
    step.requantization = std::move(bound_);
    return Step(std::move(step));
  }

  Status bind_open(TableStep& step) {
    const size_t offset = scratch_.take(static_cast<size_t>(bound_.slices * table_entries));
    const OperandOrigin to{.kind = OperandOrigin::Kind::scratch, .offset = offset};
    Status status = bind_methods(table_operands(to));
    scratch_.give_back(offset);
    if (status) step.tables = CallTables{std::move(bound_), offset};
    return status;
  }

  jit::ChosenMethod choose_method() const {
    return jit::choose_method(bound_.form, bound_.from.quantization, bound_.to.quantization,
                              bound_.slices);
  }

  /// The step of the method that does all slices, whose constants it keeps alive.
  Status bind_closed_method(const jit::ChosenMethod& chosen, const MethodOperands& operands,
                            ScratchPlan& scratch, ElementwiseStep& result) const {
    ConstantArrays arrays = arrays_of(*chosen.method);
    auto constants =
        std::make_shared<std::array<std::vector<VectorBytes>, jit::max_slice_constants>>();
    std::vector<OperandOrigin> origins;
    for (size_t i = 0; i < arrays.types.size(); ++i) {
      (*constants)[i].resize(arrays.bytes_of(i) / sizeof(VectorBytes) + 1);
      arrays.data[i] = (*constants)[i].data()->bytes;
      origins.push_back({.kind = OperandOrigin::Kind::constant, .constant = arrays.data[i]});
    }
    for (int64_t slice = 0; slice < bound_.slices; ++slice) {
      arrays.set(slice, chosen.constants[static_cast<size_t>(slice)]);
    }
    arrays.repeat();
    result.constants = std::move(constants);
    return bind_method(*chosen.method, operands, origins, scratch, result);
  }

  Result<Step> bind_closed() {
    const jit::ChosenMethod chosen = choose_method();
    const MethodOperands operands = own_operands({&chosen.method, 1}, false);
    ElementwiseStep step;
    Status status = bind_closed_method(chosen, operands, scratch_, step);
    if (!status) return status.error();
    return Step(std::move(step));
  }

  Status bind_closed(TableStep& step) const {
    ConstantTables tables;
    tables.bytes.resize(static_cast<size_t>(bound_.slices * table_entries));
    const OperandOrigin to{.kind = OperandOrigin::Kind::constant, .constant = tables.bytes.data()};
    ScratchPlan plan;
    ElementwiseStep maker;
    Status status = bind_closed_method(choose_method(), table_operands(to), plan, maker);
    if (!status) return status;
    const MemoryBlock scratch(compiled_.memory->scratch, plan.bytes());
    run_method(maker, {.inputs = {}, .outputs = {}, .scratch = scratch.data()});
    step.tables = std::move(tables);
    return {};
  }

  const Compiled& compiled_;
  const jit::RequantizedTensors& tensors_;
  ScratchPlan& scratch_;
  StepBase base_;
  BoundRequantization bound_;
};

/// Writes a method's constants of all slices to the call's scratch; false, with some of them
/// written, where the method cannot do a slice.
bool prepare_in_scratch(const BoundMethod& bound, const BoundRequantization& requantization,
                        const SliceReader& reader, const CallMemory& memory) {
  ConstantArrays arrays{.types = bound.method->constants(requantization.form),
                        .slices = requantization.slices,
                        .copies = requantization.copies,
                        .data = {}};
  for (size_t i = 0; i < arrays.types.size(); ++i) {
    arrays.data[i] = memory.scratch + bound.constants[i];
  }
  for (int64_t slice = 0; slice < requantization.slices; ++slice) {
    const auto constants =
        bound.method->prepare(requantization.form, reader.at(slice), jit::Effort::quick);
    if (!constants) return false;
    arrays.set(slice, *constants);
  }
  arrays.repeat();
  return true;
}

/// The step of the first method that can do all slices of a call, whose constants it finds ready.
const ElementwiseStep& prepare(const BoundRequantization& requantization,
                               std::span<const StepOperand> operands, const CallMemory& memory) {
  const SliceReader reader(requantization, operands, memory);
  const auto method = std::ranges::find_if(requantization.methods, [&](const BoundMethod& bound) {
    return prepare_in_scratch(bound, requantization, reader, memory);
  });  // the last one takes all parameters
  return method->step;
}

}  // namespace

Result<Step> bind_requantization(const jit::RequantizeForm& form, const BoundSide& from,
                                 const BoundSide& to, const jit::RequantizedTensors& tensors,
                                 const Compiled& compiled, ScratchPlan& scratch, StepBase base) {
  return RequantizationBinder(form, from, to, tensors, compiled, scratch, std::move(base)).bind();
}

const ElementwiseStep& prepare_method(const RequantizeStep& step, const CallMemory& memory) {
  const jit::KernelFloatEnvironment environment;  // constants are computed here
  return prepare(step.requantization, step.operands, memory);
}

const std::byte* ready_tables(const TableStep& step, const CallMemory& memory) {
  if (const auto* constant = std::get_if<ConstantTables>(&step.tables)) {
    return constant->bytes.data();
  }
  const auto& made = std::get<CallTables>(step.tables);
  const jit::KernelFloatEnvironment environment;  // constants are computed here
  run_method(prepare(made.requantization, step.operands, memory), memory);
  return memory.scratch + made.scratch;
}

}  // namespace castor::detail
