# SPDX-License-Identifier: Apache-2.0
"""Kernels that convert, in caches: functions by types and options, bound ones by shapes too."""

from __future__ import annotations

from typing import List, NamedTuple, Optional

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

    def needed(self, target: ElementType) -> Options:
        """Without a rounding that stands for what conversions to that type do anyway."""
        return self._replace(rounding=target.needed_rounding(self.rounding))

    def text(self, target: ElementType) -> str:
        """The attributes as a function's text has them."""
        needed = self.needed(target)
        written = [f"{name} = {value}" for name, value in zip(self._fields, needed) if value]
        return f" {{{', '.join(written)}}}" if written else ""


class Codes(NamedTuple):
    """The integers that bytes of the source or the target have in their low bits, if they do."""

    source: Optional[ElementType] = None
    target: Optional[ElementType] = None


NO_CODES = Codes()
_functions = Cache(512)
_bound = Cache(1024)


def _numbers_of_codes(element: ElementType, stored: ElementType) -> List[str]:
    """The lines that make %number of the bytes %x."""
    lines = [
        f"%mask = constant {(1 << element.bits) - 1} : {stored}[]",
        f"%{'code' if element.is_signed else 'number'} = bitwise_and %x, %mask",
    ]
    if element.is_signed:
        lines += [
            f"%sign = constant {1 << (element.bits - 1)} : {stored}[]",
            "%flipped = bitwise_xor %code, %sign",
            "%number = sub %flipped, %sign",
        ]
    return lines


def _codes_of_numbers(element: ElementType, stored: ElementType) -> List[str]:
    """The lines that make the bytes %y of %result."""
    if not element.is_signed:
        return [f"%y = convert %result : {stored}"]
    return [
        f"%byte = convert %result : {stored}",
        f"%low = constant {(1 << element.bits) - 1} : {stored}[]",
        "%y = bitwise_and %byte, %low",
    ]


def _conversion(
    source: ElementType, target: ElementType, rank: int, options: Options, codes: Codes
) -> Function:
    key = (source, target, rank, options, codes)
    made: Optional[Function] = _functions.get(key)
    if made is None:
        shape = f"[{', '.join(f'?d{axis}' for axis in range(rank))}]"
        lines = [] if codes.source is None else _numbers_of_codes(codes.source, source)
        number = "%x" if codes.source is None else "%number"
        result = "%y" if codes.target is None else "%result"
        to = codes.target or target
        lines.append(f"{result} = convert {number}{options.text(to)} : {to}")
        if codes.target is not None:
            lines += _codes_of_numbers(codes.target, target)
        made = compile(
            f"func @convert(%x: {source}{shape}) -> {target}{shape} {{\n  "
            + "\n  ".join([*lines, "return %y\n}\n"])
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


def bound_conversion(
    source: Operand, target: Operand, options: Options, codes: Codes = NO_CODES
) -> Bound:
    """The kernel that converts between tensors of these forms."""
    if (source.strides is None and target.strides is None) or (
        is_column_major(source) and is_column_major(target)
    ):
        source, target = _flat(source), _flat(target)
    key = (source.form(), target.form(), options, codes)
    made: Optional[Bound] = _bound.get(key)
    if made is None:
        compiled = _conversion(source.element, target.element, len(source.shape), options, codes)
        made = Bound(compiled.kernel, [source], [target])
        _bound.add(key, made)
    return made
