# SPDX-License-Identifier: Apache-2.0
"""Quantization: castor's compositions (ir/README.md) as calls on arrays."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, Sequence, Tuple, overload

import numpy as np

from castor import _builder
from castor._cache import Cache
from castor._element_types import ElementType, element_type
from castor._function import Function
from castor._operands import Operand, input_operand
from castor._prepared import are_lent
from castor.ops import mx_elements

_functions = Cache(256)


def _composition(
    op: str,
    operands: Sequence[Optional[Operand]],
    attributes: Dict[str, Any],
    results: int,
    written: Optional[ElementType],
    is_axis_known: bool,
) -> Function:
    """The function that is one operation; of operand 0 the extent of the axis may be known."""
    options = {
        name: _builder.plain_attribute(name, value)
        for name, value in attributes.items()
        if value is not None
    }
    known = options.get("axis") if is_axis_known else None
    forms = []
    for index, operand in enumerate(operands):
        if operand is None:
            continue
        rank = len(operand.shape)
        extents: List[_builder.Extent] = [f"{'xst'[index]}{axis}" for axis in range(rank)]
        if index == 0 and isinstance(known, int) and -rank <= known < rank:
            extents[known] = operand.shape[known]
        forms.append((index, operand.element, tuple(extents)))
    key = (op, tuple(forms), tuple(options.items()), written)
    made: Optional[Function] = _functions.get(key)
    if made is None:
        builder = _builder.Builder(op)
        numbers = [_builder.NO_VALUE] * len(operands)
        for index, element, shape in forms:
            numbers[index] = builder.input(("x", "scale", "third")[index], element, shape)
        suffix = None if written is None else _builder.tensor_type(written, None)
        first = builder.op(op, numbers, options, suffix)
        if first == _builder.NO_VALUE:  # finish tells why
            results = 0
        made = Function(builder.finish(range(first, first + results)))
        _functions.add(key, made)
    return made


def _run(
    op: str,
    given: Sequence[Any],
    attributes: Dict[str, Any],
    results: int,
    written: Optional[ElementType],
    threads: Optional[int],
    is_axis_known: bool = False,
) -> Any:
    taken = [(None, None) if one is None else _taken(one) for one in given]
    operands = [operand for operand, _ in taken]
    made = _composition(op, operands, attributes, results, written, is_axis_known)
    return made(*[one for _, one in taken if one is not None], threads=threads)


def _taken(given: Any) -> Tuple[Operand, Any]:
    """The operand, and what calls may read: the operand again, unless it is the given memory.

    What is copied, or lent by DLPack, is so once.
    """
    operand = input_operand(given)
    return operand, given if are_lent([operand], [given]) else operand


def _once(given: Any) -> Any:
    return _taken(given)[1]


def _scale(given: Any) -> Any:
    """A number is a scale in f32."""
    if given is None:
        return None
    return _once(np.float32(given) if isinstance(given, (int, float, np.integer)) else given)


def _zero_point(given: Any, element: ElementType, scale: Any) -> Any:
    """A number is a zero point in the quantized type, which all scales have."""
    if not isinstance(given, (int, float, np.integer, np.floating)):
        return given
    from castor._convert import convert

    if given == given // 1 and -(2**63) <= given < 2**63:
        wide = np.full(input_operand(scale).shape, given, np.int64)
        made = convert(wide, element)
        if (convert(made, "i64") == wide).all():
            return made
    raise ValueError(f"{element} has no zero point {given}")


def quantize(
    x: Any,
    dtype: Any,
    scale: Any = None,
    zero_point: Any = None,
    *,
    rule: str = "symmetric",
    axis: Optional[int] = None,
    block_size: Optional[int] = None,
    axes: Optional[Sequence[int]] = None,
    block: Optional[Sequence[int]] = None,
    saturate: Optional[bool] = None,
    precision: Optional[str] = None,
    scaling: Optional[str] = None,
    threads: Optional[int] = None,
) -> Any:
    """Quantizes `x` by a scale that is given, or by the range of `x`.

    With `scale`, ONNX's QuantizeLinear: saturate(round_half_even(x / scale) + zero_point). One
    scale serves the tensor; a vector has one for each index of `axis`; with `block_size` along
    `axis`, or `block` along `axes`, there is one for each block. Numbers are scales in f32 and zero
    points in `dtype`.

    Without `scale`, by `rule`: "symmetric" gives the elements and the scale, the largest magnitude
    over the largest number; "linear" (ONNX's DynamicQuantizeLinear, to signed integers too) gives
    the zero point as well, for minimum to maximum. With `axes` there is a scale for each row of the
    other axes.

    `scaling` is "divide" or "reciprocal". The rules are those of ir/README.md, Compositions.

    >>> quantize(np.float32([0.5, -1.0, 9.9]), "i8", scale=0.5)
    array([ 1, -2, 20], dtype=int8)
    >>> y, scale = quantize(np.float32([[1, -2], [4, 8]]), "i8", axes=[-1])
    >>> y.tolist(), scale.shape
    ([[64, -127], [64, 127]], (2, 1))
    """
    target = element_type(dtype)
    attributes: Dict[str, Any]
    if scale is not None:
        attributes = {
            "axis": axis,
            "block_size": block_size,
            "axes": axes,
            "block": block,
            "saturate": saturate,
            "precision": precision,
            "scaling": scaling,
        }
        scale = _scale(scale)
        given = [x, scale, _zero_point(zero_point, target, scale)]
        return _run("quantize_linear", given, attributes, 1, target, threads)
    for name, value in (
        ("zero_point", zero_point),
        ("axis", axis),
        ("block_size", block_size),
        ("block", block),
        ("saturate", saturate),
        ("precision", precision),
    ):
        if value is not None:
            raise TypeError(f"{name} needs a scale")
    attributes = {"axes": axes, "scaling": scaling}
    if rule == "symmetric":
        return _run("dynamic_quantize_symmetric", [x], attributes, 2, target, threads)
    if rule == "linear":
        return _run("dynamic_quantize_linear", [x], attributes, 3, target, threads)
    raise ValueError(f"rule {rule!r}, expected 'symmetric' or 'linear'")


def dequantize(
    x: Any,
    scale: Any,
    zero_point: Any = None,
    dtype: Any = "f32",
    *,
    axis: Optional[int] = None,
    block_size: Optional[int] = None,
    axes: Optional[Sequence[int]] = None,
    block: Optional[Sequence[int]] = None,
    threads: Optional[int] = None,
) -> Any:
    """(x - zero_point) * scale, as ONNX's DequantizeLinear; scales are as in `quantize`.

    >>> dequantize(np.int8([[1, 2], [3, 4]]), np.float32([[0.5], [2]]))
    array([[0.5, 1. ],
           [6. , 8. ]], dtype=float32)
    """
    attributes = {"axis": axis, "block_size": block_size, "axes": axes, "block": block}
    operand, x = _taken(x)
    element = operand.element
    scale = _scale(scale)
    given = [x, scale, _zero_point(zero_point, element, scale)]
    return _run("dequantize_linear", given, attributes, 1, element_type(dtype), threads)


_Blocks = Literal["mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4", "mxint8"]


@overload
def quantize_mx(
    x: Any,
    format: _Blocks,
    *,
    axis: int = ...,
    block: Optional[int] = ...,
    scale_rule: Optional[str] = ...,
    threads: Optional[int] = ...,
) -> Tuple[Any, Any]: ...


@overload
def quantize_mx(
    x: Any,
    format: Literal["nvfp4"],
    *,
    axis: int = ...,
    block: Optional[int] = ...,
    scale_rule: Optional[str] = ...,
    scaling: Optional[str] = ...,
    tensor_scale: Any = ...,
    threads: Optional[int] = ...,
) -> Tuple[Any, Any, Any]: ...


@overload
def quantize_mx(
    x: Any,
    format: str,
    *,
    axis: int = ...,
    block: Optional[int] = ...,
    scale_rule: Optional[str] = ...,
    scaling: Optional[str] = ...,
    tensor_scale: Any = ...,
    threads: Optional[int] = ...,
) -> Tuple[Any, ...]: ...


def quantize_mx(
    x: Any,
    format: str,
    *,
    axis: int = -1,
    block: Optional[int] = None,
    scale_rule: Optional[str] = None,
    scaling: Optional[str] = None,
    tensor_scale: Any = None,
    threads: Optional[int] = None,
) -> Tuple[Any, ...]:
    """Elements that share a scale by blocks along an axis; the last block may be short.

    `format` is "mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4", "mxint8" or
    "nvfp4". `scale_rule` is "ocp_floor" (the default: OCP's text, torchao), "ceil_power" (NVIDIA,
    cuBLAS) or "even_round" (AMD Quark). Gives the elements and the scales; of nvfp4 the scale of
    the tensor too, which is computed where it is not given; `scaling` says whether its elements are
    divided by their scale ("divide", the default) or multiplied by the reciprocal ("reciprocal").

    >>> y, scale = quantize_mx(np.full((1, 32), 3.0, np.float32), "mxfp4")
    >>> y.element.name, dequantize_mx(y, scale, format="mxfp4")[0, :3]
    ('f4e2m1', array([3., 3., 3.], dtype=float32))
    """
    element, _ = mx_elements(format)
    attributes = {
        "format": format,
        "axis": axis,
        "block": block,
        "scale_rule": scale_rule,
        "scaling": scaling,
    }
    if format != "nvfp4":
        if tensor_scale is not None:
            raise TypeError(f"format {format!r} has no scale of the tensor")
        made = _run("quantize_mx", [x, None], attributes, 2, element, threads, True)
        return made[0], made[1]
    if tensor_scale is None:
        x = _once(x)
        tensor_scale = _run("nvfp4_tensor_scale", [x], {}, 1, None, threads)
    given = [x, _scale(tensor_scale)]
    y, scale = _run("quantize_mx", given, attributes, 2, element, threads, True)
    return y, scale, tensor_scale


def dequantize_mx(
    x: Any,
    scale: Any,
    tensor_scale: Any = None,
    dtype: Any = "f32",
    *,
    format: str,
    axis: int = -1,
    block: Optional[int] = None,
    threads: Optional[int] = None,
) -> Any:
    """Each element times the scale of its block; see `quantize_mx`."""
    mx_elements(format)
    attributes = {"format": format, "axis": axis, "block": block}
    given = [x, scale, _scale(tensor_scale)]
    return _run("dequantize_mx", given, attributes, 1, element_type(dtype), threads)
