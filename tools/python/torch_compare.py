# SPDX-License-Identifier: Apache-2.0
"""Compares castor with torch, by hand: PyPI's torch takes gigabytes.

  python -m venv T; T/bin/pip install numpy torch build/wheel/castor-*.whl
  T/bin/python tools/python/torch_compare.py

Conversions that torch has, on one thread each: results of random bits, and the best time of several
rounds, and of 0.3 s, of 1 Mi elements in which both sides run in turn, into memory that is there
and to a new result. Tensors go in and out by DLPack. Exit status 1 where results differ: NaN is
equal to NaN.
"""

from __future__ import annotations

import math
import pathlib
import platform
import statistics
import sys
import time
from typing import Any, Callable, List, Tuple

import castor
import numpy as np
import torch

ELEMENTS = 1 << 20
MIN_SECONDS = 0.3
WIDE = {"f32": torch.float32, "bf16": torch.bfloat16}
NARROW = {
    "f8e4m3": torch.float8_e4m3fn,
    "f8e4m3fnuz": torch.float8_e4m3fnuz,
    "f8e5m2": torch.float8_e5m2,
    "f8e5m2fnuz": torch.float8_e5m2fnuz,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
}
# torch saturates to float8_e4m3fn alone.
OPTIONS = {torch.float8_e4m3fn: {"overflow": "saturate"}}
CODES = {8: torch.uint8, 16: torch.int16, 32: torch.int32}


def random_bits(dtype: torch.dtype) -> torch.Tensor:
    """Any value of the type."""
    codes = CODES[dtype.itemsize * 8]
    random = np.random.default_rng(1).integers(0, 256, ELEMENTS * dtype.itemsize, np.uint8)
    return torch.from_numpy(random).view(codes).view(dtype)


def numbers(dtype: torch.dtype) -> torch.Tensor:
    """Numbers that every type here has about."""
    random = np.random.default_rng(2).uniform(-7, 7, ELEMENTS).astype(np.float32)
    return torch.from_numpy(random).to(dtype)


def differences(x: torch.Tensor, target: torch.dtype) -> int:
    """How many elements differ: castor reads the tensor, and stores in another one, by DLPack."""
    expected = x.to(target)
    found = torch.empty(x.shape, dtype=target)
    castor.convert(x, out=found, **OPTIONS.get(target, {}))
    codes = CODES[target.itemsize * 8]
    same = found.view(codes) == expected.view(codes)
    are_nan = found.float().isnan() & expected.float().isnan()
    return int((~(same | are_nan)).sum())


def first_difference(x: torch.Tensor, target: torch.dtype) -> str:
    """The first element that differs, as bits."""
    found = torch.empty(x.shape, dtype=target)
    castor.convert(x, out=found, **OPTIONS.get(target, {}))
    expected = x.to(target)
    codes = CODES[target.itemsize * 8]
    different = found.view(codes) != expected.view(codes)
    different &= ~(found.float().isnan() & expected.float().isnan())
    index = int(different.nonzero()[0])
    return f"{x[index].item()!r}: castor {found[index].item()!r}, torch {expected[index].item()!r}"


def seconds(call: Callable[[], Any]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def in_turn(
    ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int = 25
) -> Tuple[float, float]:
    """The best time of castor and of torch."""
    pairs = []
    end = time.perf_counter() + MIN_SECONDS
    while len(pairs) < rounds or time.perf_counter() < end:
        pairs.append((seconds(ours), seconds(theirs)))
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def stored(x: torch.Tensor, target: torch.dtype) -> Tuple[float, float]:
    """Into memory that is there."""
    found, expected = torch.empty(x.shape, dtype=target), torch.empty(x.shape, dtype=target)
    options = OPTIONS.get(target, {})
    return in_turn(lambda: castor.convert(x, out=found, **options), lambda: expected.copy_(x))


def made(x: torch.Tensor, target: torch.dtype) -> Tuple[float, float]:
    """To a new result: castor's is a NumPy array or a castor.Tensor."""
    options = OPTIONS.get(target, {})
    return in_turn(lambda: castor.convert(x, target, **options), lambda: x.to(target))


def cpu_name() -> str:
    """As Linux tells it."""
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
    return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))


def main() -> None:
    """Prints a table."""
    torch.set_num_threads(1)
    print("# The Python package against torch\n")
    print(
        f"Python {platform.python_version()}, NumPy {np.__version__}, torch {torch.__version__},"
        f" castor {castor.info()['version']} on {castor.info()['isa']}, {cpu_name()},"
        f" {time.strftime('%Y-%m-%d')}. Written by `tools/python/torch_compare.py`: random bits of"
        f" {ELEMENTS} elements, torch's own tensors by DLPack, one thread each.\n"
    )
    print(
        "| from | to | random bits that differ | castor, us | torch, us | ratio |"
        " new result: castor, us | torch, us | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    ratios: List[float] = []
    new_ratios: List[float] = []
    notes: List[str] = []
    for wide, wide_type in WIDE.items():
        for narrow, narrow_type in NARROW.items():
            if wide == narrow:
                continue
            for source, target, to in (
                ((wide, wide_type), narrow, narrow_type),
                ((narrow, narrow_type), wide, wide_type),
            ):
                bits = random_bits(source[1])
                wrong = differences(bits, to)
                if wrong:
                    notes.append(f"{source[0]} to {target}: {first_difference(bits, to)}")
                x = numbers(source[1])
                mine, theirs = stored(x, to)
                my_new, their_new = made(x, to)
                ratios.append(theirs / mine)
                new_ratios.append(their_new / my_new)
                print(
                    f"| {source[0]} | {target} | {wrong} | {mine * 1e6:.1f} | {theirs * 1e6:.1f} |"
                    f" {theirs / mine:.2f} | {my_new * 1e6:.1f} | {their_new * 1e6:.1f} |"
                    f" {their_new / my_new:.2f} |"
                )
    for what, found in (("memory that is there", ratios), ("a new result", new_ratios)):
        mean = math.exp(statistics.fmean(map(math.log, found)))
        print(f"\nInto {what}: geometric mean {mean:.1f}, least {min(found):.2f}.")
    print("\n".join(notes))
    sys.exit(1 if notes else 0)


if __name__ == "__main__":
    main()
