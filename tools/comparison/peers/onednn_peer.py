# SPDX-License-Identifier: Apache-2.0
"""oneDNN's primitives, in the layouts that it prefers: channels last, weights packed ahead.

Where executions go through a queue of SYCL, as in its package from PyPI, a run is several and one
wait; else it is one, so that each pays a call through ctypes, as castor's do.
"""
from __future__ import annotations

import ctypes
from collections.abc import Callable

from ..families.convolutions import Operands as ConvolutionOperands
from ..onednn import build
from ..onednn.library import Call, ConvolutionTask, Library
from ..tasks import Function, Lacking, Prepared, Task, Tensor, outputs_of
from .base import Peer

QUEUED_EXECUTIONS = 8
PRIMITIVES = 1024  # oneDNN's own default for its cache
ROUNDED = "{overflow = saturate, rounding = nearest_even}"
SATURATED = "{overflow = saturate}"
BINARY = {"add_f32": b"add", "mul_bf16": b"mul", "image_normalize": b"sub"}


def address(tensor: Tensor) -> int:
    return tensor.data.ctypes.data


def is_float(element: str) -> bool:
    return element[0] == "f" or element == "bf16"


def form_of(task: Task) -> str:
    """Reorders to integers round and saturate; convolutions have channels last."""
    if task.kind in ("conv_integer", "qlinear_conv"):
        return "nhwc"
    if task.kind != "convert" or is_float(task.details["target"]):
        return ""
    return ROUNDED if is_float(task.details["source"]) else SATURATED


class OnednnPeer(Peer):
    def __init__(self, location: build.Location):
        self.library = Library(location)
        self.version = self.library.version
        self.name = f"oneDNN {self.version.split('.')[0]}"
        self._makers: dict[str, Callable[[Task, Function, list[Tensor]], Call]] = {
            "convert": self._reorder, "conv_integer": self._convolution,
            "qlinear_conv": self._convolution, "matmul_integer": self._matmul,
            "function": self._chain}

    def _maker(self, task: Task) -> tuple[Callable[[], Call], list[Tensor]]:
        """What makes the call, and the memory of its results."""
        if task.kind not in self._makers:
            raise Lacking(f"no {task.kind}")
        function = task.function(form_of(task))
        outputs = outputs_of(function)
        return lambda: self._makers[task.kind](task, function, outputs), outputs

    def prepare(self, task: Task) -> Prepared:
        make, outputs = self._maker(task)
        call = make()
        call.run()  # raises Lacking where the execution is refused
        run, pointer = self.library.run, call.pointer
        is_slow = call.implementation.startswith(("simple", "ref"))  # its code without a JIT
        executions = QUEUED_EXECUTIONS if self.library.has_queue and not is_slow else 1
        kept = (call, make)

        def run_all(kept=kept) -> None:
            run(pointer, executions)

        return Prepared(run_all, lambda: [tensor.data for tensor in outputs], form_of(task),
                        executions, note=call.implementation)

    def creation(self, task: Task) -> Callable[[], object]:
        make, _ = self._maker(task)
        make()  # says now what it lacks
        self.library.set_cache(0)  # and is forgotten
        self.library.set_cache(PRIMITIVES)
        return make

    def _reorder(self, task: Task, function: Function, outputs: list[Tensor]) -> Call:
        x, y = function.inputs[0], outputs[0]
        return self.library.call("reorder", x.element.encode(), y.element.encode(), x.size,
                                 address(x), address(y))

    def _convolution(self, task: Task, function: Function, outputs: list[Tensor]) -> Call:
        each: ConvolutionOperands = task.details["operands"]
        if each.w_zero_point:
            raise Lacking("no zero point of weights")
        is_quantized = task.kind == "qlinear_conv"
        return self.library.call("convolution", ctypes.byref(
            described(each, function.inputs[0], outputs[0], is_quantized)))

    def _matmul(self, task: Task, function: Function, outputs: list[Tensor]) -> Call:
        each = task.details["operands"]
        if each.b_zero_point:
            raise Lacking("no zero point of weights")
        return self.library.call(
            "matmul", each.a.element.encode(), each.b.element.encode(), each.a.shape[0],
            each.a.shape[1], each.b.shape[1], address(each.a), address(each.b),
            address(outputs[0]), each.a_zero_point)

    def _chain(self, task: Task, function: Function, outputs: list[Tensor]) -> Call:
        name, inputs, y = task.details["function"], function.inputs, outputs[0]
        if name == "clamp_f32":
            return self.library.call("clip", y.size, 0.0, 6.0, address(inputs[0]), address(y))
        if name not in BINARY:
            raise Lacking("no primitive for this chain")
        x, other = inputs[:2]
        rows, columns = x.shape
        then = address(inputs[2]) if len(inputs) > 2 else None
        return self.library.call(
            "binary", BINARY[name], x.element.encode(), other.element.encode(), y.element.encode(),
            rows, columns, other.size // columns, address(x), address(other), then, address(y))


def described(each: ConvolutionOperands, x: Tensor, y: Tensor,
              is_quantized: bool) -> ConvolutionTask:
    """The structure of a task, which points to the tensors."""
    layer = each.layer
    padded = ctypes.c_int64 * 4
    made = ConvolutionTask(
        layer.axes, layer.channels, layer.out_channels, layer.kernel, layer.stride, layer.pad,
        layer.groups, padded(*layer.extents), padded(*layer.out_extents), x.element.encode(),
        each.w.element.encode(), y.element.encode(), address(x), address(each.w), None, address(y),
        each.x_zero_point, 0, 1.0, 1.0, None)
    if is_quantized:
        made.bias, made.w_scales = address(each.bias), address(each.w_scale)
        made.x_scale, made.y_scale = float(each.x_scale), float(each.y_scale)
        made.y_zero_point = each.y_zero_point
    return made


def make(threads: int) -> Peer:
    return OnednnPeer(build.of_environment())
