#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a small batch of synthetic f32 images as .npy, with the standard library alone.

Every image holds smooth gradients from -20 to 280 in steps of 1/16: values between two integers,
exact halves, and values outside 0..255, so that rounding and saturation show.
"""
import argparse
import array
import struct
import sys


def pixel(image, channel, row, column):
    """-20 to 280, in steps of 1/16."""
    step = (image * 997 + channel * 311 + row * 17 + column * 5) % 4801
    return step / 16 - 20


def npy_header(shape):
    """Header of version 1.0 for little-endian f32 in C order, padded to a multiple of 64 bytes."""
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}".encode()
    text += b" " * (-(10 + len(text) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", help="the .npy file to write")
    parser.add_argument("--shape", type=int, nargs=4, default=[4, 3, 224, 224], metavar="N",
                        help="images, channels, rows, columns (default 4 3 224 224)")
    arguments = parser.parse_args()
    images, channels, rows, columns = arguments.shape
    pixels = array.array("f", (pixel(i, c, y, x) for i in range(images) for c in range(channels)
                               for y in range(rows) for x in range(columns)))
    if sys.byteorder == "big":
        pixels.byteswap()
    with open(arguments.output, "wb") as file:
        file.write(npy_header(arguments.shape))
        pixels.tofile(file)


if __name__ == "__main__":
    main()
