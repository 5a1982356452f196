#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes golden embARC MLI conversions, computed with integers and exact rationals.

First the oracle proves itself: its f32 rounding against the machine's, and its `embarc` arithmetic
against every case that the library itself computed (mli_up.jsonl, mli_convergent.jsonl).

usage: mli_oracle.py GOLDEN_FOLDER OUTPUT.jsonl
"""

import collections
import json
import pathlib
import random
import struct
import sys
from fractions import Fraction

import mli_f32 as f32
from mli_arithmetic import ARITHMETICS, Slice
from mli_cases import all_cases, slice_of

GOLDEN = ("mli_up.jsonl", "mli_convergent.jsonl")


def slices(quantization):
    """The slices of a side as the files write them: none for fp32, no scale for fx."""
    fracs = quantization["frac_bits"] or [0]
    scales = quantization["scale"] or [1] * len(fracs)
    zeros = quantization["zero_point"] or [0] * len(fracs)
    return [Slice(*row) for row in zip(scales, fracs, zeros, strict=True)]


def converted(case):
    """The outputs of a case, in row-major logical order."""
    source, target, shape = case["src"], case["dst"], case["shape"]
    convert = ARITHMETICS[case["arithmetic"]]
    sides = [(slices(case[q]), case[q]["dim"]) for q in ("src_q", "dst_q")]
    outputs = []
    for index, x in enumerate(case["in"]):
        a, b = (of[slice_of(index, shape, axis)] for of, axis in sides)
        outputs.append(convert(source, x, a, target, b, case["round"]))
    return outputs


def check_f32(rng):
    """f32.nearest against the machine's rounding of f64 to f32."""
    for _ in range(20000):
        number = rng.choice((-1, 1)) * rng.random() * 2.0 ** rng.randint(-155, 127)
        if rng.random() < 0.3:
            number = float(f32.value(f32.nearest(Fraction(number))) * Fraction(1 + 2**24, 2**24))
        try:
            machine = struct.unpack("<I", struct.pack("<f", number))[0]
        except OverflowError:
            machine = f32.INFINITY | (f32.SIGN if number < 0 else 0)
        assert f32.nearest(Fraction(number), number < 0) == machine, number.hex()


def check_golden(folder):
    count = 0
    for name in GOLDEN:
        for line in (folder / name).read_text(encoding="ascii").splitlines():
            case = json.loads(line) | {"arithmetic": "embarc"}
            assert converted(case) == case["out"], f"{name}: case {case['case']}"
            count += 1
    return count


def record(number, case):
    """A case with its results, in the order of the library's files."""
    written = {"case": number, **case, "status": 0}
    written["in"] = written.pop("in")
    written["out"] = converted(case)
    return json.dumps(written, separators=(",", ":"))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    check_f32(random.Random(1))
    print(f"{check_golden(pathlib.Path(sys.argv[1]))} golden cases agree")
    kinds = collections.Counter()
    with open(sys.argv[2], "w", encoding="ascii") as out:
        for number, (kind, case) in enumerate(all_cases()):
            out.write(record(number, case) + "\n")
            kinds[kind] += 1
    print(", ".join(f"{kind}: {count}" for kind, count in kinds.items()))


if __name__ == "__main__":
    main()
