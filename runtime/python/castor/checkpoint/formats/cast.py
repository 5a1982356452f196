# SPDX-License-Identifier: Apache-2.0
"""Floats to other floats, of tensors of any shape."""

from __future__ import annotations

import math

from castor.checkpoint.dtypes import DTYPES
from castor.checkpoint.formats.transform import Part, Transform, error_text
from castor.checkpoint.safetensors import TensorSpec

RULES = ("saturate", "infinity")
"""Numbers beyond the largest become the largest, or infinity, as torch has it."""

LARGEST = {
    "BF16": float.fromhex("0x1.fep127"),
    "F16": 65504.0,
    "F32": float.fromhex("0x1.fffffep127"),
}


def transform(source: TensorSpec, name: str, to: str, rule: str) -> Transform:
    """From one dtype to another. A row is an element here."""
    x, y = DTYPES[source.dtype].element, DTYPES[to].element
    assert x is not None
    assert y is not None
    count = math.prod(source.shape)
    flat = TensorSpec(source.name, source.dtype, (count,))
    overflow = " {overflow = saturate_finite}" if rule == "saturate" else ""
    text = f"""func @convert(%x: {x}[?n]) -> {y}[?n] {{
  %y = convert %x{overflow} : {y}
  return %y
}}"""
    error = error_text(
        f"%x: {x}[?n], %y: {y}[?n]",
        f"""  %d = convert %y : f32
  %largest = constant {LARGEST[to]!r} : f32[]
  %a = abs %xf
  %beyond = greater %a, %largest
  %span = sub %a, %a
  %finite = equal %span, %span
  %over = logical_and %beyond, %finite""",
    )
    return Transform(
        text,
        count,
        [Part(flat, x, lambda n: (n,))],
        [Part(TensorSpec(name, to, source.shape), y, lambda n: (n,))],
        error_text=error,
    )
