// SPDX-License-Identifier: Apache-2.0
#include "runtime/mli/kernels.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>

#include "jit/memory/published.hpp"

namespace castor::mli {

namespace {

/// The quantized format of an element type; nothing for fp32.
std::optional<QuantizedFormat> format_named(uint16_t type) {
  switch (type) {
    case MLI_EL_FX_8: return QuantizedFormat::fx8;
    case MLI_EL_FX_16: return QuantizedFormat::fx16;
    case MLI_EL_SA_8: return QuantizedFormat::sa8;
    case MLI_EL_SA_32: return QuantizedFormat::sa32;
    default: return std::nullopt;
  }
}

/// One side with all its parameters given at run time.
std::optional<Quantization> quantization_of(uint16_t type, int8_t axis) {
  const std::optional<QuantizedFormat> format = format_named(type);
  if (!format) return std::nullopt;
  Quantization quantization;
  quantization.format = *format;
  quantization.axis = axis;
  return quantization;
}

/// Adds the parameters of a side, and puts them into `operands` at their indices.
void add_parameters(FunctionBuilder& builder, const std::optional<Quantization>& side,
                    std::span<ValueId> operands) {
  if (!side) return;
  for (size_t r = 0; r < quantization_rules.size(); ++r) {
    const QuantizationRule& rule = quantization_rules[r];
    if (rule.asymmetric_only && !info(side->format).is_asymmetric) continue;
    const Shape shape = side->is_per_axis() ? Shape{Dim::any()} : Shape{};
    operands[r] = builder.parameter("", {rule.element, shape});
  }
}

Result<FunctionPtr> function_of(const ConversionForm& form) {
  const auto from = quantization_of(form.source_type, form.source_axis);
  const auto to = quantization_of(form.destination_type, form.destination_axis);
  const Shape shape(form.rank, Dim::any());
  FunctionBuilder builder("convert");
  const ValueId x = builder.parameter(
      "x", from ? quantized_type(*from, shape) : TensorType{ElementType::f32, shape});
  std::array<ValueId, 6> parameters = FunctionBuilder::no_parameters;
  add_parameters(builder, from, std::span(parameters).first<3>());
  add_parameters(builder, to, std::span(parameters).last<3>());
  builder.result(builder.requantize(
      x, to,
      {.arithmetic = form.is_exact ? RequantizeArithmetic::exact : RequantizeArithmetic::embarc,
       .rounding =
           form.is_convergent ? RequantizeRounding::nearest_even : RequantizeRounding::half_up},
      parameters));
  return builder.finish();
}

int8_t axis_of(const mli_tensor& tensor, const FormatInfo& format) {
  const bool has_axis = format.is_asymmetric && is_per_axis(tensor);
  return has_axis ? static_cast<int8_t>(tensor.el_params.sa.dim) : int8_t{-1};
}

}  // namespace

ConversionForm form_of(const mli_tensor& source, const mli_tensor& destination, const Mode& mode) {
  const FormatInfo& from = *format_of(source);
  const FormatInfo& to = *format_of(destination);
  ConversionForm form;
  form.source_type = static_cast<uint16_t>(from.type);
  form.destination_type = static_cast<uint16_t>(to.type);
  form.rank = static_cast<uint8_t>(source.rank);
  form.source_axis = axis_of(source, from);
  form.destination_axis = axis_of(destination, to);
  form.is_exact = mode.arithmetic == CASTOR_MLI_EXACT;
  const bool gives_float = to.type == MLI_EL_FP_32;
  const bool rounds = !gives_float && (form.is_exact || from.type != MLI_EL_FP_32);
  form.is_convergent = rounds && mode.rounding == CASTOR_MLI_CONVERGENT;
  std::copy_n(source.shape, source.rank, form.shape.begin());
  std::copy_n(source.mem_stride, source.rank, form.source_strides.begin());
  std::copy_n(destination.mem_stride, source.rank, form.destination_strides.begin());
  return form;
}

size_t ConversionKernels::Hash::operator()(const ConversionForm& form) const {
  uint64_t hash = 0x9E3779B97F4A7C15;
  for (uint64_t word : form.words()) hash = std::rotl((hash ^ word) * 0xD6E8FEB86659FD93, 29);
  return hash;
}

namespace {

/// The process's runtime; one that interprets where the environment asks for a tier that the
/// machine lacks.
Runtime make_runtime() {
  Result<Runtime> runtime = Runtime::create();
  if (!runtime.ok()) {
    RuntimeOptions options;
    options.interpret = true;
    runtime = Runtime::create(options);
  }
  if (!runtime.ok()) throw std::bad_alloc();  // nothing else fails
  return std::move(runtime).value();
}

}  // namespace

ConversionKernels& ConversionKernels::shared() {
  static constinit jit::Published<ConversionKernels> kernels;
  return kernels.get(
      [] { return std::unique_ptr<ConversionKernels>(new ConversionKernels(make_runtime())); });
}

Result<std::shared_ptr<const BoundKernel>> ConversionKernels::find(const ConversionForm& form) {
  Table& table = table_.get();
  {
    const std::shared_lock lock(table.mutex);
    const auto found = table.kernels.find(form);
    if (found != table.kernels.end()) return found->second;
  }
  const Result<BoundKernel> bound = bind(form);
  if (!bound.ok()) return bound.error();
  auto kernel = std::make_shared<const BoundKernel>(*bound);
  const std::unique_lock lock(table.mutex);
  if (table.kernels.size() >= max_forms) table.kernels.clear();
  ++table.bound;
  return table.kernels.try_emplace(form, std::move(kernel)).first->second;
}

Result<BoundKernel> ConversionKernels::bind(const ConversionForm& form) const {
  const Result<FunctionPtr> function = function_of(form);
  if (!function) return function.error();
  const Result<Kernel> kernel = runtime_.compile(*function);
  if (!kernel) return kernel.error();
  const Dims shape = dims_of(form.shape, form.rank);
  std::vector<Dims> shapes = {shape};
  std::vector<Dims> strides = {dims_of(form.source_strides, form.rank)};
  const std::vector<ValueId>& parameters = (*function)->parameters;
  for (size_t i = 1; i < parameters.size(); ++i) {
    const bool is_scalar = (*function)->type_of(parameters[i]).shape.empty();
    const int axis = std::max(form.source_axis, form.destination_axis);
    shapes.push_back(is_scalar ? Dims() : Dims{shape[axis]});
    strides.push_back(dense_strides(shapes.back()));
  }
  strides.push_back(dims_of(form.destination_strides, form.rank));
  return kernel->bind(shapes, strides);
}

KernelStatistics ConversionKernels::statistics() const {
  Table& table = table_.get();
  const std::shared_lock lock(table.mutex);
  return {.bound = table.bound, .code_compiled = runtime_.statistics().codes};
}

}  // namespace castor::mli
