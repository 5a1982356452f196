# SPDX-License-Identifier: Apache-2.0
"""Whether a peer's result has castor's bits, and how far it is from them where it does not."""
from __future__ import annotations

import castor
import numpy as np

from .tasks import Spec


def values_of(data: np.ndarray, spec: Spec) -> np.ndarray:
    """The elements as f64; 64-bit integers are rounded."""
    tensor = castor.Tensor(data, spec.element, (spec.size,))
    return np.asarray(castor.convert(tensor, "f64"))


def difference(found: list[np.ndarray], expected: list[np.ndarray],
               specs: tuple[Spec, ...]) -> dict | None:
    """None where all bits are the same; else how many elements differ and by how much at most."""
    if len(found) != len(expected):
        raise ValueError(f"{len(found)} results, expected {len(expected)}")
    if all(one.tobytes() == other.tobytes() for one, other in zip(found, expected)):
        return None
    count, size, worst = 0, 0, 0.0
    for one, other, spec in zip(found, expected, specs):
        if one.size != other.size:
            raise ValueError(f"a result of {one.size} bytes, expected {other.size}")
        a, b = values_of(one, spec), values_of(other, spec)
        differ = ~((a == b) | (np.isnan(a) & np.isnan(b)))
        count += int(differ.sum())
        size += spec.size
        with np.errstate(all="ignore"):
            apart = np.abs(a - b)[differ]
        if apart.size:
            worst = max(worst, float(np.nanmax(np.where(np.isnan(apart), np.inf, apart))))
    if count == 0:  # zeros of another sign, NaNs of another payload
        return {"elements": 0, "of": size, "apart": 0.0}
    return {"elements": count, "of": size, "apart": worst}
