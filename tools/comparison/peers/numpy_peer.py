# SPDX-License-Identifier: Apache-2.0
"""NumPy with its own dtypes. It has one thread."""
from __future__ import annotations

import numpy as np

from ..tasks import Lacking, Prepared, Task, outputs_of
from . import numpy_functions
from .base import Peer

TYPES = {"boolean", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64"}


class NumpyPeer(Peer):
    name = "NumPy"
    version = np.__version__
    is_threaded = False

    def do_convert(self, task: Task) -> Prepared:
        for name in (task.details["source"], task.details["target"]):
            if name not in TYPES:
                raise Lacking(f"no {name}")
        function = task.function("")
        x, out = function.inputs[0].array(), outputs_of(function)[0]
        y = out.array()
        return Prepared(lambda: np.copyto(y, x, casting="unsafe"), lambda: [out.data])

    def do_function(self, task: Task) -> Prepared:
        return numpy_functions.prepare(task)

    do_dynamic_quantization = do_function
    do_blocks = do_function

    def do_matmul_integer(self, task: Task) -> Prepared:
        return numpy_functions.matmul_integer(task)


def make(threads: int) -> Peer:
    return NumpyPeer()
