// SPDX-License-Identifier: Apache-2.0
// Binding of requantizations.
#include "runtime/requantize/requantization.hpp"

#include <algorithm>

#include "ir/verify/requantize.hpp"
#include "jit/float_environment.hpp"
#include "jit/requantize/plan.hpp"
#include "runtime/bind/work_estimate.hpp"
#include "runtime/call/tiled_call.hpp"
#include "runtime/requantize/requantization_parameters.hpp"

namespace castor::detail {

namespace {

constexpr int64_t table_entries = 256;
constexpr size_t most_constants = jit::most_slice_constants;

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

BoundByteTables byte_tables(const jit::RequantizedTensors& tensors, const jit::SliceRun& run) {
  BoundByteTables tables;
  tables.run = run.elements;
  for (int i = 0; i < run.first; ++i) {
    tables.extents.push_back(tensors.extents[i]);
    tables.source_strides.push_back(tensors.source_strides[i]);
    tables.destination_strides.push_back(tensors.destination_strides[i]);
    tables.slice_steps.push_back(i == tensors.axis ? 1 : 0);
  }
  return tables;
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

/// Runs a nest to its end, without streaming stores.
void run_nest(const BoundNest& nest, const CallMemory& memory) {
  nest.tiles ? call_tiled(nest, *nest.main.code, memory)
             : call(nest, *nest.main.code, nest.main, memory);
}

/// Binds one requantization.
class RequantizationBinder {
 public:
  RequantizationBinder(const jit::RequantizeForm& form, const BoundSide& from, const BoundSide& to,
                       const jit::RequantizedTensors& tensors, const Compiled& compiled,
                       ScratchPlan& scratch, BoundNest& nest)
      : compiled_(compiled), tensors_(tensors), scratch_(scratch), nest_(nest) {
    bound_.form = form;
    bound_.from = from;
    bound_.to = to;
    bound_.slices = tensors.axis < 0 ? 1 : tensors.extents[tensors.axis];
  }

  Status bind() {
    const bool is_open = has_run_time_parameters(bound_.from) || has_run_time_parameters(bound_.to);
    const jit::SliceRun run = jit::slice_run(tensors_);
    const int64_t of_slice = *element_count(tensors_.extents) / bound_.slices;
    if (!jit::takes_byte_tables(bound_.form, compiled_.target, run.elements, of_slice, is_open)) {
      return is_open ? bind_open() : bind_closed();
    }
    BoundByteTables tables = byte_tables(tensors_, run);
    auto code = compiled_.store->cache.get(jit::ByteTableSpec{}, compiled_.target);
    if (!code.ok()) return code.error();
    tables.code = std::move(code).value();
    nest_.nanoseconds = byte_tables_ns(*element_count(tensors_.extents));
    return is_open ? bind_open_tables(std::move(tables)) : bind_closed_tables(std::move(tables));
  }

 private:
  /// Code for one method over such tensors: operands are x, the constants, y.
  Status bind_method(const jit::RequantizeMethod& method, const MethodOperands& operands,
                     std::span<const OperandOrigin> constants, ScratchPlan& scratch,
                     BoundNest& result) const {
    const jit::Nest nest = jit::requantize_nest(method, bound_.form, compiled_.target);
    const auto add = [&](const OperandOrigin& origin, bool walks_space) {
      result.elements.push_back(nest.element(result.operands.size()));
      result.operands.push_back(origin);
      result.walks_space.push_back(walks_space);
    };
    add(operands.x, true);
    for (const OperandOrigin& constant : constants) add(constant, false);
    add(operands.y, true);
    const jit::RequantizedTensors& over = operands.tensors;
    const std::vector<Dims> strides = jit::requantize_strides(nest, over);
    return NestCodes(compiled_, scratch).bind(nest, nullptr, over.extents, strides, result);
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
      Status status = bind_method(*method, operands, constants, scratch_, bound.nest);
      for (size_t i = 0; i < constants.size(); ++i) scratch_.give_back(bound.constants[i]);
      if (!status) return status;
    }
    return {};
  }

  /// The tensors themselves, in rows that are not too short for these methods.
  MethodOperands own_operands(std::span<const jit::RequantizeMethod* const> methods, bool is_open) {
    const jit::LongSlices joined =
        jit::join_rows(tensors_, jit::most_joined_elements(methods, bound_.form, is_open));
    bound_.copies = joined.copies;
    return {joined.tensors, nest_.operands.front(), nest_.operands.back()};
  }
  /// Operands of the requantization that makes tables at `to`.
  MethodOperands table_operands(const OperandOrigin& to) const {
    const OperandOrigin from{.kind = OperandOrigin::Kind::constant,
                             .constant = every_byte().data()};
    return {table_tensors(bound_.slices), from, to};
  }

  Status bind_open() {
    const MethodOperands operands = own_operands(jit::requantize_methods(bound_.form), true);
    if (Status status = bind_methods(operands); !status) return status;
    nest_.requantization = std::make_shared<const BoundRequantization>(std::move(bound_));
    return {};
  }

  Status bind_open_tables(BoundByteTables tables) {
    tables.scratch = scratch_.take(static_cast<size_t>(bound_.slices * table_entries));
    const OperandOrigin to{.kind = OperandOrigin::Kind::scratch, .offset = tables.scratch};
    Status status = bind_methods(table_operands(to));
    scratch_.give_back(tables.scratch);
    if (!status) return status;
    nest_.tables = std::make_shared<const BoundByteTables>(std::move(tables));
    nest_.requantization = std::make_shared<const BoundRequantization>(std::move(bound_));
    return {};
  }

  jit::ChosenMethod choose_method() const {
    return jit::choose_method(bound_.form, bound_.from.quantization, bound_.to.quantization,
                              bound_.slices);
  }

  /// The nest of the method that does all slices, whose constants it keeps alive.
  Status bind_closed_method(const jit::ChosenMethod& chosen, const MethodOperands& operands,
                            ScratchPlan& scratch, BoundNest& result) const {
    ConstantArrays arrays = arrays_of(*chosen.method);
    auto constants = std::make_shared<std::array<std::vector<VectorBytes>, most_constants>>();
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
    result.keeps = std::move(constants);
    return bind_method(*chosen.method, operands, origins, scratch, result);
  }

  Status bind_closed() {
    const jit::ChosenMethod chosen = choose_method();
    const MethodOperands operands = own_operands({&chosen.method, 1}, false);
    nest_ = {};
    return bind_closed_method(chosen, operands, scratch_, nest_);
  }

  Status bind_closed_tables(BoundByteTables tables) {
    const auto bytes = static_cast<size_t>(bound_.slices * table_entries);
    const std::shared_ptr<std::byte[]> own = std::make_shared<std::byte[]>(bytes);
    const OperandOrigin to{.kind = OperandOrigin::Kind::constant, .constant = own.get()};
    ScratchPlan plan;
    BoundNest maker;
    Status status = bind_closed_method(choose_method(), table_operands(to), plan, maker);
    if (!status) return status;
    const MemoryBlock scratch(compiled_.memory->scratch, plan.bytes());
    run_nest(maker, {.inputs = {}, .outputs = {}, .scratch = scratch.data()});
    tables.own = own;
    nest_.tables = std::make_shared<const BoundByteTables>(std::move(tables));
    return {};
  }

  const Compiled& compiled_;
  const jit::RequantizedTensors& tensors_;
  ScratchPlan& scratch_;
  BoundNest& nest_;
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

}  // namespace

Status bind_requantization(const jit::RequantizeForm& form, const BoundSide& from,
                           const BoundSide& to, const jit::RequantizedTensors& tensors,
                           const Compiled& compiled, ScratchPlan& scratch, BoundNest& nest) {
  return RequantizationBinder(form, from, to, tensors, compiled, scratch, nest).bind();
}

const BoundNest& prepare_requantization(const BoundNest& nest, const CallMemory& memory) {
  const jit::KernelFloatEnvironment environment;  // constants are computed here
  const BoundRequantization& requantization = *nest.requantization;
  const SliceReader reader(requantization, nest, memory);
  const auto method = std::ranges::find_if(requantization.methods, [&](const BoundMethod& bound) {
    return prepare_in_scratch(bound, requantization, reader, memory);
  });  // the last one takes all parameters
  if (!nest.tables) return method->nest;
  run_nest(method->nest, memory);
  return nest;
}

}  // namespace castor::detail
