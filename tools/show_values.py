#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the same elements of several .npy files in columns, with the standard library alone.

Understands what castor writes: version 1.0, little endian, C order.
"""
import ast
import struct
import sys

FORMATS = {"|b1": "?", "|u1": "B", "<u2": "H", "<u4": "I", "<u8": "Q", "|i1": "b", "<i2": "h",
           "<i4": "i", "<i8": "q", "<f2": "e", "<f4": "f", "<f8": "d"}


def read(path):
    """The type and the flat elements of a file."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack_from("<H", data, 8)
    header = ast.literal_eval(data[10:10 + length].decode("latin-1"))
    code = FORMATS[header["descr"]]
    count = (len(data) - 10 - length) // struct.calcsize("<" + code)
    return header["descr"][1:], struct.unpack_from(f"<{count}{code}", data, 10 + length)


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: show_values.py INDEX,INDEX,... FILE.npy [FILE.npy ...]")
    indices = [int(word) for word in sys.argv[1].split(",")]
    for path in sys.argv[2:]:
        kind, values = read(path)
        print(f"  {path:<12} {kind}" + "".join(f"{values[index]:>10}" for index in indices))


if __name__ == "__main__":
    main()
