# SPDX-License-Identifier: Apache-2.0
"""Kernels that convert, in caches: functions by types and options, bound ones by shapes too."""

from __future__ import annotations

from typing import NamedTuple, Optional

from castor._bound import Bound
from castor._cache import Cache
from castor._element_types import ElementType
from castor._function import Function, compile
from castor._operands import Operand, dense_strides


class Options(NamedTuple):
    """How a conversion goes; None: as the types say."""

    overflow: Optional[str]
    rounding: Optional[str]
    nan: Optional[str]

    def check(self) -> None:
        """Raises for what cannot stand in a function's text; castor itself knows the names."""
        for name, value in zip(self._fields, self):
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{name} is {value!r}, expected the name of an option")
            if value is not None and not value.isidentifier():
                raise ValueError(f"{name} {value!r} is not the name of an option")

    def text(self) -> str:
        """The attributes as a function's text has them."""
        written = [f"{name} = {value}" for name, value in zip(self._fields, self) if value]
        return f" {{{', '.join(written)}}}" if written else ""


_functions = Cache(512)
_bound = Cache(1024)


def _conversion(source: ElementType, target: ElementType, rank: int, options: Options) -> Function:
    key = (source, target, rank, options)
    made: Optional[Function] = _functions.get(key)
    if made is None:
        shape = f"[{', '.join(f'?d{axis}' for axis in range(rank))}]"
        made = compile(
            f"func @convert(%x: {source}{shape}) -> {target}{shape} {{\n"
            f"  %y = convert %x{options.text()} : {target}\n  return %y\n}}\n"
        )
        _functions.add(key, made)
    return made


def is_column_major(operand: Operand) -> bool:
    """Whether the first axis is innermost, without gaps."""
    return operand.strides is not None and operand.strides == tuple(
        reversed(dense_strides(operand.shape[::-1]))
    )


def _flat(operand: Operand) -> Operand:
    size = operand.size
    return Operand(operand.owner, operand.element, (size,), None, operand.address, operand.bytes)


def bound_conversion(source: Operand, target: Operand, options: Options) -> Bound:
    """The kernel that converts between tensors of these forms."""
    if (source.strides is None and target.strides is None) or (
        is_column_major(source) and is_column_major(target)
    ):
        source, target = _flat(source), _flat(target)
    key = (source.form(), target.form(), options)
    made: Optional[Bound] = _bound.get(key)
    if made is None:
        compiled = _conversion(source.element, target.element, len(source.shape), options)
        made = Bound(compiled.kernel, [source], [target])
        _bound.add(key, made)
    return made
