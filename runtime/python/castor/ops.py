# SPDX-License-Identifier: Apache-2.0
"""castor's ops on values of a function that is traced (castor.function).

Their names, attributes and meaning are those of ir/README.md. Operands that are no values become
constants: arrays and castor.Tensor as they are, numbers in the type of their neighbour. Attributes
that are None are left out, which stands for the op's own default.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence, Tuple

from castor import _builder
from castor._element_types import ElementType, element_type
from castor._value import Operand, Value, append, append_all, compare, converted

_Unary = Callable[[Value], Value]


def _unary(op: str) -> _Unary:
    def call(x: Value) -> Value:
        return append(op, [x])

    call.__name__ = call.__qualname__ = op
    call.__doc__ = f"The op `{op}`, of one operand."
    return call


def _binary(op: str, comparison: bool = False) -> Callable[..., Value]:
    def call(
        a: Operand,
        b: Operand,
        *,
        broadcast: Optional[str] = None,
        axis: Optional[int] = None,
        axes: Optional[Sequence[int]] = None,
        block: Optional[Sequence[int]] = None,
    ) -> Value:
        attributes = {"broadcast": broadcast, "axis": axis, "axes": axes, "block": block}
        if comparison:
            return compare(op, a, b, **attributes)
        return append(op, [a, b], attributes)

    call.__name__ = call.__qualname__ = op
    call.__doc__ = f"The op `{op}`, of two operands that are broadcast."
    return call


abs = _unary("abs")
neg = _unary("neg")
sign = _unary("sign")
relu = _unary("relu")
sqrt = _unary("sqrt")
floor = _unary("floor")
ceil = _unary("ceil")
trunc = _unary("trunc")
round_even = _unary("round_even")
bitwise_not = _unary("bitwise_not")
logical_not = _unary("not")

add = _binary("add")
sub = _binary("sub")
mul = _binary("mul")
div = _binary("div")
floor_div = _binary("floor_div")
mod = _binary("mod")
floor_mod = _binary("floor_mod")
min = _binary("min")
max = _binary("max")
squared_difference = _binary("squared_difference")
prelu = _binary("prelu")
logical_and = _binary("logical_and")
logical_or = _binary("logical_or")
logical_xor = _binary("logical_xor")
bitwise_and = _binary("bitwise_and")
bitwise_or = _binary("bitwise_or")
bitwise_xor = _binary("bitwise_xor")
shift_left = _binary("shift_left")
shift_right = _binary("shift_right")

equal = _binary("equal", comparison=True)
not_equal = _binary("not_equal", comparison=True)
less = _binary("less", comparison=True)
less_equal = _binary("less_equal", comparison=True)
greater = _binary("greater", comparison=True)
greater_equal = _binary("greater_equal", comparison=True)


def is_nan(x: Value) -> Value:
    """Whether elements are NaN."""
    return append("is_nan", [x], element=element_type("boolean"))


def clamp(x: Value, lo: Optional[float] = None, hi: Optional[float] = None) -> Value:
    """min(max(x, lo), hi)."""
    return append("clamp", [x], {"lo": lo, "hi": hi})


def select(condition: Value, a: Operand, b: Operand, *, broadcast: Optional[str] = None) -> Value:
    """Elements of `a` where the condition holds, else of `b`."""
    element = next((v.element for v in (a, b) if isinstance(v, Value)), None)
    if element is None:
        raise TypeError("neither a nor b is a value of a traced function (castor.function)")
    return append("select", [condition, a, b], {"broadcast": broadcast}, element)


def convert(
    x: Value,
    dtype: Any,
    *,
    overflow: Optional[str] = None,
    rounding: Optional[str] = None,
    nan: Optional[str] = None,
) -> Value:
    """Converts every element."""
    return converted(x, dtype, {"overflow": overflow, "rounding": rounding, "nan": nan})


def convert_promote_types(
    x: Operand,
    y: Operand,
    *,
    promote_unsafe: Optional[bool] = None,
    pytorch_scalar_promotion: Optional[bool] = None,
    u64_integer_promotion_target: Optional[str] = None,
) -> Tuple[Value, Value]:
    """Both operands in their common type."""
    attributes = {
        "promote_unsafe": promote_unsafe,
        "pytorch_scalar_promotion": pytorch_scalar_promotion,
        "u64_integer_promotion_target": u64_integer_promotion_target,
    }
    first, second = append_all("convert_promote_types", [x, y], attributes, [None, None])
    return first, second


def broadcast(
    x: Value,
    shape: Sequence[_builder.Extent],
    *,
    mode: Optional[str] = None,
    axis: Optional[int] = None,
    axes: Optional[Sequence[int]] = None,
    block: Optional[Sequence[int]] = None,
) -> Value:
    """Elements repeated up to a shape; names of extents stand for unknowns."""
    attributes = {"mode": mode, "axis": axis, "axes": axes, "block": block}
    written = _builder.tensor_type(None, shape)
    return append_all("broadcast", [x], attributes, [x.element], written)[0]


def reshape(x: Value, shape: Sequence[_builder.Extent]) -> Value:
    """The same elements in another shape; names of extents stand for unknowns."""
    written = _builder.tensor_type(None, shape)
    return append_all("reshape", [x], {}, [x.element], written)[0]


def look_up(x: Value, table: Operand, *, axis: Optional[int] = None) -> Value:
    """The entry of the table that each code stands for."""
    from castor._value import values_of

    codes, entries = values_of([x, table])
    assert entries is not None
    return append("look_up", [codes, entries], {"axis": axis}, entries.element)


def _reduction(op: str) -> Callable[..., Value]:
    def call(
        x: Value, *, axes: Optional[Sequence[int]] = None, keep_dims: Optional[bool] = None
    ) -> Value:
        return append(op, [x], {"axes": axes, "keep_dims": keep_dims})

    call.__name__ = call.__qualname__ = op
    call.__doc__ = f"The op `{op}`, along axes, or all of them."
    return call


reduce_min = _reduction("reduce_min")
reduce_max = _reduction("reduce_max")
reduce_max_abs = _reduction("reduce_max_abs")


def reduce_sum(
    x: Value,
    *,
    axes: Optional[Sequence[int]] = None,
    keep_dims: Optional[bool] = None,
    accumulator: Optional[str] = None,
) -> Value:
    """The sum along axes, or all of them."""
    element = x.element if accumulator is None else element_type(accumulator)
    attributes = {"axes": axes, "keep_dims": keep_dims, "accumulator": accumulator}
    return append("reduce_sum", [x], attributes, element)


def max_pool(x: Value, *, kernel_shape: Sequence[int], **attributes: Any) -> Value:
    """ONNX MaxPool-12 without indices: the largest element of each window."""
    return append("max_pool", [x], {"kernel_shape": kernel_shape, **attributes})


def conv_integer(
    x: Operand,
    w: Operand,
    x_zero_point: Optional[Operand] = None,
    w_zero_point: Optional[Operand] = None,
    **attributes: Any,
) -> Value:
    """ONNX ConvInteger-10: i32 sums."""
    operands = [x, w, x_zero_point, w_zero_point]
    return append("conv_integer", operands, attributes, element_type("i32"))


def matmul_integer(
    a: Operand,
    b: Operand,
    a_zero_point: Optional[Operand] = None,
    b_zero_point: Optional[Operand] = None,
) -> Value:
    """ONNX MatMulInteger-10: i32 sums."""
    operands = [a, b, a_zero_point, b_zero_point]
    return append("matmul_integer", operands, None, element_type("i32"))


def quantize_linear(
    x: Operand,
    scale: Operand,
    zero_point: Optional[Operand] = None,
    *,
    dtype: Any,
    **attributes: Any,
) -> Value:
    """saturate(round_half_even(x / scale) + zero_point)."""
    operands = [x, scale, zero_point]
    return append("quantize_linear", operands, attributes, element_type(dtype), writes=True)


def dequantize_linear(
    x: Operand,
    scale: Operand,
    zero_point: Optional[Operand] = None,
    *,
    dtype: Any,
    **attributes: Any,
) -> Value:
    """(x - zero_point) * scale."""
    operands = [x, scale, zero_point]
    return append("dequantize_linear", operands, attributes, element_type(dtype), writes=True)


def _several(
    op: str,
    operands: Sequence[Optional[Operand]],
    attributes: dict[str, Any],
    element: ElementType,
    others: Sequence[Optional[ElementType]],
) -> Sequence[Value]:
    written = _builder.tensor_type(element, None)
    return append_all(op, operands, attributes, [element, *others], written)


def dynamic_quantize_linear(
    x: Value, *, dtype: Any, axes: Optional[Sequence[int]] = None, scaling: Optional[str] = None
) -> Tuple[Value, Value, Value]:
    """`x` quantized by its minimum and maximum; the scale; the zero point."""
    element = element_type(dtype)
    attributes = {"axes": axes, "scaling": scaling}
    y, scale, zero_point = _several(
        "dynamic_quantize_linear", [x], attributes, element, [x.element, element]
    )
    return y, scale, zero_point


def dynamic_quantize_symmetric(
    x: Value, *, dtype: Any, axes: Optional[Sequence[int]] = None, scaling: Optional[str] = None
) -> Tuple[Value, Value]:
    """`x` quantized by its largest magnitude; the scale."""
    attributes = {"axes": axes, "scaling": scaling}
    y, scale = _several(
        "dynamic_quantize_symmetric", [x], attributes, element_type(dtype), [x.element]
    )
    return y, scale


def qlinear_conv(*operands: Operand, **attributes: Any) -> Value:
    """ONNX QLinearConv-10."""
    return append("qlinear_conv", operands, attributes, _zero_point_element(operands))


def qlinear_matmul(*operands: Operand) -> Value:
    """ONNX QLinearMatMul-21."""
    return append("qlinear_matmul", operands, None, _zero_point_element(operands))


def _zero_point_element(operands: Sequence[Operand]) -> Optional[ElementType]:
    """The result has the type of its zero point."""
    if len(operands) <= 7:
        raise TypeError(f"{len(operands)} operands, expected at least 8")
    if isinstance(operands[7], Value):
        return operands[7].element
    from castor._operands import input_operand

    return input_operand(operands[7]).element


MX_FORMATS = {
    "mxfp8_e4m3": ("f8e4m3", "f8e8m0"),
    "mxfp8_e5m2": ("f8e5m2", "f8e8m0"),
    "mxfp6_e2m3": ("f6e2m3", "f8e8m0"),
    "mxfp6_e3m2": ("f6e3m2", "f8e8m0"),
    "mxfp4": ("f4e2m1", "f8e8m0"),
    "mxint8": ("i8", "f8e8m0"),
    "nvfp4": ("f4e2m1", "f8e4m3"),
}
"""The element types of the elements and of the scales of each format."""


def mx_elements(format: str) -> Tuple[ElementType, ElementType]:
    """The element types of the elements and of the scales of a format."""
    if not isinstance(format, str) or format not in MX_FORMATS:
        raise ValueError(f"format {format!r}, expected {', '.join(MX_FORMATS)}")
    element, scale = MX_FORMATS[format]
    return element_type(element), element_type(scale)


def quantize_mx(
    x: Value,
    tensor_scale: Optional[Operand] = None,
    *,
    format: str,
    axis: Optional[int] = None,
    block: Optional[int] = None,
    scale_rule: Optional[str] = None,
    scaling: Optional[str] = None,
) -> Tuple[Value, Value]:
    """The elements and the scale of each block; the extent of the axis is known."""
    element, scale_element = mx_elements(format)
    attributes = {
        "format": format,
        "axis": axis,
        "block": block,
        "scale_rule": scale_rule,
        "scaling": scaling,
    }
    y, scale = _several("quantize_mx", [x, tensor_scale], attributes, element, [scale_element])
    return y, scale


def dequantize_mx(
    x: Operand,
    scale: Operand,
    tensor_scale: Optional[Operand] = None,
    *,
    format: str,
    dtype: Any,
    axis: Optional[int] = None,
    block: Optional[int] = None,
) -> Value:
    """Each element times the scale of its block."""
    attributes = {"format": format, "axis": axis, "block": block}
    operands = [x, scale, tensor_scale]
    return append("dequantize_mx", operands, attributes, element_type(dtype), writes=True)


def nvfp4_tensor_scale(x: Value) -> Value:
    """The largest magnitude over 6 * 448."""
    return append("nvfp4_tensor_scale", [x], element=element_type("f32"))
