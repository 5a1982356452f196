# SPDX-License-Identifier: Apache-2.0
"""Inputs of embARC MLI conversions at which results turn: ties and one step beside them, the ends
of both containers, zero points, steps of the result, and the special f32 numbers.

A form is what a case says of itself: src, dst, arithmetic, round; a and b are the slices of source
and destination.
"""

import math
from fractions import Fraction

import mli_f32 as f32
from mli_arithmetic import ARITHMETICS, CONTAINER_BITS, TIES

SPECIAL_NUMBERS = (
    0x00000000, 0x00000001, 0x00000003, 0x007FFFFF, 0x00800000, 0x00800001, 0x3EFFFFFF, 0x3F000000,
    0x3F000001, 0x3FC00000, 0x4AFFFFFF, 0x4B000001, 0x4EFFFFFF, 0x4F000000, 0x7F000000, 0x7F7FFFFF,
    0x7F800000)
NANS = (0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFA5A5A5)


def near(source, a, b, target, wanted):
    """Elements whose result, unrounded, is a wanted number or next to it."""
    per_unit = Fraction(1)
    if target != "fp32":
        per_unit = b.scale * f32.power(-b.frac)
        wanted -= b.zero
    if source == "fp32":
        code = f32.nearest(wanted * per_unit)
        return [code, *f32.below_and_above(code)] if not f32.is_infinite(code) else [code]
    low = math.floor(wanted * per_unit / (a.scale * f32.power(-a.frac))) + a.zero
    return held(source, [low - 1, low, low + 1])


def held(source, numbers):
    limit = 1 << CONTAINER_BITS[source] - 1
    return [x for x in numbers if -limit <= x < limit]


def turning_points(target, b, rng):
    """Numbers around which results of a destination turn."""
    half = Fraction(1, 2)
    if target == "fp32":
        return [Fraction(0), f32.power(128), -f32.power(128)]
    limit = 1 << CONTAINER_BITS[target] - 1
    ends = [limit - half, limit - 1, limit - 1 - half, limit, -limit - half, -limit, -limit + half]
    inside = [rng.randint(-min(limit, 500), min(limit, 500)) + half for _ in range(3)]
    return ends + inside + [Fraction(b.zero), b.zero + half, b.zero - half]


def candidates(source, a, rng):
    """Elements among which there are ties, if there are any: odd multiples of powers of 2."""
    bits = CONTAINER_BITS[source]
    if bits == 8:
        return list(range(-128, 128))
    differences = [sign * odd << shift for shift in range(bits + 1) for odd in (1, 3, 5, 7, 9, 21)
                   for sign in (1, -1)]
    differences += [rng.getrandbits(bits) - (1 << bits - 1) for _ in range(100)]
    return held(source, [a.zero + d for d in differences])


def midpoint_differences(source, a, rng):
    """Elements that times the scale are between two f32 numbers, where 24 bits do not hold it."""
    found = []
    odd_scale = a.scale // (a.scale & -a.scale)
    for bits in range(25, CONTAINER_BITS[source] + 16):
        modulus = 1 << bits - 24
        least = -(-(1 << bits - 1) // odd_scale)
        residue = modulus // 2 * pow(odd_scale, -1, modulus) % modulus
        difference = least + (residue - least) % modulus
        difference += modulus * rng.randint(0, 3)
        found += [a.zero + difference, a.zero - difference]
    return held(source, found)


def ties(form, a, b, rng, count):
    """Up to `count` ties of integer sources, each with its neighbours."""
    source, target = form["src"], form["dst"]
    pool = candidates(source, a, rng)
    if target == "fp32":
        pool += midpoint_differences(source, a, rng)
    is_tie = TIES[form["arithmetic"]]
    pool = sorted({x for x in pool if is_tie(source, x, a, target, b, form["round"])})
    chosen = rng.sample(pool, min(count, len(pool)))
    return [y for x in chosen for y in held(source, [x - 1, x, x + 1])]


def any_element(source, target, b, rng):
    if source != "fp32":
        bits = CONTAINER_BITS[source]
        return rng.getrandbits(bits) - (1 << bits - 1) >> rng.choice((0, 0, 0, bits // 2))
    if target == "fp32" or rng.random() < 0.1:
        return rng.getrandbits(32)
    span = b.scale * f32.power(CONTAINER_BITS[target] - 1 - b.frac)
    return f32.nearest(span * Fraction(rng.randint(-1300, 1300), 1000))


def from_order(place):
    """The f32 at a position in their order; 0 is +0."""
    return place if place >= 0 else f32.SIGN - place


def steps(form, a, b, rng, tries=6):
    """Neighbouring elements with different results, found by bisection between two by chance."""
    source, target = form["src"], form["dst"]
    element = from_order if source == "fp32" else int

    def result(place):
        convert = ARITHMETICS[form["arithmetic"]]
        return convert(source, element(place), a, target, b, form["round"])

    limit = f32.INFINITY if source == "fp32" else 1 << CONTAINER_BITS[source] - 1
    found = []
    for _ in range(tries):
        low, high = sorted(place_near(any_element(source, target, b, rng), source, limit)
                           for _ in range(2))
        if result(low) == result(high):
            low, high = -limit, limit - 1
        if result(low) == result(high):
            break
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if result(middle) == result(low) else (low, middle)
        found += [element(low), element(high)]
    return found


def place_near(x, source, limit):
    """The position of a number in their order; NaNs go to the ends."""
    if source != "fp32":
        return x
    place = x if x < f32.SIGN else f32.SIGN - x
    return min(max(place, -limit), limit)


def plain_inputs(form, a, b, rng):
    source, target = form["src"], form["dst"]
    if source == "fp32":
        edges = [rng.choice((0, f32.SIGN))]
    else:
        limit = 1 << CONTAINER_BITS[source] - 1
        edges = held(source, [-limit, limit - 1, a.zero, a.zero - 1, a.zero + 1])
    for wanted in rng.sample(turning_points(target, b, rng), 3):
        edges += near(source, a, b, target, wanted)[:2]
    edges += steps(form, a, b, rng)
    return edges + [any_element(source, target, b, rng) for _ in range(len(edges) // 2)]


def tie_inputs(form, a, b, rng):
    source, target = form["src"], form["dst"]
    if source != "fp32":
        plain = plain_inputs(form, a, b, rng)
        return plain[:2] + ties(form, a, b, rng, 4) + plain[2:]
    inputs = []
    for wanted in rng.sample(turning_points(target, b, rng), 3 if target == "fp32" else 6):
        inputs += near(source, a, b, target, wanted)
    return inputs


def special_inputs(rng):
    signed = [code | sign for code in SPECIAL_NUMBERS for sign in (0, f32.SIGN)]
    return rng.sample(signed, len(signed)) + list(NANS)


def subnormal_inputs(form, a, b, rng):
    return steps(form, a, b, rng, tries=20) + [f32.LARGEST, f32.LARGEST | f32.SIGN]


def of_kind(kind, form, a, b, rng):
    """Inputs for elements of one slice, in the order in which they are to be taken."""
    if kind == "tie":
        return tie_inputs(form, a, b, rng)
    if kind == "special":
        return special_inputs(rng)
    if kind == "subnormal":
        return subnormal_inputs(form, a, b, rng)
    inputs = plain_inputs(form, a, b, rng)
    return rng.sample(inputs, len(inputs))
