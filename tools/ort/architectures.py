# SPDX-License-Identifier: Apache-2.0
"""Float models with the architectures that benchmarks are about, and random weights.

Weights are scaled so that activations keep their size from layer to layer: quantization then meets
ranges like those of trained models.
"""
import math
from collections.abc import Callable, Sequence

import numpy as np
import onnx

from .graph import FLOAT, I64, Graph

RELU_GAIN = math.sqrt(2)  # Relu halves the variance
# What a block adds to its residual, relative to it: sums of sixteen blocks stay small.
RESIDUAL_GAIN = 0.4


def convolution(graph: Graph, x: str, channels: tuple[int, int], kernel: Sequence[int],
                stride: int = 1, groups: int = 1, gain: float = RELU_GAIN) -> str:
    """Conv with the bias and the uneven channels that a folded BatchNormalization leaves."""
    into, out = channels
    fan_in = into // groups * math.prod(kernel)
    weight = graph.random.normal(0, gain / math.sqrt(fan_in), (out, into // groups, *kernel))
    weight *= graph.random.uniform(0.5, 1.4, (out,) + (1,) * (weight.ndim - 1))
    pads = [extent // 2 for extent in kernel]
    return graph.node("Conv", x, graph.constant(weight.astype(np.float32), "weight"),
                      graph.normal((out,), 0.1, "bias"), kernel_shape=list(kernel), group=groups,
                      pads=pads + pads, strides=[stride] * len(kernel))


def linear(graph: Graph, x: str, into: int, out: int, gain: float = 1, bias: bool = True) -> str:
    """MatMul and Add, as exporters write a linear layer of a sequence."""
    y = graph.node("MatMul", x, graph.normal((into, out), gain / math.sqrt(into)))
    return graph.node("Add", y, graph.normal((out,), 0.05, "bias")) if bias else y


def classifier(graph: Graph, x: str, features: int) -> None:
    """Pooling, the last layer, and the output of an image classifier."""
    x = graph.node("Flatten", graph.node("GlobalAveragePool", x))
    logits = graph.node("Gemm", x, graph.normal((1000, features), 1 / math.sqrt(features)),
                        graph.normal((1000,), 0.05, "bias"), transB=1)
    graph.output(logits, FLOAT, ["batch", 1000])


# ---- ResNet-50 ----

def bottleneck(graph: Graph, x: str, into: int, width: int, stride: int) -> str:
    """1x1, 3x3 with the stride, 1x1; the residual is convolved where its shape changes."""
    out = 4 * width
    y = graph.node("Relu", convolution(graph, x, (into, width), (1, 1)))
    y = graph.node("Relu", convolution(graph, y, (width, width), (3, 3), stride))
    y = convolution(graph, y, (width, out), (1, 1), gain=RESIDUAL_GAIN)
    if into != out:
        x = convolution(graph, x, (into, out), (1, 1), stride, gain=1)
    return graph.node("Relu", graph.node("Add", y, x))


def resnet50() -> onnx.ModelProto:
    graph = Graph("resnet50", seed=50)
    x = graph.input("image", FLOAT, ["batch", 3, 224, 224])
    x = graph.node("Relu", convolution(graph, x, (3, 64), (7, 7), 2))
    x = graph.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            stride = 2 if block == 0 and width > 64 else 1
            x = bottleneck(graph, x, channels, width, stride)
            channels = 4 * width
    classifier(graph, x, channels)
    return graph.model()


# ---- MobileNetV2 ----

def relu6(graph: Graph, x: str) -> str:
    return graph.node("Clip", x, graph.scalar(0), graph.scalar(6))


def inverted_residual(graph: Graph, x: str, channels: tuple[int, int], expansion: int,
                      stride: int) -> str:
    """1x1 into more channels, depthwise 3x3 with the stride, 1x1 without an activation."""
    into, out = channels
    wide = into * expansion
    y = relu6(graph, convolution(graph, x, (into, wide), (1, 1))) if expansion > 1 else x
    y = relu6(graph, convolution(graph, y, (wide, wide), (3, 3), stride, groups=wide))
    is_residual = stride == 1 and into == out
    y = convolution(graph, y, (wide, out), (1, 1), gain=RESIDUAL_GAIN if is_residual else 1)
    return graph.node("Add", x, y) if is_residual else y


def mobilenetv2() -> onnx.ModelProto:
    graph = Graph("mobilenetv2", seed=2)
    x = graph.input("image", FLOAT, ["batch", 3, 224, 224])
    x = relu6(graph, convolution(graph, x, (3, 32), (3, 3), 2))
    channels = 32
    for expansion, out, blocks, first_stride in (
            (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
            (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            x = inverted_residual(graph, x, (channels, out), expansion, stride)
            channels = out
    x = relu6(graph, convolution(graph, x, (channels, 1280), (1, 1)))
    classifier(graph, x, 1280)
    return graph.model()


# ---- transformers ----

def gelu(graph: Graph, x: str) -> str:
    """x * (1 + erf(x / sqrt(2))) / 2, node by node."""
    erf = graph.node("Erf", graph.node("Div", x, graph.scalar(math.sqrt(2))))
    product = graph.node("Mul", x, graph.node("Add", erf, graph.scalar(1)))
    return graph.node("Mul", product, graph.scalar(0.5))


def layer_norm(graph: Graph, x: str, hidden: int) -> str:
    scale = graph.random.uniform(0.7, 1.3, hidden).astype(np.float32)
    return graph.node("LayerNormalization", x, graph.constant(scale, "scale"),
                      graph.normal((hidden,), 0.05, "bias"), axis=-1, epsilon=1e-5)


def split_heads(graph: Graph, x: str, heads: int, width: int, order: Sequence[int]) -> str:
    """[batch, sequence, hidden] as heads, in the order of axes that a product needs."""
    shape = graph.constant(np.array([0, 0, heads, width], np.int64), "shape")
    return graph.node("Transpose", graph.node("Reshape", x, shape), perm=list(order))


def attention(graph: Graph, x: str, hidden: int, heads: int, mask: str | None = None) -> str:
    width = hidden // heads
    query = split_heads(graph, linear(graph, x, hidden, hidden), heads, width, (0, 2, 1, 3))
    key = split_heads(graph, linear(graph, x, hidden, hidden), heads, width, (0, 2, 3, 1))
    value = split_heads(graph, linear(graph, x, hidden, hidden), heads, width, (0, 2, 1, 3))
    scores = graph.node("Div", graph.node("MatMul", query, key), graph.scalar(math.sqrt(width)))
    if mask is not None:
        scores = graph.node("Add", scores, mask)
    y = graph.node("MatMul", graph.node("Softmax", scores, axis=-1), value)
    y = graph.node("Transpose", y, perm=[0, 2, 1, 3])
    y = graph.node("Reshape", y, graph.constant(np.array([0, 0, hidden], np.int64), "shape"))
    return linear(graph, y, hidden, hidden, RESIDUAL_GAIN)


def feed_forward(graph: Graph, x: str, hidden: int) -> str:
    y = gelu(graph, linear(graph, x, hidden, 4 * hidden))
    return linear(graph, y, 4 * hidden, hidden, RESIDUAL_GAIN)


def additive_mask(graph: Graph) -> str:
    """A mask of 0 and 1 as what is added to the scores: nothing, or enough to be rid of them.

    Exporters write -10000, of which 8 bits for the sum would leave nothing of the scores.
    """
    mask = graph.input("mask", I64, ["batch", "sequence"])
    axes = graph.constant(np.array([1, 2], np.int64), "axes")
    kept = graph.node("Cast", graph.node("Unsqueeze", mask, axes), to=FLOAT)
    return graph.node("Mul", graph.node("Sub", graph.scalar(1), kept), graph.scalar(-20))


def bert() -> onnx.ModelProto:
    """One layer of BERT-base: the sum of each half is normalized after it."""
    graph, hidden = Graph("bert", seed=110), 768
    x = graph.input("hidden", FLOAT, ["batch", "sequence", hidden])
    mask = additive_mask(graph)
    y = graph.node("Add", attention(graph, x, hidden, 12, mask), x)
    x = layer_norm(graph, y, hidden)
    x = layer_norm(graph, graph.node("Add", feed_forward(graph, x, hidden), x), hidden)
    graph.output(x, FLOAT, ["batch", "sequence", hidden])
    return graph.model()


def whisper() -> onnx.ModelProto:
    """The front of whisper-base's encoder: 30 seconds of sound through two of the six layers."""
    graph, hidden, frames = Graph("whisper", seed=80), 512, 3000
    x = graph.input("mel", FLOAT, ["batch", 80, frames])
    x = gelu(graph, convolution(graph, x, (80, hidden), (3,)))
    x = gelu(graph, convolution(graph, x, (hidden, hidden), (3,), 2))
    x = graph.node("Transpose", x, perm=[0, 2, 1])
    x = graph.node("Add", x, graph.normal((frames // 2, hidden), 0.3, "position"))
    for _ in range(2):
        x = graph.node("Add", x, attention(graph, layer_norm(graph, x, hidden), hidden, 8))
        x = graph.node("Add", x, feed_forward(graph, layer_norm(graph, x, hidden), hidden))
    graph.output(layer_norm(graph, x, hidden), FLOAT, ["batch", frames // 2, hidden])
    return graph.model()


ARCHITECTURES: dict[str, Callable[[], onnx.ModelProto]] = {
    "resnet50": resnet50, "mobilenetv2": mobilenetv2, "whisper": whisper, "bert": bert}
