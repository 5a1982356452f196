#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Selects rows of the float tables for tests/data/float-tables (see the README.md there).

usage: select_float_tables.py SOURCE_FOLDER TARGET_FOLDER
"""

import array
import pathlib
import shutil
import sys

INPUTS = "f32_in.bin"
WIDE_TABLES = {INPUTS: "I", "out_float16.u16": "H", "out_bfloat16.u16": "H"}
SMALL_INPUTS = "f32_in_small.bin"
SMALL_TABLES = [
    *(f"out_float8{format}_sat{saturate}.u8"
      for format in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz",
                     "e8m0_up", "e8m0_down", "e8m0_nearest")
      for saturate in (0, 1)),
    "out_float4e2m1_sat0.u8",
]
DECODE_TABLES = [f"decode_float{format}.csv"
                 for format in ("4e2m1", "8e4m3fn", "8e4m3fnuz", "8e5m2", "8e5m2fnuz", "8e8m0")]
WIDENED_F16 = 65536  # the first rows: every f16 value, in order of its code
SPREAD = 97  # rows that are no boundary of a small type: each SPREADth is taken


def near_midpoint(bits, dropped):
    """Whether the bits that a rounding drops are within one unit of a half, or of nothing."""
    tail = bits & (2**dropped - 1)
    return min(abs(tail - 2 ** (dropped - 1)), tail, 2**dropped - tail) <= 1


def is_selected_for_wide(index, bits):
    exponent = bits >> 23 & 255
    in_f16_range = 127 - 26 <= exponent <= 127 + 17
    special = exponent in (0, 254, 255)
    boundary = near_midpoint(bits, 13) or near_midpoint(bits, 16)
    if index < WIDENED_F16:  # exact in f16; bf16 rounds them in few ways
        return index % 4 == 0 or special and index % 2 == 0
    return in_f16_range or special or boundary or index % 2 == 0


def rows_for_small(inputs, outputs):
    """Where, in the order of the inputs' patterns, a table's result changes: the rows on both
    sides, so that every rounding boundary that the tables show is kept; and a spread of others."""
    ordered = sorted(range(len(inputs)), key=lambda row: inputs[row])
    rows = set(ordered[::SPREAD]) | {ordered[0], ordered[-1]}
    for below, above in zip(ordered, ordered[1:]):
        if any(table[below] != table[above] for table in outputs):
            rows |= {below, above}
    return sorted(rows)


def write_rows(path, code, table, rows):
    path.write_bytes(array.array(code, (table[row] for row in rows)).tobytes())


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = (pathlib.Path(folder) for folder in sys.argv[1:])
    wide = {name: array.array(code, (source / name).read_bytes())
            for name, code in WIDE_TABLES.items()}
    inputs = wide[INPUTS]
    rows = [i for i, bits in enumerate(inputs) if is_selected_for_wide(i, bits)]
    for name, code in WIDE_TABLES.items():
        write_rows(target / name, code, wide[name], rows)
    print(len(rows), "of", len(inputs), "rows for f16 and bf16")

    small = {name: (source / name).read_bytes() for name in SMALL_TABLES}
    rows = rows_for_small(inputs, list(small.values()))
    write_rows(target / SMALL_INPUTS, "I", inputs, rows)
    for name, table in small.items():
        write_rows(target / name, "B", table, rows)
    print(len(rows), "of", len(inputs), "rows for the small types")

    for name in DECODE_TABLES:
        shutil.copyfile(source / name, target / name)


if __name__ == "__main__":
    main()
