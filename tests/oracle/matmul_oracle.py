#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares matmul_integer of castor with NumPy's matmul of 64-bit integers, modulo 2^32.

Random products draw ranks from 1 to 5, batches that broadcast, signs and zero points of every form;
one in ten has shapes that do not fit, which castor must refuse. Each runs with fixed extents, and
again with `?` instead of each. castor_oracle computes, in the interpreter and on every tier, which
must agree to the last bit; on every tier also with the inputs' axes stored in reverse order, so that
b is the view of a transposed matrix.

usage: matmul_oracle.py CASTOR_ORACLE [PRODUCTS [SEED]]

With CASTOR_LONG=1 in the environment, 2000 products instead of 400.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

# numpy_oracle finds a Python with NumPy, and runs this script again there if need be.
from numpy_oracle import Results, compare

import numpy as np
from numpy_cases import Cases, elements, function_text
from numpy_ops import CASTOR_TYPES

SEED = 20250601
MAX_PRODUCTS = 200_000
INT8 = (np.uint8, np.int8)


class RefusedMatmul:
    """What a message must say."""

    @staticmethod
    def lacks(message):
        return "" if "matmul_integer: " in message else "the op"


def random_bytes(rng, dtype, shape):
    """Any bytes; at times one extreme everywhere."""
    limits = np.iinfo(dtype)
    if rng.random() < .15:
        return np.full(shape, rng.choice([limits.min, limits.max]), dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


def extent(rng, most):
    return 0 if rng.random() < .02 else int(rng.integers(1, most + 1))


def random_shapes(rng):
    """a's and b's."""
    depth = extent(rng, 400 if rng.random() < .2 else 40)
    batch = [extent(rng, 4) for _ in range(rng.integers(0, 4))]
    sides = []
    for matrix in ((extent(rng, 24), depth), (depth, extent(rng, 100 if rng.random() < .2 else 24))):
        own = [1 if rng.random() < .25 else each for each in batch]
        own = own[int(rng.integers(0, len(own) + 1)) if rng.random() < .3 else 0:]
        sides.append((*own, *matrix) if own or rng.random() < .85 else (depth,))
    return sides


def zero_point_shape(rng, shape, lines, depth):
    """One zero point, one for each line, or one for each line of each batch."""
    kind = rng.integers(0, 5 if len(shape) > 1 else 2)
    if kind < 2:
        return ((), (1,))[kind]
    if kind == 2:
        return (shape[lines],)
    all_axes = [1 if rng.random() < .15 else each for each in shape]
    all_axes[depth] = 1
    return tuple(all_axes)


def expected_product(a, b, a_zero, b_zero):
    """NumPy's word in 64 bits, cut to 32; None where shapes do not fit."""
    a, b = a.astype(np.int64), b.astype(np.int64)
    if a_zero is not None:
        rows = a_zero.astype(np.int64)
        a = a - (rows.reshape(-1, 1) if rows.ndim == 1 and a.ndim > 1 else rows)
    if b_zero is not None:
        b = b - b_zero.astype(np.int64)
    try:
        product = np.matmul(a, b)
    except ValueError:
        return None
    return np.asarray(product & 0xffffffff).astype(np.uint32).view(np.int32)


def spoiled(rng, shape):
    """A shape with one more element along one axis."""
    axes = list(shape)
    axes[rng.integers(len(axes))] += 1
    return tuple(axes)


def random_product(rng):
    """Operands, absent zero points as None."""
    a_shape, b_shape = random_shapes(rng)
    while elements(a_shape) * max(elements(b_shape), 1) > MAX_PRODUCTS * max(a_shape[-1], 1):
        a_shape, b_shape = random_shapes(rng)
    if rng.random() < .1:
        a_shape = spoiled(rng, a_shape)
    types = [INT8[rng.integers(2)] for _ in range(2)]
    a, b = random_bytes(rng, types[0], a_shape), random_bytes(rng, types[1], b_shape)
    a_zero = b_zero = None
    if rng.random() < .65:
        a_zero = random_bytes(rng, types[0], zero_point_shape(rng, a_shape, -2, -1))
    if rng.random() < .65:
        b_zero = random_bytes(rng, types[1], zero_point_shape(rng, b_shape, -1, -2))
    return a, b, a_zero, b_zero


def add_product(cases, operands):
    """One product, with known and with unknown extents."""
    expected = expected_product(*operands)
    inputs = [tensor for tensor in operands if tensor is not None]
    names = iter(f"%{chr(ord('a') + i)}" for i in range(len(inputs)))
    listed = ", ".join("none" if tensor is None else next(names) for tensor in operands)
    ranks = [tensor.ndim for tensor in operands[:2]]
    rank = max(ranks) - sum(each == 1 for each in ranks)
    for unknown in (False, True):
        text = function_text(inputs, [f"matmul_integer {listed}"],
                             ([rank], [CASTOR_TYPES[np.dtype(np.int32)]]), unknown)
        cases.add(text, inputs, None if expected is None else [expected], RefusedMatmul)


def main():
    if len(sys.argv) not in (2, 3, 4):
        sys.exit(__doc__)
    is_long = os.environ.get("CASTOR_LONG") == "1"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2000 if is_long else 400
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else SEED
    rng = np.random.default_rng(seed)
    cases = Cases()
    for _ in range(count):
        add_product(cases, random_product(rng))
    with tempfile.TemporaryDirectory() as folder:
        written, answers = (str(pathlib.Path(folder) / name) for name in ("cases", "results"))
        cases.write(written)
        subprocess.run([sys.argv[1], written, answers], check=True)
        reached = compare(cases, Results(pathlib.Path(answers).read_bytes()))
    print(f"NumPy {np.__version__}, seed {seed}: {reached[0]} products, {reached[1]} of them refused, "
          f"{reached[2]} elements compared, {reached[3]} mistakes")
    enough = reached[0] == 2 * count and reached[1] * 40 >= count
    sys.exit(0 if enough and reached[3] == 0 else 1)


if __name__ == "__main__":
    main()
