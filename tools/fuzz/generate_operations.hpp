// SPDX-License-Identifier: Apache-2.0
// Drawing functions of all ops.
#pragma once

#include <functional>

#include "ir/shape/broadcast.hpp"
#include "tools/fuzz/cells.hpp"
#include "tools/fuzz/generate_convolution.hpp"
#include "tools/fuzz/generate_function.hpp"
#include "tools/fuzz/generate_matmul.hpp"
#include "tools/fuzz/generate_requantize.hpp"

namespace castor::fuzz {

/// Adds operations to a program whose operands fit, from values that are there or are made for it
/// by conversions and constants.
class OperationDrawer {
 public:
  OperationDrawer(Random& random, Program& program);

  /// Inputs of a few types whose shapes broadcast to one space.
  void draw_inputs();
  /// One input of that type, with a shape of its own.
  size_t add_input(ElementType type);
  size_t add_input(ElementType type, const Dims& shape);
  size_t add_input(InputSpec input);
  /// An operation; false where none was found that fits.
  bool draw(OpKind op);
  /// An operation on operands of that type (of `select`, the values); drawn until it fits.
  bool draw_on(OpKind op, ElementType type);
  /// Inputs for a convolution, the first of that type; the convolution; operations around it.
  void draw_convolution_of(ElementType x_type);
  /// Inputs for a matrix product, a of that type; the product; operations around it.
  void draw_matmul_of(ElementType a_type);
  /// A convolution, and what follows it so that it has the cell's form.
  void draw_epilogue(const EpilogueCell& cell);
  /// An input in one of these formats' containers, requantized.
  void draw_requantization_of(ElementType container);
  /// An input made for a requantization, and that.
  void draw_requantization(const DrawnRequantization& drawn);
  /// Inputs for a look-up, codes and a table of these types; and that.
  bool draw_look_up_of(ElementType codes, ElementType table, bool has_axis);
  /// A requantization of a value that is there. With `may_add_inputs`, values of operations may
  /// have other numbers afterwards.
  bool draw_requantize(bool may_add_inputs);
  /// Adds `length` operations of any kind.
  void draw_many(size_t length);
  /// The last value, and of the values that nothing reads some.
  void draw_results();
  /// One of these ops with shapes that differ, in that mode.
  bool draw_mode(OpKind op, BroadcastMode mode);

 private:
  bool add(OperationSpec operation, int64_t max = max_elements);
  std::vector<size_t> values_of(OperandClass types) const;
  std::vector<size_t> values_of(ElementType type) const;
  size_t pick_value(const std::vector<size_t>& values);
  std::optional<size_t> operand_of(OperandClass types);
  size_t converted(size_t value, ElementType type);
  size_t last() const;
  ElementType palette_type(OperandClass types);

  bool add_constant(ElementType type, const Dims& shape);
  bool draw_constant();
  bool draw_convert();
  bool draw_promotion();
  bool draw_reshape();
  bool draw_broadcast();
  bool draw_linear(OpKind op);
  bool draw_qlinear_conv();
  bool draw_qlinear_matmul();
  bool draw_dequantize_mx();
  bool draw_quantize_mx();
  bool add_parameter(OperationSpec& operation, ElementType type, const Dims& shape);
  std::optional<size_t> bytes_of_rank(int min_rank);
  size_t value_for(bool quantizes);
  bool broadcast_as(size_t value, BroadcastMode mode);
  bool draw_unary(OpKind op);
  bool draw_clamp(size_t value);
  bool draw_reduction(OpKind op);
  bool draw_pooling();
  bool draw_dynamic(OpKind op);
  bool draw_binary(OpKind op, size_t a);
  bool combine(OpKind op, size_t a, size_t b);
  bool combine_pdpd(OpKind op, size_t a, size_t b);
  bool combine_blocked(OpKind op, size_t a);
  bool draw_select(size_t a);
  size_t draw_condition();
  std::optional<int> draw_table_axis(const Dims& shape);
  bool look_up(size_t codes, size_t table, std::optional<int> axis);
  bool draw_look_up();
  bool convolve_any();
  bool multiply_any();
  bool multiply(size_t a, const DrawnMatmul& drawn, const MatmulOperands& given);
  bool convolve(size_t x, const DrawnConvolution& drawn, const ConvolutionOperands& given);
  Dims draw_beside(const Dims& y, ConvolutionLayout layout, bool in_part);
  size_t draw_chain(size_t value, const std::vector<size_t>& beside, size_t length);
  void draw_range(size_t value);
  void shape_epilogue(const EpilogueCell& cell, size_t y, const std::vector<size_t>& beside,
                      const std::function<bool()>& convolve_again);
  size_t as_bytes(size_t value);
  bool draw_quantized_constant();
  std::optional<size_t> requantize_source();
  bool requantize(size_t x, const DrawnRequantization& drawn, bool may_add_inputs);
  size_t parameter_input(const ParameterOperand& operand);
  size_t parameter_constant(const ParameterOperand& operand);
  size_t zero_point(std::optional<size_t> value, ElementType type, const Dims& shape);

  Random& random_;
  Program& program_;
  AxisWriter writer_;
  Dims space_;
  std::vector<ElementType> palette_;
  std::vector<bool> is_read_;  // by value
  int64_t work_left_ = max_work;
};

/// A function of all ops: inputs, operations, results.
void draw_operations(Random& random, Program& program);

}  // namespace castor::fuzz
