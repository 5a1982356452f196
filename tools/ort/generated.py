# SPDX-License-Identifier: Apache-2.0
"""Random graphs of quantized operators and of what surrounds them.

A graph is a chain of parts, each from f32 to f32: integer convolutions and products as quantizers
write them, elementwise chains, and float operators that castor does not have, so that what it has
falls into several groups, not all of which are convex. Some parts read values from further back.
"""
import math
from collections.abc import Callable

import onnx

from .graph import FLOAT, Extent, Graph
from .quantized_nodes import (Draft, Tensor, draw_window, dynamic_convolution, dynamic_product,
                              convolved_shape, qdq_add, qdq_convolution, qdq_product,
                              qlinear_convolution, qlinear_product, quantize_dequantize)

FIRST_SEED = 1000
Part = Callable[[Draft, Tensor], Tensor]

# ---- elementwise ----


def with_constant(draft: Draft, x: Tensor, op: str) -> str:
    """An op of a tensor and a constant: one number, or one for each channel."""
    channels = (x.shape[1], 1, 1) if len(x.shape) == 4 else (x.shape[-1],)
    shape = draft.pick((), channels)
    around_one = draft.graph.random.uniform(0.6, 1.4, shape).astype("float32")
    return draft.graph.node(op, x.name, draft.graph.constant(around_one))


def with_bounds(draft: Draft, x: Tensor) -> str:
    low, high = draft.pick((0, 6), (-1, 1), (-3, 3))
    return draft.graph.node("Clip", x.name, draft.graph.scalar(low), draft.graph.scalar(high))


def elementwise(draft: Draft, x: Tensor) -> Tensor:
    """One to five ops, each of the result of the one before."""
    for _ in range(draft.pick(1, 2, 3, 5)):
        op = draft.pick("Add", "Sub", "Mul", "Div", "Relu", "Clip", "Abs", "Neg", "HardSwish")
        if op in ("Add", "Sub", "Mul", "Div"):
            y = with_constant(draft, x, op)
        else:
            y = with_bounds(draft, x) if op == "Clip" else draft.graph.node(op, x.name)
        x = Tensor(y, x.shape)
    return x


def fake_quantization(draft: Draft, x: Tensor) -> Tensor:
    return Tensor(quantize_dequantize(draft, x.name), x.shape)


# ---- what castor does not have ----

def exponential(draft: Draft, x: Tensor) -> Tensor:
    bounded = draft.graph.node("Clip", x.name, draft.graph.scalar(-4), draft.graph.scalar(1))
    return Tensor(draft.graph.node("Exp", bounded), x.shape)


def softmax(draft: Draft, x: Tensor) -> Tensor:
    """Scaled, since what follows expects about unit variance."""
    axis = 1 if len(x.shape) == 4 else -1
    y = draft.graph.node("Softmax", x.name, axis=axis)
    return Tensor(draft.graph.node("Mul", y, draft.graph.scalar(x.shape[axis] / 2)), x.shape)


def max_pool(draft: Draft, x: Tensor) -> Tensor:
    y = draft.graph.node("MaxPool", x.name, kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4)
    return Tensor(y, x.shape)


def float_convolution(draft: Draft, x: Tensor) -> Tensor:
    window, out = draw_window(draft, x)
    fan_in = x.shape[1] // window.groups * window.kernel ** 2
    weight = draft.graph.normal((out, x.shape[1] // window.groups, window.kernel, window.kernel),
                                1 / math.sqrt(fan_in))
    y = draft.graph.node("Conv", x.name, weight, **window.attributes())
    return Tensor(y, convolved_shape(x, window, out))


def float_product(draft: Draft, x: Tensor) -> Tensor:
    depth, out = x.shape[-1], draft.pick(32, 64)
    weight = draft.graph.normal((depth, out), 1 / math.sqrt(depth))
    return Tensor(draft.graph.node("MatMul", x.name, weight), (*x.shape[:-1], out))


# ---- graphs ----

ANYWHERE: list[Part] = [elementwise, elementwise, exponential, softmax]
# All these nodes have one defined result, so that graphs with no others must give the same bits.
DYNAMIC_IMAGES: list[Part] = ANYWHERE + [dynamic_convolution] * 4 + [max_pool]
DYNAMIC_SEQUENCES: list[Part] = ANYWHERE + [dynamic_product] * 4
ALL_IMAGES: list[Part] = DYNAMIC_IMAGES + [
    fake_quantization, qlinear_convolution, qlinear_convolution, qdq_convolution, qdq_convolution,
    float_convolution]
ALL_SEQUENCES: list[Part] = DYNAMIC_SEQUENCES + [
    fake_quantization, qlinear_product, qdq_product, float_product]


def draw_parts(draft: Draft, is_image: bool) -> list[Part]:
    if draft.is_drawn(0.4):
        return DYNAMIC_IMAGES if is_image else DYNAMIC_SEQUENCES
    return ALL_IMAGES if is_image else ALL_SEQUENCES


def merged(draft: Draft, x: Tensor, earlier: list[Tensor], parts: list[Part]) -> Tensor:
    """The sum with a value of the same shape, where there is one: paths part and meet again."""
    candidates = [each for each in earlier if each.shape == x.shape]
    if not candidates:
        return x
    other = draft.pick(*candidates)
    if fake_quantization in parts and draft.is_drawn(0.3):
        return qdq_add(draft, x, other)
    return Tensor(draft.graph.node("Add", x.name, other.name), x.shape)


def draw_input(draft: Draft, is_image: bool) -> Tensor:
    batch: Extent = draft.pick("batch", 1)
    if is_image:
        extent = draft.pick(7, 13, 14, 28, 40)
        shape = (batch, draft.pick(3, 8, 16, 32, 48), extent, draft.pick(extent, extent + 1))
    else:
        shape = (batch, draft.pick("sequence", 1, 17, 64), draft.pick(32, 64, 100))
    return Tensor(draft.graph.input("x", FLOAT, shape), shape)


def add_outputs(draft: Draft, last: Tensor, values: list[Tensor]) -> None:
    """The last value, and sometimes one from within a chain or from between two parts."""
    draft.graph.output(last.name, FLOAT, last.shape)
    if draft.inner and draft.is_drawn(0.3):
        draft.graph.output(*draft.pick(*draft.inner))
    if values and draft.is_drawn(0.2):
        between = draft.pick(*values)
        draft.graph.output(between.name, FLOAT, between.shape)


def generate(number: int) -> onnx.ModelProto:
    """The same graph whenever it is asked for, whatever other graphs are."""
    draft = Draft(Graph(f"generated_{number:03}", FIRST_SEED + number))
    is_image = draft.is_drawn(0.7)
    parts = draw_parts(draft, is_image)
    x = draw_input(draft, is_image)
    earlier: list[Tensor] = []
    for _ in range(draft.pick(2, 3, 5, 7)):
        x = draft.pick(*parts)(draft, x)
        if draft.is_drawn(0.5):
            x = merged(draft, x, earlier, parts)
        earlier.append(x)
    add_outputs(draft, x, earlier[:-1])
    return draft.graph.model()
