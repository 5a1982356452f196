# SPDX-License-Identifier: Apache-2.0
"""NVFP4: f4e2m1 with an f8e4m3 scale per 16 elements and an f32 scale per tensor.

The tensor's scale is stored as its reciprocal g, as compressed-tensors has it: an element stands
for y * (s / g), each step rounded to f32. So scales are chosen with g too: g = 6 * 448 / amax of
the tensor, s = g * (amax of the block / 6) as f8e4m3, and y = x / (s / g) as f4e2m1.
"""

from __future__ import annotations

import numpy as np

from castor.checkpoint.dtypes import DTYPES
from castor.checkpoint.formats.transform import Part, Transform, TwoPassTransform, error_text
from castor.checkpoint.safetensors import TensorSpec

BLOCK = 16

RULES = ("amax",)


class _Encoder(TwoPassTransform):
    """The parameter is g."""

    def set_maximum(self, maximum: float) -> None:
        # Tensors of zeros, and those that g would overflow for, have g = 1.
        with np.errstate(all="ignore"):
            scale = np.float32(6 * 448) / np.float32(maximum)
        if not np.isfinite(scale) or scale == 0:
            scale = np.float32(1)
        self.parameters = [np.asarray(scale, np.float32)]
        (spec,) = self.constants
        self.constants[spec] = np.asarray(scale, "<f4").tobytes()


def encoder(source: TensorSpec, prefix: str) -> Transform:
    """From a weight in floats."""
    rows, columns = source.shape
    x = DTYPES[source.dtype].element
    assert x is not None
    blocks = columns // BLOCK
    elements = f"f4e2m1[?n, {blocks}, {BLOCK}]"
    scales = f"f8e4m3[?n, {blocks}, 1]"
    operand = f"%x: {x}[?n, {blocks}, {BLOCK}]"
    text = f"""func @quantize({operand}, %g: f32[]) -> ({elements}, {scales}) {{
  %a = reduce_max_abs %x {{axes = [2], keep_dims = true}}
  %af = convert %a : f32
  %six = constant 6.0 : f32[]
  %q = div %af, %six
  %gq = mul %g, %q
  %s = convert %gq {{overflow = saturate}} : f8e4m3
  %sf = convert %s : f32
  %t = div %sf, %g
  %xf = convert %x : f32
  %xt = div %xf, %t
  %y = convert %xt {{overflow = saturate, nan = zero}} : f4e2m1
  return %y, %s
}}"""
    error = error_text(
        f"{operand}, %y: {elements}, %s: {scales}, %g: f32[]",
        """  %sf = convert %s : f32
  %t = div %sf, %g
  %yf = convert %y : f32
  %d = mul %yf, %t
  %largest = constant 6.0 : f32[]
  %limit = mul %t, %largest
  %a = abs %xf
  %over = greater %a, %limit""",
    )
    made = _Encoder(
        text,
        rows,
        [Part(source, x, lambda n: (n, blocks, BLOCK))],
        [
            Part(
                TensorSpec(prefix + "weight_packed", "U8", (rows, columns // 2)),
                "f4e2m1",
                lambda n: (n, blocks, BLOCK),
            ),
            Part(
                TensorSpec(prefix + "weight_scale", "F8_E4M3", (rows, blocks)),
                "f8e4m3",
                lambda n: (n, blocks, 1),
            ),
        ],
        error_text=error,
        constants={TensorSpec(prefix + "weight_global_scale", "F32", (1,)): b""},
    )
    made.maximum_text = f"""func @maximum({operand}) -> f32[] {{
  %a = reduce_max_abs %x
  %m = convert %a : f32
  return %m
}}"""
    return made


def decoder(result: TensorSpec, prefix: str, scale: str) -> Transform:
    """To a weight in floats."""
    rows, columns = result.shape
    y = DTYPES[result.dtype].element
    assert y is not None
    blocks = columns // BLOCK
    text = f"""func @dequantize(
    %x: f4e2m1[?n, {blocks}, {BLOCK}], %s: f8e4m3[?n, {blocks}, 1], %g: f32[1])
    -> {y}[?n, {blocks}, {BLOCK}] {{
  %sf = convert %s : f32
  %t = div %sf, %g
  %xf = convert %x : f32
  %d = mul %xf, %t
  %y = convert %d : {y}
  return %y
}}"""
    return Transform(
        text,
        rows,
        [
            Part(
                TensorSpec(prefix + "weight_packed", "U8", (rows, columns // 2)),
                "f4e2m1",
                lambda n: (n, blocks, BLOCK),
            ),
            Part(
                TensorSpec(prefix + "weight_scale", scale, (rows, blocks)),
                "f8e4m3",
                lambda n: (n, blocks, 1),
            ),
            Part(TensorSpec(prefix + "weight_global_scale", "F32", (1,)), "f32", lambda n: (1,), 0),
        ],
        [Part(result, y, lambda n: (n, blocks, BLOCK))],
    )
