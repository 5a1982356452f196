# SPDX-License-Identifier: Apache-2.0
"""Values of functions that are traced, and operations on them."""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence, Union

import numpy as np

from castor import _builder
from castor._element_types import ElementType, element_type
from castor._operands import dense_operand, input_operand


class Value:
    """A tensor of a function that is traced: its elements are not known yet.

    `element` is its element type, None where the type follows from a promotion.
    """

    __slots__ = ("builder", "element", "number")
    # NumPy's arrays leave operators of two operands to this class.
    __array_ufunc__ = None

    def __init__(
        self, builder: _builder.Builder, number: int, element: Optional[ElementType]
    ) -> None:
        self.builder = builder
        self.number = number
        self.element = element

    def __repr__(self) -> str:
        return f"<castor.Value of {self.element}>"

    def __bool__(self) -> bool:
        raise TypeError("a value of a traced function is not known: castor.ops.select chooses")

    def __iter__(self) -> Any:
        raise TypeError("a value of a traced function has no known elements")

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        raise TypeError(
            "a value of a traced function has no data: castor.ops and other traced functions"
            " take it, but not castor.convert, compiled functions or NumPy"
        )

    def astype(self, dtype: Any, **options: Any) -> Value:
        """castor.ops.convert of this value."""
        return converted(self, dtype, options)

    def __add__(self, other: Any) -> Value:
        return append("add", [self, other])

    def __radd__(self, other: Any) -> Value:
        return append("add", [other, self])

    def __sub__(self, other: Any) -> Value:
        return append("sub", [self, other])

    def __rsub__(self, other: Any) -> Value:
        return append("sub", [other, self])

    def __mul__(self, other: Any) -> Value:
        return append("mul", [self, other])

    def __rmul__(self, other: Any) -> Value:
        return append("mul", [other, self])

    def __truediv__(self, other: Any) -> Value:
        return append("div", [self, other])

    def __rtruediv__(self, other: Any) -> Value:
        return append("div", [other, self])

    def __floordiv__(self, other: Any) -> Value:
        return append("floor_div", [self, other])

    def __rfloordiv__(self, other: Any) -> Value:
        return append("floor_div", [other, self])

    def __mod__(self, other: Any) -> Value:
        return append("floor_mod", [self, other])

    def __rmod__(self, other: Any) -> Value:
        return append("floor_mod", [other, self])

    def __matmul__(self, other: Any) -> Value:
        return append("matmul_integer", [self, other], element=element_type("i32"))

    def __rmatmul__(self, other: Any) -> Value:
        return append("matmul_integer", [other, self], element=element_type("i32"))

    def __and__(self, other: Any) -> Value:
        return append("bitwise_and", [self, other])

    def __rand__(self, other: Any) -> Value:
        return append("bitwise_and", [other, self])

    def __or__(self, other: Any) -> Value:
        return append("bitwise_or", [self, other])

    def __ror__(self, other: Any) -> Value:
        return append("bitwise_or", [other, self])

    def __xor__(self, other: Any) -> Value:
        return append("bitwise_xor", [self, other])

    def __rxor__(self, other: Any) -> Value:
        return append("bitwise_xor", [other, self])

    def __lshift__(self, other: Any) -> Value:
        return append("shift_left", [self, other])

    def __rlshift__(self, other: Any) -> Value:
        return append("shift_left", [other, self])

    def __rshift__(self, other: Any) -> Value:
        return append("shift_right", [self, other])

    def __rrshift__(self, other: Any) -> Value:
        return append("shift_right", [other, self])

    def __neg__(self) -> Value:
        return append("neg", [self])

    def __abs__(self) -> Value:
        return append("abs", [self])

    def __invert__(self) -> Value:
        return append("bitwise_not", [self])

    def __lt__(self, other: Any) -> Value:
        return compare("less", self, other)

    def __le__(self, other: Any) -> Value:
        return compare("less_equal", self, other)

    def __gt__(self, other: Any) -> Value:
        return compare("greater", self, other)

    def __ge__(self, other: Any) -> Value:
        return compare("greater_equal", self, other)

    # Two values are equal where their elements are, as in NumPy, so they are no keys.
    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return compare("equal", self, other)

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return compare("not_equal", self, other)

    __hash__ = None  # type: ignore[assignment]


Operand = Union[Value, Any]
"""A value, an array or castor.Tensor as a constant, or a number as one of its neighbour's type."""


def compare(op: str, a: Operand, b: Operand, **attributes: Any) -> Value:
    """A comparison, whose result is boolean."""
    return append(op, [a, b], attributes, element_type("boolean"))


def _constant(builder: _builder.Builder, given: Any, neighbour: Optional[ElementType]) -> Value:
    if isinstance(given, (bool, int, float)):
        if neighbour is None:
            raise TypeError(f"the number {given} has no type here: expected an array")
        given = _scalar(given, neighbour)
    operand = dense_operand(input_operand(given))
    written = _builder.tensor_type(operand.element, operand.shape)
    number = builder.op("constant", [], {}, written, (operand.address, operand.bytes))
    return Value(builder, number, operand.element)


_LIMITS = {"f4e2m1": 7.0, "f6e2m3": 7.75, "f6e3m2": 30.0, "f8e8m0": 1.5 * 2.0**127}
"""Where types have no infinity or NaN to tell that a number is out of range, the first one that is:
half a step beyond the largest."""


def _is_out_of_range(number: Union[bool, int, float], element: ElementType) -> bool:
    """Of floats that saturate, where the result does not tell."""
    if element.name == "nf4":
        return abs(number) > 1
    if element.name == "f8e8m0" and number <= 0:
        return True
    limit = _LIMITS.get(element.name)
    return limit is not None and abs(number) >= limit


def _scalar(number: Union[bool, int, float], element: ElementType) -> Any:
    """The number in that type: exact in integers, rounded once in floats."""
    from castor._convert import convert

    wide = np.asarray(number if isinstance(number, float) else int(number))
    if wide.dtype == object:  # no integer of NumPy has it
        if element.is_integer or abs(number) >= 2**1024:
            raise ValueError(f"{element} has no {number}")
        wide = np.asarray(_odd(int(number)), np.float64)
    made = convert(wide, element)
    if element.is_integer:
        is_lost = made.tolist() != number
    else:
        changes_kind = _kind(float(convert(made, "f64").item())) != _kind(float(number))
        is_lost = changes_kind or _is_out_of_range(number, element)
    if is_lost:
        raise ValueError(f"{element} has no {number}")
    return made


def _odd(number: int) -> float:
    """The integer as f64, rounded to odd where it has more bits: rounding again is rounding once.

    An f64 is itself.
    """
    bits = abs(number).bit_length()
    low = max(bits - 53, 0)
    high = abs(number) >> low
    if high << low != abs(number):
        high |= 1
    return math.copysign(math.ldexp(high, low), number)


def _kind(number: float) -> str:
    return "nan" if math.isnan(number) else "inf" if math.isinf(number) else "finite"


def values_of(operands: Sequence[Optional[Operand]]) -> Sequence[Optional[Value]]:
    """The operands as values of the one function that is traced."""
    values = [operand for operand in operands if isinstance(operand, Value)]
    if not values:
        raise TypeError("no operand is a value of a traced function (castor.function)")
    builder = values[0].builder
    if any(value.builder is not builder for value in values):
        raise ValueError("the operands are values of two functions")
    typed = next((value.element for value in values if value.element is not None), None)
    return [
        operand
        if operand is None or isinstance(operand, Value)
        else _constant(builder, operand, typed)
        for operand in operands
    ]


def converted(x: Operand, dtype: Any, options: dict[str, Any]) -> Value:
    """A conversion, whose element type is part of the operation."""
    element = element_type(dtype)
    options = {**options, "rounding": element.needed_rounding(options.get("rounding"))}
    return append("convert", [x], options, element, writes=True)


def append_all(
    op: str,
    operands: Sequence[Optional[Operand]],
    attributes: Optional[dict[str, Any]],
    elements: Sequence[Optional[ElementType]],
    written: Optional[Any] = None,
) -> Sequence[Value]:
    """Adds an operation with a result of each of these element types."""
    values = values_of(operands)
    builder = next(value.builder for value in values if value is not None)
    numbers = [_builder.NO_VALUE if value is None else value.number for value in values]
    first = builder.op(op, numbers, attributes or {}, written)
    failed = first == _builder.NO_VALUE
    return [
        Value(builder, first if failed else first + index, element)
        for index, element in enumerate(elements)
    ]


def append(
    op: str,
    operands: Sequence[Optional[Operand]],
    attributes: Optional[dict[str, Any]] = None,
    element: Optional[ElementType] = None,
    *,
    writes: bool = False,
) -> Value:
    """Adds an operation of one result: of that element type, or of the first value's.

    With `writes` the element type is part of the operation, as it is of a conversion.
    """
    if element is None:
        element = next((v.element for v in operands if isinstance(v, Value)), None)
    written = _builder.tensor_type(element, None) if writes else None
    return append_all(op, operands, attributes, [element], written)[0]
