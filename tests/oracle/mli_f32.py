# SPDX-License-Identifier: Apache-2.0
"""f32 arithmetic on bit patterns, computed with exact rationals and rounded once to nearest even.

A number is a u32 bit pattern. NaNs made here are x86's default NaN; nothing else of a NaN matters.
"""

from fractions import Fraction

SIGN = 1 << 31
INFINITY = 0x7F800000
DEFAULT_NAN = 0xFFC00000
LARGEST = INFINITY - 1
MANTISSA_BITS = 23
LEAST_EXPONENT = -126


def is_nan(bits):
    return bits & ~SIGN > INFINITY


def is_infinite(bits):
    return bits & ~SIGN == INFINITY


def value(bits):
    """The exact value of a finite number."""
    field, mantissa = divmod(bits & ~SIGN, 1 << MANTISSA_BITS)
    if field == 0:
        magnitude = Fraction(mantissa, 1 << MANTISSA_BITS) * power(LEAST_EXPONENT)
    else:
        magnitude = (1 + Fraction(mantissa, 1 << MANTISSA_BITS)) * power(field - 127)
    return -magnitude if bits & SIGN else magnitude


def power(exponent):
    return Fraction(2) ** exponent


def floor_log2(magnitude):
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return exponent if power(exponent) <= magnitude else exponent - 1


def quantum(magnitude):
    """The distance of the f32 numbers around a positive rational, as an exponent of 2."""
    return max(floor_log2(magnitude), LEAST_EXPONENT) - MANTISSA_BITS


def nearest(number, negative_zero=False):
    """The nearest f32, ties to even; beyond the largest by half a step and more, infinity."""
    if number == 0:
        return SIGN if negative_zero else 0
    sign = SIGN if number < 0 else 0
    unit = quantum(abs(number))
    steps = round(abs(number) / power(unit))  # Fraction rounds ties to even
    code = (unit + MANTISSA_BITS - LEAST_EXPONENT << MANTISSA_BITS) + steps
    return sign | min(code, INFINITY)


def is_midpoint(number):
    """Whether a rational is exactly between two neighbouring f32 numbers."""
    if number == 0 or abs(number) >= power(128):
        return False
    return (abs(number) / power(quantum(abs(number)))).denominator == 2


def multiply(a, b):
    if is_nan(a) or is_nan(b):
        return DEFAULT_NAN
    sign = (a ^ b) & SIGN
    if is_infinite(a) or is_infinite(b):
        zero = a & ~SIGN == 0 or b & ~SIGN == 0
        return DEFAULT_NAN if zero else sign | INFINITY
    return nearest(value(a) * value(b), sign != 0)


def add_finite(a, number):
    """a + number, where `number` is a finite f32 but 0."""
    if is_nan(a) or is_infinite(a):
        return a
    return nearest(value(a) + number)


def below_and_above(bits):
    """The neighbours of a finite number of its sign; zero has one."""
    magnitude = bits & ~SIGN
    return [bits & SIGN | m for m in (magnitude - 1, magnitude + 1) if 0 <= m <= INFINITY]
