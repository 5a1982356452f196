# SPDX-License-Identifier: Apache-2.0
"""Tensors of elements that NumPy has no dtype for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple, Union

import numpy as np

from castor._element_types import ElementType, element_type

if TYPE_CHECKING:
    import numpy.typing as npt


class Tensor:
    """A dense tensor in row-major order, as castor stores it.

    `element` is its type, `shape` its extents, and `data` its bytes, a NumPy array of uint8 with
    one axis. Elements narrower than a byte are packed: the first one is in the least significant
    bits of the first byte (of u1, in the most significant bit).

    >>> t = Tensor(bytes([0x21, 0x43]), "u4", (2, 2))
    >>> t
    castor.Tensor([[1, 2], [3, 4]], 'u4')
    >>> t.numpy().dtype
    dtype('uint8')
    """

    __slots__ = ("__weakref__", "data", "element", "shape")

    def __init__(
        self, data: Any, dtype: Any, shape: Union[int, Sequence[int]], *, copy: bool = False
    ) -> None:
        self.element: ElementType = element_type(dtype)
        self.shape: Tuple[int, ...] = (
            (int(shape),) if isinstance(shape, int) else tuple(int(extent) for extent in shape)
        )
        if any(extent < 0 for extent in self.shape):
            raise ValueError(f"shape {self.shape} of a tensor has a negative extent")
        stored = np.frombuffer(data, np.uint8) if not isinstance(data, np.ndarray) else data
        if not stored.flags.c_contiguous:
            raise ValueError("the data of a tensor is not contiguous")
        self.data: npt.NDArray[np.uint8] = stored.reshape(-1).view(np.uint8)
        if copy:
            self.data = self.data.copy()
        expected = self.element.bytes_of(self.size)
        if self.data.size != expected:
            raise ValueError(
                f"a tensor of {self.element} and shape {self.shape} takes {expected} bytes,"
                f" not {self.data.size}"
            )

    @classmethod
    def of_packed(
        cls, data: npt.NDArray[np.uint8], element: ElementType, shape: Tuple[int, ...]
    ) -> Tensor:
        """The tensor of bytes that are known to be as many as it takes."""
        made = cls.__new__(cls)
        made.data = data
        made.element = element
        made.shape = shape
        return made

    @property
    def dtype(self) -> ElementType:
        """The element type."""
        return self.element

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of `data`."""
        return int(self.data.nbytes)

    def reshape(self, *shape: Any) -> Tensor:
        """The same data with other extents, one of which may be -1."""
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        extents = np.broadcast_to(np.uint8(0), self.shape).reshape(wanted).shape
        return Tensor(self.data, self.element, extents)

    def astype(self, dtype: Any, **options: Any) -> Any:
        """castor.convert of this tensor."""
        from castor._convert import convert

        return convert(self, dtype, **options)

    def numpy(self) -> npt.NDArray[Any]:
        """The values, as the narrowest of NumPy's integers or floats that has all of them."""
        name = self.element.name
        if name.startswith("u"):
            return np.asarray(self.astype("u8"))
        if name.startswith("i"):
            return np.asarray(self.astype("i8"))
        return np.asarray(self.astype("f32"))

    def __array__(
        self, dtype: Optional[np.dtype[Any]] = None, copy: Optional[bool] = None
    ) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError(f"an array of {self.element} in NumPy is a copy")
        values = self.numpy()
        return values if dtype is None else values.astype(dtype, copy=False)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without axes has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        if self.size > 32:
            return f"castor.Tensor(shape={self.shape}, dtype={self.element.name!r})"
        return f"castor.Tensor({self.numpy().tolist()}, {self.element.name!r})"


def empty_tensor(element: ElementType, shape: Tuple[int, ...]) -> Tensor:
    """A tensor of any contents."""
    data = np.empty(element.bytes_of(math.prod(shape)), np.uint8)
    return Tensor.of_packed(data, element, shape)
