#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares results of arithmetic with exact ones, rounded once.

There is no encoder here. A format is known by the decoder of convert_oracle.py alone. Every finite
element is a whole multiple of the format's least number, so that sums, products, ratios and roots
are ratios of integers; rounding is a search for the nearest of the decoded values, a tie going to
the even code. Nothing is computed in floating point.

arithmetic_oracle_test writes the folder: manifest.txt with a line for each file of results, "FILE
OP TYPE LO HI" (bounds of clamp, else -), and the files. Types of at most 8 bits are there with
every code, or every pair of codes, the first operand's outside; of wider types unary ops take every
code, binary ops each element of TYPE.inputs with each. Elements take whole bytes, little endian.

usage: arithmetic_oracle.py FOLDER
"""

import array
import bisect
import math
import pathlib
import sys
from fractions import Fraction

from convert_oracle import E8M0_VALUES, FORMATS, NF4_VALUES

WIDTHS = {"boolean": 8, "f8e8m0": 8, "nf4": 4, "bf16": 16, "f16": 16, "u16": 16, "i16": 16,
          **{f"u{n}": n for n in (1, 2, 3, 4, 6, 8)}, **{f"i{n}": n for n in (2, 4, 8)},
          **{name: FORMATS[name].bits for name in
             ("f4e2m1", "f6e2m3", "f6e3m2", "f8e4m3", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz")}}
FLOATS = [name for name in WIDTHS if name in FORMATS and name not in ("f8e8m0", "nf4")]
INTEGERS = [name for name in WIDTHS if name[0] in "ui"]

COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
ARITHMETIC = ("add", "sub", "mul", "div", "floor_div", "mod", "floor_mod", "min", "max",
              "squared_difference", "prelu")
UNARY = ("abs", "neg", "sign", "relu", "floor", "ceil", "trunc", "round_even")
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
LOGICAL = ("logical_and", "logical_or", "logical_xor")


class Float:
    """Ops on the codes of a floating format. Finite values are integers in units of the format's
    least number, 2**-places."""

    def __init__(self, name):
        self.format = FORMATS[name]
        self.sign = self.format.sign
        self.largest = self.format.largest
        self.places = self.format.magnitude(1).denominator.bit_length() - 1
        self.magnitudes = [int(self.format.magnitude(code) * 2**self.places)
                           for code in range(self.largest + 2)]
        codes = range(2 * self.sign)
        self.negative = [code >= self.sign for code in codes]
        self.nan = [self.format.is_nan(code) for code in codes]
        self.infinite = [self.format.is_infinity(code) for code in codes]
        self.values = [self.value(code) for code in codes]
        self.one = 2**self.places

    def value(self, code):
        if self.nan[code]:
            return math.nan
        if self.infinite[code]:
            return -math.inf if self.negative[code] else math.inf
        magnitude = self.magnitudes[code & (self.sign - 1)]
        return -magnitude if self.negative[code] else magnitude

    # ---- Rounding.

    def rounded_special(self, negative):
        """What overflows, or an infinity."""
        sign = self.sign if negative else 0
        return {"ieee": sign | self.format.infinity, "nan_only": sign | self.sign - 1,
                "fnuz": self.sign, "finite": sign | self.largest}[self.format.specials]

    def invalid(self):
        """NaN with sign 1 and payload 0."""
        quiet = 1 << self.format.mantissa_bits - 1
        return {"ieee": self.sign | self.format.infinity | quiet,
                "nan_only": 2 * self.sign - 1, "fnuz": self.sign,
                "finite": self.sign | self.largest}[self.format.specials]

    def quiet(self, code):
        return code | 1 << self.format.mantissa_bits - 1 if self.format.specials == "ieee" else code

    def signed(self, code, negative):
        """A rounded magnitude with its sign."""
        if code > self.largest:
            return self.rounded_special(negative)
        if code == 0 and self.format.specials == "fnuz":
            return 0
        return code | self.sign if negative else code

    def rounded(self, numerator, denominator, negative):
        """A magnitude numerator / denominator in units of the least number, to the nearest."""
        below = bisect.bisect_right(self.magnitudes, numerator // denominator) - 1
        if below <= self.largest:
            middle = (self.magnitudes[below] + self.magnitudes[below + 1]) * denominator
            if 2 * numerator > middle or (2 * numerator == middle and below % 2 == 1):
                below += 1
        return self.signed(below, negative)

    def rounded_value(self, value, negative_zero=False):
        return self.rounded(abs(value), 1, value < 0 or (value == 0 and negative_zero))

    # ---- Two operands, neither NaN.

    def add(self, a, b):
        if self.infinite[a] or self.infinite[b]:
            if self.infinite[a] and self.infinite[b] and a != b:
                return self.invalid()
            return a if self.infinite[a] else b
        return self.rounded_value(self.values[a] + self.values[b],
                                  self.negative[a] and self.negative[b])

    def sub(self, a, b):
        if self.infinite[a] or self.infinite[b]:
            if a == b:
                return self.invalid()
            return a if self.infinite[a] else b ^ self.sign
        return self.rounded_value(self.values[a] - self.values[b],
                                  self.negative[a] and not self.negative[b])

    def mul(self, a, b):
        x, y = self.values[a], self.values[b]
        negative = self.negative[a] != self.negative[b]
        if self.infinite[a] or self.infinite[b]:
            return self.invalid() if x == 0 or y == 0 else self.rounded_special(negative)
        return self.rounded(abs(x * y), self.one, negative)

    def div(self, a, b):
        x, y = self.values[a], self.values[b]
        negative = self.negative[a] != self.negative[b]
        if self.infinite[a] and self.infinite[b] or x == 0 and y == 0:
            return self.invalid()
        if self.infinite[a] or y == 0:
            return self.rounded_special(negative)
        if self.infinite[b]:
            return self.signed(0, negative)
        return self.rounded(abs(x) << self.places, abs(y), negative)

    def floor_div(self, a, b):
        ratio = self.div(a, b)
        return ratio if self.nan[ratio] else self.floor(ratio)

    def rest(self, a, b):
        """C's fmod as a number, or None where it is invalid."""
        x, y = self.values[a], self.values[b]
        if self.infinite[a] or y == 0:
            return None
        if self.infinite[b]:
            return x
        rest = abs(x) % abs(y)
        return -rest if x < 0 else rest

    def mod(self, a, b):
        rest = self.rest(a, b)
        return self.invalid() if rest is None else self.rounded_value(rest, self.negative[a])

    def floor_mod(self, a, b):
        rest = self.rest(a, b)
        if rest is None:
            return self.invalid()
        if rest == 0 or (rest < 0) == self.negative[b]:
            return self.rounded_value(rest, self.negative[b])
        return b if self.infinite[b] else self.rounded_value(rest + self.values[b])

    def min(self, a, b):
        return min(a, b, key=lambda code: (self.values[code], not self.negative[code]))

    def max(self, a, b):
        return max(a, b, key=lambda code: (self.values[code], not self.negative[code]))

    def squared_difference(self, a, b):
        difference = self.sub(a, b)
        return difference if self.nan[difference] else self.mul(difference, difference)

    def binary(self, op):
        if op == "prelu":
            return self.prelu
        exact = getattr(self, op)

        def first_nan_or_exact(a, b):
            if self.nan[a]:
                return self.quiet(a)
            return self.quiet(b) if self.nan[b] else exact(a, b)
        return first_nan_or_exact

    def prelu(self, x, slope):
        if self.nan[x]:
            return self.quiet(x)
        if self.values[x] >= 0:
            return x
        return self.quiet(slope) if self.nan[slope] else self.mul(x, slope)

    # ---- One operand, not NaN.

    def sqrt(self, x):
        value = self.values[x]
        if value < 0:
            return self.invalid()
        if value == 0 or self.infinite[x]:
            return x
        square = value << self.places  # the root's square in units of the least number
        below = bisect.bisect_right(self.magnitudes, math.isqrt(square)) - 1
        middle = self.magnitudes[below] + self.magnitudes[below + 1]
        if 4 * square > middle**2 or (4 * square == middle**2 and below % 2 == 1):
            below += 1
        return self.signed(below, False)

    def sign_of(self, x):
        value = self.values[x]
        return 0 if value == 0 else self.rounded_value(self.one if value > 0 else -self.one)

    def integral(self, x, rounding):
        if self.infinite[x]:
            return x
        whole = rounding(Fraction(self.values[x], self.one))
        return self.rounded_value(whole * self.one, self.negative[x])

    def floor(self, x):
        return self.integral(x, math.floor)

    def unary(self, op):
        if op == "is_nan":
            return lambda x: int(self.nan[x])
        if op in ("abs", "neg"):  # NaN included
            return lambda x: self.with_sign(x, op == "neg" and not self.negative[x])
        exact = {"sign": self.sign_of, "sqrt": self.sqrt, "floor": self.floor,
                 "relu": lambda x: x if self.values[x] > 0 else 0,
                 "ceil": lambda x: self.integral(x, math.ceil),
                 "trunc": lambda x: self.integral(x, math.trunc),
                 "round_even": lambda x: self.integral(x, round)}[op]
        return lambda x: self.quiet(x) if self.nan[x] else exact(x)

    def with_sign(self, x, negative):
        if self.format.specials == "fnuz" and x in (0, self.sign):
            return x
        return x & (self.sign - 1) | (self.sign if negative else 0)

    def clamp(self, low, high):
        low, high = self.bound(low), self.bound(high)

        def clamped(x):
            if self.nan[x]:
                return self.quiet(x)
            x = x if low is None else self.max(x, low)
            return x if high is None else self.min(x, high)
        return clamped

    def bound(self, number):
        """A bound rounded to the format; the largest number where it has no infinity."""
        if number is None:
            return None
        negative = math.copysign(1, number) < 0
        if not math.isinf(number):
            scaled = abs(Fraction(number)) * self.one
            code = self.rounded(scaled.numerator, scaled.denominator, negative)
            if not self.nan[code] or scaled == 0:
                return code
        beyond = self.format.infinity if self.format.specials == "ieee" else self.largest
        return beyond | (self.sign if negative else 0)


class Integer:
    """Ops on integers: exact results, modulo 2**bits. Boolean too, for what it has."""

    def __init__(self, name):
        self.boolean = name == "boolean"
        self.bits = 1 if self.boolean else WIDTHS[name]
        self.mask = 2**self.bits - 1
        codes = range(2**WIDTHS[name])
        half = 2 ** (self.bits - 1)
        if self.boolean:
            self.values = [int(code != 0) for code in codes]
        else:
            self.values = [code - 2 * half if name[0] == "i" and code >= half else code
                           for code in codes]
        self.low, self.high = min(self.values), max(self.values)

    def binary(self, op):
        """An op of values on codes."""
        values, mask = self.values, self.mask
        if op in ("shift_left", "shift_right"):
            left = op == "shift_left"
            return lambda a, b: (values[a] << b if left else values[a] >> b) & mask
        exact = {
            "add": lambda a, b: a + b,
            "sub": lambda a, b: a - b,
            "mul": lambda a, b: a * b,
            "div": lambda a, b: 0 if b == 0 else math.trunc(Fraction(a, b)),
            "floor_div": lambda a, b: 0 if b == 0 else a // b,
            "mod": lambda a, b: 0 if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1),
            "floor_mod": lambda a, b: 0 if b == 0 else a % b,
            "min": min,
            "max": max,
            "squared_difference": lambda a, b: (a - b) ** 2,
            "prelu": lambda a, b: a * b if a < 0 else a,
            "bitwise_and": lambda a, b: a & b,
            "bitwise_or": lambda a, b: a | b,
            "bitwise_xor": lambda a, b: a ^ b,
            "logical_and": lambda a, b: a and b,
            "logical_or": lambda a, b: a or b,
            "logical_xor": lambda a, b: a != b,
        }[op]
        return lambda a, b: exact(values[a], values[b]) & mask

    def unary(self, op):
        values, mask = self.values, self.mask
        exact = {"abs": abs, "neg": lambda x: -x, "sign": lambda x: (x > 0) - (x < 0),
                 "relu": lambda x: max(x, 0), "bitwise_not": lambda x: ~x, "not": lambda x: 1 - x,
                 **dict.fromkeys(("floor", "ceil", "trunc", "round_even"), lambda x: x)}[op]
        return lambda x: exact(values[x]) & mask

    def clamp(self, low, high):
        def saturated(number, rounding):
            if math.isinf(number):
                return self.high if number > 0 else self.low
            return min(max(rounding(number), self.low), self.high)
        low = self.low if low is None else saturated(low, math.ceil)
        high = self.high if high is None else saturated(high, math.floor)
        return lambda x: min(max(self.values[x], low), high) & self.mask


class Listed:
    """A format with values to compare, and nothing else."""

    def __init__(self, name):
        listed = [*E8M0_VALUES, None] if name == "f8e8m0" else NF4_VALUES
        self.values = [math.nan if value is None else int(value * 2**127) for value in listed]


def comparison(kind, op):
    values = kind.values
    return {"equal": lambda a, b: values[a] == values[b],
            "not_equal": lambda a, b: values[a] != values[b],
            "less": lambda a, b: values[a] < values[b],
            "less_equal": lambda a, b: values[a] <= values[b],
            "greater": lambda a, b: values[a] > values[b],
            "greater_equal": lambda a, b: values[a] >= values[b]}[op]


def kind_of(name):
    return (Float if name in FLOATS else Listed if name in FORMATS else Integer)(name)


def ops_of(name):
    """Every op that the type has, but clamp."""
    ops = set(COMPARISONS)
    if name in FLOATS:
        ops.update(ARITHMETIC, UNARY, ("sqrt", "is_nan"))
    elif name == "boolean":
        ops.update(LOGICAL, BITWISE, ("not", "bitwise_not"))
    elif name in INTEGERS:
        ops.update(ARITHMETIC, UNARY, BITWISE, ("bitwise_not", "shift_left", "shift_right"))
    return ops


def read_elements(path, bits):
    elements = array.array("B" if bits <= 8 else "H")
    elements.frombytes(path.read_bytes())
    if bits > 8 and sys.byteorder == "big":
        elements.byteswap()
    return elements


def number(text):
    """A bound: an integer, or a float in hexadecimal, as an exact number."""
    if text == "-":
        return None
    return float.fromhex(text) if "0x" in text or "inf" in text else int(text)


class Checker:
    def __init__(self, folder):
        self.folder = folder
        self.kinds = {name: kind_of(name) for name in WIDTHS}
        self.compared = 0

    def inputs(self, name):
        if WIDTHS[name] <= 8:
            return range(2 ** WIDTHS[name])
        inputs = read_elements(self.folder / f"{name}.inputs", 16)
        if len(set(inputs)) < 100:
            sys.exit(f"{name}.inputs has less than 100 elements")
        return inputs

    def check(self, line):
        file, op, name, low, high = line.split()
        kind, codes = self.kinds[name], range(2 ** WIDTHS[name])
        if op in COMPARISONS or op in ARITHMETIC + BITWISE + LOGICAL or op.startswith("shift"):
            of = comparison(kind, op) if op in COMPARISONS else kind.binary(op)
            codes = self.inputs(name)
            operands = [(a, b) for a in codes for b in codes]
            expected = [of(a, b) for a, b in operands]
        else:
            of = kind.clamp(number(low), number(high)) if op == "clamp" else kind.unary(op)
            operands = [(x,) for x in codes]
            expected = [of(x) for x in codes]
        is_truth = op in COMPARISONS or op == "is_nan"
        actual = read_elements(self.folder / file, 8 if is_truth else WIDTHS[name])
        self.compare(line, operands, expected, actual)

    def compare(self, line, operands, expected, actual):
        if len(expected) != len(actual):
            sys.exit(f"{line}: {len(actual)} results, expected {len(expected)}")
        for of, right, result in zip(operands, expected, actual):
            if right != result:
                sys.exit(f"{line}: of {[hex(x) for x in of]} {result:#x}, expected {int(right):#x}")
        self.compared += len(actual)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    lines = (folder / "manifest.txt").read_text(encoding="ascii").splitlines()
    found = {(op, name) for _, op, name, _, _ in map(str.split, lines) if op != "clamp"}
    wanted = {(op, name) for name in WIDTHS for op in ops_of(name)}
    if found != wanted:
        sys.exit(f"missing: {sorted(wanted - found)}, unknown: {sorted(found - wanted)}")
    checker = Checker(folder)
    for line in lines:
        checker.check(line)
    print(f"{checker.compared} results of {len(lines)} files agree")


if __name__ == "__main__":
    main()
