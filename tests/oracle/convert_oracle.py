#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes golden conversions, computed with exact rationals.

There is no encoder here. A format is known by its decoder alone; rounding to it is a search for the
nearest of the decoded values, a tie going to the even code. What the exact value of an element is,
and which of two values is nearer, is decided in Fraction arithmetic only.

usage: convert_oracle.py OUTPUT.csv
"""

import bisect
import math
import random
import sys
from fractions import Fraction

SEED = 20240611
ROUNDINGS = ("toward_zero", "nearest_even", "nearest_away", "down", "up", "half_up")
INTEGERS = {f"{sign}{bits}": (sign, bits) for bits in (8, 16, 32, 64) for sign in "ui"}
SMALL_INTEGERS = {"u4": ("u", 4), "i4": ("i", 4)}


class Format:
    """A floating format: exponent and mantissa widths, bias, and what its top codes mean."""

    def __init__(self, exponent_bits, mantissa_bits, bias, specials):
        self.mantissa_bits = mantissa_bits
        self.bias = bias
        self.specials = specials
        self.bits = 1 + exponent_bits + mantissa_bits
        self.sign = 1 << (self.bits - 1)
        self.infinity = ((1 << exponent_bits) - 1) << mantissa_bits
        self.largest = {"ieee": self.infinity - 1, "nan_only": self.sign - 2}.get(
            specials, self.sign - 1)

    def magnitude(self, code):
        """The value of a code without sign, read as a number whatever it may mean as a special."""
        exponent, mantissa = divmod(code, 1 << self.mantissa_bits)
        fraction = Fraction(mantissa, 1 << self.mantissa_bits)
        if exponent == 0:
            return fraction * Fraction(2) ** (1 - self.bias)
        return (1 + fraction) * Fraction(2) ** (exponent - self.bias)

    def is_nan(self, bits):
        code = bits & (self.sign - 1)
        return {"ieee": code > self.infinity, "nan_only": code == self.sign - 1,
                "fnuz": bits == self.sign, "finite": False}[self.specials]

    def is_infinity(self, bits):
        return self.specials == "ieee" and bits & (self.sign - 1) == self.infinity

    def value(self, bits):
        """The exact value of a finite code."""
        magnitude = self.magnitude(bits & (self.sign - 1))
        return -magnitude if bits & self.sign else magnitude

    def nearest(self, magnitude):
        """The code without sign whose value is nearest, ties to the even code; may be one beyond
        the largest, which means overflow."""
        beyond = self.largest + 1
        codes = range(beyond + 1)
        above = bisect.bisect_left(codes, magnitude, key=self.magnitude)
        if above > beyond:
            return beyond
        if self.magnitude(above) == magnitude:
            return above
        below = above - 1
        to_above = self.magnitude(above) - magnitude
        to_below = magnitude - self.magnitude(below)
        if to_above == to_below:
            return below if below % 2 == 0 else above
        return below if to_below < to_above else above


FORMATS = {
    "f16": Format(5, 10, 15, "ieee"),
    "bf16": Format(8, 7, 127, "ieee"),
    "f32": Format(8, 23, 127, "ieee"),
    "f64": Format(11, 52, 1023, "ieee"),
    "f8e5m2": Format(5, 2, 15, "ieee"),
    "f8e4m3": Format(4, 3, 7, "nan_only"),
    "f8e4m3fnuz": Format(4, 3, 8, "fnuz"),
    "f8e5m2fnuz": Format(5, 2, 16, "fnuz"),
    "f4e2m1": Format(2, 1, 1, "finite"),
}


def integer_range(name):
    sign, bits = {**INTEGERS, **SMALL_INTEGERS}[name]
    return (0, 2**bits - 1) if sign == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def bits_of(name):
    return FORMATS[name].bits if name in FORMATS else {**INTEGERS, **SMALL_INTEGERS}[name][1]


def integer_value(name, bits):
    low, high = integer_range(name)
    return bits - 2 ** bits_of(name) if bits > high else bits


def round_to_integer(value, rounding):
    half = Fraction(1, 2)
    return {
        "": math.trunc,
        "toward_zero": math.trunc,
        "nearest_even": round,  # of a Fraction: ties to even
        "nearest_away": lambda x: math.floor(abs(x) + half) * (1 if x >= 0 else -1),
        "down": math.floor,
        "up": math.ceil,
        "half_up": lambda x: math.floor(x + half),
    }[rounding](value)


def clamp(value, to):
    low, high = integer_range(to)
    return min(max(value, low), high)


def to_integer(source, bits, to, overflow, rounding):
    """An element of a floating format as an integer."""
    mask = 2 ** bits_of(to) - 1
    if source.is_nan(bits):
        return 0
    if source.is_infinity(bits):
        low, high = integer_range(to)
        return 0 if overflow == "wrap" else (low if bits & source.sign else high) & mask
    value = round_to_integer(source.value(bits), rounding)
    if overflow != "wrap":
        return clamp(value, to) & mask
    readable = -(2**63) <= value < (2**64 if to == "u64" else 2**63)
    return value & mask if readable else 0


def overflowed(target, negative, overflow):
    sign = target.sign if negative else 0
    if overflow == "saturate" or target.specials == "finite":
        return sign | target.largest
    return sign | {"ieee": target.infinity, "nan_only": target.sign - 1,
                   "fnuz": target.sign}[target.specials]


def to_float(value, negative, target, overflow):
    """An exact value, with the sign that a zero has, as an element of a floating format."""
    code = target.nearest(abs(value))
    if code > target.largest:
        return overflowed(target, negative, overflow)
    if code == 0 and target.specials == "fnuz":
        return 0
    return code | (target.sign if negative else 0)


def nan_to_float(source, bits, target):
    """Quiet, sign kept, the payload's top bits kept; formats with one NaN have payload 0."""
    sign = target.sign if bits & source.sign else 0
    if target.specials != "ieee":
        return overflowed(target, sign != 0, "")
    payload = bits & ((1 << source.mantissa_bits) - 1) if source.specials == "ieee" else 0
    kept = payload * 2**target.mantissa_bits // 2**source.mantissa_bits
    return sign | target.infinity | 1 << (target.mantissa_bits - 1) | kept


def convert(source_name, to, overflow, rounding, bits):
    source, target = FORMATS.get(source_name), FORMATS.get(to)
    if source is None:
        value = integer_value(source_name, bits)
        if target is not None:
            return to_float(Fraction(value), value < 0, target, overflow)
        value = clamp(value, to) if overflow == "saturate" else value
        return value & (2 ** bits_of(to) - 1)
    if target is None:
        return to_integer(source, bits, to, overflow, rounding)
    if source.is_nan(bits):
        return nan_to_float(source, bits, target)
    negative = bits & source.sign != 0
    if source.is_infinity(bits):
        return overflowed(target, negative, overflow)
    return to_float(source.value(bits), negative, target, overflow)


def around(source, value):
    """The codes of a source format next to a value: nearest, and its neighbours; signed alike."""
    code = source.nearest(abs(value))
    near = [c for c in (code - 1, code, code + 1) if 0 <= c <= source.largest]
    return [c | source.sign for c in near] if value < 0 else near


def special_codes(source):
    quiet = 1 << max(source.mantissa_bits - 1, 0)
    codes = [0, 1, 1 << source.mantissa_bits, source.largest]
    if source.specials == "ieee":
        payload = 0x5A5A5A5A5A5A5A5A >> (65 - source.mantissa_bits)
        codes += [source.infinity, source.infinity | quiet, source.infinity | 1,
                  source.infinity | payload, source.infinity | quiet | payload]
    return codes + [c | source.sign for c in codes]


def interesting_codes(target, rng):
    """Codes of a target format whose upper midpoints are worth a visit."""
    one = target.bias << target.mantissa_bits
    codes = [0, 1, 2, (1 << target.mantissa_bits) - 1, 1 << target.mantissa_bits, one, one + 1,
             target.largest - 1, target.largest]
    return codes + [rng.getrandbits(64) % target.largest for _ in range(10)]


def float_inputs_for_float(source, target, rng):
    inputs = special_codes(source)
    for code in interesting_codes(target, rng):
        middle = (target.magnitude(code) + target.magnitude(code + 1)) / 2
        inputs += around(source, middle if rng.getrandbits(1) else -middle)
    return inputs + [rng.getrandbits(source.bits) for _ in range(10)]


def integer_inputs_for_float(name, target, rng):
    low, high = integer_range(name)
    values = [low, low + 1, -1, 0, 1, high - 1, high]
    precision = target.mantissa_bits + 1
    for shift in range(max(high.bit_length() - precision, 0)):
        significand = 1 << (precision - 1) | rng.getrandbits(precision - 1)
        middle = (2 * significand + 1) << shift
        values += [v if rng.getrandbits(2) else -v for v in (middle - 1, middle, middle + 1)]
    values += [rng.getrandbits(bits_of(name)) >> rng.getrandbits(6) for _ in range(10)]
    return [v & (2 ** bits_of(name) - 1) for v in values if low <= v <= high]


def integer_inputs_for_integer(source, to, rng):
    low, high = integer_range(source)
    values = [low, -1, 0, 1, high] + [v + d for v in integer_range(to) for d in (-1, 0, 1)]
    values += [rng.getrandbits(bits_of(source)) + low for _ in range(3)]
    return [v & (2 ** bits_of(source) - 1) for v in values if low <= v <= high]


def float_inputs_for_integer(source, to):
    half = Fraction(1, 2)
    places = [Fraction(k) + half for k in range(-3, 3)]
    places += [v + d for v in integer_range(to) for d in (-1, -half, 0, half, 1)]
    places += [Fraction(s * 2**k) for k in (31, 32, 53, 63, 64) for s in (-1, 1)]
    codes = special_codes(source)
    for place in places:
        codes += around(source, place)
    return codes


def pick(pool, count, rng):
    return [pool[rng.getrandbits(32) % len(pool)] for _ in range(count)]


def requests(rng):
    """Yields (from, to, overflow, rounding, inputs)."""
    ieee = ("f16", "bf16", "f32", "f64")
    for source in ieee:
        for to in ieee:
            if source != to:
                inputs = float_inputs_for_float(FORMATS[source], FORMATS[to], rng)
                yield source, to, "", "", inputs
                yield source, to, "saturate", "", pick(inputs, 12, rng)
    for source in ("f32", "f64"):
        for to in ("f8e4m3", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1"):
            inputs = float_inputs_for_float(FORMATS[source], FORMATS[to], rng)
            for overflow in ("", "saturate"):
                yield source, to, overflow, "", inputs if source == "f64" else pick(inputs, 12, rng)
    for source in ("f8e4m3", "f8e4m3fnuz", "f8e5m2fnuz", "f8e5m2"):
        yield source, "f16", "", "", [0x00, 0x01, 0x07, 0x7D, 0x7E, 0x7F, 0x80, 0x81, 0xFD, 0xFF]
    for source in INTEGERS:
        for to in ieee:
            inputs = integer_inputs_for_float(source, FORMATS[to], rng)
            wide = source in ("i64", "u64") or (source, to) == ("i32", "bf16")
            yield source, to, "", "", inputs if wide else pick(inputs, 8, rng)
        yield source, "f16", "saturate", "", pick(inputs, 6, rng)
        for to in (*INTEGERS, *SMALL_INTEGERS):
            if source != to:
                inputs = integer_inputs_for_integer(source, to, rng)
                yield source, to, "", "", pick(inputs, 4, rng)
                yield source, to, "saturate", "", pick(inputs, 4, rng)
    for source in ieee:
        for to in (*INTEGERS, *SMALL_INTEGERS):
            pool = float_inputs_for_integer(FORMATS[source], to)
            for rounding in ("", *ROUNDINGS):
                for overflow in ("", "wrap"):
                    yield source, to, overflow, rounding, pick(pool, 5, rng)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rng = random.Random(SEED)
    rows = {}
    for source, to, overflow, rounding, inputs in requests(rng):
        for bits in inputs:
            expected = convert(source, to, overflow, rounding, bits)
            rows[f"{source},{to},{overflow},{rounding},{bits:x},{expected:x}"] = None
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write("# Written by tests/oracle/convert_oracle.py; do not edit.\n")
        out.write("from,to,overflow,rounding,input,expected\n")
        out.writelines(row + "\n" for row in rows)


if __name__ == "__main__":
    main()
