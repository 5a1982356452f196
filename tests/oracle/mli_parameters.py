# SPDX-License-Identifier: Apache-2.0
"""Parameters of the sides of embARC MLI conversions, drawn by chance: one Slice for each slice.

Every way of drawing takes the names of both formats and, where it is settled already, the other
side's slice, to which the new one is fitted.
"""

import math
from fractions import Fraction

import mli_f32 as f32
from mli_arithmetic import CONTAINER_BITS, Slice, exact_value, multiplier, round_integer

EXTREME_FRACS = (-128, -127, -126, -65, -64, -63, -33, -32, -31, -1, 0, 1, 15, 31, 32, 33, 47, 63,
                 64, 65, 126, 127)
EXTREME_SCALES = (1, 2, 3, 16383, 16384, 16385, 32766, 32767)
EXTREME_ZEROS = (-32768, -32767, -129, -128, -1, 0, 1, 127, 128, 32766, 32767)
# Shifts of the embarc arithmetic at which one of its cases ends.
SHIFTS = (-33, -32, -31, -30, -1, 0, 1, 15, 16, 17, 28, 29, 30, 31, 32, 33, 47, 48, 62, 63, 64)


def is_asymmetric(name):
    return name.startswith("sa")


def within(low, number, high):
    return min(max(number, low), high)


def reach_bits(name, zero):
    """log2 of the largest |x - zero| of a container."""
    return math.log2((1 << CONTAINER_BITS[name] - 1) + abs(zero))


def any_zero(name, rng):
    """Mostly within the container."""
    if not is_asymmetric(name):
        return 0
    if rng.random() < 0.3:
        return rng.choice(EXTREME_ZEROS)
    bits = min(CONTAINER_BITS[name], 16)
    return rng.randint(-(1 << bits - 1), (1 << bits - 1) - 1)


def any_scale(name, rng):
    if not is_asymmetric(name):
        return 1
    return rng.choice(EXTREME_SCALES) if rng.random() < 0.2 else rng.randint(1, 32767)


def extreme(name, rng):
    """Any parameters that the types hold, preferably at the ends."""
    if name == "fp32":
        return Slice()
    frac = rng.choice(EXTREME_FRACS) if rng.random() < 0.7 else rng.randint(-128, 127)
    if not is_asymmetric(name):
        return Slice(frac=frac)
    return Slice(rng.choice(EXTREME_SCALES), frac, rng.choice(EXTREME_ZEROS))


def with_shift(first, second, rng):
    """Two slices, the second's fractional bits changed to give one of SHIFTS, where they can."""
    for wanted in rng.sample(SHIFTS, len(SHIFTS)):
        frac = second.frac + multiplier(first, second, "up")[1] - wanted
        if -128 <= frac <= 127:
            return second._replace(frac=frac)
    return second


def balanced(name, other_name, other, rng):
    """A slice with which a side spans about what the other side, if it is known, spans."""
    if name == "fp32":
        return Slice()
    scale, zero = any_scale(name, rng), any_zero(name, rng)
    if other is None or other_name == "fp32":
        return Slice(scale, rng.randint(-128, 127), zero)
    bits = reach_bits(name, zero) - reach_bits(other_name, other.zero)
    frac = round(other.frac + math.log2(scale / other.scale) + bits) + rng.randint(-2, 2)
    return Slice(scale, within(-128, frac, 127), zero)


def tying(name, other_name, other, rng, more_bits=1):
    """A slice whose ratio to the other side's has few odd factors, and so ties at small inputs;
    more_bits: 1 where the side needs more fractional bits than the other, a source, else -1."""
    if name == "fp32":
        return Slice()
    if other_name == "fp32" and more_bits > 0:
        return many_digits(name, rng)
    odd = rng.choice((1, 3, 5) if more_bits > 0 else (1, 1, 3))
    scale = odd << rng.randint(0, 12) if is_asymmetric(name) else 1
    zero = rng.randint(-40, 40) if is_asymmetric(name) else 0
    if other is None or other_name == "fp32":
        return Slice(scale, rng.randint(-96, 96), zero)
    frac = other.frac + factors_of_2(scale) - factors_of_2(other.scale)
    return Slice(scale, within(-128, frac + more_bits * rng.randint(1, 4), 127), zero)


def factors_of_2(number):
    return (number & -number).bit_length() - 1


def tying_destination(name, other_name, other, rng):
    return tying(name, other_name, other, rng, -1)


def many_digits(name, rng):
    """A source slice whose values have more digits than an f32, if there are any."""
    if not is_asymmetric(name):
        return Slice(frac=rng.randint(-128, 127))
    zero = rng.choice((-1, 1)) * rng.randint(24000, 32767)
    return Slice(rng.randrange(20001, 32768, 2), rng.randint(-96, 127), zero)


def overflowing(name, rng):
    """A source slice whose larger values exceed f32."""
    if not is_asymmetric(name):
        return Slice(frac=-rng.randint(128 - CONTAINER_BITS[name] // 2, 128))
    if name == "sa32" and rng.random() < 0.5:
        return Slice(1, -103, rng.randint(-40, 40))  # 2^25 - 1 is between the largest and 2^128
    return Slice(any_scale(name, rng), -rng.randint(100, 128), any_zero(name, rng))


def with_subnormal_factor(rng):
    """A destination slice of f32 inputs whose factor 2^frac / scale is subnormal, and differs when
    it is rounded once only."""
    while True:
        slice_ = Slice(rng.randint(3, 200), rng.randint(-126, -119), rng.randint(-40, 40))
        reciprocal = f32.value(f32.nearest(Fraction(1, slice_.scale)))
        scaling = f32.power(slice_.frac)
        factor = f32.nearest(reciprocal * scaling)
        if f32.power(-128) < f32.value(factor) < f32.power(-126):
            if factor != f32.nearest(Fraction(1, slice_.scale) * scaling):
                return slice_


def by_a_hair(target, rounding, rng):
    """Slices of sa32 and of a destination with an input whose result, unrounded, is next to a tie,
    which would be rounded to the other side: so near that 53 bits do not show it. Returns (source,
    destination, input)."""
    best = None
    for _ in range(1500):
        bits = rng.randint(28, 30)
        a = Slice(rng.randint(16384, 32767), rng.randint(-64, 64), rng.choice((0, -32768, 32767)))
        zero = rng.choice((-32768, 32767)) if target == "sa32" else rng.randint(-127, 127)
        b = Slice(rng.randint(16384, 32767), 0, zero) if is_asymmetric(target) else Slice()
        b = b._replace(frac=a.frac - bits)
        x = round(b.scale / (2 * a.scale * f32.power(b.frac - a.frac))) + a.zero
        real = exact_value("sa32", x, a, target, b)
        tie = b.zero + Fraction(1, 2)
        turns = round_integer(real, rounding) != round_integer(tie, rounding)
        if turns and abs(x) < 1 << 31 and (best is None or abs(real - tie) < best[0]):
            best = abs(real - tie), a, b, x
    return best[1:]
