# SPDX-License-Identifier: Apache-2.0
"""What is given as a tensor: its memory as a view of the C API, without a copy where that can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

import numpy as np

from castor.element_types import ElementType, element_type
from castor.tensor import Tensor

if TYPE_CHECKING:
    import numpy.typing as npt


class Operand:
    """A tensor in memory that `owner` keeps.

    `strides` count elements; None stands for dense in row-major order. `bytes` are those that the
    elements reach from `address` on.
    """

    __slots__ = ("address", "bytes", "element", "owner", "shape", "strides")

    def __init__(
        self,
        owner: Any,
        element: ElementType,
        shape: Tuple[int, ...],
        strides: Optional[Tuple[int, ...]],
        address: int,
        reach: int,
    ) -> None:
        self.owner = owner
        self.element = element
        self.shape = shape
        self.strides = strides
        self.address = address
        self.bytes = reach


_elements: Dict[np.dtype[Any], ElementType] = {}


def element_of_dtype(dtype: np.dtype[Any]) -> ElementType:
    """The element type of a dtype, whatever its byte order."""
    element = _elements.get(dtype)
    if element is None:
        element = element_type(dtype)
        _elements[dtype] = element
    return element


def strides_in_elements(array: npt.NDArray[Any]) -> Optional[Tuple[int, ...]]:
    """None where castor cannot read the array as it is: an axis that is reversed or repeated."""
    size = array.itemsize
    strides = []
    for extent, stride in zip(array.shape, array.strides):
        if extent <= 1:
            strides.append(1)
        elif stride > 0 and stride % size == 0:
            strides.append(stride // size)
        else:
            return None
    return tuple(strides)


def operand_of_array(array: npt.NDArray[Any]) -> Optional[Operand]:
    """The array's own memory; None where castor cannot take it as it is."""
    if not array.dtype.isnative:
        return None
    element = element_of_dtype(array.dtype)
    if element.bits < 8:  # ml_dtypes' arrays have a byte for each of them
        return None
    address = array.ctypes.data
    if array.flags.c_contiguous:
        return Operand(array, element, array.shape, None, address, array.nbytes)
    strides = strides_in_elements(array)
    if strides is None:
        return None
    last = sum((extent - 1) * stride for extent, stride in zip(array.shape, strides))
    reach = (last + 1) * array.itemsize if array.size else 0
    return Operand(array, element, array.shape, strides, address, reach)


def dense_copy(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array in row-major order and the machine's byte order."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)


def operand_of_tensor(tensor: Tensor) -> Operand:
    """The tensor's own memory."""
    data = tensor.data
    return Operand(tensor, tensor.element, tensor.shape, None, data.ctypes.data, data.nbytes)


def input_operand(given: Any) -> Operand:
    """What is read: an array, a tensor, or what NumPy takes as an array."""
    if isinstance(given, Tensor):
        return operand_of_tensor(given)
    if isinstance(given, (bytes, bytearray)):
        given = memoryview(given)
    array = np.asarray(given)
    operand = operand_of_array(array)
    if operand is None:
        operand = operand_of_array(dense_copy(array))
    assert operand is not None
    return operand


def output_operand(given: Any) -> Operand:
    """What is written: an array or a tensor whose own memory takes the elements."""
    if isinstance(given, Tensor):
        if not given.data.flags.writeable:
            raise ValueError("the data of an output is read-only")
        return operand_of_tensor(given)
    if not isinstance(given, np.ndarray):
        raise TypeError(f"an output is an array or a castor.Tensor, not {type(given).__name__}")
    if not given.flags.writeable:
        raise ValueError("an output array is read-only")
    operand = operand_of_array(given)
    if operand is None:
        raise ValueError(
            f"an output of strides {given.strides} and dtype {given.dtype!r}: expected positive"
            " strides of whole elements in the machine's byte order"
        )
    return operand
