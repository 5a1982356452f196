# SPDX-License-Identifier: Apache-2.0
"""Tensors by DLPack's protocol: those of torch and others, with types that NumPy does not have."""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
    py_object,
)
from typing import Any, Optional, Tuple

from castor import _library, _torch
from castor._structures import View

MAX_VERSION = (1, 1)


class Fields(Structure):
    """castor_dlpack_fields."""

    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("rank", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class Managed(Structure):
    """DLManagedTensor; its DLTensor has the order of castor_dlpack_fields."""

    _fields_ = [("tensor", Fields), ("context", c_void_p), ("deleter", c_void_p)]


class ManagedVersioned(Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", Fields),
    ]


_check_version = _library.checked("castor_check_dlpack_version", c_uint32, c_uint32)
_view_to_read = _library.checked(
    "castor_const_view_of_dlpack_fields", POINTER(Fields), c_uint64, POINTER(View)
)
_view_to_write = _library.checked(
    "castor_view_of_dlpack_fields", POINTER(Fields), c_uint64, POINTER(View)
)


def _python_api(name: str, result: Any) -> Any:
    """A function of CPython's C API on a capsule and a name; PyPy has none."""
    function = getattr(getattr(ctypes, "pythonapi", None), name, None)
    if function is not None:
        function.restype, function.argtypes = result, [py_object, c_char_p]
    return function


_pointer = _python_api("PyCapsule_GetPointer", c_void_p)
_is_named = _python_api("PyCapsule_IsValid", c_int)


def is_readable() -> bool:
    """Whether this interpreter tells what a capsule contains."""
    return _pointer is not None


def _capsule_of(given: Any) -> Any:
    try:
        return given.__dlpack__(max_version=MAX_VERSION)
    except TypeError:  # from before DLPack 1.0
        return given.__dlpack__()


def managed_of(capsule: Any) -> Any:
    """What a capsule that nobody has taken yet contains."""
    if _is_named(capsule, b"dltensor_versioned"):
        return ManagedVersioned.from_address(_pointer(capsule, b"dltensor_versioned"))
    return Managed.from_address(_pointer(capsule, b"dltensor"))


def _without_repeats(fields: Fields) -> Optional[Fields]:
    """The tensor with one index along the axes whose stride is 0; None where there are none.

    castor's views have no such strides, but torch's expand() makes them.
    """
    axes = range(fields.rank) if fields.strides else range(0)
    repeated = {axis for axis in axes if fields.strides[axis] == 0 and fields.shape[axis] > 1}
    if not repeated:
        return None
    once = Fields.from_buffer_copy(fields)
    extents = [1 if axis in repeated else fields.shape[axis] for axis in axes]
    once.shape = (c_int64 * len(extents))(*extents)
    return once


def view_of(given: Any, *, writes: bool) -> Tuple[Any, View, Optional[Tuple[int, ...]]]:
    """What keeps the tensor's memory, its view, and the shape up to which it is repeated, if it is.

    The capsule keeps the memory: its destructor gives it back.
    """
    _torch.check_sign(given)
    capsule = _capsule_of(given)
    flags = 0
    managed = managed_of(capsule)
    fields = managed.tensor
    if isinstance(managed, ManagedVersioned):
        _check_version(managed.major, managed.minor)
        flags = managed.flags
    view = View()
    once = None if writes else _without_repeats(fields)
    if once is None:
        (_view_to_write if writes else _view_to_read)(byref(fields), flags, byref(view))
        return capsule, view, None
    _view_to_read(byref(once), flags, byref(view))
    # The extents of the view are those of `once`.
    return (capsule, once), view, tuple(fields.shape[axis] for axis in range(fields.rank))
