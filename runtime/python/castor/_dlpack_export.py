# SPDX-License-Identifier: Apache-2.0
"""castor.Tensor as a tensor of DLPack, which torch and others take without a copy."""

from __future__ import annotations

from ctypes import POINTER, Structure, byref, c_int64
from typing import Any, Tuple

import numpy as np

from castor import _dlpack, _library
from castor._bound import view_of
from castor._dlpack import Fields, ManagedVersioned
from castor._operands import Operand, dense_strides, operand_of_tensor
from castor._structures import View
from castor._tensor import Tensor, packed_tensor
from castor.errors import Error

MAX_RANK = 16  # CASTOR_MAX_RANK
IS_COPIED = 2  # DLPACK_FLAG_BITMASK_IS_COPIED
LAST_CODE_OF_1_0 = 6  # kDLBool
CPU = (1, 0)

_HAS_VERSIONS = tuple(map(int, np.__version__.split(".")[:2])) >= (2, 1)
"""Whether NumPy's `__dlpack__` takes max_version."""


class Dims(Structure):
    """castor_dlpack_dims."""

    _fields_ = [("shape", c_int64 * MAX_RANK), ("strides", c_int64 * MAX_RANK)]


_fields_of_view = _library.checked(
    "castor_dlpack_fields_of_view", POINTER(View), POINTER(Dims), POINTER(Fields)
)


def _type_in_dlpack(operand: Operand) -> Tuple[int, int]:
    """Code and bits; BufferError where DLPack has no such type."""
    fields = Fields()
    try:
        _fields_of_view(byref(view_of(operand)), byref(Dims()), byref(fields))
    except Error as error:
        raise BufferError(str(error)) from None
    return fields.code, fields.bits


def capsule_of(tensor: Tensor, *, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
    """A capsule that lends the tensor's memory, or a copy of it.

    NumPy makes it, of an array with the same extents that has a whole number of bytes for each
    element and is not read; then the capsule gets the element type, which NumPy may lack.
    """
    if stream is not None or (dl_device is not None and tuple(dl_device) != CPU):
        raise BufferError(
            f"a tensor is lent on device {CPU} without a stream,"
            f" not on {dl_device} with stream {stream}"
        )
    if not _dlpack.is_readable():
        raise BufferError("a tensor is lent by DLPack through CPython's C API, which is not here")
    if copy:
        tensor = packed_tensor(tensor._data.copy(), tensor.element, tensor.shape)
    code, bits = _type_in_dlpack(operand_of_tensor(tensor))
    capsule = _capsule_of_codes(tensor, max(bits // 8, 1), max_version)
    managed = _dlpack.managed_of(capsule)
    managed.tensor.code, managed.tensor.bits = code, bits
    if isinstance(managed, ManagedVersioned):
        if copy:
            managed.flags |= IS_COPIED
        if code > LAST_CODE_OF_1_0:
            managed.minor = max(managed.minor, 1)
    return capsule


def _capsule_of_codes(tensor: Tensor, element_bytes: int, max_version: Any) -> Any:
    """NumPy's capsule of an array with the tensor's extents and elements of that size."""
    codes = tensor._data.view(f"u{element_bytes}")
    steps = [element_bytes * stride for stride in dense_strides(tensor.shape)]
    is_versioned = max_version is not None and max_version[0] >= 1 and _HAS_VERSIONS
    if not is_versioned and not codes.flags.writeable:
        raise BufferError("a read-only tensor is lent by DLPack 1.0 or newer alone")
    try:
        array = np.lib.stride_tricks.as_strided(codes, tensor.shape, steps)
        return array.__dlpack__(max_version=max_version) if is_versioned else array.__dlpack__()
    except (AttributeError, ValueError) as error:  # NumPy before 1.22; extents beyond its own
        raise BufferError(f"a tensor of shape {tensor.shape}: {error}") from None
