# SPDX-License-Identifier: Apache-2.0
"""Functions built op by op, through the builder of the C API."""

from __future__ import annotations

import operator
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_void_p,
    pointer,
    sizeof,
)
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from castor import _library
from castor._element_types import ElementType
from castor._structures import Dim, TensorType

NO_VALUE = 0xFFFFFFFF
"""CASTOR_NO_VALUE: an operand that is absent."""
NO_RANK = -1
"""CASTOR_NO_RANK: a type of which only the element is written."""

Attribute = Union[bool, int, float, str, Tuple[int, ...]]
Extent = Union[int, str]
"""A number, or the name of an unknown; "?" is an unknown without a name."""


class AttributeStructure(Structure):
    """castor_attribute."""

    _fields_ = [
        ("name", c_char_p),
        ("kind", c_int32),
        ("integer", c_int64),
        ("number", c_double),
        ("text", c_char_p),
        ("integers", POINTER(c_int64)),
        ("count", c_size_t),
    ]


class OperationStructure(Structure):
    """castor_operation."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("op", c_char_p),
        ("operands", POINTER(c_uint32)),
        ("operand_count", c_size_t),
        ("attributes", POINTER(AttributeStructure)),
        ("attribute_count", c_size_t),
        ("type", POINTER(TensorType)),
        ("data", c_void_p),
        ("bytes", c_size_t),
        ("binding", c_char_p),
        ("names", POINTER(c_char_p)),
    ]


_create = _library.checked("castor_builder_create", c_char_p, POINTER(c_void_p))
_destroy = _library.plain("castor_builder_destroy", None, c_void_p)
_input = _library.plain("castor_builder_input", c_uint32, c_void_p, c_char_p, POINTER(TensorType))
_operation = _library.plain("castor_builder_op", c_uint32, c_void_p, POINTER(OperationStructure))
_output = _library.plain("castor_builder_output", None, c_void_p, c_uint32, POINTER(TensorType))
_finish = _library.checked("castor_builder_finish", c_void_p, POINTER(c_void_p))


def tensor_type(element: Optional[ElementType], shape: Optional[Sequence[Extent]]) -> TensorType:
    """A type for the C API; None: no element, no shape."""
    made = TensorType()
    made.element = 0 if element is None else element.number
    made.rank = NO_RANK if shape is None else len(shape)
    dims = (Dim * max(made.rank, 0))()
    for dim, extent in zip(dims, shape or ()):
        dim.extent = -1 if isinstance(extent, str) else _integer("an extent", extent)
        dim.name = extent.encode() if isinstance(extent, str) and extent != "?" else None
    made.dims = dims
    return made


def plain_attribute(name: str, value: Any) -> Attribute:
    """The value as one of Python's own, where it may be a number of NumPy or a sequence."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, str):
        return value
    try:
        if not hasattr(value, "__iter__") or getattr(value, "ndim", 1) == 0:
            return _integer(name, value)
        return tuple([_integer(name, one) for one in value])
    except TypeError:
        raise TypeError(f"{name} is {value!r}, expected a number, a name or integers") from None


def _integer(name: str, value: Any) -> int:
    number = operator.index(value)
    if not -(2**63) <= number < 2**63:  # ctypes would drop bits
        raise ValueError(f"{name} is {number}, expected an integer of 64 bits")
    return number


def _attribute(name: str, given: Any) -> AttributeStructure:
    value = plain_attribute(name, given)
    made = AttributeStructure(name=name.encode())
    if isinstance(value, bool):
        made.kind, made.integer = 3, int(value)
    elif isinstance(value, int):
        made.kind, made.integer = 1, value
    elif isinstance(value, float):
        made.kind, made.number = 2, value
    elif isinstance(value, str):
        made.kind, made.text = 4, value.encode()
    else:
        made.kind, made.count = 6, len(value)
        made.integers = (c_int64 * len(value))(*value)
    return made


class Builder:
    """A function under construction, for one thread. The first mistake is told by `finish`."""

    def __init__(self, name: str) -> None:
        self._builder = _library.Handle(_destroy)
        _create(name.encode(), byref(self._builder.pointer))

    def input(self, name: str, element: ElementType, shape: Sequence[Extent]) -> int:
        """Adds an input."""
        made: int = _input(self._builder.pointer, name.encode(), byref(tensor_type(element, shape)))
        return made

    def op(
        self,
        name: str,
        operands: Sequence[int],
        attributes: Mapping[str, Any],
        written: Optional[TensorType] = None,
        data: Optional[Tuple[int, int]] = None,
    ) -> int:
        """Adds an operation, and gives its first result; `data` is a constant's address and size.

        Attributes that are None are left out.
        """
        rows = [_attribute(key, value) for key, value in attributes.items() if value is not None]
        operation = OperationStructure(
            struct_size=sizeof(OperationStructure),
            op=name.encode(),
            operands=(c_uint32 * len(operands))(*operands),
            operand_count=len(operands),
            attributes=(AttributeStructure * len(rows))(*rows),
            attribute_count=len(rows),
        )
        if written is not None:
            operation.type = pointer(written)
        if data is not None:
            operation.data, operation.bytes = data
        made: int = _operation(self._builder.pointer, byref(operation))
        return made

    def finish(self, outputs: Sequence[int]) -> _library.Handle:
        """The verified function with these results."""
        for output in outputs:
            _output(self._builder.pointer, output, None)
        function = _library.Handle(_library.function_destroy)
        _finish(self._builder.pointer, byref(function.pointer))
        return function


def parse_type(text: str) -> Tuple[ElementType, List[Extent]]:
    """An element type and extents of a text such as "f32[?n, 4]"."""
    from castor._element_types import element_type

    expected = "expected one such as 'f32[?n, 4]'"
    if not isinstance(text, str):
        raise TypeError(f"type {text!r} of an input, {expected}")
    element, bracket, extents = text.partition("[")
    if not bracket or not extents.rstrip().endswith("]"):
        raise ValueError(f"type {text!r} of an input, {expected}")
    shape: List[Extent] = []
    for extent in extents.rstrip()[:-1].split(","):
        word = extent.strip()
        if word.startswith("?"):
            shape.append(word[1:] or "?")
        elif word.isdecimal():
            shape.append(int(word))
        elif word:
            raise ValueError(f"extent {word!r} in type {text!r} of an input, {expected}")
    return element_type(element.strip()), shape
