# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's CPU provider: models of one task, with inputs and outputs bound to memory."""
from __future__ import annotations

from collections.abc import Callable

import onnxruntime

from ..tasks import Function, Lacking, Prepared, Task, outputs_of
from . import onnx_models, onnx_tasks
from .base import Peer

ONLY_FATAL = 4


def session_of(model: bytes, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = ONLY_FATAL
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as failure:  # its classes of exceptions are not public
        raise Lacking(first_line(failure)) from failure


def first_line(failure: Exception) -> str:
    lines = str(failure).splitlines()
    return lines[0][:160] if lines else type(failure).__name__


class OnnxRuntimePeer(Peer):
    name = "ONNX Runtime"
    version = onnxruntime.__version__

    def __init__(self, threads: int):
        self._threads = threads

    def _run(self, function: Function, made: onnx_tasks.Model) -> Prepared:
        """A session whose tensors are in our memory."""
        model, inputs, outputs, form = made.model, made.inputs, made.outputs, made.form
        session = session_of(model, self._threads)
        binding = session.io_binding()
        for name, tensor in inputs.items():
            binding.bind_input(name, "cpu", 0, onnx_models.number_of(tensor.element),
                               tensor.shape, tensor.data.ctypes.data)
        results = dict(zip(outputs, outputs_of(function)))
        for name, tensor in results.items():
            binding.bind_output(name, "cpu", 0, onnx_models.number_of(tensor.element),
                                tensor.shape, tensor.data.ctypes.data)
        kept = (inputs, results)

        def run(kept=kept) -> None:
            session.run_with_iobinding(binding)

        try:
            run()
        except Exception as failure:
            raise Lacking(first_line(failure)) from failure
        return Prepared(run, lambda: [tensor.data for tensor in results.values()], form)

    def _do_onnx(self, task: Task) -> Prepared:
        made = onnx_tasks.model_of(task)
        return self._run(task.function(made.form), made)

    def creation(self, task: Task) -> Callable[[], object]:
        model = onnx_tasks.model_of(task).model
        session_of(model, self._threads)  # says now what it lacks
        return lambda: session_of(model, self._threads)

    do_convert = _do_onnx
    do_function = _do_onnx
    do_conv_integer = _do_onnx
    do_qlinear_conv = _do_onnx
    do_matmul_integer = _do_onnx
    do_dynamic_quantization = _do_onnx
    do_blocks = _do_onnx


def make(threads: int) -> Peer:
    return OnnxRuntimePeer(threads)
