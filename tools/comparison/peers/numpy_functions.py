# SPDX-License-Identifier: Apache-2.0
"""Chains as a user of NumPy and ml_dtypes writes them, with memory for what is between."""
from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from ..tasks import Function, Lacking, Prepared, Task, outputs_of

Arrays = list[np.ndarray]
f32, f16 = np.float32, np.float16


def add_f32(x: Arrays, y: Arrays) -> Callable[[], object]:
    return lambda: np.add(x[0], x[1], out=y[0])


def mul_bf16(x: Arrays, y: Arrays) -> Callable[[], object]:
    return lambda: np.multiply(x[0], x[1], out=y[0])


def clamp_f32(x: Arrays, y: Arrays) -> Callable[[], object]:
    return lambda: np.clip(x[0], f32(0), f32(6), out=y[0])


def image_normalize(x: Arrays, y: Arrays) -> Callable[[], object]:
    wide = np.empty(x[0].shape, f32)

    def run() -> None:
        np.subtract(x[0], x[1], out=wide)
        np.multiply(wide, x[2], out=y[0], casting="unsafe")
    return run


def dequantize_i8_rows(x: Arrays, y: Arrays) -> Callable[[], object]:
    return lambda: np.multiply(x[0], x[1], out=y[0], casting="unsafe", dtype=f32)


def quantize_u8(x: Arrays, y: Arrays) -> Callable[[], object]:
    wide = np.empty(x[0].shape, f32)

    def run() -> None:
        np.divide(x[0], x[1], out=wide)
        np.rint(wide, out=wide)
        np.add(wide, f32(x[2]), out=wide)
        np.clip(wide, 0, 255, out=y[0], casting="unsafe")
    return run


def residual_f16(x: Arrays, y: Arrays) -> Callable[[], object]:
    wide = np.empty(x[0].shape, f32)

    def run() -> None:
        np.multiply(x[0], x[2], out=wide, dtype=f32)
        np.add(wide, x[1], out=wide)
        np.maximum(wide, f32(0), out=y[0], casting="unsafe")
    return run


def requantize_i32(x: Arrays, y: Arrays) -> Callable[[], object]:
    wide = np.empty(x[0].shape, f32)

    def run() -> None:
        np.multiply(x[0], x[1], out=wide, dtype=f32, casting="unsafe")
        np.add(wide, x[2], out=wide)
        np.rint(wide, out=wide)
        np.clip(wide, 0, 255, out=y[0], casting="unsafe")
    return run


def promote_add(x: Arrays, y: Arrays) -> Callable[[], object]:
    wide = np.empty(x[1].shape, f32)

    def run() -> None:
        np.copyto(wide, x[1])
        np.add(wide, x[0], out=wide)
        np.clip(wide, -128, 127, out=y[0], casting="unsafe")
    return run


def tensor_f32_u8(x: Arrays, y: Arrays) -> Callable[[], object]:
    wide = np.empty(x[0].shape, f32)

    def run() -> None:
        low, high = min(x[0].min(), f32(0)), max(x[0].max(), f32(0))
        scale = (high - low) / f32(255)
        zero = np.rint(np.clip(f32(0) - low / scale, 0, 255))
        np.divide(x[0], scale, out=wide)
        np.rint(wide, out=wide)
        np.add(wide, zero, out=wide)
        np.clip(wide, 0, 255, out=y[0], casting="unsafe")
        y[1][...], y[2][...] = scale, zero
    return run


def rows_f32_i8(x: Arrays, y: Arrays) -> Callable[[], object]:
    wide = np.empty(x[0].shape, f32)

    def run() -> None:
        np.abs(x[0], out=wide)
        np.max(wide, axis=1, keepdims=True, out=y[1])
        np.divide(y[1], f32(127), out=y[1])
        np.divide(x[0], y[1], out=wide)
        np.rint(wide, out=wide)
        np.clip(wide, -128, 127, out=y[0], casting="unsafe")
    return run


def rows_bf16_i8(x: Arrays, y: Arrays) -> Callable[[], object]:
    widened = np.empty(x[0].shape, f32)
    quantize = rows_f32_i8([widened], y)

    def run() -> None:
        np.copyto(widened, x[0])
        quantize()
    return run


def quantize_mx(element: type, exponent: int) -> Callable[[Arrays, Arrays], Callable[[], object]]:
    """Scales by OCP's rule: the largest power of two in the block over that of the type."""
    def make(x: Arrays, y: Arrays) -> Callable[[], object]:
        blocks = x[0].reshape(*x[0].shape[:-1], -1, 32)
        magnitudes = np.empty(blocks.shape, f32)
        limit = f32(ml_dtypes.finfo(element).max)

        def run() -> None:
            np.abs(blocks, out=magnitudes)
            exponents = magnitudes.max(axis=-1).view(np.uint32) >> 23
            codes = np.maximum(exponents.astype(np.int32) - exponent, 0)
            y[1][...] = codes.astype(np.uint8).view(y[1].dtype)
            scaled = np.ldexp(blocks, 127 - codes[..., None])
            np.clip(scaled, -limit, limit, out=scaled)
            y[0][...] = scaled.reshape(x[0].shape)
        return run
    return make


def dequantize_mx(x: Arrays, y: Arrays) -> Callable[[], object]:
    def run() -> None:
        codes = x[0].astype(f32).reshape(*x[0].shape[:-1], -1, 32)
        codes *= x[1].astype(f32)[..., None]
        y[0][...] = codes.reshape(x[0].shape)
    return run


CHAINS: dict[str, Callable[[Arrays, Arrays], Callable[[], object]]] = {
    make.__name__: make for make in (
        add_f32, mul_bf16, clamp_f32, image_normalize, dequantize_i8_rows, quantize_u8,
        residual_f16, requantize_i32, promote_add, tensor_f32_u8, rows_f32_i8, rows_bf16_i8)}
CHAINS |= {"quantize_f32_mxfp8_e4m3": quantize_mx(ml_dtypes.float8_e4m3fn, 8),
           "dequantize_mxfp8_e4m3_bf16": dequantize_mx}


def prepare(task: Task) -> Prepared:
    """The chain on the tensors of the task."""
    name = task.details["function"]
    if name not in CHAINS:
        raise Lacking("no chain without unpacking")
    function: Function = task.function("")
    outputs = outputs_of(function)
    run = CHAINS[name]([tensor.array() for tensor in function.inputs],
                       [tensor.array() for tensor in outputs])
    return Prepared(run, lambda: [tensor.data for tensor in outputs])


def matmul_integer(task: Task) -> Prepared:
    """In i32, since 8-bit sums would wrap: a loop without BLAS."""
    each = task.details["operands"]
    if each.a.shape[0] * each.b.size > 2 ** 24:
        raise Lacking("takes seconds")
    a, b = (tensor.array().astype(np.int32) for tensor in (each.a, each.b))
    a -= each.a_zero_point
    b -= each.b_zero_point
    out = outputs_of(task.function(""))[0]
    y = out.array()
    return Prepared(lambda: np.matmul(a, b, out=y), lambda: [out.data], note="widened ahead")
