# SPDX-License-Identifier: Apache-2.0
"""Conversions of ml_dtypes, by NumPy's astype. Elements narrower than a byte have a byte each."""
from __future__ import annotations

import castor
import ml_dtypes
import numpy as np

from ..tasks import Lacking, Prepared, Task, Tensor, outputs_of
from .base import Peer
from .numpy_peer import TYPES as NUMPY_TYPES


def array_of(tensor: Tensor) -> np.ndarray:
    """The tensor's memory, or a copy with a byte for each element."""
    return tensor.unpacked() if tensor.bits < 8 else tensor.array()


def has(name: str) -> bool:
    element = castor.element_type(name)
    return (element.dtype or element.unpacked_dtype) is not None


class MlDtypesPeer(Peer):
    name = "ml_dtypes"
    version = ml_dtypes.__version__
    is_threaded = False

    def do_convert(self, task: Task) -> Prepared:
        names = {task.details["source"], task.details["target"]}
        if names <= NUMPY_TYPES:
            raise Lacking("NumPy's own dtypes")
        for name in names:
            if not has(name):
                raise Lacking(f"no {name}")
        function = task.function("")
        x, out = array_of(function.inputs[0]), outputs_of(function)[0]
        y = array_of(out)

        def results() -> list[np.ndarray]:
            return [Tensor.of(castor.convert(y, out.element)).data]

        try:
            np.copyto(y, x, casting="unsafe")
        except TypeError as failure:
            raise Lacking(str(failure)) from failure
        narrow = any(castor.element_type(name).bits < 8 for name in names)
        return Prepared(lambda: np.copyto(y, x, casting="unsafe"), results,
                        note="unpacked" if narrow else "")


def make(threads: int) -> Peer:
    return MlDtypesPeer()
