# SPDX-License-Identifier: Apache-2.0
"""Comparison of machine code with the reference interpreter."""

from __future__ import annotations

import itertools
import math
import re
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from castor._element_types import ElementType
from castor._prepared import new_output
from castor._tensor import Tensor

if TYPE_CHECKING:
    import numpy.typing as npt

EXTENTS = (1, 2, 17, 64, 131)
"""What unknown extents are, one after the other: all of them equal, so that they broadcast."""
MAX_ELEMENTS = 1 << 20
"""Elements of a tensor that such a case may have; the interpreter is slow."""
MAX_ATTEMPTS = 2000
"""Combinations of extents that are tried for one of these, where equal ones do not fit."""

Dims = Sequence[Tuple[int, Optional[bytes]]]
"""The declared axes: each has an extent, or -1 and a name, or None where it has none either."""
Shapes = Sequence[Tuple[int, ...]]


class MismatchError(AssertionError):
    """Machine code gave other bits than the interpreter."""


def bits_of(result: Any) -> npt.NDArray[np.uint8]:
    """The bytes of an array or a tensor."""
    stored = result.data if isinstance(result, Tensor) else np.ascontiguousarray(result)
    return np.frombuffer(stored.tobytes(), np.uint8)


def block_extents(ir: str) -> List[int]:
    """The extents of blocks that a function's text names, and those of MX formats."""
    written = re.findall(r"block(?:_size)? = ([\[\d, \]]+)", ir)
    found = {int(one) for text in written for one in re.findall(r"\d+", text)}
    return sorted(found | ({16, 32} if "_mx " in ir else set()))


def fitting_shapes(
    inputs: Sequence[Dims], extent: int, blocks: Sequence[int], fits: Callable[[Shapes], bool]
) -> Optional[Shapes]:
    """Shapes whose unknown extents are `extent`, or, where these do not fit, numbers of blocks.

    Of the combinations the first one that fits is taken, in which most are `extent`; None where
    none of those that are tried does, or where tensors would be too large.
    """
    names: List[Any] = []
    for index, dims in enumerate(inputs):
        for axis, (size, name) in enumerate(dims):
            key = name or (index, axis)
            if size < 0 and key not in names:
                names.append(key)
    options = [extent, *(-(-extent // block) for block in blocks), 1]
    for values in itertools.islice(itertools.product(options, repeat=len(names)), MAX_ATTEMPTS):
        chosen = dict(zip(names, values))
        shapes = [
            tuple(
                [
                    chosen[name or (index, axis)] if size < 0 else size
                    for axis, (size, name) in enumerate(dims)
                ]
            )
            for index, dims in enumerate(inputs)
        ]
        if fits(shapes):
            is_small = all(math.prod(shape) <= MAX_ELEMENTS for shape in shapes)
            return shapes if is_small or extent == EXTENTS[0] else None
    return None


def random_inputs(elements: Sequence[ElementType], shapes: Shapes, seed: int) -> List[Any]:
    """Tensors of random bits: every value of a type can occur, NaNs and infinities among them."""
    random = np.random.default_rng(seed)
    inputs = []
    for element, shape in zip(elements, shapes):
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
