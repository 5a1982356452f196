# SPDX-License-Identifier: Apache-2.0
"""Comparison of machine code with the reference interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Sequence, Tuple

import numpy as np

from castor._element_types import ElementType
from castor._prepared import new_output
from castor._tensor import Tensor

if TYPE_CHECKING:
    import numpy.typing as npt

EXTENTS = (1, 2, 17, 64, 131)
"""What unknown extents are, one after the other: all of them equal, so that they broadcast."""


class MismatchError(AssertionError):
    """Machine code gave other bits than the interpreter."""


def bits_of(result: Any) -> npt.NDArray[np.uint8]:
    """The bytes of an array or a tensor."""
    stored = result.data if isinstance(result, Tensor) else np.ascontiguousarray(result)
    return np.frombuffer(stored.tobytes(), np.uint8)


def random_inputs(
    types: Sequence[Tuple[ElementType, Sequence[int]]], extent: int, seed: int
) -> List[Any]:
    """Tensors of random bits: every value of a type can occur, NaNs and infinities among them."""
    random = np.random.default_rng(seed)
    inputs = []
    for element, dims in types:
        shape = tuple(extent if dim < 0 else dim for dim in dims)
        made = new_output(element, shape)
        stored = made.data if isinstance(made, Tensor) else made.reshape(-1).view(np.uint8)
        stored[...] = random.integers(0, 256, stored.size, np.uint8)
        inputs.append(made)
    return inputs


def compare(name: str, isa: str, found: Any, expected: Any) -> None:
    """Raises where a result, or one of several, has other bits."""
    pairs = zip(found, expected) if isinstance(found, tuple) else [(found, expected)]
    for index, (one, other) in enumerate(pairs):
        wrong = np.flatnonzero(bits_of(one) != bits_of(other))
        if wrong.size:
            raise MismatchError(
                f"@{name}: byte {wrong[0]} of result {index} is {bits_of(one)[wrong[0]]} on {isa},"
                f" {bits_of(other)[wrong[0]]} in the interpreter ({wrong.size} bytes differ)"
            )
