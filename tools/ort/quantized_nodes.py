# SPDX-License-Identifier: Apache-2.0
"""The chains of nodes that quantizers write, as parts of a random graph: f32 in, f32 out."""
import dataclasses
import math

import numpy as np

from .graph import FLOAT, I8, I32, U8, Extent, Graph

ELEMENTS = {U8: np.uint8, I8: np.int8}
WEIGHT_DEVIATION = 30  # 8-bit weights then reach about 100


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A value and its shape; f32 between the parts of a graph."""
    name: str
    shape: tuple[Extent, ...]


@dataclasses.dataclass
class Draft:
    """A graph and the values inside chains that may become outputs of it."""
    graph: Graph
    inner: list[tuple[str, int, tuple[Extent, ...]]] = dataclasses.field(default_factory=list)

    def pick(self, *options):
        return options[int(self.graph.random.integers(len(options)))]

    def is_drawn(self, probability: float) -> bool:
        return bool(self.graph.random.random() < probability)

    def expose(self, name: str, element: int, shape: tuple[Extent, ...]) -> str:
        self.inner.append((name, element, shape))
        return name


@dataclasses.dataclass(frozen=True)
class Scale:
    """The scale and zero point of a quantized activation, as a number and as constants."""
    number: float
    scale: str
    zero: str


@dataclasses.dataclass(frozen=True)
class Weight:
    """8-bit weights; their scales are of the channels, or one for all."""
    value: str
    shape: tuple[int, ...]
    scales: np.ndarray
    zero: str


@dataclasses.dataclass(frozen=True)
class Window:
    """What of a convolution is not in its channels."""
    kernel: int
    stride: int
    groups: int

    def attributes(self) -> dict:
        return {"kernel_shape": [self.kernel] * 2, "strides": [self.stride] * 2,
                "pads": [self.kernel // 2] * 4, "group": self.groups}


def draw_scale(draft: Draft, element: int, is_positive: bool = False) -> Scale:
    """For activations of about unit variance; of positive ones none of the range is wasted."""
    number = float(draft.graph.random.uniform(3, 5)) / (255 if is_positive else 127)
    bounds = np.iinfo(ELEMENTS[element])
    middle = int(draft.graph.random.integers(-8, 9)) + (128 if element == U8 else 0)
    zero = bounds.min if is_positive else middle
    return Scale(number, draft.graph.scalar(number), draft.graph.scalar(zero, ELEMENTS[element]))


def draw_weight(draft: Draft, shape: tuple[int, ...], fan_in: int, element: int, axis: int,
                is_symmetric: bool = False, one_zero: bool = False) -> Weight:
    """Symmetric ones have the zero point in the middle; `one_zero`: for all channels."""
    random, channels = draft.graph.random, shape[axis]
    offset = 128 if element == U8 else 0
    zero = offset if is_symmetric else offset + int(random.integers(-9, 10))
    dtype = ELEMENTS[element]
    values = np.rint(random.normal(zero, WEIGHT_DEVIATION, shape))
    values = np.clip(values, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)
    count = draft.pick((), (channels,))
    scales = random.uniform(0.8, 1.3, count) / (WEIGHT_DEVIATION * math.sqrt(fan_in))
    return Weight(draft.graph.constant(values, "weight"), shape, np.asarray(scales, np.float32),
                  draft.graph.constant(np.full(() if one_zero else count, zero, dtype), "zero"))


def integer_bias(draft: Draft, channels: int, scales: np.ndarray) -> str:
    """A bias in the steps of the sums, which `scales` are."""
    bias = draft.graph.random.normal(0, 0.2, channels) / scales
    return draft.graph.constant(np.rint(bias).astype(np.int32), "bias")


def quantize(draft: Draft, x: str, scale: Scale) -> str:
    return draft.graph.node("QuantizeLinear", x, scale.scale, scale.zero)


def dequantize(draft: Draft, x: str, scale: Scale) -> str:
    return draft.graph.node("DequantizeLinear", x, scale.scale, scale.zero)


def quantize_dequantize(draft: Draft, x: str, is_positive: bool = False) -> str:
    scale = draw_scale(draft, draft.pick(U8, I8), is_positive)
    return dequantize(draft, quantize(draft, x, scale), scale)


# ---- the shapes of convolutions and products ----

def draw_window(draft: Draft, x: Tensor) -> tuple[Window, int]:
    """A window and the channels that come out: dense, in groups or depthwise."""
    into = x.shape[1]
    kernel, stride = draft.pick(1, 3, 3, 5), draft.pick(1, 1, 1, 2)
    if draft.is_drawn(0.3):
        return Window(max(kernel, 3), stride, into), into
    out = draft.pick(8, 16, 24, 40, 64)
    groups = draft.pick(1, 1, 1, 2, 4)
    return Window(kernel, stride, groups if into % groups == 0 else 1), out


def convolved_shape(x: Tensor, window: Window, out: int) -> tuple[Extent, ...]:
    batch, _, *image = x.shape
    return (batch, out, *((extent - 1) // window.stride + 1 for extent in image))


def convolution_weight(draft: Draft, x: Tensor, window: Window, out: int, element: int,
                       **zero_points: bool) -> Weight:
    into = x.shape[1] // window.groups
    shape = (out, into, window.kernel, window.kernel)
    return draw_weight(draft, shape, into * window.kernel ** 2, element, 0, **zero_points)


def product_weight(draft: Draft, x: Tensor, element: int, is_symmetric: bool = False) -> Weight:
    depth = x.shape[-1]
    return draw_weight(draft, (depth, draft.pick(16, 48, 64, 96)), depth, element, 1, is_symmetric)


def product_shape(x: Tensor, weight: Weight) -> tuple[Extent, ...]:
    return (*x.shape[:-1], weight.shape[-1])


# ---- dynamic quantization ----

def scale_sums(draft: Draft, sums: Tensor, x_scale: str, scales: np.ndarray,
               bias: str | None) -> str:
    """Cast, the product of the scales, Mul, and perhaps Add: what follows integer sums."""
    graph = draft.graph
    both = graph.node("Mul", x_scale, graph.constant(scales, "scale"))
    cast = graph.node("Cast", draft.expose(sums.name, I32, sums.shape), to=FLOAT)
    y = graph.node("Mul", draft.expose(cast, FLOAT, sums.shape), both)
    return graph.node("Add", y, bias) if bias else y


def dynamic_input(draft: Draft, x: Tensor) -> tuple[str, str, str]:
    """u8 values, scale and zero point: mostly of the values met, sometimes constants."""
    if draft.is_drawn(0.8):
        value, scale, zero = draft.graph.nodes("DynamicQuantizeLinear", [x.name], 3)
    else:
        constants = draw_scale(draft, U8)
        value, scale, zero = quantize(draft, x.name, constants), constants.scale, constants.zero
    return draft.expose(value, U8, x.shape), scale, zero


def dynamic_convolution(draft: Draft, x: Tensor) -> Tensor:
    """ConvInteger and its chain; sometimes twice, of the same quantized values."""
    graph = draft.graph
    value, scale, zero = dynamic_input(draft, x)
    window, out = draw_window(draft, x)
    shape = convolved_shape(x, window, out)
    results = []
    for _ in range(draft.pick(1, 1, 1, 2)):
        # ONNX Runtime's ConvInteger has no zero points by channel.
        weight = convolution_weight(draft, x, window, out, draft.pick(U8, I8), one_zero=True)
        if weight.scales.ndim == 1:
            weight = dataclasses.replace(weight, scales=weight.scales.reshape(out, 1, 1))
        sums = graph.node("ConvInteger", value, weight.value, zero, weight.zero,
                          **window.attributes())
        bias = graph.normal((1, out, 1, 1), 0.2, "bias") if draft.is_drawn(0.7) else None
        results.append(scale_sums(draft, Tensor(sums, shape), scale, weight.scales, bias))
    y = results[0] if len(results) == 1 else graph.node("Add", *results)
    return Tensor(y, shape)


def dynamic_product(draft: Draft, x: Tensor) -> Tensor:
    graph = draft.graph
    value, scale, zero = dynamic_input(draft, x)
    weight = product_weight(draft, x, draft.pick(U8, I8))
    shape = product_shape(x, weight)
    sums = graph.node("MatMulInteger", value, weight.value, zero, weight.zero)
    bias = graph.normal(shape[-1:], 0.2, "bias") if draft.is_drawn(0.7) else None
    return Tensor(scale_sums(draft, Tensor(sums, shape), scale, weight.scales, bias), shape)


# ---- static quantization: nodes of quantized values ----

def weight_element(draft: Draft, element: int) -> int:
    """ONNX Runtime multiplies i8 by i8 alone."""
    return draft.pick(U8, I8) if element == U8 else I8


def qlinear_convolution(draft: Draft, x: Tensor) -> Tensor:
    """QuantizeLinear, one to three QLinearConv, DequantizeLinear."""
    element = draft.pick(U8, U8, I8)
    scale = draw_scale(draft, element)
    y = Tensor(quantize(draft, x.name, scale), x.shape)
    for _ in range(draft.pick(1, 2, 3)):
        window, out = draw_window(draft, y)
        weight = convolution_weight(draft, y, window, out, weight_element(draft, element),
                                    is_symmetric=True)
        after = draw_scale(draft, element, draft.is_drawn(0.4))
        operands = [y.name, scale.scale, scale.zero, weight.value,
                    draft.graph.constant(weight.scales, "scale"), weight.zero, after.scale,
                    after.zero]
        if draft.is_drawn(0.6):
            operands.append(integer_bias(draft, out, scale.number * weight.scales))
        name = draft.graph.node("QLinearConv", *operands, **window.attributes())
        shape = convolved_shape(y, window, out)
        y, scale = Tensor(draft.expose(name, element, shape), shape), after
    return Tensor(dequantize(draft, y.name, scale), y.shape)


def qlinear_product(draft: Draft, x: Tensor) -> Tensor:
    element = draft.pick(U8, U8, I8)
    before, after = draw_scale(draft, element), draw_scale(draft, element)
    weight = product_weight(draft, x, weight_element(draft, element), True)
    y = draft.graph.node("QLinearMatMul", quantize(draft, x.name, before), before.scale,
                         before.zero, weight.value, draft.graph.constant(weight.scales, "scale"),
                         weight.zero, after.scale, after.zero)
    shape = product_shape(x, weight)
    return Tensor(dequantize(draft, draft.expose(y, element, shape), after), shape)


# ---- static quantization: float nodes between DequantizeLinear and QuantizeLinear ----

def activated(draft: Draft, x: str) -> str:
    """Relu or Clip after most units, and the quantization after it."""
    kind = draft.pick("none", "Relu", "Clip")
    if kind == "Relu":
        x = draft.graph.node("Relu", x)
    elif kind == "Clip":
        x = draft.graph.node("Clip", x, draft.graph.scalar(0), draft.graph.scalar(6))
    return quantize_dequantize(draft, x, kind != "none")


def dequantized_weight(draft: Draft, weight: Weight, axis: int) -> str:
    return draft.graph.node("DequantizeLinear", weight.value,
                            draft.graph.constant(weight.scales, "scale"), weight.zero, axis=axis)


def qdq_convolution(draft: Draft, x: Tensor) -> Tensor:
    graph = draft.graph
    scale = draw_scale(draft, U8)
    before = dequantize(draft, quantize(draft, x.name, scale), scale)
    window, out = draw_window(draft, x)
    weight = convolution_weight(draft, x, window, out, I8, is_symmetric=True)
    operands = [before, dequantized_weight(draft, weight, 0)]
    if draft.is_drawn(0.8):
        steps = (scale.number * weight.scales).astype(np.float32)
        operands.append(graph.node("DequantizeLinear", integer_bias(draft, out, steps),
                                   graph.constant(np.broadcast_to(steps, out), "scale"), axis=0))
    y = graph.node("Conv", *operands, **window.attributes())
    return Tensor(activated(draft, y), convolved_shape(x, window, out))


def qdq_product(draft: Draft, x: Tensor) -> Tensor:
    weight = product_weight(draft, x, I8, True)
    y = draft.graph.node("MatMul", quantize_dequantize(draft, x.name),
                         dequantized_weight(draft, weight, 1))
    return Tensor(activated(draft, y), product_shape(x, weight))


def qdq_add(draft: Draft, x: Tensor, y: Tensor) -> Tensor:
    both = draft.graph.node("Add", quantize_dequantize(draft, x.name),
                            quantize_dequantize(draft, y.name))
    return Tensor(activated(draft, both), x.shape)
