# SPDX-License-Identifier: Apache-2.0
"""Quantization by the range of the data: of a tensor as ONNX does it, and of each row."""
from __future__ import annotations

from collections.abc import Iterator

from ..tasks import Function, Spec, Task
from .elementwise import uniform

FAMILY = "dynamic quantization"
ROWS, COLUMNS, QUICK_ROWS = 256, 4096, 16


def linear(rows: int) -> Function:
    x = uniform(-3, 5, (rows, COLUMNS), "f32", 1)
    return Function("func @quantize(%x: f32[?n, ?c]) -> (u8[?n, ?c], f32[], u8[]) {\n"
                    "  %y, %s, %z = dynamic_quantize_linear %x : u8\n  return %y, %s, %z\n}",
                    (x,), (Spec("u8", x.shape), Spec("f32", ()), Spec("u8", ())))


def rows_of(element: str, rows: int) -> Function:
    """i8 rows, symmetric; the scale is f32."""
    x = uniform(-5, 5, (rows, COLUMNS), element, 2)
    widen = "  %f = convert %x : f32\n" if element != "f32" else ""
    wide = "%f" if widen else "%x"
    return Function(f"func @quantize(%x: {element}[?n, {COLUMNS}])"
                    f" -> (i8[?n, {COLUMNS}], f32[?n, 1]) {{\n{widen}"
                    f"  %y, %s = dynamic_quantize_symmetric {wide} {{axes = [1]}} : i8\n"
                    "  return %y, %s\n}", (x,), (Spec("i8", x.shape), Spec("f32", (rows, 1))))


def tasks(quick: bool) -> Iterator[Task]:
    rows = QUICK_ROWS if quick else ROWS
    for name, function in (("tensor_f32_u8", linear(rows)),
                           ("rows_f32_i8", rows_of("f32", rows)),
                           ("rows_bf16_i8", rows_of("bf16", rows))):
        moved = sum(tensor.nbytes for tensor in (*function.inputs, *function.outputs))
        yield Task(FAMILY, name, "dynamic_quantization", {"function": name},
                   lambda form, function=function: function, moved, "GB/s")
