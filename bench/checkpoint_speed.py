#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""castor-quantize against a copy of the same bytes: checkpoint_speed.py DIRECTORY [options].

A bf16 checkpoint of random weights is made in DIRECTORY, so that the page cache has it. Each round
converts it to each format, and copies it with equal threads: blocks of 1 MiB go from the mapped
file into a buffer and from it into a file, whole or only the bytes that the format stores. Rounds
are interleaved, and the best time of each counts. None waits for the disk (fsync), which takes all
equally long.
"""

from __future__ import annotations

import argparse
import itertools
import mmap
import os
import sys
import threading
import time
from pathlib import Path
from typing import Callable, Dict, List

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runtime" / "python"))

from castor.checkpoint import Options, convert_checkpoint
from castor.checkpoint.safetensors import TensorSpec, encode_header, laid_out

BLOCK = 1 << 20
SHAPE = (4096, 4096)


def make_checkpoint(path: Path, gib: float) -> None:
    """Weights of a normal distribution, repeated every 8 MiB."""
    count = max(round(gib * (1 << 30)) // (2 * SHAPE[0] * SHAPE[1]), 1)
    names = [f"model.layers.{layer}.mlp.up_proj.weight" for layer in range(count)]
    x = (np.random.default_rng(0).standard_normal(1 << 22) * 0.02).astype(np.float32)
    data = (x.view(np.uint32) >> 16).astype("<u2").tobytes()
    with open(path, "wb") as file:
        file.write(encode_header(laid_out(TensorSpec(one, "BF16", SHAPE) for one in names), {}))
        for _ in range(count * 2 * SHAPE[0] * SHAPE[1] // len(data)):
            file.write(data)


def copy(source: Path, target: Path, written: int, threads: int) -> None:
    """Reads all of the source, and writes that many bytes."""
    with open(source, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    data = np.frombuffer(mapped, np.uint8)
    blocks = -(-data.size // BLOCK)
    stored = -(-written // blocks)
    output = os.open(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    numbers = itertools.count()  # next() of it is atomic

    def work() -> None:
        buffer = np.empty(BLOCK, np.uint8)
        while (number := next(numbers)) < blocks:
            block = data[number * BLOCK : (number + 1) * BLOCK]
            np.copyto(buffer[: block.size], block)
            os.pwrite(output, buffer[:stored].data, number * stored)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    os.close(output)


def timed(target: Path, work: Callable[[], object]) -> float:
    """Seconds; the output is removed, so that each run writes new pages."""
    began = time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    target.unlink()
    return seconds


def main() -> None:
    """Prints a line for each format."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--gib", type=float, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--to", action="append", default=[])
    parser.add_argument("--report", action="store_true", help="with the errors of all tensors")
    arguments = parser.parse_args()
    os.fsync = lambda _: None  # type: ignore[assignment]
    source = arguments.directory / "castor-speed.safetensors"
    target = arguments.directory / "castor-speed-out.safetensors"
    config = arguments.directory / "config.json"
    if config.exists():
        sys.exit(f"{config} exists: give an empty directory")
    make_checkpoint(source, arguments.gib)
    formats: List[str] = arguments.to or ["mxfp4", "fp8-block"]
    size = source.stat().st_size

    def whole() -> None:
        copy(source, target, size, arguments.threads)

    best: Dict[str, float] = {}
    written: Dict[str, int] = {}
    for _ in range(arguments.rounds):
        for to in formats:
            options = Options(to, threads=arguments.threads, errors=arguments.report)

            def convert(options: Options = options) -> None:
                written[options.to] = convert_checkpoint(source, target, options).bytes_written

            def plain(to: str = to) -> None:
                copy(source, target, written[to], arguments.threads)

            for key, work in ((to, convert), (to + " copy", plain), ("copy", whole)):
                best[key] = min(timed(target, work), best.get(key, float("inf")))
    print(f"copy         {best['copy']:6.3f} s, {size / best['copy'] / 1e9:5.2f} GB/s read")
    for to in formats:
        ours, theirs = best[to], best[to + " copy"]
        print(
            f"{to:12} {ours:6.3f} s, {size / ours / 1e9:5.2f} GB/s read, {written[to]} bytes out;"
            f" {best['copy'] / ours:.2f} of the copy; of one that writes the same bytes"
            f" ({theirs:.3f} s) {theirs / ours:.2f}"
        )
    source.unlink()
    config.unlink()


if __name__ == "__main__":
    main()
