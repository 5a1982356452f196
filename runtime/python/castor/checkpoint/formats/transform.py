# SPDX-License-Identifier: Apache-2.0
"""A function of castor over stored tensors, computed in blocks of rows."""

from __future__ import annotations

import abc
import functools
import math
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

import castor
from castor.checkpoint.safetensors import TensorSpec

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]


@functools.lru_cache(maxsize=256)
def compiled(text: str) -> castor.Function:
    """The function of a text; tensors of equal columns share it."""
    return castor.compile(text)


class Part(NamedTuple):
    """A stored tensor that a transform reads or writes.

    `shape` gives castor's shape of the part for a number of rows of the weight. A stored row
    belongs to `step` rows of the weight; with step 0 every block reads the whole tensor.
    """

    spec: TensorSpec
    element: str
    shape: Callable[[int], Tuple[int, ...]]
    step: int = 1

    def span(self, row: int, rows: int, all_rows: int) -> Tuple[int, int]:
        """The bytes that belong to `rows` rows from `row` on, of a weight of `all_rows` rows."""
        if self.step == 0:
            return 0, self.spec.nbytes
        row_bytes = self.spec.nbytes // -(-all_rows // self.step)
        return row // self.step * row_bytes, -(-(row + rows) // self.step) * row_bytes


class BlockError(NamedTuple):
    """How far the encoded elements of a block are from the original ones, in f32; squares in f64,
    which has those of all f32."""

    maximum: float
    squares: float
    original_squares: float
    saturated: int
    not_finite: int


class Transform:
    """From the `inputs` to the `outputs`, of `rows` rows in blocks of a multiple of `step` rows.

    `parameters` are further operands of the text, the same for all blocks. `constants` are outputs
    that do not depend on elements.
    """

    def __init__(
        self,
        text: str,
        rows: int,
        inputs: Sequence[Part],
        outputs: Sequence[Part],
        *,
        step: int = 1,
        error_text: Optional[str] = None,
        constants: Optional[Mapping[TensorSpec, bytes]] = None,
    ) -> None:
        self.text = text
        self.rows = rows
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.step = step
        self.error_text = error_text
        self.constants = dict(constants or {})
        self.parameters: List[Any] = []

    @property
    def specs(self) -> List[TensorSpec]:
        """All tensors that are written."""
        return [part.spec for part in self.outputs] + list(self.constants)

    def run(self, inputs: Sequence[Bytes], outputs: Sequence[Bytes], rows: int) -> None:
        """Computes a block, whose memory each sequence has in the order of the parts."""
        compiled(self.text)(
            *self._tensors(self.inputs, inputs, rows),
            *self.parameters,
            out=self._tensors(self.outputs, outputs, rows),
        )

    def error(self, inputs: Sequence[Bytes], outputs: Sequence[Bytes], rows: int) -> BlockError:
        """Compares a block with what it was encoded from."""
        assert self.error_text is not None
        found = compiled(self.error_text)(
            *self._tensors(self.inputs, inputs, rows),
            *self._tensors(self.outputs, outputs, rows),
            *self.parameters,
        )
        maximum, squares, original, saturated, not_finite = (one.item() for one in found)
        return BlockError(maximum, squares, original, saturated, not_finite)

    @staticmethod
    def _tensors(parts: Sequence[Part], blocks: Sequence[Bytes], rows: int) -> List[castor.Tensor]:
        tensors = []
        for part, block in zip(parts, blocks):
            element, shape = castor.element_type(part.element), part.shape(rows)
            if block.size != element.bytes_of(math.prod(shape)):
                raise ValueError(f"{block.size} bytes of {part.spec.name} for {rows} rows")
            tensors.append(castor.Tensor.of_packed(block, element, shape))
        return tensors


class TwoPassTransform(Transform, abc.ABC):
    """One with parameters that derive from the largest magnitude of the whole tensor."""

    maximum_text = ""

    def maximum(self, block: Bytes, rows: int) -> float:
        """The largest magnitude of a block of the first input."""
        part = self.inputs[0]
        found = compiled(self.maximum_text)(castor.Tensor(block, part.element, part.shape(rows)))
        return float(found.item())

    @abc.abstractmethod
    def set_maximum(self, maximum: float) -> None:
        """Derives the parameters, and the constants that are stored for them."""


def error_text(parameters: str, decode: str) -> str:
    """The function that computes BlockError of a format.

    `parameters` are those of x and of what encodes it. From them and %xf, x in f32, `decode`
    computes %d, the values in f32, and %over, true where x is outside of what the format holds.
    """
    return f"""func @error({parameters}) -> (f32[], f64[], f64[], i32[], i32[]) {{
  %xf = convert %x : f32
{decode}
  %e = sub %xf, %d
  %maximum = reduce_max_abs %e
  %ed = convert %e : f64
  %ee = mul %ed, %ed
  %squares = reduce_sum %ee
  %xd = convert %xf : f64
  %xx = mul %xd, %xd
  %original = reduce_sum %xx
  %o = convert %over : i32
  %saturated = reduce_sum %o
  %zero = sub %xf, %xf
  %nan = is_nan %zero
  %n = convert %nan : i32
  %bad = reduce_sum %n
  return %maximum, %squares, %original, %saturated, %bad
}}"""
