#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Selects rows of the float tables for tests/data/float-tables (see the README.md there).

usage: select_float_tables.py SOURCE_FOLDER TARGET_FOLDER
"""

import array
import pathlib
import sys

TABLES = {"f32_in.bin": "I", "out_float16.u16": "H", "out_bfloat16.u16": "H"}
WIDENED_F16 = 65536  # the first rows: every f16 value, in order of its code


def near_midpoint(bits, dropped):
    """Whether the bits that a rounding drops are within one unit of a half, or of nothing."""
    tail = bits & (2**dropped - 1)
    return min(abs(tail - 2 ** (dropped - 1)), tail, 2**dropped - tail) <= 1


def is_selected(index, bits):
    exponent = bits >> 23 & 255
    in_f16_range = 127 - 26 <= exponent <= 127 + 17
    special = exponent in (0, 254, 255)
    boundary = near_midpoint(bits, 13) or near_midpoint(bits, 16)
    if index < WIDENED_F16:  # exact in f16; bf16 rounds them in few ways
        return index % 4 == 0 or special and index % 2 == 0
    return in_f16_range or special or boundary or index % 2 == 0


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = (pathlib.Path(folder) for folder in sys.argv[1:])
    tables = {name: array.array(code, (source / name).read_bytes()) for name, code in TABLES.items()}
    inputs = tables["f32_in.bin"]
    rows = [i for i, bits in enumerate(inputs) if is_selected(i, bits)]
    for name, code in TABLES.items():
        selected = array.array(code, (tables[name][i] for i in rows))
        (target / name).write_bytes(selected.tobytes())
    print(len(rows), "of", len(inputs), "rows")


if __name__ == "__main__":
    main()
