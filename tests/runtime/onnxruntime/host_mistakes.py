# SPDX-License-Identifier: Apache-2.0
"""Where ONNX Runtime's own CPU provider is wrong, each with a model: host_mistakes.py [LIBRARY].

Prints what it gives on this machine beside what ONNX defines, and what castor's plugin gives.
Sources: ONNX's Cast-25 (table of saturate), QuantizeLinear-25, ConvInteger-10, MaxPool-22.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnxruntime
from onnx import TensorProto

from models import F32, I32, U8, Model

F16, E4M3, E5M2 = TensorProto.FLOAT16, TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2


@dataclass(frozen=True)
class Mistake:
    """A model with one input `x`, and the one output that ONNX defines for it."""

    what: str
    model: Callable[[], bytes]
    x: np.ndarray
    expected: np.ndarray
    castor_takes: bool  # there is a product of integers, around which the plugin takes nodes


def bits_of_cast(kind: int) -> bytes:
    """x cast to an 8-bit float without saturation, and back, so that NaN and infinity show."""
    model = Model(opset=25)
    x = model.input("x", ["n"])
    model.output(model.add("Cast", [model.add("Cast", [x], to=kind, saturate=0)], to=F32), ["n"])
    return model.serialized()


def quantized_halves() -> bytes:
    model = Model(opset=21)
    x = model.input("x", ["n"], F16)
    scale = model.constant(np.array(1, np.float16))
    model.output(model.add("QuantizeLinear", [x, scale, model.constant(np.array(0, np.uint8))]),
                 ["n"], U8)
    return model.serialized()


def convolution(weights: np.ndarray, zero: np.ndarray, **attributes) -> bytes:
    model = Model()
    x = model.input("x", [1, *np.shape(weights)[1:2], 4, 4], U8)
    y = model.add("ConvInteger", [x, model.constant(weights), "", model.constant(zero)],
                  **attributes)
    model.output(y, None, I32)
    return model.serialized()


def pool_of_floats(extent: int, **attributes) -> bytes:
    """A pool along one axis."""
    model = Model()
    x = model.input("x", [1, 1, extent])
    model.output(model.add("MaxPool", [x], **attributes), None)
    return model.serialized()


def sums(x: np.ndarray, weights: np.ndarray, zero: np.ndarray, pads: tuple[int, int],
         dilation: int) -> np.ndarray:
    """ConvInteger of one image, as ONNX defines it."""
    padded = np.pad(x[0].astype(np.int64), ((0, 0), pads, pads))
    filters, _, height, width = weights.shape
    centered = weights.astype(np.int64) - zero.astype(np.int64).reshape(-1, 1, 1, 1)
    rows = padded.shape[1] - (height - 1) * dilation
    columns = padded.shape[2] - (width - 1) * dilation
    y = np.zeros((1, filters, rows, columns), np.int64)
    for i in range(height):
        for j in range(width):
            part = padded[:, i * dilation:i * dilation + rows, j * dilation:j * dilation + columns]
            y[0] += np.einsum("oc,chw->ohw", centered[:, :, i, j], part)
    return y.astype(np.int32)


def mistakes() -> list[Mistake]:
    random = np.random.default_rng(1)
    x = random.integers(0, 256, (1, 2, 4, 4)).astype(np.uint8)
    w = random.integers(-128, 128, (3, 2, 3, 3)).astype(np.int8)
    zeros = np.array([1, -2, 3], np.int8)
    none = np.array(0, np.int8)
    large = np.full((1, 2, 4, 4), 255, np.uint8)
    largest = np.full((3, 2, 3, 3), 127, np.int8)
    nan, inf = np.float32(np.nan), np.float32(np.inf)
    return [
        Mistake("Cast to float8e4m3fn without saturation, 480 and above",
                lambda: bits_of_cast(E4M3), np.array([464, 480, 488, 500], np.float32),
                np.array([448, nan, nan, nan], np.float32), False),
        Mistake("Cast to float8e5m2 without saturation, 61440 and above",
                lambda: bits_of_cast(E5M2), np.array([57344, 61440, 65000, 7e4], np.float32),
                np.array([57344, inf, inf, inf], np.float32), False),
        Mistake("QuantizeLinear of f16 rounds to even", quantized_halves,
                np.array([0.75, 1.5, 2.5, 3.75], np.float16), np.array([1, 2, 2, 4], np.uint8),
                False),
        Mistake("MaxPool of -infinity along one axis",
                lambda: pool_of_floats(4, kernel_shape=[2]),
                np.full((1, 1, 4), -inf, np.float32), np.full((1, 1, 3), -inf, np.float32), False),
        Mistake("MaxPool with auto_pad and dilation",
                lambda: pool_of_floats(5, kernel_shape=[3], auto_pad="SAME_UPPER", dilations=[2]),
                np.ones((1, 1, 5), np.float32), np.ones((1, 1, 5), np.float32), False),
        Mistake("MaxPool of windows that are longer than the image",
                lambda: pool_of_floats(3, kernel_shape=[4], auto_pad="VALID", strides=[2]),
                np.ones((1, 1, 3), np.float32), np.ones((1, 1, 0), np.float32), False),
        Mistake("ConvInteger with a zero point for each filter",
                lambda: convolution(w, zeros, pads=[1] * 4), x, sums(x, w, zeros, (1, 1), 1), True),
        Mistake("ConvInteger with auto_pad and dilation",
                lambda: convolution(w, none, auto_pad="SAME_UPPER", dilations=[2, 2]), x,
                sums(x, w, none, (2, 2), 2), True),
        Mistake("ConvInteger of large u8 and i8, which saturates without VNNI",
                lambda: convolution(largest, none), large, sums(large, largest, none, (0, 0), 1),
                True),
    ]


def session(model: bytes, device=None) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if device is not None:
        options.add_provider_for_devices([device], {"threads": "1"})
    return onnxruntime.InferenceSession(model, options)


def outcome(mistake: Mistake, device=None) -> str:
    try:
        found = session(mistake.model(), device).run(None, {"x": mistake.x})[0]
    except Exception as error:  # the binding has no class of its own
        return "refuses: ..." + str(error).splitlines()[0][-60:]
    if np.array_equal(found, mistake.expected, equal_nan=found.dtype.kind == "f"):
        return "right"
    wrong = found.shape != mistake.expected.shape
    return f"wrong: {found.ravel()[:4] if not wrong else found.shape}"


def main() -> None:
    device = None
    if len(sys.argv) > 1:
        onnxruntime.register_execution_provider_library("castor", sys.argv[1])
        device = next(each for each in onnxruntime.get_ep_devices()
                      if each.ep_name == "CastorExecutionProvider")
    print(f"ONNX Runtime {onnxruntime.__version__}")
    for mistake in mistakes():
        line = f"{mistake.what}\n  ONNX Runtime: {outcome(mistake)}"
        if device is not None and mistake.castor_takes:
            line += f"\n  with castor:  {outcome(mistake, device)}"
        print(line)


if __name__ == "__main__":
    main()
