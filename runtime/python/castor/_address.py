# SPDX-License-Identifier: Apache-2.0
"""Where the data of arrays are: else most of what a call of a small kernel takes.

`array.ctypes.data` makes objects of ctypes first. In CPython the address stands in the array
itself, after what all objects begin with (PyArrayObject_fields, which NumPy's binary interface
fixes). Whether it does is tried when this module is imported; where it does not, the attribute is
asked.
"""

from __future__ import annotations

import sys
from ctypes import c_void_p
from typing import Any, Callable

import numpy as np

_FIELD: int = getattr(object, "__basicsize__", 0)  # PyPy's objects have none


def by_attribute(array: Any) -> int:
    """As NumPy tells it."""
    return int(array.ctypes.data)


def by_field(array: Any) -> int:
    """As the array has it."""
    return _pointer_at(id(array) + _FIELD).value or 0


_pointer_at = c_void_p.from_address


def _has_field() -> bool:
    if sys.implementation.name != "cpython":
        return False
    whole = np.zeros((3, 4), np.float32)
    tried = (whole, whole[1:, ::2], whole[0, 0:0], np.zeros((), np.uint8), np.zeros(99, np.uint8))
    return all(by_field(array) == by_attribute(array) for array in tried)


address_of: Callable[[Any], int] = by_field if _has_field() else by_attribute
"""The address of the first element of an array."""
