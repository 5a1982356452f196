# SPDX-License-Identifier: Apache-2.0
"""Elements that share a scale by blocks: int4 as ONNX has it, and microscaling formats."""
from __future__ import annotations

from collections.abc import Iterator

import castor
import numpy as np

from ..tasks import Function, Spec, Task, Tensor
from .elementwise import uniform

FAMILY = "block formats"
ROWS, COLUMNS, QUICK_ROWS = 256, 4096, 16
MX = {"mxfp8_e4m3": "f8e4m3", "mxfp4": "f4e2m1"}
BLOCK = 32


def int4(rows: int) -> tuple[Tensor, Tensor]:
    return (uniform(-8, 7, (rows, COLUMNS), "i4", 1),
            uniform(0.01, 0.02, (rows, COLUMNS // BLOCK), "f16", 2))


def dequantize_int4(rows: int) -> Function:
    x, scale = int4(rows)
    return Function(f"func @dequantize(%x: i4[?n, {COLUMNS}], %s: f16[?n, {COLUMNS // BLOCK}])"
                    f" -> f16[?n, {COLUMNS}] {{\n"
                    f"  %y = dequantize_linear %x, %s {{block_size = {BLOCK}}} : f16\n"
                    "  return %y\n}", (x, scale), (Spec("f16", x.shape),))


def quantize_int4(rows: int) -> Function:
    x = uniform(-2, 2, (rows, COLUMNS), "f32", 1)
    scale = uniform(0.2, 0.3, (rows, COLUMNS // BLOCK), "f32", 2)
    return Function(f"func @quantize(%x: f32[?n, {COLUMNS}], %s: f32[?n, {COLUMNS // BLOCK}])"
                    f" -> i4[?n, {COLUMNS}] {{\n"
                    f"  %y = quantize_linear %x, %s {{block_size = {BLOCK}}} : i4\n"
                    "  return %y\n}", (x, scale), (Spec("i4", x.shape),))


def quantize_mx(format_: str, rows: int) -> Function:
    x = Tensor.of(castor.convert(
        np.random.default_rng(3).normal(0, 1, (rows, COLUMNS)), "f32"))
    element = MX[format_]
    blocks = COLUMNS // BLOCK
    return Function(f"func @quantize(%x: f32[?n, {COLUMNS}])"
                    f" -> ({element}[?n, {COLUMNS}], f8e8m0[?n, {blocks}]) {{\n"
                    f"  %y, %s = quantize_mx %x {{format = {format_}}} : {element}\n"
                    "  return %y, %s\n}", (x,),
                    (Spec(element, x.shape), Spec("f8e8m0", (rows, blocks))))


def dequantize_mx(format_: str, rows: int) -> Function:
    x = quantize_mx(format_, rows).inputs[0]
    codes, scales = castor.quantize_mx(x.array(), format_)
    blocks = COLUMNS // BLOCK
    return Function(f"func @dequantize(%q: {MX[format_]}[?n, {COLUMNS}], %s: f8e8m0[?n, {blocks}])"
                    f" -> bf16[?n, {COLUMNS}] {{\n"
                    f"  %y = dequantize_mx %q, %s {{format = {format_}}} : bf16\n"
                    "  return %y\n}", (Tensor.of(codes), Tensor.of(scales)),
                    (Spec("bf16", x.shape),))


def tasks(quick: bool) -> Iterator[Task]:
    rows = QUICK_ROWS if quick else ROWS
    made = {"dequantize_i4_f16": dequantize_int4(rows), "quantize_f32_i4": quantize_int4(rows)}
    for format_ in MX:
        made[f"quantize_f32_{format_}"] = quantize_mx(format_, rows)
        made[f"dequantize_{format_}_bf16"] = dequantize_mx(format_, rows)
    for name, function in made.items():
        moved = sum(tensor.nbytes for tensor in (*function.inputs, *function.outputs))
        yield Task(FAMILY, name, "blocks", {"function": name},
                   lambda form, function=function: function, moved, "GB/s")
