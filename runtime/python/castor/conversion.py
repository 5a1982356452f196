# SPDX-License-Identifier: Apache-2.0
"""Conversion of arrays from one element type to another."""

from __future__ import annotations

import threading
from typing import Any, Dict, Optional, Tuple

from castor import function
from castor._operands import input_operand
from castor.element_types import ElementType, element_type

_lock = threading.Lock()
_functions: Dict[Tuple[Any, ...], function.Function] = {}


def _attributes(**options: Optional[str]) -> str:
    written = []
    for name, value in options.items():
        if value is not None:
            if not value.isidentifier():
                raise ValueError(f"{name} {value!r} is not the name of one")
            written.append(f"{name} = {value}")
    return f" {{{', '.join(written)}}}" if written else ""


def conversion(
    source: ElementType,
    target: ElementType,
    rank: int,
    overflow: Optional[str],
    rounding: Optional[str],
    nan: Optional[str],
) -> function.Function:
    """The compiled function that converts tensors of that rank."""
    key = (source, target, rank, overflow, rounding, nan)
    made = _functions.get(key)
    if made is None:
        shape = f"[{', '.join(f'?d{axis}' for axis in range(rank))}]"
        attributes = _attributes(overflow=overflow, rounding=rounding, nan=nan)
        made = function.compile(
            f"func @convert(%x: {source}{shape}) -> {target}{shape} {{\n"
            f"  %y = convert %x{attributes} : {target}\n  return %y\n}}\n"
        )
        with _lock:
            made = _functions.setdefault(key, made)
    return made


def convert(
    x: Any,
    dtype: Any,
    *,
    overflow: Optional[str] = None,
    rounding: Optional[str] = None,
    nan: Optional[str] = None,
    out: Optional[Any] = None,
) -> Any:
    """Converts every element of `x`.

    >>> import numpy as np
    >>> convert(np.float32([0.5, 1.5, 300.0, -1.0]), "u8", rounding="nearest_even")
    array([  0,   2, 255,   0], dtype=uint8)
    """
    operand = input_operand(x)
    target = element_type(dtype)
    compiled = conversion(
        operand.element, target, len(operand.shape), overflow, rounding, nan
    )
    return compiled(x, out=out)
