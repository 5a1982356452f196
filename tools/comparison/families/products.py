# SPDX-License-Identifier: Apache-2.0
"""MatMulInteger by rows and signs, with constant B, for layers of transformers."""
from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from ..tasks import Function, Spec, Task, Tensor

FAMILY = "MatMulInteger"
SHAPES = ((768, 768), (768, 3072), (3072, 768), (4096, 4096))
ROWS = (1, 8, 128, 512)
DTYPES = {"u8": np.uint8, "i8": np.int8}
A_ZERO_POINTS = {"u8": 121, "i8": 0}
B_ZERO_POINTS = {"u8": 119, "i8": 0}


@dataclasses.dataclass(frozen=True)
class Operands:
    a: Tensor
    b: Tensor
    a_zero_point: int
    b_zero_point: int

    @property
    def y_shape(self) -> tuple[int, ...]:
        return (self.a.shape[0], self.b.shape[1])


def operands(rows: int, depth: int, columns: int, a: str, b: str) -> Operands:
    random = np.random.default_rng(7)

    def codes(element: str, shape: tuple[int, ...]) -> Tensor:
        limits = np.iinfo(DTYPES[element])
        return Tensor.of(random.integers(limits.min, limits.max, shape, DTYPES[element],
                                         endpoint=True))

    return Operands(codes(a, (rows, depth)), codes(b, (depth, columns)), A_ZERO_POINTS[a],
                    B_ZERO_POINTS[b])


def function(each: Operands) -> Function:
    y = Spec("i32", each.y_shape)
    lines = [f"func @product(%a: {each.a.element}[{each.a.shape[0]}, {each.a.shape[1]}])"
             f" -> i32[{y.shape[0]}, {y.shape[1]}] {{",
             f"  %b = constant @b : {each.b.element}[{each.b.shape[0]}, {each.b.shape[1]}]"]
    arguments = "%a, %b"
    if each.a_zero_point or each.b_zero_point:
        lines.append(f"  %z = constant {each.a_zero_point} : {each.a.element}[]")
        arguments += ", %z"
    if each.b_zero_point:
        lines.append(f"  %v = constant {each.b_zero_point} : {each.b.element}[]")
        arguments += ", %v"
    lines += [f"  %y = matmul_integer {arguments}", "  return %y", "}"]
    return Function("\n".join(lines), (each.a,), (y,), {"b": each.b})


def tasks(quick: bool) -> Iterator[Task]:
    for depth, columns in SHAPES[:1] if quick else SHAPES:
        for rows in ROWS[1:3] if quick else ROWS:
            for a, b in (("u8", "i8"), ("i8", "i8"), ("u8", "u8"), ("i8", "u8")):
                each = operands(rows, depth, columns, a, b)
                yield Task(FAMILY, f"{rows} x {depth} x {columns} {a} x {b}", "matmul_integer",
                           {"operands": each}, lambda form, each=each: function(each),
                           float(rows) * depth * columns, "GMAC/s")
