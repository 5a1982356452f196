#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares broadcast shapes and results of castor with NumPy's.

Random shapes of rank 0 to 6, zero-sized ones among them, go through every broadcast rule: numpy,
none, pdpd, and numpy, pdpd, bidirectional and explicit of the op `broadcast`. NumPy says for each
which shape the result has, or that there is none; then castor must refuse, naming both shapes. pdpd
and explicit are asked of NumPy by reshaping B to [1.., B, ..1]. Results compare bit by bit, NaNs as
a class. Every function runs with fixed extents, and again with `?` instead of each.

castor_oracle computes, in the interpreter and on every tier, which must agree to the last bit;
on every tier also with the inputs' axes stored in reverse order.

usage: numpy_oracle.py CASTOR_ORACLE [SEED]
"""

import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    # tools/setup installs NumPy for Debian's own Python, which need not be the first one found.
    OWN_PYTHON = "/usr/bin/python3"
    if sys.executable == OWN_PYTHON or not os.access(OWN_PYTHON, os.X_OK):
        sys.exit("numpy_oracle: NumPy is missing (tools/setup installs python3-numpy)")
    os.execv(OWN_PYTHON, [OWN_PYTHON, "-B", *sys.argv])

from numpy_cases import shape_text
from numpy_ops import CASTOR_TYPES, NUMPY_TYPES
from numpy_rules import all_cases

SEED = 20240817
# What a run must reach at least: cases, refusals, elements of results.
LEAST = (9000, 1500, 60_000_000)


class Results:
    """Reads what castor_oracle wrote."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def line(self):
        end = self.data.index(b"\n", self.at)
        words = self.data[self.at:end].decode().split()
        self.at = end + 1
        return words

    def take(self, count):
        self.at += count
        return self.data[self.at - count:self.at]

    def next(self):
        """A list of tensors, or the words of a refusal."""
        word, number = self.line()
        if word != "ok":
            return word, self.take(int(number)).decode()
        return word, [self.tensor() for _ in range(int(number))]

    def tensor(self):
        _, element, size, _, *extents = self.line()
        tensor = np.frombuffer(self.take(int(size)), NUMPY_TYPES[element])
        return tensor.reshape([int(extent) for extent in extents])


def bits_of(tensor):
    return np.ascontiguousarray(tensor).view(f"u{tensor.dtype.itemsize}")


def difference(expected, found):
    """What differs between two tensors; empty where nothing does."""
    if (expected.dtype, expected.shape) != (found.dtype, found.shape):
        return (f"{CASTOR_TYPES[found.dtype]}{shape_text(found.shape)} in place of "
                f"{CASTOR_TYPES[expected.dtype]}{shape_text(expected.shape)}")
    if expected.size == 0:
        return ""
    differs = bits_of(expected.reshape(-1)) != bits_of(found.reshape(-1))
    if expected.dtype.kind == "f":
        differs &= ~(np.isnan(expected) & np.isnan(found)).reshape(-1)
    if not differs.any():
        return ""
    at = int(np.argmax(differs))
    return (f"element {np.unravel_index(at, expected.shape)} is {found.reshape(-1)[at]!r}, "
            f"expected {expected.reshape(-1)[at]!r}")


def mistake_of(row, word, answer):
    """What is wrong with an answer; empty if nothing."""
    _, _, expected, refusal = row
    if word == "broken":
        return answer
    if expected is None:
        if word == "ok":
            return f"gives {shape_text(answer[0].shape)}, expected a refusal"
        lack = refusal.lacks(answer)
        return lack and f"the message lacks {lack}: {answer}"
    if word != "ok":
        return f"is refused: {answer}"
    if len(answer) != len(expected):
        return f"has {len(answer)} results"
    found = (difference(*pair) for pair in zip(expected, answer))
    return "; ".join(f"result {i}: {text}" for i, text in enumerate(found) if text)


def compare(cases, results):
    """Prints what differs; gives the numbers of cases, refusals, elements and mistakes."""
    refusals = count = mistakes = 0
    for row in cases.rows:
        word, answer = results.next()
        refusals += row[2] is None
        count += sum(tensor.size for tensor in row[2] or ())
        mistake = mistake_of(row, word, answer)
        mistakes += bool(mistake)
        if mistake and mistakes <= 10:
            shapes = [shape_text(tensor.shape) for tensor in row[1]]
            print(f"{row[0]}on {', '.join(shapes)}: {mistake}\n")
    return len(cases.rows), refusals, count, mistakes


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    np.seterr(all="ignore")
    seed = int(sys.argv[2]) if len(sys.argv) == 3 else SEED
    cases = all_cases(seed)
    with tempfile.TemporaryDirectory() as folder:
        written, answers = (str(pathlib.Path(folder) / name) for name in ("cases", "results"))
        cases.write(written)
        subprocess.run([sys.argv[1], written, answers], check=True)
        reached = compare(cases, Results(pathlib.Path(answers).read_bytes()))
    print(f"NumPy {np.__version__}, seed {seed}: {reached[0]} cases, {reached[1]} of them refused, "
          f"{reached[2]} elements compared, {reached[3]} mistakes")
    enough = all(found >= least for found, least in zip(reached, LEAST))
    sys.exit(0 if enough and reached[3] == 0 else 1)


if __name__ == "__main__":
    main()
