// SPDX-License-Identifier: Apache-2.0
// Building functions in C++. The parser builds through the same interface.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "ir/function.hpp"
#include "ir/shape/broadcast.hpp"
#include "ir/shape/convolution.hpp"
#include "ir/shape/reduction.hpp"
#include "ir/support/export.hpp"
#include "ir/types/promote.hpp"
#include "ir/verify/limits.hpp"

namespace castor {

/// What an operation names as its result's type: an element type, a shape, or both.
struct WrittenType {
  std::optional<ElementType> element;
  std::optional<Shape> shape;
  QuantizationPtr quantization{};  ///< given if the element type contains a quantized format
};

/// Collects parameters and operations, then checks everything at once in `finish`.
///
/// The first mistake is kept and every later call does nothing, so calls need no checks of their
/// own. Memory that is refused is such a mistake (out_of_memory); nothing is thrown. Not thread
/// safe; the finished function is.
class CASTOR_API FunctionBuilder {
 public:
  explicit FunctionBuilder(std::string name) { function_.name = std::move(name); }

  /// Refuses the first operation, value or name that exceeds a limit from here on (limit_exceeded).
  /// A builder has no limits unless they are set, but for the rules of the IR.
  void limit(const CompileLimits& limits) { limits_ = limits; }

  /// Adds an input. Names (given without the percent sign) must be unique; an empty name is
  /// replaced by a fresh one here and below.
  ValueId parameter(std::string name, TensorType type);

  /// One result of `convert`: `value` converted to `to` elementwise.
  ValueId convert(ValueId value, ElementType to, const ConvertOptions& options = {});

  /// `x` quantized to `to` by its own range, all of it or along axes, with its scale and zero
  /// point.
  std::array<ValueId, 3> dynamic_quantize_linear(ValueId x, ElementType to,
                                                 Attributes attributes = {});
  /// The same by the largest magnitude, with its scale.
  std::pair<ValueId, ValueId> dynamic_quantize_symmetric(ValueId x, ElementType to,
                                                         Attributes attributes = {});

  /// `x` in the microscaling format that the attributes say, whose elements are `to`, and the
  /// scales of its blocks.
  std::pair<ValueId, ValueId> quantize_mx(ValueId x, ElementType to, Attributes attributes,
                                          ValueId tensor_scale = no_value);

  /// A constant from dense data; `bytes` must have exactly the size of the type.
  ValueId constant(const TensorType& type, std::span<const std::byte> bytes);

  /// An elementwise op of two operands: `binary(OpKind::add, a, b)`. Their types are equal, their
  /// shapes broadcast as `how` says.
  ValueId binary(OpKind op, ValueId a, ValueId b, const BroadcastRule& how = {});

  /// An op of one operand without attributes: `unary(OpKind::sqrt, x)`.
  ValueId unary(OpKind op, ValueId value);

  /// min(max(value, lo), hi); a bound may be absent, and is no NaN.
  ValueId clamp(ValueId value, std::optional<double> lo, std::optional<double> hi);

  /// `a` where the boolean `condition` holds, elsewhere `b`. The mode is numpy or none.
  ValueId select(ValueId condition, ValueId a, ValueId b,
                 BroadcastMode mode = BroadcastMode::numpy);

  /// The entries of `table` that the codes in `x` stand for, read as unsigned numbers. With an axis
  /// of `x` the table's first axis is that one: each index along it has a table of its own.
  ValueId look_up(ValueId x, ValueId table, std::optional<int> axis = {});

  /// A reduction of `value`: `reduce(OpKind::reduce_max, x, {.axes = {{1}}})`.
  ValueId reduce(OpKind op, ValueId value, const ReductionOptions& options = {});

  /// The largest element of each window of `x`; the options name the kernel's extents, and no
  /// group.
  ValueId max_pool(ValueId x, const ConvolutionOptions& options);

  /// `value` repeated to fill the target shape, whose unknown extents have names of parameters'.
  ValueId broadcast(ValueId value, Shape target, const BroadcastRule& how = {});

  /// The elements of `value` in another shape; one `?` of it follows from their count.
  ValueId reshape(ValueId value, Shape target);

  /// Both values converted to their common type, in their order.
  std::pair<ValueId, ValueId> promote(ValueId a, ValueId b, const PromoteOptions& options = {});

  /// The convolution of `x` by the weights `w`, less their zero points where they have some.
  ValueId conv_integer(ValueId x, ValueId w, const ConvolutionOptions& options = {},
                       ValueId x_zero_point = no_value, ValueId w_zero_point = no_value);

  /// The matrix product of `a` and `b`, less their zero points where they have some.
  ValueId matmul_integer(ValueId a, ValueId b, ValueId a_zero_point = no_value,
                         ValueId b_zero_point = no_value);

  /// `x`, quantized or f32, as another quantized format or, where `to` is null, as f32. Parameters
  /// that the formats leave to run time: scale, frac and zero point of x, then of the result.
  ValueId requantize(ValueId x, std::optional<Quantization> to,
                     const RequantizeOptions& options = {},
                     const std::array<ValueId, 6>& parameters = no_parameters);
  static constexpr std::array<ValueId, 6> no_parameters = {no_value, no_value, no_value,
                                                           no_value, no_value, no_value};

  /// `x` as a quantized type: saturate(round_half_even(x / scale) + zero_point); ir/README.md,
  /// Compositions.
  ValueId quantize_linear(ValueId x, ValueId scale, ValueId zero_point, ElementType to,
                          Attributes attributes = {});

  /// Quantized `x` as a float: (x - zero_point) * scale.
  ValueId dequantize_linear(ValueId x, ValueId scale, ValueId zero_point, ElementType to,
                            Attributes attributes = {});

  /// A quantized tensor: its integers, their scale and their zero point.
  struct Quantized {
    ValueId value;
    ValueId scale;
    ValueId zero_point;
  };

  /// The convolution of quantized tensors as a quantized tensor of the type of `y_zero_point`; the
  /// bias is i32.
  ValueId qlinear_conv(const Quantized& x, const Quantized& w, ValueId y_scale,
                       ValueId y_zero_point, ValueId bias = no_value,
                       const ConvolutionOptions& options = {});

  /// The matrix product of quantized tensors as a quantized tensor of the type of `y_zero_point`.
  ValueId qlinear_matmul(const Quantized& a, const Quantized& b, ValueId y_scale,
                         ValueId y_zero_point);

  /// Any operation of the table, with the names of its results (one for each). Returns the first
  /// result's id; the others have the ids that follow. Optional operands may be left out at the
  /// end.
  ValueId append(Operation operation, const WrittenType& written,
                 std::span<const std::string> result_names = {});

  /// Names the function's next output, and optionally its declared type: `?` matches any extent
  /// and is checked when the function is bound.
  void result(ValueId value, std::optional<TensorType> declared = {});

  void attribute(Attribute attribute);

  /// The type of a value so far; null where there is no such value, or was a mistake.
  const TensorType* type_of(ValueId value) const {
    return error_ || value >= function_.values.size() ? nullptr : &function_.values[value].type;
  }

  /// Names a value that has no name yet.
  void name(ValueId value, std::string name);

  /// The first mistake so far, or null.
  const Error* error() const { return error_ ? &*error_ : nullptr; }

  /// Verifies and hands over the function; the builder is empty afterwards.
  Result<FunctionPtr> finish();

 private:
  template <class Step>
  ValueId guarded_step(const Step& step) noexcept;
  ValueId add(Operation operation, const WrittenType& written,
              std::span<const std::string> result_names);
  void add_result(ValueId value, std::optional<TensorType> declared);
  ValueId define(std::string name, TensorType type);
  bool take_name(const std::string& name);
  bool is_within(size_t found, std::string_view what, size_t limit);
  void fail(Error error);
  bool passes(const Status& status);
  void name_the_unnamed();

  Function function_;
  CompileLimits limits_ = CompileLimits::none();
  std::unordered_set<std::string> names_;  ///< those given; fresh names are chosen in `finish`
  std::optional<Error> error_;
};

}  // namespace castor
