#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden table of convert_promote_types: the common type of every pair of element types.

Two derivations that know nothing of castor's table:
- OpenVINO's algorithm, step by step, for the types that it takes;
- ir/README.md, Promotion, for all others: integers by their bits, real types by their sets of values,
  which are compared exactly (Fraction).
Where OpenVINO gives a type, the second must give the same; that is asserted.

Columns: the two types, then the result without and with promote_unsafe, each with
pytorch_scalar_promotion where no operand, the left, the right and both are scalars (rank 0).
`target` is u64_integer_promotion_target. An error is INTF, PT, UNS or UN:
  INTF  Integer input cannot be safely promoted to floating-point.
  PT    Scalar input cannot be PyTorch-like promoted using safe promotion rules.
  UNS   Unsigned integer input cannot be safely promoted into any supported signed integer.
  UN    Unsupported input element types for ConvertPromoteTypes with given attributes.

usage: promote_golden.py OUTPUT.csv          write
       promote_golden.py --check GOLDEN.csv  fail unless the file is what would be written
"""

import sys
from fractions import Fraction

sys.dont_write_bytecode = True  # leaves nothing beside the sources
from convert_oracle import FORMATS  # decoders only
from golden_table import write_or_check

INTEGER_BITS = {"u": (1, 2, 3, 4, 6, 8, 16, 32, 64), "i": (2, 4, 8, 16, 32, 64)}
INTEGERS = {f"{sign}{bits}": (sign, bits) for sign in "ui" for bits in INTEGER_BITS[sign]}
# With equal bits, the type that OpenVINO takes for two of fewer bits comes first.
REALS = ("f4e2m1", "nf4", "f6e2m3", "f6e3m2", "f8e4m3", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz",
         "f8e8m0", "f16", "bf16", "f32", "f64")
TYPES = ("boolean", *INTEGERS, "f4e2m1", "f6e2m3", "f6e3m2", "f8e4m3", "f8e4m3fnuz", "f8e5m2",
         "f8e5m2fnuz", "f8e8m0", "bf16", "f16", "f32", "f64", "nf4")
OPENVINO = {"boolean", "f16", "f32", "f64", "bf16", "f8e4m3", "f8e5m2", "i4", "i8", "i16", "i32",
            "i64", "u1", "u4", "u8", "u16", "u32", "u64"}
SCALARS = {"none": (False, False), "left": (True, False), "right": (False, True),
           "both": (True, True)}


def is_real(element):
    return element in REALS


def is_unsigned(element):
    return element in INTEGERS and INTEGERS[element][0] == "u"


def bits(element):
    if element == "boolean":
        return 8
    return INTEGERS[element][1] if element in INTEGERS else FORMATS[element].bits


# ---- OpenVINO's algorithm.


def openvino(left, right, unsafe, scalars, pytorch):
    """Steps 3 to 9 of convert_promote_types.cpp, for types of its list."""
    if left == right:
        return left
    if "boolean" in (left, right):
        return right if left == "boolean" else left
    if is_real(left) != is_real(right):
        real, integer = (left, right) if is_real(left) else (right, left)
        return real if unsafe or bits(real) >= 2 * bits(integer) else "INTF"
    if pytorch and scalars[0] != scalars[1]:
        scalar, tensor = (left, right) if scalars[0] else (right, left)
        return scalar_promotion(scalar, tensor, unsafe)
    if not is_real(left) and is_unsigned(left) != is_unsigned(right):
        unsigned, signed = (left, right) if is_unsigned(left) else (right, left)
        if bits(unsigned) <= 32 and (unsafe or 2 * bits(unsigned) <= bits(signed)):
            wanted = max(2 * bits(unsigned), bits(signed))
            return {4: "i4", 8: "i8", 16: "i16", 32: "i32"}.get(wanted, "i64")
        return "target" if unsafe else "UNS"
    if bits(left) != bits(right):
        return left if bits(left) > bits(right) else right
    special = {frozenset(("f8e4m3", "f8e5m2")): "f16", frozenset(("f16", "bf16")): "f32"}
    return special.get(frozenset((left, right)), "UN") if unsafe else "UN"


def scalar_promotion(scalar, tensor, unsafe):
    fits = (is_unsigned(scalar) == is_unsigned(tensor) and bits(tensor) >= bits(scalar)) or (
        is_unsigned(scalar) and not is_unsigned(tensor) and 2 * bits(tensor) >= bits(scalar))
    return tensor if unsafe or fits else "PT"


# ---- Sets of values. -0 counts as the number 0.


class Values:
    """The values of a real type: numbers told by `holds`, and the infinities and NaNs it has."""

    def __init__(self, name):
        self.format = FORMATS[name]
        self.codes = range(1 << self.format.bits) if self.format.bits <= 16 else ()
        self.specials = set()
        for code in self.codes:
            self.specials |= {"nan"} if self.format.is_nan(code) else set()
            self.specials |= {"infinity"} if self.format.is_infinity(code) else set()
        if not self.codes:  # f32, f64
            self.specials = {"nan", "infinity"}
        self.largest = None if self.codes else self.format.magnitude(self.format.largest)
        self.enumerated = {self.format.value(code) for code in self.codes if self.is_number(code)}

    def is_number(self, code):
        return not self.format.is_nan(code) and not self.format.is_infinity(code)

    def witnesses(self):
        """Numbers of which another type holds all only if it holds every number of this one: each,
        or, of f32 and f64, at every exponent the ones with fewest and most significant bits."""
        if self.codes:
            return self.enumerated
        mantissa = self.format.mantissa_bits
        last = self.format.largest >> mantissa
        codes = [1 << bit for bit in range(mantissa)]  # subnormals
        codes += [(2 << bit) - 1 for bit in range(mantissa)]
        for exponent in range(1, last + 1):
            codes += [exponent << mantissa, (exponent << mantissa) + (1 << mantissa) - 1]
        magnitudes = [self.format.magnitude(code) for code in codes]
        return magnitudes + [-magnitude for magnitude in magnitudes]

    def holds_number(self, number):
        """In range, and a multiple of its binade's last place (the least one's, of subnormals)."""
        if self.codes:
            return number in self.enumerated
        magnitude = abs(number)
        if magnitude > self.largest:
            return False
        exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        exponent -= magnitude < Fraction(2) ** exponent
        last_place = max(exponent, 1 - self.format.bias) - self.format.mantissa_bits
        return (magnitude / Fraction(2) ** last_place).denominator == 1

    def holds(self, other):
        return other.specials <= self.specials and all(map(self.holds_number, other.witnesses()))


def containment():
    """By type, the types that hold every value of it."""
    values = {name: Values(name) for name in REALS}
    table = {}
    for name in REALS:
        table[name] = {wide for wide in REALS if bits(wide) >= bits(name)
                       and (wide == name or values[wide].holds(values[name]))}
    return table


# ---- ir/README.md, Promotion.


class Design:
    def __init__(self):
        self.holders = containment()

    def min_real(self, left, right):
        """The least type that holds both exactly."""
        both = self.holders[left] & self.holders[right]
        return min(both, key=lambda name: (bits(name), REALS.index(name)))

    def promote(self, left, right, unsafe, scalars, pytorch):
        """As OpenVINO's steps, with the rules for its types extended to all."""
        numbers = "boolean" not in (left, right) and left != right
        if not numbers or is_real(left) != is_real(right) or (pytorch and scalars[0] != scalars[1]):
            return openvino(left, right, unsafe, scalars, pytorch)
        if is_real(left):
            common = self.min_real(left, right)
            return common if unsafe or common in (left, right) else "UN"
        if is_unsigned(left) == is_unsigned(right):
            return max(left, right, key=bits)
        unsigned, signed = (left, right) if is_unsigned(left) else (right, left)
        if not unsafe and 2 * bits(unsigned) > bits(signed):
            return "UNS"
        wanted = max(2 * bits(unsigned), bits(signed))
        wide_enough = [count for count in INTEGER_BITS["i"] if count >= wanted]
        return f"i{wide_enough[0]}" if wide_enough else "target"


def table():
    design = Design()
    yield "left,right," + ",".join(f"{mode}_{scalars}" for mode in ("safe", "unsafe")
                                   for scalars in SCALARS)
    for left in TYPES:
        for right in TYPES:
            cells = []
            for unsafe in (False, True):
                for scalars in SCALARS.values():
                    request = (left, right, unsafe, scalars, True)
                    cell = design.promote(*request)
                    if left in OPENVINO and right in OPENVINO:
                        reference = openvino(*request)
                        assert cell == reference, (request, cell, reference)
                        cell = reference
                    cells.append(cell)
            yield ",".join((left, right, *cells))


if __name__ == "__main__":
    write_or_check(__doc__, "promote_golden.py", table())
