#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares quantize_linear, dequantize_linear, dynamic_quantize_linear, dynamic_quantize_symmetric,
qlinear_conv and qlinear_matmul of castor with their formulas in exact rationals, each step of which is rounded once.

Nothing is computed in floating point: numbers are Python's Fractions, and a rounding is a division
by the distance of two neighbours. Many quotients are ties, or a neighbour away from one. castor_oracle
computes, in the interpreter and on every tier, which must agree to the last bit. Every function runs
with fixed extents, and again with `?` instead of each.

usage: quantize_oracle.py CASTOR_ORACLE [FUNCTIONS [SEED]]

With CASTOR_LONG=1 in the environment, 2000 functions instead of 200.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
from fractions import Fraction

# numpy_oracle finds a Python with NumPy, and runs this script again there if need be.
from numpy_oracle import Results, compare

import numpy as np
from numpy_cases import Cases, function_text
from numpy_ops import CASTOR_TYPES

SEED = 20261123
INTEGERS = (np.uint8, np.int8, np.uint16, np.int16)
# The least and greatest number of types that NumPy lacks.
NARROW = {"i4": (-8, 7), "u4": (0, 15), "i2": (-2, 1), "u2": (0, 3)}
# Significant bits, least and greatest exponent of a normal number.
FORMATS = {np.float64: (53, -1022, 1023), np.float32: (24, -126, 127), np.float16: (11, -14, 15),
           "bf16": (8, -126, 127)}
# Types that results are computed in where an attribute says so.
PRECISIONS = {"f64": np.float64, "bf16": "bf16"}
INFINITY = "infinity"


class Unrefused:
    """No function here is to be refused."""

    @staticmethod
    def lacks(_):
        return "nothing to refuse"


def rounded(value, dtype):
    """The nearest number of a format, ties to even; INFINITY, with a sign, where it overflows."""
    if value == 0:
        return value
    bits, least, greatest = FORMATS[dtype]
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    step = Fraction(2) ** (max(exponent, least) - bits + 1)
    result = round(value / step) * step
    if abs(result) < Fraction(2) ** (greatest + 1):
        return result
    return (INFINITY, value < 0)


def saturated(value, offset, dtype):
    """saturate(round_half_even(value) + offset)."""
    least, greatest = limits_of(dtype)
    if isinstance(value, tuple):
        return least if value[1] else greatest
    return min(max(round(value) + offset, least), greatest)


def limits_of(dtype):
    if dtype in NARROW:
        return NARROW[dtype]
    limits = np.iinfo(dtype)
    return limits.min, limits.max


def exact(number):
    return Fraction(float(number))


def random_scale(rng, dtype, shape=()):
    low, high = (-8, 4) if dtype == np.float16 else (-40, 30)
    exponents = rng.integers(low, high, shape)
    return np.asarray((1 + rng.random(shape)) * 2.0 ** exponents).astype(dtype)


def random_integers(rng, dtype, shape=()):
    limits = np.iinfo(dtype)
    return np.asarray(rng.integers(limits.min, limits.max + 1, shape)).astype(dtype)


def near_ties(rng, scale, dtype, spread):
    """Numbers whose quotients by the scale are halves, neighbours of these, or anything."""
    halves = rng.integers(-2 * spread, 2 * spread, scale.shape) / 2
    with np.errstate(over="ignore"):
        x = (halves * scale.astype(np.float64)).astype(dtype)
        kind = rng.integers(0, 4, scale.shape)
        x = np.where(kind == 1, np.nextafter(x, dtype(np.inf)), x)
        x = np.where(kind == 2, np.nextafter(x, dtype(-np.inf)), x)
        x = np.where(kind == 3, (rng.normal(size=scale.shape) * spread * scale).astype(dtype), x)
    return np.where(np.isfinite(x), x, dtype(1)).astype(dtype)


def granularity(rng, shape):
    """The shape of scales, what they are for each element, and the attributes."""
    kind = rng.integers(0, 5)
    if kind == 0:
        return (), lambda scale: np.broadcast_to(scale, shape), ""
    if kind == 4 and len(shape) > 1:
        return in_blocks_of_two_axes(rng, shape)
    axis = int(rng.integers(len(shape)))
    if kind == 1:
        along = tuple(shape[axis] if i == axis else 1 for i in range(len(shape)))
        return (shape[axis],), lambda scale: np.broadcast_to(scale.reshape(along), shape), \
            f" {{axis = {axis}}}"
    if kind == 2 and len(shape) > 1:
        own = tuple(1 if rng.random() < .5 else extent for extent in shape)
        return own, lambda scale: np.broadcast_to(scale, shape), ""
    block = int(rng.integers(1, shape[axis] + 2))
    own = tuple(-(-extent // block) if i == axis else extent for i, extent in enumerate(shape))

    def spread(scale):
        return np.take(scale, np.arange(shape[axis]) // block, axis)
    return own, spread, f" {{axis = {axis}, block_size = {block}}}"


def in_blocks_of_two_axes(rng, shape):
    axes = sorted(int(axis) for axis in rng.choice(len(shape), 2, replace=False))
    block = [int(rng.integers(1, shape[axis] + 2)) for axis in axes]
    own = list(shape)
    for axis, size in zip(axes, block):
        own[axis] = -(-shape[axis] // size)

    def spread(scale):
        for axis, size in zip(axes, block):
            scale = np.take(scale, np.arange(shape[axis]) // size, axis)
        return scale
    return tuple(own), spread, f" {{axes = {axes}, block = {block}}}"


def with_attribute(attributes, more):
    return (attributes[:-1] + ", " if attributes else " {") + more + "}"


def each(function, *tensors):
    """The function of exact numbers, element by element."""
    return [function(*numbers) for numbers in zip(*(tensor.ravel().tolist() for tensor in tensors))]


def add(cases, op, inputs, result, suffix="", attributes=""):
    operands = ", ".join(f"%{chr(ord('a') + i)}" for i in range(len(inputs)))
    add_lines(cases, [f"{op} {operands}{attributes}{suffix}"], inputs, result)


def add_lines(cases, lines, inputs, result):
    """A function of several operations, the last of which has the result."""
    for unknown in (False, True):
        text = function_text(inputs, lines, ([result.ndim], [CASTOR_TYPES[result.dtype]]), unknown)
        cases.add(text, inputs, [result], Unrefused)


def add_quantize(rng, cases):
    dtype = (np.float32, np.float16, np.float64)[rng.integers(3)]
    to = INTEGERS[rng.integers(4)]
    is_narrow = rng.random() < .3
    if is_narrow:
        to = tuple(NARROW)[rng.integers(len(NARROW))]
    shape = tuple(int(extent) for extent in rng.integers(1, 14, rng.integers(1, 4)))
    own, spread, attributes = granularity(rng, shape)
    scale = random_scale(rng, dtype, own)
    zero = np.zeros(own, np.int8) if is_narrow else random_integers(rng, to, own)
    x = near_ties(rng, spread(scale), dtype, max(limits_of(to)) * 9 // 8 + 2)
    by_reciprocal = rng.random() < .3
    computed = dtype
    if dtype == np.float32 and rng.random() < .4:
        name = tuple(PRECISIONS)[rng.integers(len(PRECISIONS))]
        computed = PRECISIONS[name]
        attributes = with_attribute(attributes, f"precision = {name}")

    def one(x, scale, zero):
        x, scale = rounded(exact(x), computed), rounded(exact(scale), computed)
        if not by_reciprocal:
            return saturated(rounded(x / scale, computed), zero, to)
        return saturated(rounded(x * rounded(1 / scale, computed), computed), zero, to)

    held = (np.int8 if to[0] == "i" else np.uint8) if is_narrow else to
    expected = np.array(each(one, x, spread(scale), spread(zero)), held).reshape(shape)
    if by_reciprocal:
        attributes = with_attribute(attributes, "scaling = reciprocal")
    if is_narrow:
        add_lines(cases, [f"quantize_linear %a, %b{attributes} : {to}",
                          f"convert %r0 : {CASTOR_TYPES[np.dtype(held)]}"], [x, scale], expected)
        return
    add(cases, "quantize_linear", [x, scale, zero], expected, f" : {CASTOR_TYPES[np.dtype(to)]}",
        attributes)


def add_dequantize(rng, cases):
    of_scale = (np.float32, np.float16)[rng.integers(2)]
    dtype = (np.float32, np.float16, np.float64)[rng.integers(3)]
    source = INTEGERS[rng.integers(4)]
    narrow = tuple(NARROW)[rng.integers(len(NARROW))] if rng.random() < .3 else None
    shape = tuple(int(extent) for extent in rng.integers(1, 14, rng.integers(1, 4)))
    own, spread, attributes = granularity(rng, shape)
    scale = random_scale(rng, of_scale, own)
    if narrow:
        least, greatest = NARROW[narrow]
        x = np.asarray(rng.integers(least, greatest + 1, shape)).astype(np.int8)
        zero = np.zeros(own, np.int8)
    else:
        x, zero = random_integers(rng, source, shape), random_integers(rng, source, own)

    def one(x, scale, zero):
        """As ONNX's reference implementation: the product is in f32, that of f64 in f64."""
        product = Fraction(x - zero) * exact(scale)
        y = rounded(product, np.float64 if dtype == np.float64 else np.float32)
        y = y if isinstance(y, tuple) else rounded(y, dtype)
        if isinstance(y, tuple):
            return -np.inf if y[1] else np.inf
        return np.copysign(float(y), -1 if product < 0 else 1)

    expected = np.array(each(one, x, spread(scale), spread(zero)), dtype).reshape(shape)
    to = CASTOR_TYPES[np.dtype(dtype)]
    if narrow:
        add_lines(cases, [f"convert %a : {narrow}", f"dequantize_linear %r0, %b{attributes} : {to}"],
                  [x, scale], expected)
        return
    add(cases, "dequantize_linear", [x, scale, zero], expected, f" : {to}", attributes)


def ranged_numbers(rng, dtype, most, shape):
    """Rows whose ranges are often `most` times a power of two, and whose other numbers are often
    halves of that; rows of zeros and of one sign among them."""
    unit = 2.0 ** rng.integers(-6, 4, (shape[0], 1))
    below = rng.integers(0, most + 1, (shape[0], 1))
    halves = rng.integers(-2 * below, 2 * (most - below) + 1, shape) / 2
    halves[:, :1], halves[:, 1:2] = -below, most - below
    ordinary = rng.normal(size=shape) * most / 4
    x = np.where(rng.random((shape[0], 1)) < .6, halves, ordinary) * unit
    x[rng.random(shape[0]) < .1] = 0
    return rng.permuted(x, axis=1).astype(dtype)


def quotients_of(numbers, scale, dtype, by_reciprocal):
    if not by_reciprocal:
        return [rounded(x / scale, dtype) for x in numbers]
    reciprocal = rounded(1 / scale, np.float32)
    return [rounded(x * reciprocal, np.float32) for x in numbers]


def dynamic_linear(row, dtype, to, by_reciprocal):
    """The codes of a row, its scale and its zero point."""
    limits = np.iinfo(to)
    numbers = [exact(x) for x in row]
    low, high = min(*numbers, 0), max(*numbers, 0)
    scale = rounded(rounded(high - low, dtype) / (limits.max - limits.min), dtype)
    if scale == 0:
        return [0] * len(row), scale, 0
    wanted = rounded(limits.min - rounded(low / scale, dtype), dtype)
    zero = round(min(max(wanted, limits.min), limits.max))
    quotients = quotients_of(numbers, scale, dtype, by_reciprocal)
    return [saturated(one, zero, to) for one in quotients], scale, zero


def dynamic_symmetric(row, dtype, to, by_reciprocal):
    """The codes of a row and its scale."""
    numbers = [exact(x) for x in row]
    scale = rounded(max(map(abs, numbers)) / np.iinfo(to).max, dtype)
    if scale == 0:
        return [0] * len(row), scale
    quotients = quotients_of(numbers, scale, dtype, by_reciprocal)
    return [saturated(one, 0, to) for one in quotients], scale


def add_dynamic(rng, cases):
    dtype = (np.float32, np.float16)[rng.integers(2)]
    is_linear, is_wide = rng.random() < .5, dtype == np.float32 and rng.random() < .3
    is_signed = not is_linear or rng.random() < .4
    to = ((np.uint8, np.uint16), (np.int8, np.int16))[is_signed][is_wide]
    shape = tuple(int(extent) for extent in rng.integers(2, 40, 2))
    by_row = bool(rng.random() < .7)
    steps = np.iinfo(to).max - np.iinfo(to).min if is_linear else 254
    x = ranged_numbers(rng, dtype, steps, shape)
    rows = x if by_row else x.reshape(1, -1)
    by_reciprocal = bool(rng.random() < .4)
    quantized = dynamic_linear if is_linear else dynamic_symmetric
    found = [quantized(row, dtype, to, by_reciprocal) for row in rows]
    if any(isinstance(number, tuple) for row in found for number in row[1:]):
        return  # a range that leaves the format
    own = (shape[0], 1) if by_row else ()
    results = [np.array([row[0] for row in found], to).reshape(shape),
               np.array([float(row[1]) for row in found], dtype).reshape(own)]
    if is_linear:
        results.append(np.array([row[2] for row in found], to).reshape(own))
    attributes = ["axes = [-1]"] * by_row + ["scaling = reciprocal"] * by_reciprocal
    op = f"dynamic_quantize_{'linear' if is_linear else 'symmetric'}"
    names = ", ".join(f"%{name}" for name in "ysz"[:len(results)])
    written = f" {{{', '.join(attributes)}}}" if attributes else ""
    for extents in (str(list(shape)), "[?, ?]"):
        types = ", ".join(CASTOR_TYPES[one.dtype] + str(["?"] * one.ndim).replace("'", "")
                          for one in results)
        text = (f"func @f(%a: {CASTOR_TYPES[x.dtype]}{extents}) -> ({types}) {{\n"
                f"  {names} = {op} %a{written} : {CASTOR_TYPES[np.dtype(to)]}\n"
                f"  return {names}\n}}\n")
        cases.add(text, [x], results, Unrefused)


def requantized(sums, scales, zero, dtype):
    """`scales`: those of the two operands and of the result; one for each sum, as `zero`."""
    def one(total, zero, first, second, result):
        product = rounded(exact(first) * exact(second), np.float32)
        factor = rounded(product / exact(result), np.float32)
        scaled = rounded(rounded(Fraction(total), np.float32) * factor, np.float32)
        return saturated(scaled, zero, dtype)
    return np.array(each(one, sums, zero, *scales), dtype).reshape(sums.shape)


def wrapped(sums):
    return (sums & 0xffffffff).astype(np.uint32).view(np.int32)


def add_qlinear(rng, cases):
    """A matrix product; or a convolution by 1 x 1 filters, which is one of pixels by channels."""
    m, k, n = (int(extent) for extent in rng.integers(1, 40, 3))
    a_type, b_type = (INTEGERS[rng.integers(2)] for _ in range(2))
    a, b = random_integers(rng, a_type, (m, k)), random_integers(rng, b_type, (k, n))
    is_matmul = rng.random() < .5
    by_row = (m,) if is_matmul and rng.random() < .5 else ()
    a_zero, b_zero = random_integers(rng, a_type, by_row), random_integers(rng, b_type)

    def along_rows(numbers):
        return numbers[:, None] if by_row else numbers

    sums = (a.astype(np.int64) - along_rows(a_zero).astype(np.int64)) @ (
        b.astype(np.int64) - int(b_zero))
    a_scale = random_scale(rng, np.float32, by_row)
    b_scale = random_scale(rng, np.float32, (n,))
    wanted = np.abs(sums).max() / 200 + 1  # results fill the range
    y_scale = (a_scale * b_scale.mean(dtype=np.float32) * np.float32(wanted)).astype(np.float32)
    y_zero = random_integers(rng, a_type, by_row)
    scales = [np.broadcast_to(scale, sums.shape)
              for scale in (along_rows(a_scale), b_scale, along_rows(y_scale))]
    if not np.all(np.isfinite(scales[0] * scales[1] / scales[2])):
        return
    y_zeros = np.broadcast_to(along_rows(y_zero), sums.shape)
    if is_matmul:
        expected = requantized(wrapped(sums), scales, y_zeros, a_type)
        add(cases, "qlinear_matmul", [a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero], expected)
        return
    bias = rng.integers(-5000, 5000, n).astype(np.int32)
    expected = requantized(wrapped(sums + bias), scales, y_zeros, a_type)
    x = np.ascontiguousarray(a.T).reshape(1, k, m, 1)
    w = np.ascontiguousarray(b.T).reshape(n, k, 1, 1)
    y = np.ascontiguousarray(expected.T).reshape(1, n, m, 1)
    add(cases, "qlinear_conv", [x, a_scale, a_zero, w, b_scale, b_zero, y_scale, y_zero, bias], y)


def main():
    if len(sys.argv) not in (2, 3, 4):
        sys.exit(__doc__)
    is_long = os.environ.get("CASTOR_LONG") == "1"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2000 if is_long else 200
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else SEED
    rng = np.random.default_rng(seed)
    cases = Cases()
    for _ in range(count):
        makers = (add_quantize, add_dequantize, add_dynamic, add_qlinear)
        makers[rng.integers(len(makers))](rng, cases)
    with tempfile.TemporaryDirectory() as folder:
        written, answers = (str(pathlib.Path(folder) / name) for name in ("cases", "results"))
        cases.write(written)
        subprocess.run([sys.argv[1], written, answers], check=True)
        reached = compare(cases, Results(pathlib.Path(answers).read_bytes()))
    print(f"seed {seed}: {reached[0]} functions, {reached[2]} elements compared, "
          f"{reached[3]} mistakes")
    sys.exit(0 if reached[0] >= count and reached[3] == 0 else 1)


if __name__ == "__main__":
    main()
