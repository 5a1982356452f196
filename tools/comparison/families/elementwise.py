# SPDX-License-Identifier: Apache-2.0
"""Chains of elementwise operations, with conversions between them and rows that are broadcast."""
from __future__ import annotations

from collections.abc import Callable, Iterator

import castor
import numpy as np

from ..tasks import Function, Spec, Task, Tensor

FAMILY = "elementwise"
ROWS, COLUMNS, QUICK_ROWS = 1024, 1024, 64


def uniform(low: float, high: float, shape: tuple[int, ...], element: str, seed: int) -> Tensor:
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return Tensor.of(castor.convert(values, element))


def add_f32(rows: int, columns: int = COLUMNS) -> Function:
    x, y = (uniform(-7, 7, (rows, columns), "f32", seed) for seed in (1, 2))
    return Function("func @add(%x: f32[?n, ?c], %y: f32[?n, ?c]) -> f32[?n, ?c] {\n"
                    "  %z = add %x, %y\n  return %z\n}", (x, y), (Spec("f32", x.shape),))


def mul_bf16(rows: int) -> Function:
    x, y = (uniform(-7, 7, (rows, COLUMNS), "bf16", seed) for seed in (1, 2))
    return Function("func @mul(%x: bf16[?n, ?c], %y: bf16[?n, ?c]) -> bf16[?n, ?c] {\n"
                    "  %z = mul %x, %y\n  return %z\n}", (x, y), (Spec("bf16", x.shape),))


def clamp_f32(rows: int) -> Function:
    x = uniform(-7, 14, (rows, COLUMNS), "f32", 1)
    return Function("func @clamp(%x: f32[?n, ?c]) -> f32[?n, ?c] {\n"
                    "  %z = clamp %x {lo = 0.0, hi = 6.0}\n  return %z\n}", (x,),
                    (Spec("f32", x.shape),))


def image_normalize(rows: int) -> Function:
    x = uniform(0, 255, (rows * COLUMNS // 3, 3), "u8", 1)
    mean, scale = uniform(100, 140, (3,), "f32", 2), uniform(0.01, 0.02, (3,), "f32", 3)
    return Function("func @normalize(%x: u8[?n, 3], %m: f32[3], %s: f32[3]) -> f16[?n, 3] {\n"
                    "  %f = convert %x : f32\n  %d = sub %f, %m\n  %y = mul %d, %s\n"
                    "  %h = convert %y : f16\n  return %h\n}", (x, mean, scale),
                    (Spec("f16", x.shape),))


def dequantize_i8_rows(rows: int) -> Function:
    x = uniform(-128, 127, (rows, COLUMNS), "i8", 1)
    scale = uniform(0.01, 0.02, (rows, 1), "f32", 2)
    return Function("func @dequantize(%x: i8[?n, ?c], %s: f32[?n, 1]) -> f16[?n, ?c] {\n"
                    "  %f = convert %x : f32\n  %y = mul %f, %s\n  %h = convert %y : f16\n"
                    "  return %h\n}", (x, scale), (Spec("f16", x.shape),))


def quantize_u8(rows: int) -> Function:
    x = uniform(-4, 4, (rows, COLUMNS), "f32", 1)
    scale, zero = uniform(0.02, 0.03, (), "f32", 2), Tensor.of(np.asarray(121, np.uint8))
    return Function("func @quantize(%x: f32[?n, ?c], %s: f32[], %z: u8[]) -> u8[?n, ?c] {\n"
                    "  %y = quantize_linear %x, %s, %z : u8\n  return %y\n}", (x, scale, zero),
                    (Spec("u8", x.shape),))


def residual_f16(rows: int) -> Function:
    x, y = (uniform(-4, 4, (rows, COLUMNS), "f16", seed) for seed in (1, 2))
    scale = uniform(0.5, 2, (COLUMNS,), "f32", 3)
    return Function("func @residual(%x: f16[?n, ?c], %y: f16[?n, ?c], %s: f32[?c])"
                    " -> f16[?n, ?c] {\n  %a = convert %x : f32\n  %b = convert %y : f32\n"
                    "  %p = mul %a, %s\n  %t = add %p, %b\n  %r = relu %t\n"
                    "  %h = convert %r : f16\n  return %h\n}", (x, y, scale),
                    (Spec("f16", x.shape),))


def requantize_i32(rows: int) -> Function:
    x = uniform(-20000, 20000, (rows, COLUMNS), "i32", 1)
    scale, bias = uniform(0.004, 0.008, (COLUMNS,), "f32", 2), uniform(-9, 9, (COLUMNS,), "f32", 3)
    return Function("func @requantize(%x: i32[?n, ?c], %s: f32[?c], %b: f32[?c]) -> u8[?n, ?c] {\n"
                    "  %f = convert %x : f32\n  %p = mul %f, %s\n  %t = add %p, %b\n"
                    "  %y = convert %t {overflow = saturate, rounding = nearest_even} : u8\n"
                    "  return %y\n}", (x, scale, bias), (Spec("u8", x.shape),))


def promote_add(rows: int) -> Function:
    x = uniform(-50, 50, (rows // 8, 1, COLUMNS), "f32", 1)
    y = uniform(-50, 50, (rows // 8, 8, COLUMNS), "bf16", 2)
    return Function("func @promote(%x: f32[?a, 1, ?c], %y: bf16[?a, 8, ?c]) -> i8[?a, 8, ?c] {\n"
                    "  %g = convert %y : f32\n  %z = add %x, %g\n  %r = convert %z : i8\n"
                    "  return %r\n}", (x, y), (Spec("i8", y.shape),))


CHAINS: dict[str, Callable[..., Function]] = {
    make.__name__: make for make in (add_f32, mul_bf16, clamp_f32, image_normalize,
                                     dequantize_i8_rows, quantize_u8, residual_f16,
                                     requantize_i32, promote_add)}


def task_of(name: str, key: str, function: Function) -> Task:
    moved = sum(tensor.nbytes for tensor in (*function.inputs, *function.outputs))
    return Task(FAMILY, name, "function", {"function": key}, lambda form: function, moved, "GB/s")


def tasks(quick: bool) -> Iterator[Task]:
    for name, make in CHAINS.items():
        yield task_of(name, name, make(QUICK_ROWS if quick else ROWS))
    # What a call costs.
    yield task_of("add_f32 of 16 elements", "add_f32", add_f32(1, 16))
