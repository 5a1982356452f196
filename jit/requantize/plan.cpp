// SPDX-License-Identifier: Apache-2.0
#include "jit/requantize/plan.hpp"

#include <algorithm>

#include "ir/verify/requantize.hpp"
#include "jit/requantize/byte_table_kernel.hpp"

namespace castor::jit {

namespace {

/// Shorter runs of one slice are not worth a call of the kernel with tables.
constexpr int64_t min_table_run = 64;
/// Most elements of a row that is joined from rows with one index of each slice, where each call
/// repeats the slices' constants.
constexpr int64_t max_elements_joined_by_calls = 512;
/// Most bytes of repeated constants of a joined row: they stay in L1.
constexpr int64_t max_bytes_of_constants = 24 << 10;
/// Shorter joined rows would be merged into periods again, whose loops are slower.
constexpr int64_t min_joined_elements = 320;
/// Elements of a slice from which a call that has to make tables is faster with them.
constexpr int64_t min_open_table_elements = 4096;

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

SliceParameters slice_parameters(const QuantizationPtr& from, const QuantizationPtr& to,
                                 int64_t slice) {
  const auto set = [slice](int32_t& value, const QuantizationParameter& entries) {
    if (entries) value = (*entries)[entries->size() == 1 ? 0 : static_cast<size_t>(slice)];
  };
  SliceParameters result;
  if (from) {
    set(result.from_scale, from->scale);
    set(result.from_frac, from->frac);
    set(result.from_zero_point, from->zero_point);
  }
  if (to) {
    set(result.to_scale, to->scale);
    set(result.to_frac, to->frac);
    set(result.to_zero_point, to->zero_point);
  }
  return result;
}

ChosenMethod choose_method(const RequantizeForm& form, const QuantizationPtr& from,
                           const QuantizationPtr& to, int64_t slices) {
  ChosenMethod chosen;
  for (const RequantizeMethod* method : requantize_methods(form)) {
    chosen = {method, {}};
    for (int64_t slice = 0; slice < slices; ++slice) {
      const auto constants =
          method->prepare(form, slice_parameters(from, to, slice), Effort::thorough);
      if (!constants) break;
      chosen.constants.push_back(*constants);
    }
    if (static_cast<int64_t>(chosen.constants.size()) == slices) break;
  }  // the last one does all
  return chosen;
}

Nest requantize_nest(const RequantizeMethod& method, const RequantizeForm& form,
                     const Target& target) {
  Nest nest;
  nest.program = requantize_program(method, form, target);
  nest.inputs.assign(nest.program.sources.size(), NestInput(0));
  nest.outputs.emplace_back(0);
  nest.method = method.name();
  return nest;
}

std::vector<Dims> requantize_strides(const Nest& nest, const RequantizedTensors& tensors) {
  Dims along_axis = Dims::filled(tensors.extents.rank(), 0);
  if (tensors.axis >= 0) along_axis[tensors.axis] = 1;
  std::vector<Dims> strides(nest.operands(), along_axis);
  strides.front() = tensors.source_strides;
  strides.back() = tensors.destination_strides;
  return strides;
}

SliceRun slice_run(const RequantizedTensors& tensors) {
  SliceRun run{tensors.extents.rank()};
  for (int i = tensors.extents.rank() - 1; i > tensors.axis; --i) {
    const bool is_dense =
        tensors.source_strides[i] == run.elements && tensors.destination_strides[i] == run.elements;
    if (!is_dense && tensors.extents[i] != 1) break;
    run.first = i;
    run.elements *= tensors.extents[i];
  }
  return run;
}

int64_t max_joined_elements(std::span<const RequantizeMethod* const> methods,
                            const RequantizeForm& form, bool is_open) {
  int64_t bytes = 1;  // of a slice
  for (const RequantizeMethod* method : methods) {
    int64_t bits = 0;
    for (ElementType constant : method->constants(form)) bits += bits_of(constant);
    bytes = std::max(bytes, bits / 8);
  }
  const int64_t max = max_bytes_of_constants / bytes;
  return is_open ? std::min(max, max_elements_joined_by_calls) : max;
}

LongSlices join_rows(const RequantizedTensors& tensors, int64_t max_elements) {
  int last = tensors.extents.rank() - 1;
  while (last > tensors.axis && tensors.extents[last] == 1) --last;
  if (last < 1 || tensors.axis != last) return {tensors};
  const Dims dense = dense_strides(tensors.extents);
  if (!(tensors.source_strides == dense) || !(tensors.destination_strides == dense)) {
    return {tensors};
  }
  const int64_t slices = tensors.extents[last];
  const int64_t rows = *element_count(tensors.extents) / std::max<int64_t>(slices, 1);
  int64_t copies = slices == 0 ? 1 : max_elements / slices;
  while (copies > 1 && rows % copies != 0) --copies;
  const int64_t columns = copies * slices;
  if (copies <= 1 || columns < min_joined_elements) return {tensors};
  return {{{rows / copies, columns}, {columns, 1}, {columns, 1}, 1}, copies};
}

bool takes_byte_tables(const RequantizeForm& form, const Target& target, int64_t run,
                       int64_t elements_of_slice, bool is_open) {
  const bool has_bytes =
      form.from_element() == ElementType::i8 && form.to_element() == ElementType::i8;
  if (!has_bytes || !has_byte_tables(target) || run < min_table_run) return false;
  return !is_open || elements_of_slice >= min_open_table_elements;
}

}  // namespace castor::jit
