# SPDX-License-Identifier: Apache-2.0
"""Tasks as models of ONNX: the nodes that an exporter or a quantizer writes for them."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from onnx import NodeProto, helper

from ..tasks import Function, Lacking, Spec, Task, Tensor
from .onnx_models import model_of as built
from .onnx_models import number_of, scalar


@dataclasses.dataclass(frozen=True)
class Model:
    """A model, its inputs and outputs in order, and castor's form of the same."""
    model: bytes
    inputs: dict[str, Tensor]
    outputs: dict[str, Spec]
    form: str = ""


class Nodes:
    """Nodes in order, and constants."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Tensor] = {}

    def constant(self, tensor: Tensor) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = tensor
        return name

    def add(self, op: str, *inputs: str, to: str | None = None, **attributes) -> str:
        """The name of its only output."""
        name = to or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def cast(self, value: str, element: str, to: str | None = None) -> str:
        name = to or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node("Cast", [value], [name], to=number_of(element)))
        return name


def clipped(n: Nodes, value: str, low: float, high: float, to: str | None = None) -> str:
    return n.add("Clip", value, n.constant(scalar(low, "f32")), n.constant(scalar(high, "f32")),
                 to=to)


# ---- chains, of which the inputs are x0, x1, x2 and the outputs y0, y1, y2 ----

def add_f32(n: Nodes) -> None:
    n.add("Add", "x0", "x1", to="y0")


def mul_bf16(n: Nodes) -> None:
    n.add("Mul", "x0", "x1", to="y0")


def clamp_f32(n: Nodes) -> None:
    clipped(n, "x0", 0, 6, to="y0")


def image_normalize(n: Nodes) -> None:
    difference = n.add("Sub", n.cast("x0", "f32"), "x1")
    n.cast(n.add("Mul", difference, "x2"), "f16", to="y0")


def dequantize_i8_rows(n: Nodes) -> None:
    n.cast(n.add("Mul", n.cast("x0", "f32"), "x1"), "f16", to="y0")


def quantize_u8(n: Nodes) -> None:
    n.add("QuantizeLinear", "x0", "x1", "x2", to="y0")


def residual_f16(n: Nodes) -> None:
    product = n.add("Mul", n.cast("x0", "f32"), "x2")
    n.cast(n.add("Relu", n.add("Add", product, n.cast("x1", "f32"))), "f16", to="y0")


def requantize_i32(n: Nodes) -> None:
    total = n.add("Add", n.add("Mul", n.cast("x0", "f32"), "x1"), "x2")
    n.cast(clipped(n, n.add("Round", total), 0, 255), "u8", to="y0")


def promote_add(n: Nodes) -> None:
    total = n.add("Add", "x0", n.cast("x1", "f32"))
    n.cast(clipped(n, total, -128, 127), "i8", to="y0")


def tensor_f32_u8(n: Nodes) -> None:
    n.nodes.append(helper.make_node("DynamicQuantizeLinear", ["x0"], ["y0", "y1", "y2"]))


def symmetric_rows(n: Nodes, x: str) -> None:
    axes = n.constant(Tensor.of(np.array([1], np.int64)))
    largest = n.add("ReduceMax", n.add("Abs", x), axes, keepdims=1)
    n.add("Div", largest, n.constant(scalar(127, "f32")), to="y1")
    quotient = n.add("Round", n.add("Div", x, "y1"))
    n.cast(clipped(n, quotient, -128, 127), "i8", to="y0")


def rows_f32_i8(n: Nodes) -> None:
    symmetric_rows(n, "x0")


def rows_bf16_i8(n: Nodes) -> None:
    symmetric_rows(n, n.cast("x0", "f32"))


def dequantize_i4_f16(n: Nodes) -> None:
    n.add("DequantizeLinear", "x0", "x1", to="y0", axis=1, block_size=32)


def quantize_f32_i4(n: Nodes) -> None:
    n.add("QuantizeLinear", "x0", "x1", to="y0", axis=1, block_size=32,
          output_dtype=number_of("i4"))


def dequantize_mxfp8_e4m3_bf16(n: Nodes) -> None:
    dequantize_microscaled(n, 32)


def dequantize_mxfp4_bf16(n: Nodes) -> None:
    dequantize_microscaled(n, 32)


def dequantize_microscaled(n: Nodes, block: int) -> None:
    """The product of blocks and scales in f32, which is exact."""
    blocks = n.constant(Tensor.of(np.array([0, -1, block], np.int64)))
    rows = n.constant(Tensor.of(np.array([0, -1], np.int64)))
    last = n.constant(Tensor.of(np.array([2], np.int64)))
    codes = n.add("Reshape", n.cast("x0", "f32"), blocks)
    scales = n.add("Unsqueeze", n.cast("x1", "f32"), last)
    n.cast(n.add("Reshape", n.add("Mul", codes, scales), rows), "bf16", to="y0")


CHAINS: dict[str, Callable[[Nodes], None]] = {
    make.__name__: make for make in (
        add_f32, mul_bf16, clamp_f32, image_normalize, dequantize_i8_rows, quantize_u8,
        residual_f16, requantize_i32, promote_add, tensor_f32_u8, rows_f32_i8, rows_bf16_i8,
        dequantize_i4_f16, quantize_f32_i4, dequantize_mxfp8_e4m3_bf16, dequantize_mxfp4_bf16)}


def chain(task: Task) -> Model:
    name = task.details["function"]
    if name not in CHAINS:
        raise Lacking("no operator for this chain")
    function = task.function("")
    n = Nodes()
    CHAINS[name](n)
    return modelled(n, function, [f"x{i}" for i in range(len(function.inputs))],
                    [f"y{i}" for i in range(len(function.outputs))])


def modelled(n: Nodes, function: Function, inputs: list[str], outputs: list[str]) -> Model:
    named_inputs = dict(zip(inputs, function.inputs))
    named_outputs = dict(zip(outputs, function.outputs))
    return Model(built(n.nodes, named_inputs, named_outputs, n.constants), named_inputs,
                 named_outputs)


def convert(task: Task) -> Model:
    source, target = task.details["source"], task.details["target"]
    form = conversion_form(source, target)
    function = task.function(form)
    n = Nodes()
    n.cast("x", target, to="y")
    inputs, outputs = {"x": function.inputs[0]}, {"y": function.outputs[0]}
    return Model(built(n.nodes, inputs, outputs), inputs, outputs, form)


def conversion_form(source: str, target: str) -> str:
    """ONNX's Cast to f8e8m0 takes the next larger power of two; ONNX Runtime rounds floats to
    integers of 2 and 4 bits."""
    if target == "f8e8m0" and source not in ("f8e8m0", "boolean"):
        return "{rounding = up}"
    is_float = source[0] == "f" or source == "bf16"
    if target in ("u2", "i2", "u4", "i4") and is_float:
        return "{overflow = saturate, rounding = nearest_away}"
    return ""


# ---- convolutions and products ----

def window(layer) -> dict:
    """The attributes of Conv."""
    return {"kernel_shape": [layer.kernel] * layer.axes, "pads": [layer.pad] * 2 * layer.axes,
            "strides": [layer.stride] * layer.axes, "group": layer.groups}


def conv_integer(task: Task) -> Model:
    each, n = task.details["operands"], Nodes()
    operands = ["x", n.constant(each.w), n.constant(scalar(each.x_zero_point, each.x.element))]
    if each.w_zero_point:
        operands.append(n.constant(scalar(each.w_zero_point, each.w.element)))
    n.add("ConvInteger", *operands, to="y", **window(each.layer))
    return modelled(n, task.function(""), ["x"], ["y"])


def qlinear_conv(task: Task) -> Model:
    each, n = task.details["operands"], Nodes()
    zeros = np.zeros(each.layer.out_channels, np.int8)
    n.add("QLinearConv", "x", n.constant(scalar(float(each.x_scale), "f32")),
          n.constant(scalar(each.x_zero_point, "u8")), n.constant(each.w),
          n.constant(each.w_scale), n.constant(Tensor.of(zeros)),
          n.constant(scalar(float(each.y_scale), "f32")),
          n.constant(scalar(each.y_zero_point, "u8")), n.constant(each.bias), to="y",
          **window(each.layer))
    return modelled(n, task.function(""), ["x"], ["y"])


def matmul_integer(task: Task) -> Model:
    each, n = task.details["operands"], Nodes()
    operands = ["a", n.constant(each.b)]
    if each.a_zero_point or each.b_zero_point:
        operands.append(n.constant(scalar(each.a_zero_point, each.a.element)))
    if each.b_zero_point:
        operands.append(n.constant(scalar(each.b_zero_point, each.b.element)))
    n.add("MatMulInteger", *operands, to="y")
    return modelled(n, task.function(""), ["a"], ["y"])


KINDS = {"convert": convert, "function": chain, "dynamic_quantization": chain, "blocks": chain,
         "conv_integer": conv_integer, "qlinear_conv": qlinear_conv,
         "matmul_integer": matmul_integer}


def model_of(task: Task) -> Model:
    return KINDS[task.kind](task)
