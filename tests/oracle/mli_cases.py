# SPDX-License-Identifier: Apache-2.0
"""Cases for the oracle of embARC MLI data conversion: forms, shapes, strides, parameters, inputs; by
chance from a fixed seed.
"""

import itertools
import math
import random

import mli_inputs
import mli_parameters as parameters
from mli_arithmetic import FORMATS, Slice
from mli_parameters import is_asymmetric

SEED = 20241105
NO_AXES = (-1, -1)


def slice_of(index, shape, axis):
    """Which slice the element at a row-major index belongs to; axis < 0: all to one."""
    if axis < 0:
        return 0
    return index // math.prod(shape[axis + 1:]) % shape[axis]


# forms of tensors


def dense_strides(shape):
    return [math.prod(shape[axis + 1:]) for axis in range(len(shape))]


def padded_strides(shape, rng):
    """Strides of a tensor that is a part of a larger one; the innermost is 1."""
    strides = []
    reach = 1
    for axis in reversed(range(len(shape))):
        strides.insert(0, reach if axis == len(shape) - 1 else reach + rng.choice((0, 1, 1, 3)))
        reach = strides[0] * shape[axis]
    return strides


def any_strides(shape, rng):
    return padded_strides(shape, rng) if rng.random() < 0.5 else dense_strides(shape)


def any_shape(rank, elements, rng):
    """About `elements` elements in all; an extent of 1 now and then."""
    shape = [1] * rank
    while rank and math.prod(shape) * 2 <= elements:
        shape[rng.randrange(rank)] += rng.randint(1, 2)
    return shape


class AxisTurns:
    """Goes through every axis of every rank, for the sides that carry parameters in turn."""

    def __init__(self):
        ranks_and_axes = [(rank, axis) for rank in (1, 2, 3, 4) for axis in range(rank)]
        self.of_side = {side: itertools.cycle(ranks_and_axes)
                        for side in ("source", "target", "both")}

    def requests(self, source, target):
        """Yields (rank, axes): the axis of each side, -1 where it is quantized per tensor."""
        sides = [side for side, name in (("source", source), ("target", target))
                 if is_asymmetric(name)]
        for side in sides + ["both"] * (len(sides) == 2):
            rank, axis = next(self.of_side[side])
            yield rank, tuple(axis if side in (one, "both") else -1 for one in ("source", "target"))


# sides and elements


def quantization(name, axis, slices):
    """A side's parameters as the files write them."""
    asymmetric = is_asymmetric(name)
    return {"dim": axis,
            "zero_point": [s.zero for s in slices] if asymmetric else [],
            "scale": [s.scale for s in slices] if asymmetric else [],
            "frac_bits": [s.frac for s in slices] if name != "fp32" else []}


def extreme_sides(source, target, counts, rng):
    """Any parameters; half of the time such that shifts of the embarc arithmetic are critical."""
    first, second = ([parameters.extreme(name, rng) for _ in range(n)]
                     for name, n in zip((source, target), counts))
    if "fp32" not in (source, target) and rng.random() < 0.6:
        pairs = zip(itertools.cycle(first), second)
        second = [parameters.with_shift(a, b, rng) for a, b in pairs]
    return [first, second]


def draw_sides(kind, source, target, counts, rng):
    """The slices of both sides, `counts` of them."""
    if kind in ("extreme", "special"):
        return extreme_sides(source, target, counts, rng)
    if kind == "overflow":
        return [[parameters.overflowing(source, rng) for _ in range(counts[0])], [Slice()]]
    if kind == "subnormal":
        return [[Slice()], [parameters.with_subnormal_factor(rng) for _ in range(counts[1])]]
    draw = draw_target = parameters.balanced
    if kind == "tie":
        draw, draw_target = parameters.tying, parameters.tying_destination
    if counts[0] > 1 and counts[1] == 1:
        second = [draw_target(target, source, None, rng)]
        return [[draw(source, target, second[0], rng) for _ in range(counts[0])], second]
    first = [draw(source, target, None, rng) for _ in range(counts[0])]
    pairs = zip(itertools.cycle(first), range(counts[1]))
    return [first, [draw_target(target, source, a, rng) for a, _ in pairs]]


def elements_of(kind, form, shape, axes, sides, rng):
    """Inputs for every element, each from those that suit its slices."""
    pools = {}
    elements = []
    for index in range(math.prod(shape)):
        key = tuple(slice_of(index, shape, axis) for axis in axes)
        if key not in pools:
            a, b = (side[i] for side, i in zip(sides, key))
            pools[key] = itertools.cycle(mli_inputs.of_kind(kind, form, a, b, rng))
        elements.append(next(pools[key]))
    return elements


def case_of(form, shape, strides, axes, sides, elements):
    return {**form, "shape": shape, "src_stride": strides[0], "dst_stride": strides[1],
            "src_q": quantization(form["src"], axes[0], sides[0]),
            "dst_q": quantization(form["dst"], axes[1], sides[1]), "in": elements}


def make_case(kind, form, shape, axes, rng):
    counts = [shape[axis] if axis >= 0 else 1 for axis in axes]
    sides = draw_sides(kind, form["src"], form["dst"], counts, rng)
    elements = elements_of(kind, form, shape, axes, sides, rng)
    strides = [any_strides(shape, rng) for _ in range(2)]
    return case_of(form, shape, strides, axes, sides, elements)


def hair_case(form, rng):
    a, b, x = parameters.by_a_hair(form["dst"], form["round"], rng)
    return case_of(form, [3], [[1], [1]], NO_AXES, [[a], [b]], [x - 1, x, x + 1])


# all of them


def cases_of(form, turn, axis_turns, rng):
    """Yields (kind, case)."""
    source, target = form["src"], form["dst"]

    def per_tensor(kind, shape):
        return kind, make_case(kind, form, shape, NO_AXES, rng)

    if source == target == "fp32":
        yield per_tensor("special", [19, 2])
        return
    if turn % 2 == 0:
        yield per_tensor("scalar", [])
    yield per_tensor("plain", any_shape(1 + turn % 4, 16, rng))
    yield per_tensor("tie", any_shape(1 + (turn + 1) % 4, 22, rng))
    yield per_tensor("extreme", any_shape(1 + (turn + 2) % 4, 12, rng))
    for rank, axes in axis_turns.requests(source, target):
        kind = ("plain", "extreme", "tie")[(turn + rank) % 3]
        yield f"axis, {kind}", make_case(kind, form, any_shape(rank, 20, rng), axes, rng)
    if source == "fp32":
        yield per_tensor("special", [19, 2])
        if is_asymmetric(target) and form["arithmetic"] == "embarc":
            yield per_tensor("subnormal", [12])
    if target == "fp32":
        yield per_tensor("overflow", [2, 8])
    elif source == "sa32" and form["arithmetic"] == "exact":
        yield "hair", hair_case(form, rng)


def all_cases():
    rng = random.Random(SEED)
    axis_turns = AxisTurns()
    modes = list(itertools.product(("exact", "embarc"), ("up", "convergent")))
    for number, (source, target) in enumerate(itertools.product(FORMATS, FORMATS)):
        for step, (arithmetic, rounding) in enumerate(modes):
            form = {"round": rounding, "arithmetic": arithmetic, "src": source, "dst": target}
            yield from cases_of(form, 5 * number + step, axis_turns, rng)
