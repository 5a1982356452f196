# SPDX-License-Identifier: Apache-2.0
"""MXFP4 and MXFP8: f4e2m1 or f8e4m3 with a scale of a power of two per 32 elements (OCP MX)."""

from __future__ import annotations

from typing import Mapping, NamedTuple

from castor.checkpoint.dtypes import DTYPES
from castor.checkpoint.formats.transform import Part, Transform, error_text
from castor.checkpoint.safetensors import TensorSpec

BLOCK = 32

RULES = ("even_round", "ocp_floor", "ceil_power")
"""The scale rules of quantize_mx; the first is the default, which compressed-tensors has for f4."""


class Microscaling(NamedTuple):
    """One of the formats: castor's name, the element type, its largest number, and how stored."""

    name: str
    element: str
    largest: float
    suffix: str
    dtype: str


FORMATS: Mapping[str, Microscaling] = {
    "mxfp4": Microscaling("mxfp4", "f4e2m1", 6.0, "weight_packed", "U8"),
    "mxfp8": Microscaling("mxfp8_e4m3", "f8e4m3", 448.0, "weight", "F8_E4M3"),
}


def parts(kind: Microscaling, prefix: str, rows: int, columns: int, scale: str) -> list[Part]:
    """The elements, and the scales as codes of f8e8m0, stored as `scale`."""
    stored = columns // 2 if kind.element == "f4e2m1" else columns
    blocks = columns // BLOCK
    return [
        Part(
            TensorSpec(prefix + kind.suffix, kind.dtype, (rows, stored)),
            kind.element,
            lambda n: (n, columns),
        ),
        Part(
            TensorSpec(prefix + "weight_scale", scale, (rows, blocks)),
            "f8e8m0",
            lambda n: (n, blocks),
        ),
    ]


def encoder(to: str, source: TensorSpec, prefix: str, rule: str) -> Transform:
    """From a weight in floats."""
    kind = FORMATS[to]
    rows, columns = source.shape
    x = DTYPES[source.dtype].element
    assert x is not None
    blocks = columns // BLOCK
    encoded = f"{kind.element}[?n, {columns}], f8e8m0[?n, {blocks}]"
    text = f"""func @quantize(%x: {x}[?n, {columns}]) -> ({encoded}) {{
  %y, %s = quantize_mx %x {{format = {kind.name}, scale_rule = {rule}}} : {kind.element}
  return %y, %s
}}"""
    error = error_text(
        f"%x: {x}[?n, {columns}], %y: {kind.element}[?n, {columns}], %s: f8e8m0[?n, {blocks}]",
        f"""  %d = dequantize_mx %y, %s {{format = {kind.name}}} : f32
  %sf = convert %s : f32
  %largest = constant {kind.largest} : f32[]
  %limit = mul %sf, %largest
  %a = abs %xf
  %over = greater %a, %limit {{broadcast = blocked, axes = [1], block = [{BLOCK}]}}""",
    )
    return Transform(
        text,
        rows,
        [Part(source, x, lambda n: (n, columns))],
        parts(kind, prefix, rows, columns, "U8"),
        error_text=error,
    )


def decoder(to: str, result: TensorSpec, prefix: str, scale: str) -> Transform:
    """To a weight in floats; the scales' dtype in the file is U8 or F8_E8M0."""
    kind = FORMATS[to]
    rows, columns = result.shape
    y = DTYPES[result.dtype].element
    assert y is not None
    blocks = columns // BLOCK
    text = f"""func @dequantize(%x: {kind.element}[?n, {columns}], %s: f8e8m0[?n, {blocks}])
    -> {y}[?n, {columns}] {{
  %y = dequantize_mx %x, %s {{format = {kind.name}}} : {y}
  return %y
}}"""
    return Transform(
        text,
        rows,
        parts(kind, prefix, rows, columns, scale),
        [Part(result, y, lambda n: (n, columns))],
    )
