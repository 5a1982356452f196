// SPDX-License-Identifier: Apache-2.0
// The conversions of castor/mli.h.
#include <algorithm>

#include "ir/interpreter/interpreter.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/compiled.hpp"
#include "runtime/mli/check.hpp"
#include "runtime/mli/kernels.hpp"
#include "runtime/state_access.hpp"

namespace castor::mli {

namespace {

/// The addresses that a kernel reads, and the one that it writes, as views without shapes: the
/// checks, and the kernel's form, know these.
class CallViews {
 public:
  CallViews(const mli_tensor& source, mli_tensor& destination) {
    const FormatInfo& from = *format_of(source);
    const FormatInfo& to = *format_of(destination);
    add(data_of(source));
    add_parameters(source, from);
    add_parameters(destination, to);
    output_.data = data_of(destination);
  }

  std::span<const ConstView> inputs() const { return std::span(inputs_).first(count_); }
  std::span<const View> outputs() const { return {&output_, 1}; }
  bool is_in_place() const { return inputs_[0].data == output_.data; }

 private:
  void add(const void* data) { inputs_[count_++].data = data; }

  void add_parameters(const mli_tensor& tensor, const FormatInfo& format) {
    if (format.type == MLI_EL_FP_32) return;
    if (!format.is_asymmetric) return add(&tensor.el_params.fx.frac_bits);
    const auto& sa = tensor.el_params.sa;
    for (const mli_data_container* parameter : {&sa.scale, &sa.scale_frac_bits, &sa.zero_point}) {
      add(sa.dim < 0 ? static_cast<const void*>(&parameter->mem) : parameter->mem.pi8);
    }
  }

  std::array<ConstView, max_inputs> inputs_;
  size_t count_ = 0;
  View output_;
};

/// The views in full, for the interpreter.
class FullViews {
 public:
  FullViews(const ConversionForm& form, const Function& function, const CallViews& views) {
    const Dims shape = dims_of(form.shape, form.rank);
    for (size_t i = 0; i < views.inputs().size(); ++i) {
      const TensorType& type = function.type_of(function.parameters[i]);
      const bool is_slices = i > 0 && !type.shape.empty();
      const int axis = std::max(form.source_axis, form.destination_axis);
      const Dims extents = i == 0 ? shape : is_slices ? Dims{shape[axis]} : Dims();
      const Dims strides =
          i == 0 ? dims_of(form.source_strides, form.rank) : dense_strides(extents);
      inputs.push_back({views.inputs()[i].data, type.element, extents, strides, 0, SIZE_MAX / 2});
    }
    const ElementType element = function.type_of(function.results[0]).element;
    outputs.push_back({views.outputs()[0].data, element, shape,
                       dims_of(form.destination_strides, form.rank), 0, SIZE_MAX / 2});
  }

  std::vector<ConstView> inputs;
  std::vector<View> outputs;
};

Status run(const BoundKernel& kernel, const ConversionForm& form, const CallViews& views) {
  const detail::BoundState& state = detail::StateAccess::of(kernel);
  if (kernel.engine() == Engine::jit) {
    return detail::run_checked(state, views.inputs(), views.outputs(), {}, views.is_in_place());
  }
  const Function& function = *state.kernel->function;
  const FullViews full(form, function, views);
  return interpret(function, full.inputs, full.outputs);
}

mli_status convert(const mli_tensor* source, mli_tensor* destination, Accepted accepted) noexcept {
  try {
    const mli_status status = check_conversion(source, destination, accepted);
    if (status != MLI_STATUS_OK) return status;
    const ConversionForm form = form_of(*source, *destination, current_mode());
    const auto kernel = ConversionKernels::shared().find(form);
    if (!kernel) return MLI_STATUS_NOT_SUPPORTED;
    const bool is_done = run(**kernel, form, CallViews(*source, *destination)).ok();
    return is_done ? MLI_STATUS_OK : MLI_STATUS_NOT_SUPPORTED;
  } catch (...) {  // memory was refused
    return MLI_STATUS_NOT_SUPPORTED;
  }
}

}  // namespace

}  // namespace castor::mli

extern "C" {

mli_status mli_hlp_convert_tensor(const mli_tensor* src, mli_tensor* dst) {
  return castor::mli::convert(src, dst, castor::mli::Accepted::all);
}

mli_status mli_hlp_convert_tensor_safx(const mli_tensor* src, mli_tensor* dst) {
  return castor::mli::convert(src, dst, castor::mli::Accepted::integers);
}

}  // extern "C"
