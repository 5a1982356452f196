# SPDX-License-Identifier: Apache-2.0
"""OpenVINO's CPU plugin, in f32 where it would choose bf16, with tensors in our memory."""
from __future__ import annotations

from collections.abc import Callable

import openvino
from openvino import opset13 as ops

from ..tasks import Function, Lacking, Prepared, Task, Tensor, outputs_of
from . import onnx_tasks
from .base import Peer
from .onnxruntime_peer import first_line

# Without those of ConvertLike's u1, u3 and u6, of which some end the process.
TYPES = {name: name for name in
         ("boolean", "u2", "u4", "u8", "u16", "u32", "u64", "i4", "i8", "i16", "i32", "i64",
          "f4e2m1", "f8e4m3", "f8e5m2", "f8e8m0", "bf16", "f16", "f32", "f64", "nf4")}


def type_of(element: str) -> openvino.Type:
    if element not in TYPES:
        raise Lacking(f"no {element}")
    return getattr(openvino.Type, TYPES[element])


def tensor_of(tensor: Tensor) -> openvino.Tensor:
    """The same memory for OpenVINO."""
    return openvino.Tensor(tensor.data, openvino.Shape(tensor.shape), type_of(tensor.element))


class OpenvinoPeer(Peer):
    name = "OpenVINO"
    version = openvino.__version__.split("-")[0]

    def __init__(self, threads: int):
        self.core = openvino.Core()
        self.core.set_property("CPU", {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
                                       "INFERENCE_PRECISION_HINT": "f32"})

    def _run(self, model: openvino.Model, function: Function, form: str = "") -> Prepared:
        inputs, results = list(function.inputs), outputs_of(function)
        try:
            compiled = self.core.compile_model(model, "CPU")
        except RuntimeError as failure:
            raise Lacking(first_line(failure)) from failure
        for port, tensor in (*zip(compiled.inputs, inputs), *zip(compiled.outputs, results)):
            if port.element_type != type_of(tensor.element):
                raise Lacking(f"{tensor.element} becomes {port.element_type.get_type_name()}")
        request = compiled.create_infer_request()
        for index, tensor in enumerate(inputs):
            request.set_input_tensor(index, tensor_of(tensor))
        for index, tensor in enumerate(results):
            request.set_output_tensor(index, tensor_of(tensor))
        native = request._cpp_infer if hasattr(request, "_cpp_infer") else request
        kept = (inputs, results, compiled)

        def run(kept=kept) -> None:
            native.infer(share_inputs=True, share_outputs=True)

        try:
            run()
        except RuntimeError as failure:
            raise Lacking(first_line(failure)) from failure
        return Prepared(run, lambda: [tensor.data for tensor in results], form)

    def do_convert(self, task: Task) -> Prepared:
        function = task.function("")
        return self._run(conversion(function), function)

    def _read(self, model: bytes) -> openvino.Model:
        try:
            return self.core.read_model(model=model, weights=b"")
        except RuntimeError as failure:
            raise Lacking(first_line(failure)) from failure

    def _do_onnx(self, task: Task) -> Prepared:
        made = onnx_tasks.model_of(task)
        return self._run(self._read(made.model), task.function(made.form), made.form)

    def creation(self, task: Task) -> Callable[[], object]:
        if task.kind == "convert":
            model = conversion(task.function(""))
            return lambda: self.core.compile_model(model, "CPU")
        model = onnx_tasks.model_of(task).model
        self._read(model)  # says now what it lacks
        return lambda: self.core.compile_model(self._read(model), "CPU")

    do_function = _do_onnx
    do_conv_integer = _do_onnx
    do_qlinear_conv = _do_onnx
    do_matmul_integer = _do_onnx
    do_dynamic_quantization = _do_onnx
    do_blocks = _do_onnx


def conversion(function: Function) -> openvino.Model:
    """Convert alone."""
    x, y = function.inputs[0], function.outputs[0]
    type_of(y.element)  # says what it lacks
    parameter = ops.parameter(list(x.shape), type_of(x.element), name="x")
    return openvino.Model([ops.convert(parameter, y.element)], [parameter], "convert")


def make(threads: int) -> Peer:
    return OpenvinoPeer(threads)
