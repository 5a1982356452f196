// SPDX-License-Identifier: Apache-2.0
// The conversions of castor/mli.h.
#include <new>

#include "runtime/mli/check.hpp"
#include "runtime/mli/kernels.hpp"

namespace castor::mli {

namespace {

/// Views of the tensors of one call, in the order of the kernel's inputs.
class CallViews {
 public:
  CallViews(const ConversionForm& form, const mli_tensor& source, mli_tensor& destination)
      : shape_(dims_of(form.shape, form.rank)) {
    const Dims source_strides = dims_of(form.source_strides, form.rank);
    const Dims destination_strides = dims_of(form.destination_strides, form.rank);
    const FormatInfo& from = *format_of(source);
    const FormatInfo& to = *format_of(destination);
    add({source.rank > 0 ? data_of(source) : static_cast<const void*>(&source.data.mem),
         container_of(from), shape_, source_strides, 0, bytes_of(source, from)});
    add_parameters(source, from);
    add_parameters(destination, to);
    output_ = {
        destination.rank > 0 ? data_of(destination) : static_cast<void*>(&destination.data.mem),
        container_of(to),
        shape_,
        destination_strides,
        0,
        bytes_of(destination, to)};
  }

  std::span<const ConstView> inputs() const { return std::span(inputs_).first(count_); }
  std::span<const View> outputs() const { return {&output_, 1}; }

 private:
  template <class Int>
  static Dims dims_of(const std::array<Int, MLI_MAX_RANK>& numbers, int rank) {
    Dims dims;
    for (int axis = 0; axis < rank; ++axis) dims.push_back(numbers[static_cast<size_t>(axis)]);
    return dims;
  }

  static ElementType container_of(const FormatInfo& format) {
    if (format.type == MLI_EL_FP_32) return ElementType::f32;
    return format.bytes == 1   ? ElementType::i8
           : format.bytes == 2 ? ElementType::i16
                               : ElementType::i32;
  }

  /// What the elements reach, which the checks have found to be there.
  static size_t bytes_of(const mli_tensor& tensor, const FormatInfo& format) {
    return static_cast<size_t>(last_element(tensor) + 1) * format.bytes;
  }

  void add(const ConstView& view) { inputs_[count_++] = view; }

  /// A parameter of a tensor: a value in place of the pointer, or an array along the axis.
  template <class Parameter>
  void add(const mli_tensor& tensor, const Parameter& value, const Parameter* array,
           ElementType element) {
    if (tensor.el_params.sa.dim < 0) return add({&value, element, {}, sizeof(value)});
    const auto slices = shape_[tensor.el_params.sa.dim];
    add({array, element, {slices}, static_cast<size_t>(slices) * sizeof(value)});
  }

  void add_parameters(const mli_tensor& tensor, const FormatInfo& format) {
    if (format.type == MLI_EL_FP_32) return;
    if (!format.is_asymmetric) {
      const int8_t& frac_bits = tensor.el_params.fx.frac_bits;
      return add({&frac_bits, ElementType::i8, {}, sizeof(frac_bits)});
    }
    const auto& sa = tensor.el_params.sa;
    add(tensor, sa.scale.mem.i16, sa.scale.mem.pi16, ElementType::i16);
    add(tensor, sa.scale_frac_bits.mem.i8, sa.scale_frac_bits.mem.pi8, ElementType::i8);
    add(tensor, sa.zero_point.mem.i16, sa.zero_point.mem.pi16, ElementType::i16);
  }

  Dims shape_;
  std::array<ConstView, most_inputs> inputs_;
  size_t count_ = 0;
  View output_;
};

/// What remains to go wrong in a conversion that passed its checks.
mli_status status_of(const Error& error) {
  // Parameters that lie in the destination's elements.
  const bool overlaps = error.code == ErrorCode::invalid_argument;
  return overlaps ? MLI_STATUS_INCOMPATEBLE_TENSORS : MLI_STATUS_NOT_SUPPORTED;
}

mli_status convert(const mli_tensor* source, mli_tensor* destination, Accepted accepted) noexcept {
  try {
    const mli_status status = check_conversion(source, destination, accepted);
    if (status != MLI_STATUS_OK) return status;
    const ConversionForm form = form_of(*source, *destination, current_mode());
    const Result<BoundKernel> kernel = ConversionKernels::shared().find(form);
    if (!kernel) return status_of(kernel.error());
    const CallViews views(form, *source, *destination);
    const Status done = kernel->run(views.inputs(), views.outputs());
    return done ? MLI_STATUS_OK : status_of(done.error());
  } catch (const std::bad_alloc&) {
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
