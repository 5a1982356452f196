# SPDX-License-Identifier: Apache-2.0
"""ConvInteger by layer and signs, and QLinearConv by layer.

x has a zero point; weights of u8 have one for all channels, since ONNX Runtime takes no others.
Forms are the layouts: "nchw", and "nhwc", in which x and the result have channels last.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from ..tasks import Function, Spec, Task, Tensor
from .layers import LAYERS, QUICK_LAYERS, Layer

X_ZERO_POINTS = {"u8": 121, "i8": -7}
W_ZERO_POINTS = {"u8": 119, "i8": 0}
DTYPES = {"u8": np.uint8, "i8": np.int8}


@dataclasses.dataclass(frozen=True)
class Operands:
    """What a convolution reads; the scales and the bias are those of QLinearConv."""
    layer: Layer
    x: Tensor  # channels first
    w: Tensor
    x_zero_point: int
    w_zero_point: int
    x_scale: np.float32
    w_scale: Tensor  # for each output channel
    y_scale: np.float32
    y_zero_point: int
    bias: Tensor

    @property
    def y_shape(self) -> tuple[int, ...]:
        return (1, self.layer.out_channels, *self.layer.out_extents)


def operands(layer: Layer, x: str, w: str) -> Operands:
    random = np.random.default_rng(7)

    def codes(element: str, shape: tuple[int, ...]) -> Tensor:
        limits = np.iinfo(DTYPES[element])
        return Tensor.of(random.integers(limits.min, limits.max, shape, DTYPES[element],
                                         endpoint=True))

    w_shape = (layer.out_channels, layer.channels // layer.groups, *[layer.kernel] * layer.axes)
    taps = w_shape[1] * layer.kernel ** layer.axes
    # Sums are about 75 * 75 * sqrt(taps): results spread over the bytes.
    y_scale = np.float32(0.02 * 0.005 * 75 * 75 * np.sqrt(taps) / 40)
    return Operands(
        layer, codes(x, (1, layer.channels, *layer.extents)), codes(w, w_shape),
        X_ZERO_POINTS[x], W_ZERO_POINTS[w], np.float32(0.02),
        Tensor.of(random.uniform(0.004, 0.006, layer.out_channels).astype(np.float32)),
        y_scale, 128,
        Tensor.of(random.integers(-2000, 2000, layer.out_channels, np.int32)))


def attributes(layer: Layer, form: str) -> str:
    axes = layer.axes
    words = [f"group = {layer.groups}", f"pads = {[layer.pad] * 2 * axes}",
             f"strides = {[layer.stride] * axes}"]
    if form == "nhwc":
        words.append("layout = nhwc")
    return "{" + ", ".join(words) + "}"


def in_layout(tensor: Tensor, form: str) -> Tensor:
    """The tensor with its channels where the form has them."""
    return Tensor.of(np.moveaxis(tensor.array(), 1, -1)) if form == "nhwc" else tensor


def spec_in_layout(spec: Spec, form: str) -> Spec:
    shape = spec.shape
    return Spec(spec.element, (shape[0], *shape[2:], shape[1]) if form == "nhwc" else shape)


def type_text(spec: Spec) -> str:
    return f"{spec.element}[{', '.join(map(str, spec.shape))}]"


def scalar(value: float, element: str) -> str:
    return f"constant {value} : {element}[]"


def conv_integer(each: Operands, form: str) -> Function:
    x, y = in_layout(each.x, form), spec_in_layout(Spec("i32", each.y_shape), form)
    zero = f"  %z = {scalar(each.x_zero_point, x.element)}\n"
    arguments = "%x, %w, %z"
    if each.w_zero_point:
        zero += f"  %v = {scalar(each.w_zero_point, each.w.element)}\n"
        arguments += ", %v"
    text = (f"func @convolution(%x: {type_text(x)}) -> {type_text(y)} {{\n"
            f"  %w = constant @w : {type_text(each.w)}\n{zero}"
            f"  %y = conv_integer {arguments} {attributes(each.layer, form)}\n  return %y\n}}")
    return Function(text, (x,), (y,), {"w": each.w})


def qlinear_conv(each: Operands, form: str) -> Function:
    x, y = in_layout(each.x, form), spec_in_layout(Spec("u8", each.y_shape), form)
    text = (f"func @convolution(%x: {type_text(x)}) -> {type_text(y)} {{\n"
            f"  %w = constant @w : {type_text(each.w)}\n"
            f"  %ws = constant @ws : {type_text(each.w_scale)}\n"
            f"  %b = constant @b : {type_text(each.bias)}\n"
            "  %xs = constant @xs : f32[]\n  %ys = constant @ys : f32[]\n"
            f"  %xz = {scalar(each.x_zero_point, x.element)}\n"
            f"  %wz = {scalar(each.w_zero_point, each.w.element)}\n"
            f"  %yz = {scalar(each.y_zero_point, 'u8')}\n"
            "  %y = qlinear_conv %x, %xs, %xz, %w, %ws, %wz, %ys, %yz, %b "
            f"{attributes(each.layer, form)}\n  return %y\n}}")
    return Function(text, (x,), (y,), {
        "w": each.w, "ws": each.w_scale, "b": each.bias,
        "xs": Tensor.of(np.asarray(each.x_scale)), "ys": Tensor.of(np.asarray(each.y_scale))})


def integer_tasks(quick: bool) -> Iterator[Task]:
    for layer in QUICK_LAYERS if quick else LAYERS:
        for x in ("u8", "i8"):
            for w in ("i8", "u8"):
                each = operands(layer, x, w)
                yield Task("ConvInteger", f"{layer.name} {x} x {w}", "conv_integer",
                           {"operands": each},
                           lambda form, each=each: conv_integer(each, form or "nchw"),
                           layer.products, "GMAC/s")


def qlinear_tasks(quick: bool) -> Iterator[Task]:
    for layer in QUICK_LAYERS if quick else LAYERS:
        each = operands(layer, "u8", "i8")
        yield Task("QLinearConv", layer.name, "qlinear_conv", {"operands": each},
                   lambda form, each=each: qlinear_conv(each, form or "nchw"),
                   layer.products, "GMAC/s")
