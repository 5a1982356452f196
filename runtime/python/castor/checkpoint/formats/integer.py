# SPDX-License-Identifier: Apache-2.0
"""Integers with symmetric scales in the weight's own type: i8 per row, i4 per group of columns.

A scale of 0, of a row or group of zeros, is stored as 1. The codes of i4 are stored with 8 added,
eight in each I32, the first in its lowest bits, as compressed-tensors packs them.
"""

from __future__ import annotations

from typing import List, NamedTuple

import numpy as np

from castor.checkpoint.dtypes import DTYPES
from castor.checkpoint.formats.transform import Part, Transform, error_text
from castor.checkpoint.safetensors import TensorSpec

GROUP = 128
"""Columns with a common scale in int4-group, as presets of compressed-tensors have it."""

RULES = ("full_range", "narrow_range")
"""The scale is amax / 127.5 (7.5), as compressed-tensors has it; or amax / 127 (7), symmetric."""


class _Integer(NamedTuple):
    """The element type as castor stores it, its bits, and what is added to codes."""

    element: str
    bits: int
    offset: int

    @property
    def highest(self) -> int:
        """The largest code; the lowest one is -1 - highest."""
        return (1 << (self.bits - 1)) - 1


INT8 = _Integer("i8", 8, 0)
INT4 = _Integer("u4", 4, 8)


def _parts(
    kind: _Integer, prefix: str, rows: int, columns: int, group: int, scale: str
) -> List[Part]:
    groups = columns // group
    if kind is INT8:
        weight = TensorSpec(prefix + "weight", "I8", (rows, columns))
    else:
        weight = TensorSpec(prefix + "weight_packed", "I32", (rows, columns // 8))
    element = DTYPES[scale].element
    assert element is not None
    return [
        Part(weight, kind.element, lambda n: (n, groups, group)),
        Part(
            TensorSpec(prefix + "weight_scale", scale, (rows, groups)),
            element,
            lambda n: (n, groups, 1),
        ),
    ]


def encoder(kind: _Integer, source: TensorSpec, prefix: str, group: int, rule: str) -> Transform:
    """From a weight in floats."""
    rows, columns = source.shape
    x = DTYPES[source.dtype].element
    assert x is not None
    groups = columns // group
    divisor = kind.highest + (0.5 if rule == "full_range" else 0.0)
    if kind is INT8:
        codes = "  %y = convert %q {rounding = nearest_even, overflow = saturate} : i8"
        plain = "  %c = convert %y : f32"
    else:
        codes = f"""  %r = round_even %q
  %offset = constant {kind.offset}.0 : f32[]
  %u = add %r, %offset
  %y = convert %u {{overflow = saturate}} : u4"""
        plain = f"""  %u = convert %y : f32
  %offset = constant {kind.offset}.0 : f32[]
  %c = sub %u, %offset"""
    operand = f"%x: {x}[?n, {groups}, {group}]"
    elements = f"{kind.element}[?n, {groups}, {group}]"
    scales = f"{x}[?n, {groups}, 1]"
    text = f"""func @quantize({operand}) -> ({elements}, {scales}) {{
  %a = reduce_max_abs %x {{axes = [2], keep_dims = true}}
  %af = convert %a : f32
  %divisor = constant {divisor} : f32[]
  %d = div %af, %divisor
  %t = convert %d : {x}
  %zero = constant 0.0 : {x}[]
  %one = constant 1.0 : {x}[]
  %none = equal %t, %zero
  %s = select %none, %one, %t
  %sf = convert %s : f32
  %xf = convert %x : f32
  %q = div %xf, %sf
{codes}
  return %y, %s
}}"""
    error = error_text(
        f"{operand}, %y: {elements}, %s: {scales}",
        f"""{plain}
  %sf = convert %s : f32
  %d = mul %c, %sf
  %highest = constant {kind.highest}.0 : f32[]
  %lowest = constant {-1 - kind.highest}.0 : f32[]
  %high = mul %sf, %highest
  %low = mul %sf, %lowest
  %above = greater %xf, %high
  %below = less %xf, %low
  %over = logical_or %above, %below""",
    )
    constants = {}
    if kind is INT4:
        shape = TensorSpec(prefix + "weight_shape", "I64", (2,))
        constants[shape] = np.asarray(source.shape, "<i8").tobytes()
    return Transform(
        text,
        rows,
        [Part(source, x, lambda n: (n, groups, group))],
        _parts(kind, prefix, rows, columns, group, source.dtype),
        error_text=error,
        constants=constants,
    )


def decoder(kind: _Integer, result: TensorSpec, prefix: str, group: int, scale: str) -> Transform:
    """To a weight in floats."""
    rows, columns = result.shape
    y = DTYPES[result.dtype].element
    assert y is not None
    groups = columns // group
    parts = _parts(kind, prefix, rows, columns, group, scale)
    minus = ""
    value = "%u"
    if kind is INT4:
        minus = f"  %offset = constant {kind.offset}.0 : f32[]\n  %c = sub %u, %offset\n"
        value = "%c"
    text = f"""func @dequantize(
    %x: {kind.element}[?n, {groups}, {group}], %s: {parts[1].element}[?n, {groups}, 1])
    -> {y}[?n, {groups}, {group}] {{
  %u = convert %x : f32
{minus}  %sf = convert %s : f32
  %d = mul {value}, %sf
  %y = convert %d : {y}
  return %y
}}"""
    return Transform(text, rows, parts, [Part(result, y, lambda n: (n, groups, group))])
