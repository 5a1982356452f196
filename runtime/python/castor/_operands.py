# SPDX-License-Identifier: Apache-2.0
"""What is given as a tensor: its memory as a view of the C API, if possible without a copy."""

from __future__ import annotations

import math
from ctypes import c_uint8
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

import numpy as np

from castor._address import address_of
from castor._element_types import BY_NUMBER, ElementType, element_type
from castor._tensor import Tensor, refuse_mask

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

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def form(self) -> Tuple[Any, ...]:
        """What a kernel depends on when it is bound."""
        return (self.element, self.shape, self.strides)

    def without_owner(self) -> Operand:
        """The same form, for caches, which keep no tensor."""
        return Operand(None, self.element, self.shape, self.strides, 0, self.bytes)


_elements: Dict[np.dtype[Any], ElementType] = {}


def element_of_dtype(dtype: np.dtype[Any]) -> ElementType:
    """The element type of a dtype, whatever its byte order."""
    element = _elements.get(dtype)
    if element is None:
        element = element_type(dtype.newbyteorder("="))
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
    address = address_of(array)
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
    data = tensor._data
    return Operand(tensor, tensor.element, tensor.shape, None, address_of(data), data.nbytes)


def _operand_of_dlpack(given: Any, *, writes: bool) -> Operand:
    from castor import _dlpack

    owner, view, repeated = _dlpack.view_of(given, writes=writes)
    element = BY_NUMBER[view.element]
    shape = tuple(view.shape[axis] for axis in range(view.rank))
    strides = None
    if view.strides:
        strides = tuple(view.strides[axis] for axis in range(view.rank))
        if strides == dense_strides(shape):
            strides = None
    operand = Operand(owner, element, shape, strides, view.data or 0, view.bytes)
    return operand if repeated is None else _copied(operand, repeated)


def dense_operand(operand: Operand) -> Operand:
    """The operand, or a copy of it, in row-major order without gaps."""
    return operand if operand.strides is None else _copied(operand, operand.shape)


def _copied(operand: Operand, shape: Tuple[int, ...]) -> Operand:
    """A dense copy of the bits, repeated up to a shape; NumPy may have no dtype for the type."""
    element = operand.element
    strides = operand.strides or dense_strides(operand.shape)
    if element.bits < 8:
        raise TypeError(
            f"a tensor of {element} with shape {shape} and strides {strides}: expected a dense one,"
            " since elements narrower than a byte are not copied"
        )
    size = element.bits // 8
    memory = memoryview((c_uint8 * operand.bytes).from_address(operand.address))
    steps = [size * stride for stride in strides]
    codes: npt.NDArray[Any] = np.ndarray(operand.shape, f"u{size}", memory, 0, steps)
    made = dense_copy(np.broadcast_to(codes, shape))
    return Operand(made, element, shape, None, address_of(made), made.nbytes)


def dense_strides(shape: Tuple[int, ...]) -> Tuple[int, ...]:
    """In elements, of row-major order."""
    strides = []
    stride = 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return tuple(reversed(strides))


def _memory(given: Any) -> Any:
    """The array of an object that lends its memory to NumPy; other objects as they are."""
    refuse_mask(given)
    if hasattr(given, "__array_interface__"):
        return np.asarray(given)
    if _comes_by_dlpack(given):
        return given
    try:
        buffer = memoryview(given)
    except TypeError:
        return given
    return np.asarray(buffer)


def _comes_by_dlpack(given: Any) -> bool:
    if not hasattr(given, "__dlpack__"):
        return False
    from castor import _dlpack

    return _dlpack.is_readable()


def input_operand(given: Any) -> Operand:
    """What is read: an array, a tensor, or what NumPy takes as an array; an operand stays one."""
    if isinstance(given, Operand):
        return given
    if isinstance(given, Tensor):
        return operand_of_tensor(given)
    given = _memory(given)
    if isinstance(given, np.ndarray):
        array = given
    elif _comes_by_dlpack(given):
        return _operand_of_dlpack(given, writes=False)
    else:
        array = np.asarray(given)
    element = element_of_dtype(array.dtype)
    if element.bits < 8:
        from castor._unpacked import pack

        return operand_of_tensor(pack(array, element))
    operand = operand_of_array(array) or operand_of_array(dense_copy(array))
    assert operand is not None
    return operand


def operand_of_codes(array: npt.NDArray[Any], element: ElementType) -> Optional[Operand]:
    """The bytes of an array of ml_dtypes whose elements are integers narrower than a byte.

    None for other elements, and where castor cannot take the array's memory as it is.
    """
    if not element.is_integer or element.bits >= 8:
        return None
    operand = operand_of_array(array.view(np.int8 if element.is_signed else np.uint8))
    if operand is not None:
        operand.owner = array
    return operand


def unpacked_output(given: Any) -> Optional[Tuple[npt.NDArray[Any], ElementType]]:
    """An array of ml_dtypes with a byte for each element that is narrower, and that element."""
    if not isinstance(given, np.ndarray):
        return None
    element = element_of_dtype(given.dtype)
    if element.bits >= 8:
        return None
    if not given.flags.writeable:
        raise ValueError("an output is read-only")
    return given, element


def output_operand(given: Any) -> Operand:
    """What is written: an array or a tensor whose own memory takes the elements."""
    if isinstance(given, Tensor):
        if not given._data.flags.writeable:
            raise ValueError("the data of an output is read-only")
        return operand_of_tensor(given)
    memory = _memory(given)
    if not isinstance(memory, np.ndarray):
        if _comes_by_dlpack(memory):
            return _operand_of_dlpack(memory, writes=True)
        raise TypeError(
            f"an output is a {type(given).__name__}, which lends no memory: expected an array,"
            " a castor.Tensor, or an object with __array_interface__, a buffer or __dlpack__"
        )
    if not memory.flags.writeable:
        raise ValueError("an output is read-only")
    operand = operand_of_array(memory)
    if operand is None:
        raise ValueError(
            f"an output of dtype {memory.dtype} with strides {memory.strides}: expected positive"
            " strides of whole elements in the machine's byte order"
        )
    return operand
