// SPDX-License-Identifier: Apache-2.0
// The op table. One row declares an op; parser, printer, verifier, interpreter, lowering and
// documentation follow it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ir/support/export.hpp"
#include "ir/types/element_type.hpp"

namespace castor {

/// In table order; ir/README.md, Ops and Numerics, says what each computes.
enum class OpKind : uint8_t {
  constant,               ///< a tensor known when the function is built
  convert,                ///< elementwise conversion (OpenVINO Convert-1; ir/README.md, Convert)
  convert_promote_types,  ///< OpenVINO ConvertPromoteTypes-14: two conversions to one type
  broadcast,              ///< to a target shape (OpenVINO, broadcast rules)
  reshape,                ///< another shape with equally many elements
  // arithmetic, two operands
  add,
  sub,
  mul,
  div,
  floor_div,
  mod,
  floor_mod,
  min,
  max,
  squared_difference,
  prelu,
  // arithmetic, one operand
  abs,
  neg,
  sign,
  relu,
  clamp,
  sqrt,
  floor,
  ceil,
  trunc,
  round_even,
  // truth values
  is_nan,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or,
  logical_xor,
  logical_not,  ///< `not` in the text form
  // bits
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  bitwise_not,
  shift_left,
  shift_right,
  select,      ///< where a condition holds one value, elsewhere another
  look_up,     ///< the entries of a table that codes stand for
  reduce_min,  ///< over axes; ir/README.md, Reductions
  reduce_max,
  reduce_max_abs,
  reduce_sum,
  max_pool,        ///< the largest in each window (ONNX MaxPool-12, without indices)
  conv_integer,    ///< convolution of 8-bit integers (ONNX ConvInteger-10)
  matmul_integer,  ///< matrix product of 8-bit integers (ONNX MatMulInteger-10)
  requantize,      ///< between quantized formats and f32 (embARC MLI 2.0, data conversion)
  // compositions: ir/composition/ has their definitions
  quantize_linear,             ///< ONNX QuantizeLinear-25
  dequantize_linear,           ///< ONNX DequantizeLinear-25
  dynamic_quantize_linear,     ///< ONNX DynamicQuantizeLinear-11, and by rows
  dynamic_quantize_symmetric,  ///< the same without zero points
  qlinear_conv,                ///< ONNX QLinearConv-10
  qlinear_matmul,              ///< ONNX QLinearMatMul-21
  dequantize_mx,               ///< OCP Microscaling Formats 1.0, NVFP4
  quantize_mx,                 ///< the same backward
  nvfp4_tensor_scale,          ///< the scale of a tensor for NVFP4
};
inline constexpr int op_count = static_cast<int>(OpKind::nvfp4_tensor_scale) + 1;

/// What the text form writes after the colon of an operation.
enum class TypeSuffix : uint8_t {
  optional_type,  ///< may be written; checked against the inferred type
  element,        ///< required: the result's element type
  shape,          ///< required: the target shape, `[2, 3]`
  tensor,         ///< required: the full type, `f32[2, 3]`
};

/// `number` is an integer or a float.
enum class AttributeKind : uint8_t { integer, floating, boolean, identifier, string, list, number };

/// One attribute that an op admits.
struct AttributeRule {
  std::string_view name;
  AttributeKind kind;
  std::span<const std::string_view> choices{};  ///< what an identifier may be; empty: any
  bool required = false;
};

/// Element types that an op takes.
enum class OperandClass : uint8_t {
  any,
  numeric,   ///< integers and floats of any width; not boolean, f8e8m0, nf4
  floating,  ///< floats of any width; not f8e8m0, nf4
  integer,   ///< signed and unsigned
  integer_or_boolean,
  boolean,
  byte,           ///< i8 and u8
  code,           ///< types of 4 bits, i8 and u8
  numeric_bytes,  ///< integers and floats of 8 bits and more; not boolean, f8e8m0
  quantized,      ///< fx8, fx16, sa8, sa32 and f32
};
CASTOR_API std::string_view name_of(OperandClass operands);
CASTOR_API bool admits(OperandClass operands, ElementType type);

/// How the result types follow from the operands; see ir/verify/infer.cpp.
enum class InferRule : uint8_t {
  as_written,        ///< the type suffix is the type
  element_as_named,  ///< the operand's shape with the element type of the suffix
  promoted,          ///< each operand's shape with the common element type
  broadcast,         ///< the target shape of the suffix, as the mode makes it
  reshaped,          ///< the target shape of the suffix
  elementwise,       ///< the operands' broadcast shape and their common element type
  comparison,        ///< the operands' broadcast shape, boolean
  selection,         ///< the broadcast shape of three operands, the type of the last two
  looked_up,         ///< ir/shape/look_up.hpp
  convolution,       ///< ir/shape/convolution.hpp
  matmul,            ///< ir/shape/matmul.hpp
  requantized,       ///< the operand's shape with the quantized format of the suffix, or f32
  reduced,           ///< ir/shape/reduction.hpp
  pooled,            ///< ir/shape/pooling.hpp
  defined,           ///< what the definition of the composition gives
};

/// How the planner treats an op.
enum class OpFamily : uint8_t {
  source,          ///< gives a tensor without operands
  elementwise,     ///< each result element comes from one element of each operand
  movement,        ///< moves elements without a look at them
  look_up,         ///< gives elements of one operand that the elements of another select
  convolution,     ///< sums products over windows, or over rows and columns
  requantization,  ///< scales by parameters of slices
  reduction,       ///< each result element comes from all elements along some axes
  pooling,         ///< each result element comes from all elements of a window
  composition,     ///< a function of other ops, which stand for it before it is planned
};

/// One row of the table.
struct OpInfo {
  OpKind op;
  std::string_view name;
  OpFamily family;
  int operands;
  int results;
  OperandClass
      types;  ///< what the operands may be; of `select` the last two, of `look_up` the first
  TypeSuffix suffix;
  InferRule infer;
  std::span<const AttributeRule> attributes;
  std::string_view meaning;
  /// How many of the last operands may be absent: `none` or, from the end, not written. An
  /// operation has all `operands` entries, absent ones as `no_value`.
  int optional_operands = 0;
};

CASTOR_API const std::array<OpInfo, op_count>& op_table();
CASTOR_API const OpInfo& info(OpKind op);
/// "add"; "unknown" of a number that is none.
CASTOR_API std::string_view name_of(OpKind op);
CASTOR_API std::optional<OpKind> op_named(std::string_view name);

/// Whether the op is done by kernels of its own, on tensors in memory: not lowered into a nest with
/// others.
CASTOR_API bool stands_alone(OpKind op);

/// Whether a result of the op counts as f32 under `excess_precision = allow` where its type is
/// f16, bf16 or f8 (ir/README.md, Arithmetic): of elementwise ops that compute, which
/// `convert` does not, since it says what it rounds to.
CASTOR_API bool keeps_excess_precision(OpKind op);

}  // namespace castor
