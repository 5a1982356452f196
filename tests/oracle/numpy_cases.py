# SPDX-License-Identifier: Apache-2.0
"""Functions with their inputs and what NumPy says of them, and random shapes and values: for
numpy_oracle.py."""

import itertools
import re

import numpy as np

from numpy_ops import CASTOR_TYPES, FLOATS, NUMPY_TYPES

MOST_ELEMENTS = 6000


def names_two(message, texts):
    """Whether a message names two of the shapes (equal ones twice)."""
    return any(len(re.findall(re.escape(a), message)) >= (2 if a == b else 1) and b in message
               for a, b in itertools.combinations(texts, 2))


class Refusal:
    """What a message must say: two of the shapes (as they are declared, where the ranks alone are
    wrong), what is wrong with axes or ranks, and the rule."""

    def __init__(self, shapes, declared, rule):
        self.shapes = [list(map(shape_text, shapes)), declared]
        self.rule = rule

    def lacks(self, message):
        """What the message does not say; empty where it says all."""
        if not any(names_two(message, texts) for texts in self.shapes):
            return "two of the shapes"
        if not re.search(r"\b(axis|axes|ranks?)\b", message):
            return "the axis"
        return "" if self.rule in message else f"the rule, {self.rule}"


class Cases:
    """Functions with their inputs, and what NumPy says of them."""

    def __init__(self):
        self.rows = []

    def add(self, text, inputs, expected, refusal):
        """`expected`: the results, or None where castor must refuse."""
        self.rows.append((text, inputs, expected, refusal))

    def write(self, path):
        with open(path, "wb") as out:
            for text, inputs, _, _ in self.rows:
                out.write(f"case {len(inputs)} {len(text)}\n{text}".encode())
                for tensor in inputs:
                    extents = "".join(f" {extent}" for extent in tensor.shape)
                    out.write(f"tensor {CASTOR_TYPES[tensor.dtype]} {tensor.nbytes} {tensor.ndim}"
                              f"{extents}\n".encode())
                    out.write(tensor.tobytes())


def shape_text(shape, unknown=False):
    return "[" + ", ".join("?" if unknown else str(extent) for extent in shape) + "]"


def rule_text(attributes):
    """"broadcast = pdpd" of " {broadcast = pdpd, axis = 1}"; numpy is the default."""
    return re.split("[{,}]", attributes)[1] if attributes else "broadcast = numpy"


def function_text(inputs, lines, results, unknown=False):
    """`lines` define %r0, %r1, ..., of which the last ones are results; `results`: the ranks and
    element types of those."""
    parameters = ", ".join(
        f"%{chr(ord('a') + i)}: {CASTOR_TYPES[tensor.dtype]}{shape_text(tensor.shape, unknown)}"
        for i, tensor in enumerate(inputs))
    types = ", ".join(f"{name}{shape_text((0,) * rank, True)}" for rank, name in zip(*results))
    body = "".join(f"  %r{i} = {line}\n" for i, line in enumerate(lines))
    values = ", ".join(f"%r{i}" for i in range(len(lines) - len(results[1]), len(lines)))
    return f"func @f({parameters}) -> ({types}) {{\n{body}  return {values}\n}}\n"


def add_ops(cases, ops, inputs, attributes="", reshaped=None, shapes_ok=True):
    """One function with a result for each of `ops` (names to NumPy's functions), in both forms.
    `reshaped`: the inputs as NumPy broadcasts them, where the rule is not NumPy's."""
    operands = ", ".join(f"%{chr(ord('a') + i)}" for i in range(len(inputs)))
    lines = [f"{name} {operands}{attributes}" for name in ops]
    ones = [np.ones(1, tensor.dtype) for tensor in inputs]
    names = [CASTOR_TYPES[function(*ones).dtype] for function in ops.values()]
    expected = None
    rank = max(tensor.ndim for tensor in inputs)
    if shapes_ok:
        expected = [np.asarray(function(*(reshaped or inputs))) for function in ops.values()]
        rank = expected[0].ndim
    for unknown in (False, True):
        text = function_text(inputs, lines, ([rank] * len(names), names), unknown)
        shapes = [tensor.shape for tensor in inputs]
        declared = [shape_text(shape, unknown) for shape in shapes]
        cases.add(text, inputs, expected, Refusal(shapes, declared, rule_text(attributes)))


# ---- Random shapes and values.


def elements(shape):
    return int(np.prod(shape, dtype=np.int64))


def random_extent(rng):
    return int(rng.choice([0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33],
                          p=[.03, .15, .12, .15, .15, .1, .08, .06, .05, .04, .03, .02, .02]))


def random_shape(rng, max_rank=6):
    while True:
        shape = tuple(random_extent(rng) for _ in range(rng.integers(0, max_rank + 1)))
        if elements(shape) <= MOST_ELEMENTS:
            return shape


def narrowed(rng, shape):
    """A shape that mostly broadcasts to another: some axes 1, leading ones gone, now and then one
    that does not fit."""
    axes = [1 if rng.random() < .35 else extent for extent in shape]
    if axes and rng.random() < .2:
        axes[rng.integers(len(axes))] = random_extent(rng)
    gone = rng.integers(0, len(axes) + 1) if rng.random() < .5 else 0
    return tuple(axes[gone:])


def random_operand_shapes(rng, count):
    """Shapes of operands, related more often than not."""
    while True:
        base = random_shape(rng)
        shapes = [narrowed(rng, base) if rng.random() < .85 else random_shape(rng)
                  for _ in range(count)]
        if max(map(elements, shapes)) <= MOST_ELEMENTS and size_of_result(shapes) <= MOST_ELEMENTS:
            return shapes


def size_of_result(shapes):
    joint = joint_shape(*shapes)
    return 0 if joint is None else elements(joint)


def joint_shape(*shapes):
    """NumPy's word on shapes: their broadcast shape, or None."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def random_tensor(rng, element, shape):
    """Random bits, small numbers, limits and special values by turns."""
    dtype = np.dtype(NUMPY_TYPES[element])
    count = elements(shape)
    if element == "boolean":
        return rng.integers(0, 2, shape).astype(dtype)
    bits = rng.integers(0, 256, count * dtype.itemsize, dtype=np.uint8).view(dtype)
    if element in FLOATS:
        limits = np.finfo(dtype)
        special = np.array([0.0, -0.0, 1, -1, .5, 1.5, 2.5, np.inf, -np.inf, np.nan, limits.max,
                            limits.min, limits.tiny, limits.smallest_subnormal], dtype)
        small = rng.normal(0, 8, count).astype(dtype)
    else:
        limits = np.iinfo(dtype)
        special = np.array([0, 1, 2, limits.max, limits.min, limits.max - 1], dtype)
        small = rng.integers(0 if dtype.kind == "u" else -20, 20, count).astype(dtype)
    kind = rng.integers(0, 10, count)
    values = np.where(kind < 4, bits, np.where(kind < 8, small, rng.choice(special, count)))
    return values.astype(dtype).reshape(shape)


def without_zero(tensor):
    return np.where(tensor == 0, tensor.dtype.type(3), tensor)


def in_shift_range(tensor):
    return tensor & tensor.dtype.type(8 * tensor.dtype.itemsize - 1)
