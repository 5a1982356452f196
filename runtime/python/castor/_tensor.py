# SPDX-License-Identifier: Apache-2.0
"""Tensors of elements that NumPy has no dtype for."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple, Union

import numpy as np

from castor._element_types import ElementType, element_type

if TYPE_CHECKING:
    import numpy.typing as npt


def refuse_mask(array: Any) -> None:
    """Raises for a masked array, whose mask castor would pass over."""
    is_derived = isinstance(array, np.ndarray) and type(array) is not np.ndarray
    if is_derived and isinstance(array, np.ma.MaskedArray):  # NumPy imports `ma` when it is asked
        raise TypeError("a masked array, expected one without a mask: filled() makes one")


def _extents(shape: Any) -> Tuple[int, ...]:
    """The extents of a shape, which is one integer or several."""
    try:
        several = shape if hasattr(shape, "__iter__") else (shape,)
        extents = tuple([int(operator.index(extent)) for extent in several])
    except TypeError:
        raise TypeError(f"shape {shape!r} of a tensor, expected an integer or several") from None
    if any(extent < 0 for extent in extents):
        raise ValueError(f"shape {extents} of a tensor has a negative extent")
    return extents


def _dense_bytes(data: Any) -> npt.NDArray[np.uint8]:
    """The bytes of an array or a buffer, where they are."""
    refuse_mask(data)
    try:
        is_array = isinstance(data, np.ndarray)
        stored = np.asarray(data) if is_array else np.frombuffer(data, np.uint8)
    except BufferError:  # a buffer with strides
        stored = None
    if stored is None or not stored.flags.c_contiguous:
        raise ValueError("the data of a tensor is not contiguous")
    return stored.reshape(-1).view(np.uint8)


class Tensor:
    """A dense tensor in row-major order, as castor stores it.

    `element` is its type, `shape` its extents, and `data` its bytes, a NumPy array of uint8 with
    one axis. Elements narrower than a byte are packed: the first one is in the least significant
    bits of the first byte (of u1, in the most significant bit). The bytes may change, but type,
    shape and memory stay, since calls that were prepared check none of them.

    Tensors are equal where their types, shapes and the bits of their elements are.

    >>> t = Tensor(bytes([0x21, 0x43]), "u4", (2, 2))
    >>> t
    castor.Tensor([[1, 2], [3, 4]], 'u4')
    >>> t.numpy().dtype
    dtype('uint8')
    """

    __slots__ = ("__weakref__", "_data", "_element", "_shape")

    _data: npt.NDArray[np.uint8]
    _element: ElementType
    _shape: Tuple[int, ...]

    def __init__(
        self, data: Any, dtype: Any, shape: Union[int, Sequence[int]], *, copy: bool = False
    ) -> None:
        element, extents, stored = element_type(dtype), _extents(shape), _dense_bytes(data)
        expected = element.bytes_of(math.prod(extents))
        if stored.size != expected:
            raise ValueError(
                f"a tensor of {element} and shape {extents} takes {expected} bytes,"
                f" not {stored.size}"
            )
        self._data = stored.copy() if copy else stored
        self._element = element
        self._shape = extents

    @classmethod
    def of_packed(
        cls, data: npt.NDArray[np.uint8], element: ElementType, shape: Tuple[int, ...]
    ) -> Tensor:
        """The tensor of these bytes."""
        return cls(data, element, shape)

    @property
    def data(self) -> npt.NDArray[np.uint8]:
        """The bytes, which may be written. The array is a view: NumPy does not resize one."""
        return self._data.view()

    @property
    def element(self) -> ElementType:
        """The element type."""
        return self._element

    @property
    def dtype(self) -> ElementType:
        """The element type."""
        return self._element

    @property
    def shape(self) -> Tuple[int, ...]:
        """The extents."""
        return self._shape

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self._shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def nbytes(self) -> int:
        """The bytes of `data`."""
        return int(self._data.nbytes)

    def reshape(self, *shape: Any) -> Tensor:
        """The same data with other extents, one of which may be -1."""
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        extents = np.broadcast_to(np.uint8(0), self._shape).reshape(wanted).shape
        return Tensor(self._data, self._element, extents)

    def astype(self, dtype: Any, **options: Any) -> Any:
        """castor.convert of this tensor."""
        from castor._convert import convert

        return convert(self, dtype, **options)

    def numpy(self) -> npt.NDArray[Any]:
        """A copy of the values, in uint8, int8 or float32 where NumPy lacks the type."""
        element = self._element
        if element.name == "boolean" or (element.bits > 8 and element.name != "bf16"):
            return np.asarray(self.astype(element))
        return np.asarray(self.astype({"u": "u8", "i": "i8"}.get(element.name[0], "f32")))

    def tolist(self) -> Any:
        """The values as a list of lists of Python's numbers, or one number."""
        return self.numpy().tolist()

    def __array__(
        self, dtype: Optional[np.dtype[Any]] = None, copy: Optional[bool] = None
    ) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError(f"an array of {self._element} in NumPy is a copy")
        values = self.numpy()
        return values if dtype is None else values.astype(dtype, copy=False)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Optional[Tuple[int, int]] = None,
        dl_device: Optional[Tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> Any:
        """A capsule that lends the bytes, in the order and type of DLPack 1.1; see its standard.

        BufferError for u1 and other types that DLPack lacks, and where the interpreter is not
        CPython.
        """
        from castor._dlpack_export import capsule_of

        return capsule_of(
            self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (1, 0)  # the CPU

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("a tensor without axes has no length")
        return self._shape[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tensor):
            return NotImplemented
        if self._element is not other._element or self._shape != other._shape:
            return False
        if np.array_equal(self._data, other._data):
            return True
        # The bits after the last element mean nothing.
        is_padded = self._element.bits * self.size != 8 * self._data.size
        return is_padded and np.array_equal(self._codes(), other._codes())

    __hash__ = None  # type: ignore[assignment]

    def _codes(self) -> Any:
        """The bits of each element, which is narrower than a byte, in a byte of its own."""
        name = self._element.name
        codes = name if name.startswith("u") else f"u{self._element.bits}"
        return Tensor(self._data, codes, self._shape).astype("u8")

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self._data, self._element, self._shape)

    def __repr__(self) -> str:
        if self.size > 32:
            return f"castor.Tensor(shape={self._shape}, dtype={self._element.name!r})"
        return f"castor.Tensor({self.tolist()}, {self._element.name!r})"


def packed_tensor(
    data: npt.NDArray[np.uint8], element: ElementType, shape: Tuple[int, ...]
) -> Tensor:
    """The tensor of bytes that are known to be dense and as many as it takes."""
    made = Tensor.__new__(Tensor)
    made._data = data
    made._element = element
    made._shape = shape
    return made


def empty_tensor(element: ElementType, shape: Tuple[int, ...]) -> Tensor:
    """A tensor of any contents."""
    data = np.empty(element.bytes_of(math.prod(shape)), np.uint8)
    return packed_tensor(data, element, shape)
