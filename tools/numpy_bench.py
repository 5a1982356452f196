#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the Elementwise benchmarks of castor-bench and the same functions in NumPy, and prints both.

  tools/numpy_bench.py --benchmark build/release/castor-bench

Both run in turn, several rounds, on tensors of the same shapes and one thread; of each the best
round counts. What NumPy has no type for (u4, bf16) is unpacked with the integer operations that a
NumPy user would write. Functions of several types or ops are asked to run at 8 times NumPy's
speed, single f32 ops at its speed. Needs python3-numpy. Exit status 1 with --check, where a ratio is
below what is asked.
"""
import argparse
import collections
import json
import re
import subprocess
import sys
import time

try:
    import numpy as np
except ImportError:
    sys.exit("numpy_bench: needs NumPy (Debian: python3-numpy)")

BATCH_SECONDS = 0.01

# ---- types that NumPy lacks ----


def widened(x):
    """bf16, held as its 16 bits, as f32."""
    return (x.astype(np.uint32) << 16).view(np.float32)


def to_bf16(x):
    """The bits of f32 rounded to bf16, to nearest even; no NaN is met."""
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def unpacked(codes, shape):
    """u4 elements, two a byte, as one a byte."""
    both = np.empty(codes.shape + (2,), np.uint8)
    both[..., 0] = codes & 15
    both[..., 1] = codes >> 4
    return both.reshape(-1)[:np.prod(shape)].reshape(shape)


# ---- the functions: inputs, and an output for ops that take one ----

def normalize(x, mean, scale, _):
    return ((x.astype(np.float32) - mean) * scale).astype(np.float16)


def dequantizer(element):
    """u4 [N, 64] with scale and zero point of each row, in arithmetic of that type."""
    def dequantize(q, s, p, out):
        codes = unpacked(q, out.shape).astype(element)
        zero = unpacked(p, s.shape).astype(element)
        return ((codes - zero) * s.astype(element)).astype(np.float16, copy=False)
    return dequantize


def promote_add_saturate(x, y, _):
    return np.clip(x + widened(y), -128, 127).astype(np.int8)


def multiply_bf16(x, y, _):
    return to_bf16(widened(x) * widened(y))


def select(condition, x, y, _):
    return np.where(condition, x, y)


def clamp(x, out):
    return np.clip(x, np.float32(0), np.float32(6), out=out)


# `asked`: how many times NumPy's speed; `step`: of the first input's elements.
Row = collections.namedtuple("Row", "name run asked step", defaults=[None, 1])


def rows():
    ops = {"add": np.add, "mul": np.multiply, "max": np.maximum, "div": np.divide, "less": np.less}

    def binary(op):
        return lambda x, y, out: ops[op](x, y, out=out)

    return [
        *(Row(f"{op}_f32_{pattern}", binary(op), 1)
          for op in ("add", "mul", "max") for pattern in ("same", "scalar", "row", "column")),
        Row("div_f32_same", binary("div"), 1),
        Row("less_f32_same", binary("less"), 1),
        Row("sqrt_f32", lambda x, out: np.sqrt(x, out=out), 1),
        Row("clamp_f32", clamp, 1),
        Row("select_f32", select, 1),
        Row("outer_product", binary("mul"), 1),
        Row("rgb_outer", binary("mul"), 1),
        Row("rgba_alpha", binary("mul"), 1),
        Row("every_second", binary("add"), 1, 2),
        Row("every_third", binary("add"), 1, 3),
        Row("add_i8_same", binary("add")),
        Row("max_i8_same", binary("max")),
        Row("mul_u8_same", binary("mul")),
        Row("mul_i32_same", binary("mul")),
        Row("add_f16_same", binary("add")),
        Row("mul_bf16_same", multiply_bf16),
        Row("image_normalize", normalize, 8),
        Row("dequantize_u4_f16", dequantizer(np.float16), 8),
        Row("dequantize_u4_f32", dequantizer(np.float32), 8),
        Row("promote_add_saturate", promote_add_saturate, 8),
    ]


# ---- tensors ----

NUMPY_TYPES = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "u8": np.uint8,
               "i8": np.int8, "i32": np.int32, "boolean": np.bool_}
RANDOM = np.random.default_rng(1)


def tensor(element, shape, step=1):
    """Ordinary numbers, as castor-bench has them; `step` apart along the last axis."""
    if element == "u4":
        return RANDOM.integers(0, 256, (int(np.prod(shape)) + 1) // 2, np.uint8)
    if element == "bf16":
        return to_bf16(tensor("f32", shape))
    full = shape[:-1] + (shape[-1] * step,) if shape else shape
    if element in ("u8", "boolean"):
        values = RANDOM.integers(0, 2 if element == "boolean" else 256, full)
    else:
        values = RANDOM.uniform(-127, 127, full)
    array = np.asarray(values).astype(NUMPY_TYPES[element])
    return array[..., ::step] if step > 1 else array


def tensors_of(label, step):
    """Inputs and output as the label of castor-bench has them: "f32[4, 3] f32[3] -> f16[4, 3]"."""
    found = re.findall(r"(\w+)\[([\d, ]*)\]", label.partition(";")[0])
    shapes = [(element, tuple(int(n) for n in extents.split(",") if n.strip()))
              for element, extents in found]
    inputs = [tensor(element, shape, step if i == 0 else 1)
              for i, (element, shape) in enumerate(shapes[:-1])]
    element, shape = shapes[-1]
    return inputs, np.zeros(shape, NUMPY_TYPES[element])


# ---- measuring ----

def castor_run(bench, name, footprint, seconds):
    """Nanoseconds and the label of one benchmark."""
    command = [bench, f"--benchmark_filter=^Elementwise/{name}/{footprint}$",
               "--benchmark_format=json", f"--benchmark_min_time={seconds}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"numpy_bench: {' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    row = json.loads(done.stdout)["benchmarks"][0]
    return row["real_time"], row["label"]


def numpy_ns(run, inputs, output, seconds):
    """The best batch within that time."""
    repetitions, best = 1, float("inf")
    run(*inputs, output)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or best == float("inf"):
        begin = time.perf_counter()
        for _ in range(repetitions):
            run(*inputs, output)
        elapsed = time.perf_counter() - begin
        best = min(best, elapsed / repetitions * 1e9)
        if elapsed < BATCH_SECONDS / 2:
            repetitions *= 2
    return best


def compare(options, row, footprint):
    """Best times of castor and NumPy."""
    ours = theirs = float("inf")
    tensors = None
    for _ in range(options.rounds):
        elapsed, label = castor_run(options.benchmark, row.name, footprint, options.seconds)
        ours = min(ours, elapsed)
        tensors = tensors or tensors_of(label, row.step)
        theirs = min(theirs, numpy_ns(row.run, *tensors, options.seconds))
    return ours, theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", required=True, metavar="PATH", help="castor-bench")
    parser.add_argument("--rows", default=".", metavar="REGEX", help="names of the rows to run")
    parser.add_argument("--footprints", nargs="+", default=["256KiB", "16MiB"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.05, help="for each side of a round")
    parser.add_argument("--check", action="store_true", help="fail where a ratio is below its figure")
    options = parser.parse_args()
    chosen = [row for row in rows() if re.search(options.rows, row.name)]
    if not chosen:
        sys.exit(f"numpy_bench: --rows '{options.rows}' matches no row")

    np.seterr(all="ignore")
    below = 0
    print(f"NumPy {np.__version__}; microseconds, the best of {options.rounds} rounds")
    print(f"{'row':<24}{'bytes':>8}{'castor':>11}{'NumPy':>11}{'ratio':>8}{'asked':>7}")
    for footprint in options.footprints:
        for row in chosen:
            ours, theirs = compare(options, row, footprint)
            ratio = theirs / ours
            slow = row.asked is not None and ratio < row.asked
            below += slow
            print(f"{row.name:<24}{footprint:>8}{ours / 1000:>11.2f}{theirs / 1000:>11.2f}"
                  f"{ratio:>8.2f}{row.asked or '-':>7}{'  below' if slow else ''}", flush=True)
    print(f"{below} below what is asked")
    sys.exit(1 if options.check and below else 0)


if __name__ == "__main__":
    main()
