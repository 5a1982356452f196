# SPDX-License-Identifier: Apache-2.0
"""Conversions by exact rationals, from the definitions of the formats alone.

Values are Fractions, or "inf", "-inf" and "nan". Nothing here knows castor or ml_dtypes.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Dict, NamedTuple, Union

Number = Union[Fraction, str]


class Format(NamedTuple):
    """A float: bits of exponent and mantissa, bias, and what the special codes are."""

    exponent: int
    mantissa: int
    bias: int
    specials: str  # "ieee", "fn": all ones is NaN, "fnuz": negative zero is NaN, "none"

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa


FORMATS: Dict[str, Format] = {
    "f4e2m1": Format(2, 1, 1, "none"),
    "f6e2m3": Format(2, 3, 1, "none"),
    "f6e3m2": Format(3, 2, 3, "none"),
    "f8e4m3": Format(4, 3, 7, "fn"),
    "f8e4m3fnuz": Format(4, 3, 8, "fnuz"),
    "f8e5m2": Format(5, 2, 15, "ieee"),
    "f8e5m2fnuz": Format(5, 2, 16, "fnuz"),
    "f16": Format(5, 10, 15, "ieee"),
    "bf16": Format(8, 7, 127, "ieee"),
    "f32": Format(8, 23, 127, "ieee"),
}


def decode(code: int, name: str) -> Number:
    """The value of a code."""
    form = FORMATS[name]
    sign = code >> (form.bits - 1)
    exponent = (code >> form.mantissa) & ((1 << form.exponent) - 1)
    mantissa = code & ((1 << form.mantissa) - 1)
    all_ones = exponent == (1 << form.exponent) - 1
    if form.specials == "ieee" and all_ones:
        return "nan" if mantissa else ("-inf" if sign else "inf")
    if form.specials == "fn" and all_ones and mantissa == (1 << form.mantissa) - 1:
        return "nan"
    if form.specials == "fnuz" and code == 1 << (form.bits - 1):
        return "nan"
    scale = Fraction(2) ** (max(exponent, 1) - form.bias - form.mantissa)
    hidden = (1 << form.mantissa) if exponent else 0
    return (-1 if sign else 1) * (hidden + mantissa) * scale


def largest_code(name: str) -> int:
    """The code of the largest finite number."""
    form = FORMATS[name]
    all_ones = (1 << (form.bits - 1)) - 1
    special = {"ieee": 1 << form.mantissa, "fn": 1, "fnuz": 0, "none": 0}[form.specials]
    return all_ones - special


def encode(value: Number, name: str, overflow: str) -> Union[int, str]:
    """The code of the nearest number, ties to even; "nan" stands for any NaN.

    `overflow` is castor's option: "" or "saturate".
    """
    form = FORMATS[name]
    if value == "nan":
        return "nan"
    negative = value == "-inf" or (not isinstance(value, str) and value < 0)
    largest = largest_code(name)
    code = largest + 1 if isinstance(value, str) else _nearest(abs(value), form)
    if code > largest:
        if overflow == "saturate" or form.specials == "none":
            code = largest
        elif form.specials == "ieee":
            code = ((1 << form.exponent) - 1) << form.mantissa
        else:
            return "nan"
    if form.specials == "fnuz" and code == 0:
        return 0
    return code | (negative << (form.bits - 1))


def _nearest(magnitude: Fraction, form: Format) -> int:
    """The code, as if exponents had no bound."""
    least = 1 - form.bias
    exponent = max(floor_log2(magnitude), least) if magnitude else least
    steps = round(magnitude / Fraction(2) ** (exponent - form.mantissa))  # ties to even
    return ((exponent - least) << form.mantissa) + steps


def floor_log2(value: Fraction) -> int:
    """The largest e with 2^e at most the value."""
    e = value.numerator.bit_length() - value.denominator.bit_length()
    return e if Fraction(2) ** e <= value else e - 1


def rounded(value: Fraction, rounding: str) -> int:
    """A whole number near the value."""
    floor = math.floor(value)
    if rounding == "toward_zero":
        return math.trunc(value)
    if rounding == "down":
        return floor
    if rounding == "up":
        return math.ceil(value)
    if rounding == "half_up":
        return math.floor(value + Fraction(1, 2))
    if rounding == "nearest_even":
        return round(value)
    if rounding == "nearest_away":
        return math.floor(abs(value) + Fraction(1, 2)) * (-1 if value < 0 else 1)
    raise ValueError(rounding)


def to_integer(value: Number, bits: int, signed: bool, rounding: str, overflow: str) -> int:
    """As castor converts a float to an integer of that width."""
    low = -(1 << (bits - 1)) if signed else 0
    high = (1 << (bits - signed)) - 1
    if value == "nan":
        return 0
    if isinstance(value, str):
        return 0 if overflow == "wrap" else (low if value == "-inf" else high)
    whole = rounded(value, rounding)
    if overflow == "wrap":
        if not -(1 << 63) <= whole < (1 << 63):
            return 0
        return (whole - low) % (1 << bits) + low
    return min(max(whole, low), high)
