# SPDX-License-Identifier: Apache-2.0
"""Both arithmetics of embARC MLI data conversion on single elements, in integers and rationals.

Formats: fx8, fx16, sa8, sa32, fp32; an element is a signed integer, of fp32 a u32 bit pattern. What
an element means is its slice: scale s, fractional bits n, zero point z of (x - z) * s / 2^n.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import mli_f32 as f32

CONTAINER_BITS = {"fx8": 8, "fx16": 16, "sa8": 8, "sa32": 32}
FORMATS = (*CONTAINER_BITS, "fp32")


class Slice(NamedTuple):
    scale: int = 1
    frac: int = 0
    zero: int = 0


def saturate(number, bits):
    return min(max(number, -(1 << bits - 1)), (1 << bits - 1) - 1)


def round_integer(number, rounding):
    """up: floor(v + 1/2); convergent: ties to even."""
    return math.floor(number + Fraction(1, 2)) if rounding == "up" else round(number)


# exact: the specification's formula, rounded once


def exact_value(source, x, a, target, b):
    """The real number that is rounded to the target; x is no NaN and no infinity."""
    real = f32.value(x) if source == "fp32" else (x - a.zero) * a.scale * f32.power(-a.frac)
    if target == "fp32":
        return Fraction(real)
    return real * f32.power(b.frac) / b.scale + b.zero


def exact(source, x, a, target, b, rounding):
    if source == target == "fp32":
        return x
    if target == "fp32":
        return f32.nearest(exact_value(source, x, a, target, b))
    bits = CONTAINER_BITS[target]
    if source == "fp32" and f32.is_nan(x):
        return saturate(b.zero, bits)
    if source == "fp32" and f32.is_infinite(x):
        return saturate(-(1 << 64) if x & f32.SIGN else 1 << 64, bits)
    return saturate(round_integer(exact_value(source, x, a, target, b), rounding), bits)


# embarc: the library's integer and f32 steps


def redundant_sign_bits(x, bits):
    """norm: by how much x can be shifted left without leaving the type; bits - 1 for 0."""
    magnitude = x if x >= 0 else -x - 1
    return bits - 1 - magnitude.bit_length()


def shift_right_rounding(x, shift, bits, rounding):
    """rshr: to the left, saturating, for negative shifts; 0 where everything is shifted out."""
    if shift <= 0:
        return saturate(x << min(-shift, 4 * bits), bits)
    if shift > bits - 1:
        return 0
    if rounding == "up":
        return saturate(x + (1 << shift - 1), bits) >> shift
    return round(Fraction(x, 1 << shift))


def multiplier(a, b, rounding):
    """(scale, shift): scale / 2^shift is about a.scale / 2^a.frac * 2^b.frac / b.scale."""
    p = redundant_sign_bits(a.scale, 32) - redundant_sign_bits(b.scale, 16)
    quotient = (a.scale << p) // b.scale
    t = 16 - redundant_sign_bits(quotient, 32)
    scale = saturate(shift_right_rounding(quotient, t, 32, rounding), 16)
    return scale, p + a.frac - b.frac - t


def product_and_shift(source, x, a, target, b, rounding):
    """What the library shifts right with rounding, and by how much."""
    scale, shift = multiplier(a, b, rounding)
    if "sa32" not in (source, target):
        return saturate(x - a.zero, 16) * scale, min(shift, 31)
    d = saturate(x - a.zero, 32)
    u = redundant_sign_bits(d, 32)
    v = redundant_sign_bits(scale, 32)
    high = (d << u) * (scale << v) >> 32
    return high, min(shift, 63) + v + u - 32


def requantized(source, x, a, target, b, rounding):
    product, shift = product_and_shift(source, x, a, target, b, rounding)
    y = shift_right_rounding(product, shift, 32, rounding)
    return saturate(saturate(y + b.zero, 32), CONTAINER_BITS[target])


def quantization_factor(b):
    reciprocal = f32.nearest(Fraction(1, b.scale))
    return f32.nearest(f32.value(reciprocal) * f32.power(b.frac))


def truncated(bits):
    """An f32 as i32: what does not fit saturates, NaN gives 0."""
    if f32.is_nan(bits):
        return 0
    if f32.is_infinite(bits):
        return saturate(-(1 << 40) if bits & f32.SIGN else 1 << 40, 32)
    return saturate(math.trunc(f32.value(bits)), 32)


def is_positive(bits):
    return not f32.is_nan(bits) and 0 < bits < f32.SIGN


def quantized(x, target, b):
    half = Fraction(1 if is_positive(x) else -1, 2)
    y = truncated(f32.add_finite(f32.multiply(x, quantization_factor(b)), half))
    return saturate(saturate(y + b.zero, 32), CONTAINER_BITS[target])


def dequantization_factor(a):
    return f32.nearest(a.scale * f32.power(-a.frac))


def dequantized(x, a):
    difference = f32.nearest(Fraction(saturate(x - a.zero, 32)))
    return f32.multiply(difference, dequantization_factor(a))


def embarc(source, x, a, target, b, rounding):
    if source == "fp32":
        return x if target == "fp32" else quantized(x, target, b)
    if target == "fp32":
        return dequantized(x, a)
    return requantized(source, x, a, target, b, rounding)


ARITHMETICS = {"exact": exact, "embarc": embarc}


# ties: whether a rounding step has two results equally near


def is_exact_tie(source, x, a, target, b, _rounding):
    if source == "fp32" and (f32.is_nan(x) or f32.is_infinite(x)):
        return False
    number = exact_value(source, x, a, target, b)
    return f32.is_midpoint(number) if target == "fp32" else number.denominator == 2


def is_embarc_tie(source, x, a, target, b, rounding):
    if source == "fp32":
        product = f32.multiply(x, quantization_factor(b))
        return product & ~f32.SIGN < f32.INFINITY and f32.value(product).denominator == 2
    if target == "fp32":
        difference = Fraction(saturate(x - a.zero, 32))
        factor = dequantization_factor(a)
        if f32.is_midpoint(difference) or f32.is_infinite(factor):
            return f32.is_midpoint(difference)
        return f32.is_midpoint(f32.value(f32.nearest(difference)) * f32.value(factor))
    product, shift = product_and_shift(source, x, a, target, b, rounding)
    return 0 < shift < 32 and product % (1 << shift) == 1 << shift - 1


TIES = {"exact": is_exact_tie, "embarc": is_embarc_tie}
