# SPDX-License-Identifier: Apache-2.0
"""DLPack's table of C functions, by which types such as torch.Tensor tell quickly where data are.

`__dlpack__` makes a capsule for each object and takes microseconds, the table's function one. It
tells nothing of what `__dlpack__` refuses, nor whether memory is read-only: only calls whose form
came by `__dlpack__` before go this way, and as outputs only tensors that are never read-only.
"""

from __future__ import annotations

from ctypes import (
    PYFUNCTYPE,
    Structure,
    byref,
    c_char,
    c_int,
    c_uint32,
    c_void_p,
    py_object,
    string_at,
)
from struct import Struct
from typing import Any, Callable, Dict, Optional, Tuple

from castor import _dlpack

MAJOR_VERSION = 1

_EXTENT_BYTES = 8

_FIELDS = Struct("=QiiiIQQQ")
"""A DLTensor: data, device type and number, rank, element type, shape, strides, byte offset."""

_Memory = c_char * _FIELDS.size

_TensorOf = PYFUNCTYPE(c_int, py_object, c_void_p)


class Table(Structure):
    """DLPackExchangeAPI."""

    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("previous", c_void_p),
        ("allocate", c_void_p),
        ("managed_tensor_of", c_void_p),
        ("object_of", c_void_p),
        ("tensor_of", c_void_p),
        ("current_stream", c_void_p),
    ]


_FORM = slice(8, 24)
"""What of a DLTensor depends on no address: the device, the rank and the element type."""

Function = Callable[[Any, Any], int]

_functions: Dict[type, Optional[Function]] = {}
_never_read_only: Dict[type, bool] = {}


def _function_of(kind: type) -> Optional[Function]:
    """The function of a type that has a table itself: one of a base may not take its objects."""
    capsule = vars(kind).get("__dlpack_c_exchange_api__")
    if capsule is None or not _dlpack.is_readable():
        return None
    table = Table.from_address(_dlpack.pointer_of(capsule, b"dlpack_exchange_api"))
    if table.major != MAJOR_VERSION or not table.tensor_of:
        return None
    return _TensorOf(table.tensor_of)


def form_and_address(given: Any) -> Optional[Tuple[bytes, int]]:
    """What a prepared call is kept by, and where the data are; None where no table tells."""
    kind = type(given)
    try:
        function = _functions[kind]
    except KeyError:
        function = _functions[kind] = _function_of(kind)
    if function is None or getattr(given, "requires_grad", False):
        return None
    fields = _Memory()
    if function(given, byref(fields)):
        return None
    data, _, _, rank, _, shape, strides, offset = _FIELDS.unpack(fields)
    form = fields.raw[_FORM]
    if rank:
        form += string_at(shape, rank * _EXTENT_BYTES)
        if strides:
            form += string_at(strides, rank * _EXTENT_BYTES)
    return form, data + offset


def is_never_read_only(given: Any) -> bool:
    """Whether all tensors of the type can be written: torch's."""
    kind = type(given)
    known = _never_read_only.get(kind)
    if known is None:
        known = kind.__module__ == "torch" and kind.__qualname__ == "Tensor"
        _never_read_only[kind] = known
    return known
