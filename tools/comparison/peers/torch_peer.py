# SPDX-License-Identifier: Apache-2.0
"""PyTorch, operation by operation, into tensors in our memory."""
from __future__ import annotations

import numpy as np
import torch

from ..tasks import Lacking, Prepared, Task, Tensor, outputs_of
from . import torch_functions
from .base import Peer

TYPES = {"boolean": "bool", "u8": "uint8", "i8": "int8", "u16": "uint16", "i16": "int16",
         "u32": "uint32", "i32": "int32", "u64": "uint64", "i64": "int64", "f16": "float16",
         "bf16": "bfloat16", "f32": "float32", "f64": "float64", "f8e4m3": "float8_e4m3fn",
         "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2",
         "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0": "float8_e8m0fnu"}


def dtype_of(element: str) -> torch.dtype:
    if element not in TYPES:
        raise Lacking(f"no {element}")
    return getattr(torch, TYPES[element])


def tensor_of(tensor: Tensor) -> torch.Tensor:
    """The same memory for torch."""
    return torch.from_numpy(tensor.data).view(dtype_of(tensor.element)).view(tensor.shape)


class TorchPeer(Peer):
    name = "PyTorch"
    version = torch.__version__.split("+")[0]

    def __init__(self, threads: int):
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)

    def do_convert(self, task: Task) -> Prepared:
        function = task.function("")
        out = outputs_of(function)[0]
        x, y = tensor_of(function.inputs[0]), tensor_of(out)
        try:
            y.copy_(x)
        except (NotImplementedError, RuntimeError) as failure:
            raise Lacking(str(failure).splitlines()[0]) from failure
        return Prepared(lambda: y.copy_(x), lambda: [out.data])

    def do_function(self, task: Task) -> Prepared:
        return torch_functions.prepare(task, tensor_of, compiled=False)

    do_dynamic_quantization = do_function
    do_blocks = do_function

    def do_matmul_integer(self, task: Task) -> Prepared:
        return torch_functions.matmul_integer(task, tensor_of)

    def do_qlinear_conv(self, task: Task) -> Prepared:
        return torch_functions.qlinear_conv(task, tensor_of)


def bytes_of(tensor: torch.Tensor) -> np.ndarray:
    """The memory of a result."""
    return tensor.contiguous().view(-1).view(torch.uint8).numpy()


def make(threads: int) -> Peer:
    return TorchPeer(threads)
