#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes golden blocks of microscaling formats, computed with exact rationals.

From the text of OCP Microscaling Formats 1.0, section 6.3: the scale is the power of two of the
block's largest magnitude over that of the format's largest number, elements are the nearest to
their quotients, ties to even, saturated. The other rules for scales are those of ir/README.md,
Compositions. NVFP4: each step is rounded to f32 once. Nothing here knows of castor's code.

Columns: type of x, format, rule, tensor's scale (f32), the scale's code, the elements' codes, x's
codes; all in hexadecimal. A block with a NaN or an infinity has the scale 255, and any elements;
of NVFP4 a block with a NaN has the scale 7f, and infinities saturate.

usage: mx_golden.py OUTPUT.csv          write
       mx_golden.py --check GOLDEN.csv  fail unless the file is what would be written
"""

import random
import sys
from fractions import Fraction

sys.dont_write_bytecode = True  # leaves nothing beside the sources
from convert_oracle import F32, FORMATS  # decoders only
from golden_table import write_or_check

SEED = 20261124
BLOCKS = 6  # drawn for each source, format and rule, beside those that are chosen
SOURCES = ("f32", "bf16", "f16", "f64")
ELEMENTS = {"mxfp8_e4m3": "f8e4m3", "mxfp8_e5m2": "f8e5m2", "mxfp6_e2m3": "f6e2m3",
            "mxfp6_e3m2": "f6e3m2", "mxfp4": "f4e2m1", "mxint8": "i8"}
RULES = ("ocp_floor", "ceil_power", "even_round")
NVFP4_BLOCK, MX_BLOCK = 16, 32
INT8_UNIT = Fraction(1, 64)


def floor_power(value):
    """The exponent of the largest power of two that is at most a positive value."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= value else exponent - 1


def ceil_power(value):
    exponent = floor_power(value)
    return exponent if Fraction(2) ** exponent == value else exponent + 1


def round_even(value):
    """The nearest integer, ties to even."""
    return round(value)  # Python's own rule for fractions


class Elements:
    """Codes of one format's elements."""

    def __init__(self, name):
        self.format = FORMATS.get(name)
        self.bits = 8 if self.format is None else self.format.bits
        self.largest = (127 * INT8_UNIT if self.format is None
                        else self.format.magnitude(self.format.largest))
        self.mantissa_bits = 6 if self.format is None else self.format.mantissa_bits

    def code(self, quotient, is_negative):
        """The nearest; the sign of a zero is x's."""
        if self.format is None:
            return max(-128, min(127, round_even(quotient / INT8_UNIT))) & 0xff
        nearest = min(self.format.nearest(abs(quotient)), self.format.largest)
        return nearest | (self.format.sign if is_negative else 0)


def exponent_of(rule, amax, elements):
    """The scale's exponent, before it is held in the range of f8e8m0."""
    power = floor_power(elements.largest)
    if rule == "ocp_floor":
        return floor_power(amax) - power
    if rule == "ceil_power":
        return ceil_power(amax / elements.largest)
    # The significand of the largest magnitude is rounded to that of the elements, halves upwards.
    unit = Fraction(2) ** (floor_power(amax) - elements.mantissa_bits)
    rounded = (amax / unit + Fraction(1, 2)).__floor__() * unit
    return floor_power(rounded) - power


def mx_block(rule, elements, values, signs):
    amax = max(map(abs, values))
    exponent = -127 if amax == 0 else max(-127, min(127, exponent_of(rule, amax, elements)))
    scale = Fraction(2) ** exponent
    return exponent + 127, [elements.code(value / scale, sign)
                            for value, sign in zip(values, signs)]


def as_f32(value):
    """Rounded once; None beyond the largest."""
    code = F32.nearest(abs(value))
    return None if code > F32.largest else F32.value(code | (F32.sign if value < 0 else 0))


def nvfp4_block(tensor_scale, values, signs):
    """Values that are None are infinite. None where the product of both scales leaves f32."""
    scales, elements = FORMATS["f8e4m3"], Elements("f4e2m1")
    amax = None if None in values else max(map(abs, values))
    quotient = None if amax is None else as_f32(as_f32(amax / 6) / tensor_scale)
    code = scales.largest if quotient is None else min(scales.nearest(quotient), scales.largest)
    factor = as_f32(scales.value(code) * tensor_scale)
    if factor is None:
        return None

    def element(value, sign):
        if factor == 0 and value == 0:
            return 0  # 0 / 0, which the elements do not have
        quotient = as_f32(value / factor) if value is not None and factor else None
        if quotient is None:
            return elements.format.largest | (elements.format.sign if sign else 0)
        return elements.code(quotient, sign)

    return code, [element(value, sign) for value, sign in zip(values, signs)]


class Source:
    """Codes of a type that blocks are drawn from."""

    def __init__(self, name, generator):
        self.format = FORMATS[name]
        self.random = generator

    def nearest(self, value):
        """A code near a value, whose own rounding does not matter here."""
        code = min(self.format.nearest(abs(value)), self.format.largest)
        return code | (self.format.sign if value < 0 else 0)

    def number(self, exponent):
        significand = 1 + Fraction(self.random.getrandbits(24), 1 << 24)
        sign = self.random.choice((1, -1))
        return self.nearest(sign * significand * Fraction(2) ** exponent)

    def ordinary(self, count):
        """Numbers of some binades below a random one."""
        half = 1 << (self.format.bits - self.format.mantissa_bits - 3)
        top = self.random.randrange(-min(half, 130), min(half, 126))
        return [self.number(top - self.random.randrange(12)) for _ in range(count)]

    def ties(self, count, elements):
        """Halves between neighbours, of a block whose scale is a power of two times 1."""
        top = elements.largest
        codes = [self.nearest(top)]
        for _ in range(count - 1):
            step = Fraction(1, 1 << self.random.randrange(1, 9))
            codes.append(self.nearest(self.random.choice((1, -1)) *
                                      self.random.randrange(1, 1 << 6) * step * top / 64))
        return codes

    def bounds(self, count, elements):
        """A largest magnitude around those at which rules take the next power of two."""
        around = self.random.choice((elements.largest, Fraction(2) ** floor_power(elements.largest),
                                     2 - Fraction(1, 2 << elements.mantissa_bits)))
        code = self.nearest(around * Fraction(2) ** self.random.randrange(-3, 4))
        code += self.random.choice((-1, 0, 1))
        return [code] + [self.number(-4) for _ in range(count - 1)]

    def special(self, count):
        zeros = [self.format.sign * self.random.getrandbits(1) for _ in range(count)]
        least = list(zeros)
        least[3], least[7] = 1, self.format.sign | 3
        largest = self.ordinary(count)
        largest[5] = self.format.largest | self.format.sign
        infinite = self.ordinary(count)
        infinite[count - 1] = self.format.infinity | self.format.sign
        nan = self.ordinary(count)
        nan[2] = self.format.infinity + 1
        return [zeros, least, largest, infinite, nan]

    def blocks(self, count, elements):
        chosen = self.special(count)
        for _ in range(BLOCKS // 3):
            chosen += [self.ordinary(count), self.ties(count, elements),
                       self.bounds(count, elements)]
        return chosen

    def decoded(self, codes):
        """Values, None for infinite ones, and signs; or None where one is NaN."""
        if any(self.format.is_nan(code) for code in codes):
            return None
        return ([None if self.format.is_infinity(code) else self.format.value(code)
                 for code in codes], [code & self.format.sign != 0 for code in codes])


def hexadecimal(codes, bits):
    return "".join(f"{code:0{(bits + 3) // 4}x}" for code in codes)


def mx_rows(source_name, source):
    for format_name, element_name in ELEMENTS.items():
        elements = Elements(element_name)
        for rule in RULES:
            for codes in source.blocks(MX_BLOCK, elements):
                decoded = source.decoded(codes)
                is_number = decoded is not None and None not in decoded[0]
                scale, found = mx_block(rule, elements, *decoded) if is_number else (255, None)
                yield (source_name, format_name, rule, "", f"{scale:02x}",
                       "" if found is None else hexadecimal(found, 8),
                       hexadecimal(codes, source.format.bits))


def nvfp4_rows(source_name, source):
    elements = Elements("f4e2m1")
    for codes in 6 * source.blocks(NVFP4_BLOCK, elements):
        decoded = source.decoded(codes)
        # Such that most of the scale's codes occur, 0 among them, and some numbers saturate.
        power = Fraction(2) ** source.random.randrange(-12, 9)
        quotient = 6 * power * source.random.randrange(1, 64)
        amax = max(abs(value or 0) for value in decoded[0]) if decoded else 0
        tensor_scale = as_f32((amax or 1) / quotient)
        if not tensor_scale:
            continue
        found = nvfp4_block(tensor_scale, *decoded) if decoded else (0x7f, [])
        if found is not None:
            yield (source_name, "nvfp4", "", hexadecimal([F32.nearest(tensor_scale)], 32),
                   f"{found[0]:02x}", hexadecimal(found[1], 8),
                   hexadecimal(codes, source.format.bits))


def table():
    for name in SOURCES:
        source = Source(name, random.Random(SEED))
        for row in (*mx_rows(name, source), *(nvfp4_rows(name, source) if name != "f64" else ())):
            yield ",".join(row)


if __name__ == "__main__":
    write_or_check(__doc__, "mx_golden.py", table())
