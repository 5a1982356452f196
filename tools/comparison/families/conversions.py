# SPDX-License-Identifier: Apache-2.0
"""Every pair of element types: numbers that both types hold, with fractions to round.

Tensors of 2^20 elements are larger than a core's own caches; of common types 2^16, which fit them,
are measured too.
"""
from __future__ import annotations

from collections.abc import Iterator

import castor
import numpy as np

from ..tasks import Function, Spec, Task, Tensor

FAMILY, SMALL_FAMILY = "conversions", "conversions of 65,536"
ELEMENTS, SMALL_ELEMENTS = 1 << 20, 1 << 16
COMMON_TYPES = ("u8", "i8", "i32", "f16", "bf16", "f32", "f8e4m3", "i4")
LARGEST = {"boolean": 1, "nf4": 1, "f4e2m1": 6, "f6e2m3": 7, "f6e3m2": 28}
COMMON = 100.0  # the bound for all types that hold it


def all_types() -> list[str]:
    return [element.name for element in castor.element_types() if "." not in element.name]


def bounds_of(name: str) -> tuple[float, float]:
    """Between these a type has numbers of about any size."""
    bits = castor.element_type(name).bits
    if name in LARGEST:
        return (-LARGEST[name] if name[0] in "fn" else 0), LARGEST[name]
    if name == "f8e8m0":
        return 0.5, COMMON
    if name.startswith("u"):
        return 0, min(COMMON, 2 ** bits - 1)
    if name.startswith("i"):
        return -min(COMMON, 2 ** (bits - 1)), min(COMMON, 2 ** (bits - 1) - 1)
    return -COMMON, COMMON


def source_of(source: str, target: str, elements: int) -> Tensor:
    """Uniform numbers, every eighth a multiple of one half, as `source` has them."""
    low = max(bounds_of(source)[0], bounds_of(target)[0])
    high = min(bounds_of(source)[1], bounds_of(target)[1])
    values = np.random.default_rng(1).uniform(low, high, elements)
    values[::8] = np.trunc(values[::8] * 2) / 2
    if source == "f8e8m0":
        values = 2.0 ** np.floor(np.log2(np.maximum(values, 0.5)))
    elif target == "f8e8m0":
        values = np.maximum(values, 1)  # 0 is no power of two
    given = values > 0.5 if source == "boolean" else values
    return Tensor.of(castor.convert(given, source))


def text_of(source: str, target: str, options: str) -> str:
    return (f"func @convert(%x: {source}[?n]) -> {target}[?n] {{\n"
            f"  %y = convert %x {options} : {target}\n  return %y\n}}")


def task(source: str, target: str, elements: int, family: str = FAMILY) -> Task:
    x = source_of(source, target, elements)
    y = Spec(target, (elements,))

    def function(form: str) -> Function:
        return Function(text_of(source, target, form), (x,), (y,))

    return Task(family, f"{source} to {target}", "convert",
                {"x": x, "source": source, "target": target}, function, x.nbytes + y.nbytes,
                "GB/s")


def tasks(quick: bool) -> Iterator[Task]:
    names = COMMON_TYPES if quick else all_types()
    for source in names:
        for target in names:
            yield task(source, target, SMALL_ELEMENTS if quick else ELEMENTS)


def small_tasks(quick: bool) -> Iterator[Task]:
    for source in COMMON_TYPES[-2:] if quick else COMMON_TYPES:
        for target in COMMON_TYPES:
            yield task(source, target, SMALL_ELEMENTS, SMALL_FAMILY)
