// SPDX-License-Identifier: Apache-2.0
#include "jit/requantize/plan.hpp"

#include "ir/requantize.hpp"
#include "jit/requantize/byte_table_kernel.hpp"

namespace castor::jit {

namespace {

/// Shorter runs of one slice are not worth a call of the kernel with tables.
constexpr int64_t least_table_run = 64;
/// Elements of a slice from which a call that has to make tables is faster with them.
constexpr int64_t least_open_table_elements = 4096;

std::optional<QuantizedFormat> format_of(const TensorType& type) {
  if (!type.quantization) return std::nullopt;
  return type.quantization->format;
}

}  // namespace

std::optional<RequantizeForm> requantize_form(const Function& function,
                                              const Operation& operation) {
  const RequantizeForm form{.from = format_of(function.type_of(operation.operands[0])),
                            .to = format_of(function.type_of(operation.results[0])),
                            .options = requantize_options(operation)};
  if (!form.from && !form.to) return std::nullopt;
  return form;
}

int requantize_axis(const QuantizationPtr& from, const QuantizationPtr& to) {
  if (from && from->is_per_axis()) return from->axis;
  if (to && to->is_per_axis()) return to->axis;
  return Quantization::per_tensor;
}

Nest requantize_nest(const RequantizeMethod& method, const RequantizeForm& form,
                     const Target& target) {
  Nest nest;
  nest.program = requantize_program(method, form, target);
  nest.inputs.assign(nest.program.sources.size(), NestInput(0));
  nest.outputs.emplace_back(0);
  return nest;
}

std::vector<Dims> requantize_strides(const Nest& nest, const Dims& source, const Dims& destination,
                                     int axis) {
  Dims along_axis = Dims::filled(source.rank(), 0);
  if (axis >= 0) along_axis[axis] = 1;
  std::vector<Dims> strides(nest.operands(), along_axis);
  strides.front() = source;
  strides.back() = destination;
  return strides;
}

SliceRun slice_run(const Dims& extents, const Dims& source_strides, const Dims& destination_strides,
                   int axis) {
  SliceRun run{extents.rank()};
  for (int i = extents.rank() - 1; i > axis; --i) {
    const bool is_dense =
        source_strides[i] == run.elements && destination_strides[i] == run.elements;
    if (!is_dense && extents[i] != 1) break;
    run.first = i;
    run.elements *= extents[i];
  }
  return run;
}

bool takes_byte_tables(const RequantizeForm& form, const Target& target, int64_t run,
                       int64_t elements_of_slice, bool is_open) {
  const bool has_bytes =
      form.from_element() == ElementType::i8 && form.to_element() == ElementType::i8;
  if (!has_bytes || !has_byte_tables(target) || run < least_table_run) return false;
  return !is_open || elements_of_slice >= least_open_table_elements;
}

}  // namespace castor::jit
