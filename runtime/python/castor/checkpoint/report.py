# SPDX-License-Identifier: Apache-2.0
"""The error of each converted tensor."""

from __future__ import annotations

import math
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from castor.checkpoint.formats.transform import BlockError


class TensorError(NamedTuple):
    """How far a tensor is from the original, both as the loader reads it.

    `relative` is the root mean square of the differences over that of the elements. `saturated`
    elements are beyond what their block can hold; `not_finite` are NaN or infinite.
    """

    name: str
    elements: int
    maximum: float
    relative: float
    saturated: int
    not_finite: int

    def to_json(self) -> Dict[str, Any]:
        """JSON has no NaN: a tensor with elements that are not finite has null errors."""

        def number(value: float) -> Optional[float]:
            return value if math.isfinite(value) else None

        found = self._asdict()
        found["maximum"] = number(self.maximum)
        found["relative"] = number(self.relative)
        return found

    @staticmethod
    def from_json(value: Dict[str, Any]) -> TensorError:
        """What to_json gave."""
        filled = dict(value)
        for key in ("maximum", "relative"):
            filled[key] = math.nan if value[key] is None else value[key]
        return TensorError(**filled)


class ErrorSum:
    """The errors of the blocks of a tensor."""

    def __init__(self) -> None:
        self._maximum = 0.0
        self._squares: List[float] = []
        self._original: List[float] = []
        self._saturated = 0
        self._not_finite = 0

    def add(self, block: BlockError) -> None:
        """In any order, which the result does not depend on."""
        if math.isnan(block.maximum) or block.maximum > self._maximum:  # a NaN stays
            self._maximum = block.maximum
        self._squares.append(block.squares)
        self._original.append(block.original_squares)
        self._saturated += block.saturated
        self._not_finite += block.not_finite

    def result(self, name: str, elements: int) -> TensorError:
        """The errors of the whole tensor."""
        squares, original = math.fsum(self._squares), math.fsum(self._original)
        relative = math.sqrt(squares / original) if original else math.sqrt(squares)
        return TensorError(
            name, elements, self._maximum, relative, self._saturated, self._not_finite
        )


def table(errors: Sequence[TensorError]) -> str:
    """The report as text."""
    width = max([len("tensor"), *(len(error.name) for error in errors)])
    lines = [
        f"{'tensor':{width}} {'elements':>12} {'max error':>11} {'rel. RMS':>11}"
        f" {'saturated':>10} {'not finite':>10}"
    ]
    lines += [
        f"{error.name:{width}} {error.elements:12} {error.maximum:11.4g} {error.relative:11.4g}"
        f" {error.saturated:10} {error.not_finite:10}"
        for error in errors
    ]
    return "\n".join(lines)
