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
SMALL_INTEGERS = {name: (name[0], int(name[1:])) for name in
                  ("u1", "u2", "u3", "u4", "u6", "i2", "i4")}


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


class ListedFormat:
    """A format known by the list of its values: f8e8m0 and nf4, which have no sign of their own.
    `nan` is the code of NaN, or None."""

    sign = 0
    mantissa_bits = 0
    specials = "listed"

    def __init__(self, bits, values, nan):
        self.bits = bits
        self.values = values
        self.nan = nan

    def is_nan(self, bits):
        return bits == self.nan

    def is_infinity(self, _bits):
        return False

    def value(self, bits):
        return self.values[bits]


F32 = Format(8, 23, 127, "ieee")


def as_f32(text):
    """The f32 nearest to a decimal, rounded once: through f64 some would be ties."""
    value = Fraction(text)
    code = F32.nearest(abs(value))
    return F32.value(code | (F32.sign if value < 0 else 0))


# OpenVINO's nf4: values, and the thresholds above which a number takes at least the next code.
NF4_VALUES = [as_f32(t) for t in (
    "-1.0 -0.6961928009986877 -0.5250730514526367 -0.39491748809814453 -0.28444138169288635 "
    "-0.18477343022823334 -0.09105003625154495 0.0 0.07958029955625534 0.16093020141124725 "
    "0.24611230194568634 0.33791524171829224 0.44070982933044434 0.5626170039176941 "
    "0.7229568362236023 1.0").split()]
NF4_THRESHOLDS = [as_f32(t) for t in (
    "-0.8480964004993439 -0.6106329262256622 -0.4599952697753906 -0.33967943489551544 "
    "-0.23460740596055984 -0.13791173323988914 -0.045525018125772476 0.03979014977812767 "
    "0.1202552504837513 0.2035212516784668 0.2920137718319893 0.3893125355243683 "
    "0.5016634166240692 0.6427869200706482 0.8614784181118011").split()]
E8M0_VALUES = [Fraction(2) ** (code - 127) for code in range(255)]
E8M0_ROUNDINGS = ("nearest_even", "up", "down", "half_up")

FORMATS = {
    "f8e8m0": ListedFormat(8, E8M0_VALUES, 255),
    "nf4": ListedFormat(4, NF4_VALUES, None),
    "f16": Format(5, 10, 15, "ieee"),
    "bf16": Format(8, 7, 127, "ieee"),
    "f32": F32,
    "f64": Format(11, 52, 1023, "ieee"),
    "f8e5m2": Format(5, 2, 15, "ieee"),
    "f8e4m3": Format(4, 3, 7, "nan_only"),
    "f8e4m3fnuz": Format(4, 3, 8, "fnuz"),
    "f8e5m2fnuz": Format(5, 2, 16, "fnuz"),
    "f4e2m1": Format(2, 1, 1, "finite"),
    "f6e2m3": Format(2, 3, 1, "finite"),
    "f6e3m2": Format(3, 2, 3, "finite"),
}


LISTED = ("f8e8m0", "nf4")


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
        "nearest_even": round,  # Fraction rounds ties to even
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
    """A finite number beyond the largest, or an infinity that is none in the target."""
    sign = target.sign if negative else 0
    if overflow.startswith("saturate") or target.specials == "finite":
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


def to_e8m0(value, overflow, rounding):
    """An exact value as f8e8m0: the nearest of the listed values, or the next in a direction."""
    if overflow == "nan" and not E8M0_VALUES[0] <= value <= E8M0_VALUES[-1]:
        return 255
    above = bisect.bisect_left(E8M0_VALUES, value)
    if above in (0, 255):
        return min(above, 254)
    below = above - 1
    if E8M0_VALUES[above] == value or rounding == "up":
        return above
    if rounding == "down":
        return below
    to_above = E8M0_VALUES[above] - value
    to_below = value - E8M0_VALUES[below]
    if to_above == to_below:
        return above if rounding == "half_up" or above % 2 == 0 else below
    return above if to_above < to_below else below


def to_listed(value, to, overflow, rounding):
    if to == "nf4":
        return bisect.bisect_left(NF4_THRESHOLDS, value)
    return to_e8m0(value, overflow, rounding)


def special_to_listed(source, bits, to, overflow):
    """NaN or an infinity."""
    if source.is_nan(bits):
        return {"nf4": 0, "f8e8m0": 255}[to]
    if overflow == "nan":
        return 255
    if bits & source.sign:
        return 0
    return {"nf4": 15, "f8e8m0": 254}[to]


def nan_to_float(source, bits, target, nan):
    """Quiet, sign kept, the payload's top bits kept; formats with one NaN have payload 0."""
    sign = target.sign if bits & source.sign else 0
    if nan == "zero":
        return sign ^ target.sign
    if target.specials != "ieee":
        return overflowed(target, sign != 0, "")
    payload = bits & ((1 << source.mantissa_bits) - 1) if source.specials == "ieee" else 0
    kept = payload * 2**target.mantissa_bits // 2**source.mantissa_bits
    return sign | target.infinity | 1 << (target.mantissa_bits - 1) | kept


def convert_integer(value, to, overflow, rounding):
    target = FORMATS.get(to)
    if to == "boolean":
        return int(value != 0)
    if to in LISTED:
        return to_listed(Fraction(value), to, overflow, rounding)
    if target is not None:
        return to_float(Fraction(value), value < 0, target, overflow)
    value = clamp(value, to) if overflow.startswith("saturate") else value
    return value & (2 ** bits_of(to) - 1)


def convert(source_name, to, overflow, rounding, nan, bits):
    if source_name == "boolean":
        return convert_integer(int(bits != 0), to, overflow, rounding)
    source, target = FORMATS.get(source_name), FORMATS.get(to)
    if source is None:
        return convert_integer(integer_value(source_name, bits), to, overflow, rounding)
    special = source.is_nan(bits) or source.is_infinity(bits)
    if to == "boolean":
        return int(special or source.value(bits) != 0)
    if target is None:
        return to_integer(source, bits, to, overflow, rounding)
    if to in LISTED:
        if special:
            return special_to_listed(source, bits, to, overflow)
        return to_listed(source.value(bits), to, overflow, rounding)
    if source.is_nan(bits):
        return nan_to_float(source, bits, target, nan)
    negative = bits & source.sign != 0 or (not special and source.value(bits) < 0)
    if special and overflow == "saturate_finite" and target.specials == "ieee":
        return target.infinity | (target.sign if negative else 0)
    if special:
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


def midpoints(to):
    """Values at which a small format's rounding turns, with the ends of its range."""
    if to == "nf4":
        return NF4_THRESHOLDS + [Fraction(-1), Fraction(1)]
    if to == "f8e8m0":
        ends = [Fraction(2) ** -128, 3 * Fraction(2) ** -129, 3 * Fraction(2) ** 126]
        return E8M0_VALUES + [3 * value / 2 for value in E8M0_VALUES] + ends
    target = FORMATS[to]
    middles = [(target.magnitude(code) + target.magnitude(code + 1)) / 2
               for code in range(target.largest + 1)]
    return [sign * value for value in middles for sign in (1, -1)]


def float_inputs_for_small(source, to, rng, count):
    """`count` inputs on and beside the turning points, the source's specials, random ones."""
    inputs = special_codes(source)
    for value in pick(midpoints(to), count, rng):
        inputs += around(source, value)
    return inputs + [rng.getrandbits(source.bits) for _ in range(count // 4)]


def integer_inputs_for_small(name, to, rng, count):
    low, high = integer_range(name)
    values = [low, low + 1, -1, 0, 1, 2, high - 1, high]
    for value in midpoints(to):
        values += [math.floor(value) + step for step in (0, 1)]
    fitting = sorted({value for value in values if low <= value <= high})
    chosen = pick(fitting, count, rng) + [low, 0, high]
    chosen += [rng.randint(low, high) >> rng.getrandbits(6) for _ in range(count // 4)]
    return [value & (2 ** bits_of(name) - 1) for value in chosen]


def small_float_options(to):
    """(overflow, rounding, nan) of a small floating format, in all their combinations."""
    if to == "f8e8m0":
        return [(overflow, rounding, "") for overflow in ("", "saturate", "nan")
                for rounding in ("", *E8M0_ROUNDINGS)]
    nans = ("", "zero") if FORMATS[to].specials == "finite" else ("",)
    return [(overflow, "", nan) for overflow in ("", "saturate") for nan in nans]


def integer_options(source):
    if source in FORMATS:
        return [(overflow, rounding, "") for overflow in ("", "saturate", "wrap")
                for rounding in ("", *ROUNDINGS)]
    return [(overflow, "", "") for overflow in ("", "saturate")]


WIDE_SOURCES = ("f64", "i64", "u64", "f32", "f16", "bf16")
SMALL_FLOATS = ("f4e2m1", "f8e4m3", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "nf4")
# Formats that joined a table that was there. Their rows follow at its end, chosen by random numbers
# of their own, so that another one leaves every row as it is.
LATER_FLOATS = ("f6e2m3", "f6e3m2")


def requests_for_small_types(rng):
    """From the wide types into every small type, with every option."""
    for source in WIDE_SOURCES:
        for to in SMALL_FLOATS:
            for overflow, rounding, nan in small_float_options(to):
                count = 16 if to == "f8e8m0" else 40
                if source in FORMATS:
                    inputs = float_inputs_for_small(FORMATS[source], to, rng, count)
                else:
                    inputs = integer_inputs_for_small(source, to, rng, count)
                yield source, to, overflow, rounding, nan, inputs
        for to in SMALL_INTEGERS:
            for overflow, rounding, nan in integer_options(source):
                if source in FORMATS:
                    inputs = pick(float_inputs_for_integer(FORMATS[source], to), 12, rng)
                else:
                    inputs = integer_inputs_for_integer(source, to, rng)
                yield source, to, overflow, rounding, nan, inputs


def all_options(source, to):
    if to == "boolean":
        return [("", "", ""), ("saturate", "", "")]
    if to in SMALL_INTEGERS or to in INTEGERS:
        return integer_options(source)
    return small_float_options(to)


def requests_between_small_types(rng):
    """From the small types into all others: the codes at the ends, and two more by chance."""
    small = ("boolean", *SMALL_INTEGERS, *SMALL_FLOATS)
    for source in small:
        width = 8 if source == "boolean" else bits_of(source)
        for to in (*small, *INTEGERS, "bf16", "f16", "f32", "f64"):
            for overflow, rounding, nan in all_options(source, to):
                if source != to:
                    codes = [0, 2**width // 2, 2**width - 1, rng.getrandbits(width),
                             rng.getrandbits(width)]
                    yield source, to, overflow, rounding, nan, codes


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


def requests_that_keep_infinities(rng):
    """overflow = saturate_finite: from the formats with infinities, around the ends of targets."""
    sources = ("f64", "f32", "bf16", "f16", "f8e5m2")
    for source in sources:
        for to in (*sources, "f8e4m3", "f8e5m2fnuz", "f4e2m1"):
            if source != to:
                inputs = float_inputs_for_float(FORMATS[source], FORMATS[to], rng)
                yield source, to, "saturate_finite", "", "", pick(inputs, 24, rng)
                ends = [FORMATS[source].infinity, FORMATS[source].largest]
                signed = [code | sign for code in ends for sign in (0, FORMATS[source].sign)]
                yield source, to, "saturate_finite", "", "", signed
        for to in ("i8", "u16", "f8e8m0"):
            ends = [FORMATS[source].infinity, FORMATS[source].largest, 0x1]
            yield source, to, "saturate_finite", "", "", ends
    for to in ("i8", "u4", "f16", "f8e5m2"):
        yield "i32", to, "saturate_finite", "", "", [0, 1, 0x7fffffff, 0x80000000, 0xffffffff]


def inputs_for_later(source, to, rng):
    """All codes of a small type; of a wide one those around the turning points."""
    if source == "boolean" or bits_of(source) <= 8:
        return range(2 ** (8 if source == "boolean" else bits_of(source)))
    if source in FORMATS:
        return float_inputs_for_small(FORMATS[source], to, rng, 80)
    return integer_inputs_for_small(source, to, rng, 80)


def requests_for_later_float(later, others, rng):
    """From and to all other types: every input under the default options, else a few."""
    for other in others:
        for overflow, rounding, nan in all_options(later, other):
            codes = range(2 ** bits_of(later))
            plain = overflow + rounding + nan == ""
            yield later, other, overflow, rounding, nan, codes if plain else pick(codes, 5, rng)
        inputs = list(inputs_for_later(other, later, rng))
        ends = special_codes(FORMATS[other]) if other in FORMATS and other not in LISTED else []
        for overflow, rounding, nan in (*all_options(other, later), ("saturate_finite", "", "")):
            plain = overflow + rounding + nan == ""
            yield (other, later, overflow, rounding, nan,
                   inputs if plain else ends + pick(inputs, 5, rng))


def requests_for_later_floats():
    others = ["boolean", *SMALL_INTEGERS, *SMALL_FLOATS, *INTEGERS, "bf16", "f16", "f32", "f64"]
    for later in LATER_FLOATS:
        yield from requests_for_later_float(later, others, random.Random(f"{SEED} {later}"))
        others.append(later)


def all_requests(rng):
    for source, to, overflow, rounding, inputs in requests(rng):
        yield source, to, overflow, rounding, "", inputs
    yield from requests_for_small_types(rng)
    yield from requests_between_small_types(rng)
    yield from requests_that_keep_infinities(rng)
    yield from requests_for_later_floats()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rng = random.Random(SEED)
    rows = {}
    for source, to, overflow, rounding, nan, inputs in all_requests(rng):
        for bits in inputs:
            expected = convert(source, to, overflow, rounding, nan, bits)
            rows[f"{source},{to},{overflow},{rounding},{nan},{bits:x},{expected:x}"] = None
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write("# Written by tests/oracle/convert_oracle.py; do not edit.\n")
        out.write("from,to,overflow,rounding,nan,input,expected\n")
        out.writelines(row + "\n" for row in rows)


if __name__ == "__main__":
    main()
