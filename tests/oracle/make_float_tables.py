#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the float tables of one narrow type with ml_dtypes (see tests/data/float-tables/README.md).

Reads f32_in.bin of the folder; writes f32_in_NAME.bin, out_NAME_sat0.u8 and decode_NAME.csv there,
where NAME is the name without its suffix fn: float6_e2m3fn gives float6e2m3.

usage: make_float_tables.py ML_DTYPES_NAME FOLDER          such as float6_e2m3fn
"""

import array
import pathlib
import sys

import ml_dtypes
import numpy

sys.dont_write_bytecode = True  # leaves nothing beside the sources
from select_float_tables import INPUTS, rows_for_small, write_rows


def decode_rows(dtype, codes):
    values = codes.view(dtype).astype(numpy.float32)
    for code, value, bits in zip(codes, values, values.view(numpy.uint32)):
        yield f"{code:#04x},{value},{bits:#010x}\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    dtype = numpy.dtype(getattr(ml_dtypes, sys.argv[1]))
    folder = pathlib.Path(sys.argv[2])
    name = sys.argv[1].removesuffix("fn").replace("_", "")
    inputs = numpy.fromfile(folder / INPUTS, dtype=numpy.uint32)
    outputs = inputs.view(numpy.float32).astype(dtype).view(numpy.uint8)
    rows = rows_for_small(inputs.tolist(), [outputs.tolist()])
    write_rows(folder / f"f32_in_{name}.bin", "I", array.array("I", inputs.tolist()), rows)
    write_rows(folder / f"out_{name}_sat0.u8", "B", outputs.tolist(), rows)
    codes = numpy.arange(2 ** ml_dtypes.finfo(dtype).bits, dtype=numpy.uint8)
    with open(folder / f"decode_{name}.csv", "w", encoding="ascii") as out:
        out.write("code,value,f32_bits\n")
        out.writelines(decode_rows(dtype, codes))
    print(len(rows), "rows of", name)


if __name__ == "__main__":
    main()
