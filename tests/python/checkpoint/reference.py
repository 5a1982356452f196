# SPDX-License-Identifier: Apache-2.0
"""The formats from their definitions, in NumPy and exact rationals; nothing here knows castor.

Every step that a format rounds to f32 is one operation of NumPy's float32; what is rounded to a
narrower type is looked up in the table of that type's values, which float64 holds exactly.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Dict, List, NamedTuple, Tuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
"""The values of codes 0 to 7; code + 8 is negative."""

E4M3 = np.array(
    [
        math.ldexp(code & 7, -9) if code < 8 else math.ldexp(8 + (code & 7), (code >> 3) - 10)
        for code in range(127)
    ]
)
"""The values of codes 0 to 126; 127 is NaN."""


def nearest(values: Array, x: Array) -> Array:
    """Codes of the nearest values, ties to the even code, beyond the largest saturated."""
    magnitude = np.abs(x.astype(np.float64))
    middles = (values[1:] + values[:-1]) / 2
    below = np.searchsorted(middles, magnitude, "left")  # a tie goes to the lower code ...
    above = np.searchsorted(middles, magnitude, "right")  # ... or to the upper one
    code: Array = np.where(below % 2 == 0, below, above)
    signed: Array = code + np.where(np.signbit(x), len(values) if len(values) == 8 else 128, 0)
    return signed


def value_of(values: Array, code: Array) -> Array:
    """In float64."""
    sign = len(values) if len(values) == 8 else 128
    value: Array = np.where(code >= sign, -1.0, 1.0) * values[code % sign]
    return value


def bf16_bits(x: Array) -> Array:
    """Finite f32 to bf16, nearest even."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def bf16_values(bits: Array) -> Array:
    """In f32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def to_dtype(x: Array, dtype: str) -> Array:
    """f32 rounded to the dtype, as f32."""
    if dtype == "BF16":
        return bf16_values(bf16_bits(x))
    return x.astype(np.float16).astype(np.float32) if dtype == "F16" else x.astype(np.float32)


def stored(x: Array, dtype: str) -> bytes:
    """The bytes of f32 in the dtype, little-endian."""
    if dtype == "BF16":
        return bf16_bits(x).astype("<u2").tobytes()
    return x.astype({"F16": "<f2", "F32": "<f4"}[dtype]).tobytes()


def loaded(data: bytes, dtype: str, shape: Tuple[int, ...]) -> Array:
    """The opposite, as f32."""
    if dtype == "BF16":
        return bf16_values(np.frombuffer(data, "<u2")).reshape(shape)
    kind = {"F16": "<f2", "F32": "<f4"}[dtype]
    return np.frombuffer(data, kind).astype(np.float32).reshape(shape)


class Encoded(NamedTuple):
    """The tensors of a weight by suffix (dtype, shape, bytes), and the weight decoded to f32."""

    tensors: Dict[str, Tuple[str, List[int], bytes]]
    decoded: Array


def _packed(codes: Array) -> bytes:
    flat = codes.reshape(-1, 2).astype(np.uint8)
    return (flat[:, 0] | (flat[:, 1] << 4)).tobytes()


def _power(amax: float, rule: str, largest: Fraction, exponent: int, bits: int) -> int:
    """The exponent of a block's scale by the rules' definitions, in exact rationals."""
    if amax == 0:
        return -127
    divisor = {
        "ocp_floor": Fraction(2) ** exponent,
        "even_round": Fraction(2) ** exponent * (1 - Fraction(1, 2 ** (bits + 2))),
        "ceil_power": largest,
    }[rule]
    ratio = Fraction(amax) / divisor
    power = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    if Fraction(2) ** power > ratio:
        power -= 1
    if rule == "ceil_power" and Fraction(2) ** power < ratio:
        power += 1
    return min(max(power, -127), 127)


def microscaling(x: Array, to: str, rule: str) -> Encoded:
    """MXFP4 and MXFP8 of f32 values."""
    rows, columns = x.shape
    values = E2M1 if to == "mxfp4" else E4M3
    exponent, bits = (2, 1) if to == "mxfp4" else (8, 3)
    blocks = x.reshape(rows, columns // 32, 32).astype(np.float64)
    powers = np.array(
        [
            _power(float(amax), rule, Fraction(values[-1]), exponent, bits)
            for amax in np.abs(blocks).max(axis=2).reshape(-1)
        ]
    ).reshape(rows, columns // 32, 1)
    codes = nearest(values, np.ldexp(blocks, -powers))
    decoded = np.ldexp(value_of(values, codes), powers).reshape(rows, columns)
    scale = ("U8", [rows, columns // 32], (powers + 127).astype(np.uint8).tobytes())
    if to == "mxfp4":
        weight = ("weight_packed", "U8", [rows, columns // 2], _packed(codes))
    else:
        weight = ("weight", "F8_E4M3", [rows, columns], codes.astype(np.uint8).tobytes())
    return Encoded({weight[0]: weight[1:], "weight_scale": scale}, decoded.astype(np.float32))


def nvfp4(x: Array) -> Encoded:
    """By the formulas of compressed-tensors, in f32."""
    rows, columns = x.shape
    with np.errstate(all="ignore"):
        whole = np.float32(6 * 448) / np.abs(x).max()
    if not np.isfinite(whole):
        whole = np.float32(1)
    blocks = x.reshape(rows, columns // 16, 16)
    amax = np.abs(blocks).max(axis=2, keepdims=True)
    scale_codes = nearest(E4M3, whole * (amax / np.float32(6)))
    scales = value_of(E4M3, scale_codes).astype(np.float32) / whole
    with np.errstate(all="ignore"):
        quotients = blocks / scales
    # 0 / 0 is the NaN that x86 makes, of sign 1, for which ONNX's rule has +0.
    codes = np.where(np.isnan(quotients), 0, nearest(E2M1, np.nan_to_num(quotients)))
    decoded = value_of(E2M1, codes).astype(np.float32) * scales
    tensors = {
        "weight_packed": ("U8", [rows, columns // 2], _packed(codes)),
        "weight_scale": ("F8_E4M3", [rows, columns // 16], scale_codes.astype(np.uint8).tobytes()),
        "weight_global_scale": ("F32", [1], np.asarray(whole, "<f4").tobytes()),
    }
    return Encoded(tensors, decoded.reshape(rows, columns))


def fp8_block(x: Array, rule: str) -> Encoded:
    """Tile by tile, the last ones short."""
    rows, columns = x.shape
    codes = np.zeros(x.shape, np.uint8)
    decoded = np.zeros(x.shape, np.float32)
    scales = np.zeros((-(-rows // 128), -(-columns // 128)), np.float32)
    for row in range(0, rows, 128):
        for column in range(0, columns, 128):
            tile = (slice(row, row + 128), slice(column, column + 128))
            scale = np.abs(x[tile]).max() / np.float32(448)
            if rule == "ceil_power" and scale:
                mantissa, power = math.frexp(float(scale))
                scale = np.float32(math.ldexp(1, power - (mantissa == 0.5)))
            scale = max(scale, np.float32(2.0**-126))
            codes[tile] = nearest(E4M3, x[tile] * (np.float32(1) / scale))
            decoded[tile] = value_of(E4M3, codes[tile]).astype(np.float32) * scale
            scales[row // 128, column // 128] = scale
    tensors = {
        "weight": ("F8_E4M3", [rows, columns], codes.tobytes()),
        "weight_scale_inv": ("F32", list(scales.shape), scales.astype("<f4").tobytes()),
    }
    return Encoded(tensors, decoded)


def integer(x: Array, bits: int, group: int, rule: str, dtype: str) -> Encoded:
    """Integers of 8 bits by rows, or 4 bits by groups; the scale has the weight's dtype."""
    rows, columns = x.shape
    highest = (1 << (bits - 1)) - 1
    divisor = np.float32(highest + (0.5 if rule == "full_range" else 0))
    groups = x.reshape(rows, columns // group, group)
    scales = to_dtype(np.abs(groups).max(axis=2, keepdims=True) / divisor, dtype)
    scales = np.where(scales == 0, np.float32(1), scales).astype(np.float32)
    codes = np.clip(np.rint(groups / scales), -1 - highest, highest).astype(np.int64)
    decoded = (codes.astype(np.float32) * scales).reshape(rows, columns)
    scale = (dtype, [rows, columns // group], stored(scales, dtype))
    if bits == 8:
        weight = ("I8", [rows, columns], codes.astype(np.int8).tobytes())
        return Encoded({"weight": weight, "weight_scale": scale}, decoded)
    tensors = {
        "weight_packed": ("I32", [rows, columns // 8], _packed(codes + 8)),
        "weight_scale": scale,
        "weight_shape": ("I64", [2], np.array([rows, columns], "<i8").tobytes()),
    }
    return Encoded(tensors, decoded)


def encode(x: Array, to: str, rule: str, group: int, dtype: str) -> Encoded:
    """Any of the formats."""
    if to in ("mxfp4", "mxfp8"):
        return microscaling(x, to, rule)
    if to == "nvfp4":
        return nvfp4(x)
    if to == "fp8-block":
        return fp8_block(x, rule)
    if to == "int8-channel":
        return integer(x, 8, x.shape[1], rule, dtype)
    return integer(x, 4, group, rule, dtype)
