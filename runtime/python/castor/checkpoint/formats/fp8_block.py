# SPDX-License-Identifier: Apache-2.0
"""FP8 of DeepSeek: f8e4m3 with an f32 scale per tile of 128 x 128, stored as weight_scale_inv."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Sequence

import numpy as np

from castor.checkpoint.dtypes import DTYPES
from castor.checkpoint.formats.transform import BlockError, Part, Transform, compiled, error_text
from castor.checkpoint.safetensors import TensorSpec

if TYPE_CHECKING:
    from castor.checkpoint.formats.transform import Bytes

TILE = 128

RULES = ("amax", "ceil_power")
"""The scale is amax / 448; or that, up to a power of two (DeepSeek's ue8m0). It is at least 2^-126,
so that its reciprocal, which elements are multiplied by as in DeepGEMM, is finite."""


def _tiles(extent: int) -> int:
    return -(-extent // TILE)


class _Tiled(Transform):
    """Pads blocks whose rows or columns do not fill tiles: zeros change neither amax nor errors."""

    def __init__(
        self,
        text: str,
        inputs: Sequence[Part],
        outputs: Sequence[Part],
        columns: int,
        error: str | None = None,
    ) -> None:
        rows = outputs[0].spec.shape[0]
        super().__init__(text, rows, inputs, outputs, step=TILE, error_text=error)
        self._columns = columns

    def run(self, inputs: Sequence[Bytes], outputs: Sequence[Bytes], rows: int) -> None:
        padded_rows = _tiles(rows) * TILE
        if rows == padded_rows and self._columns % TILE == 0:
            self._run_tiles(inputs, outputs, rows)
            return
        padded_outputs = self._padded(self.outputs, outputs, rows, copy=False)
        self._run_tiles(self._padded(self.inputs, inputs, rows), padded_outputs, padded_rows)
        for part, padded, output in zip(self.outputs, padded_outputs, outputs):
            if part.step == 1:
                size = DTYPES[part.spec.dtype].bits // 8
                wide = padded.reshape(padded_rows, -1)[:rows, : self._columns * size]
                output.reshape(rows, -1)[:] = wide

    def error(self, inputs: Sequence[Bytes], outputs: Sequence[Bytes], rows: int) -> BlockError:
        padded_rows = _tiles(rows) * TILE
        if rows == padded_rows and self._columns % TILE == 0:
            return super().error(inputs, outputs, rows)
        return super().error(
            self._padded(self.inputs, inputs, rows),
            self._padded(self.outputs, outputs, rows),
            padded_rows,
        )

    def _run_tiles(self, inputs: Sequence[Bytes], outputs: Sequence[Bytes], rows: int) -> None:
        super().run(inputs, outputs, rows)

    def _padded(
        self, parts: Sequence[Part], blocks: Sequence[Bytes], rows: int, copy: bool = True
    ) -> List[Bytes]:
        """Elements in whole tiles; scales, of which there is one per tile, as they are."""
        made = []
        for part, block in zip(parts, blocks):
            if part.step != 1:
                made.append(block)
                continue
            size = DTYPES[part.spec.dtype].bits // 8
            padded = np.zeros((_tiles(rows) * TILE, _tiles(self._columns) * TILE * size), np.uint8)
            if copy:
                padded[:rows, : self._columns * size] = block.reshape(rows, -1)
            made.append(padded.reshape(-1))
        return made


class _Encoder(_Tiled):
    """Scales first: one function for both would compute the reciprocal for each row of a tile."""

    def __init__(self, *arguments: Any, scale_text: str) -> None:
        super().__init__(*arguments)
        self._scale_text = scale_text

    def _run_tiles(self, inputs: Sequence[Bytes], outputs: Sequence[Bytes], rows: int) -> None:
        (x,) = self._tensors(self.inputs, inputs, rows)
        elements, scales = self._tensors(self.outputs, outputs, rows)
        reciprocals = np.empty(scales.shape, np.float32)
        compiled(self._scale_text)(x, out=[scales, reciprocals])
        compiled(self.text)(x, reciprocals, out=elements)


def _parts(prefix: str, rows: int, columns: int, scale: str) -> List[Part]:
    across = _tiles(columns)
    element = DTYPES[scale].element
    assert element is not None
    return [
        Part(
            TensorSpec(prefix + "weight", "F8_E4M3", (rows, columns)),
            "f8e4m3",
            lambda n: (n // TILE, TILE, across, TILE),
        ),
        Part(
            TensorSpec(prefix + "weight_scale_inv", scale, (_tiles(rows), across)),
            element,
            lambda n: (n // TILE, 1, across, 1),
            TILE,
        ),
    ]


def encoder(source: TensorSpec, prefix: str, rule: str) -> Transform:
    """From a weight in floats."""
    rows, columns = source.shape
    x = DTYPES[source.dtype].element
    assert x is not None
    across = _tiles(columns)
    shape = f"[?t, {TILE}, {across}, {TILE}]"
    scales = f"f32[?t, 1, {across}, 1]"
    power = ""
    if rule == "ceil_power":
        power = "  %e = convert %q {rounding = up} : f8e8m0\n  %p = convert %e : f32\n"
    scale_text = f"""func @scales(%x: {x}{shape}) -> ({scales}, {scales}) {{
  %a = reduce_max_abs %x {{axes = [1, 3], keep_dims = true}}
  %af = convert %a : f32
  %largest = constant 448.0 : f32[]
  %q = div %af, %largest
{power}  %least = constant 0x00800000 : f32[]
  %s = max {"%p" if power else "%q"}, %least
  %one = constant 1.0 : f32[]
  %r = div %one, %s
  return %s, %r
}}"""
    text = f"""func @quantize(%x: {x}{shape}, %r: {scales}) -> f8e4m3{shape} {{
  %xf = convert %x : f32
  %xr = mul %xf, %r
  %y = convert %xr {{overflow = saturate}} : f8e4m3
  return %y
}}"""
    error = error_text(
        f"%x: {x}{shape}, %y: f8e4m3{shape}, %s: {scales}",
        """  %yf = convert %y : f32
  %d = mul %yf, %s
  %largest = constant 448.0 : f32[]
  %limit = mul %s, %largest
  %a = abs %xf
  %over = greater %a, %limit""",
    )
    part = Part(source, x, lambda n: (n // TILE, TILE, across, TILE))
    parts = _parts(prefix, rows, columns, "F32")
    return _Encoder(text, [part], parts, columns, error, scale_text=scale_text)


def decoder(result: TensorSpec, prefix: str, scale: str) -> Transform:
    """To a weight in floats; other writers store the scales as BF16 or F16 too."""
    rows, columns = result.shape
    y = DTYPES[result.dtype].element
    assert y is not None
    across = _tiles(columns)
    shape = f"[?t, {TILE}, {across}, {TILE}]"
    parts = _parts(prefix, rows, columns, scale)
    s = parts[1].element
    text = f"""func @dequantize(%x: f8e4m3{shape}, %s: {s}[?t, 1, {across}, 1]) -> {y}{shape} {{
  %xf = convert %x : f32
  %sf = convert %s : f32
  %d = mul %xf, %sf
  %y = convert %d : {y}
  return %y
}}"""
    part = Part(result, y, lambda n: (n // TILE, TILE, across, TILE))
    return _Tiled(text, parts, [part], columns)
