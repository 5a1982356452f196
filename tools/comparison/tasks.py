# SPDX-License-Identifier: Apache-2.0
"""What is measured: tensors, the function that castor compiles, and what peers are told of it."""
from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import castor
import numpy as np

ALIGNMENT = 64
SPOILED = 0xA5  # in each byte of memory that no result is stored in yet


def aligned_bytes(count: int) -> np.ndarray:
    """Zeros that begin at a cache line."""
    whole = np.zeros(count + ALIGNMENT, np.uint8)
    start = -whole.ctypes.data % ALIGNMENT
    return whole[start:start + count]


@dataclasses.dataclass(frozen=True)
class Spec:
    """The form of a tensor; elements have castor's names."""
    element: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def bits(self) -> int:
        return castor.element_type(self.element).bits

    @property
    def nbytes(self) -> int:
        return (self.size * self.bits + 7) // 8


@dataclasses.dataclass(frozen=True)
class Tensor(Spec):
    """A dense tensor; elements narrower than a byte are packed as castor has them."""
    data: np.ndarray  # uint8, one axis

    @classmethod
    def of(cls, array: Any) -> Tensor:
        """A copy of an array of NumPy's or ml_dtypes' dtypes, or of a castor.Tensor."""
        element = castor.element_type(array.dtype)
        dense = array.data if isinstance(array, castor.Tensor) else np.ascontiguousarray(array)
        data = aligned_bytes(element.bytes_of(math.prod(array.shape)))
        data[:] = dense.reshape(-1).view(np.uint8)
        return cls(element.name, tuple(array.shape), data)

    def array(self) -> np.ndarray:
        """The memory with NumPy's or ml_dtypes' dtype, which elements of whole bytes have."""
        return self.data.view(castor.element_type(self.element).dtype).reshape(self.shape)

    def operand(self) -> Any:
        """What the Python package takes without a copy."""
        if self.bits < 8:
            return castor.Tensor(self.data, self.element, self.shape)
        return self.array()

    def unpacked(self) -> np.ndarray:
        """A copy in ml_dtypes' dtype, with a whole byte for each element."""
        dtype = castor.element_type(self.element).unpacked_dtype
        return castor.convert(self.operand(), dtype)


@dataclasses.dataclass(frozen=True)
class Function:
    """A function as text, its operands, and the forms of its results."""
    text: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Spec, ...]
    constants: dict[str, Tensor] = dataclasses.field(default_factory=dict)


_memory: dict[tuple[int, int], np.ndarray] = {}


def outputs_of(function: Function) -> list[Tensor]:
    """Memory for the results, the same for all that compute the function: which pages a tensor has
    may weigh more than what is compared."""
    made = []
    for index, spec in enumerate(function.outputs):
        data = _memory.setdefault((index, spec.nbytes), aligned_bytes(spec.nbytes))
        made.append(Tensor(spec.element, spec.shape, data))
    return made


def spoil_memory() -> None:
    """Before a result that is compared: nobody passes with what another one has stored."""
    for data in _memory.values():
        data[:] = SPOILED


def forget_memory() -> None:
    """Before another task."""
    _memory.clear()


@dataclasses.dataclass(frozen=True)
class Task:
    """One row of a table. Peers look at `kind` and `details`; `function` gives what castor computes
    in the form that a peer has, such as a layout or a rounding."""
    family: str
    name: str
    kind: str
    details: dict[str, Any]
    function: Callable[[str], Function]
    work: float = 0  # multiply-accumulates or bytes
    unit: str = ""  # "GMAC/s" or "GB/s": the work in a second


class Lacking(Exception):
    """A peer does not have what a task asks for; the message says what is missing."""


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A call that is ready to run, into memory that is there already."""
    run: Callable[[], object]
    results: Callable[[], list[np.ndarray]]  # the bytes of each output, as castor has them
    form: str = ""
    calls_per_run: int = 1
    note: str = ""
