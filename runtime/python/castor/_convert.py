# SPDX-License-Identifier: Apache-2.0
"""Conversion of arrays from one element type to another."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from castor._address import address_of
from castor._bound import Bound
from castor._cache import Cache
from castor._conversions import NO_CODES, Codes, Options, bound_conversion, is_column_major
from castor._element_types import ElementType, element_type
from castor._operands import (
    Operand,
    element_of_dtype,
    input_operand,
    operand_of_codes,
    output_operand,
    unpacked_output,
)
from castor._prepared import PreparedCall, are_lent, located, located_output, new_output
from castor._tensor import Tensor, empty_tensor
from castor._unpacked import unpack

_prepared = Cache(1024)
_prepared_into = Cache(1024)


def convert(
    x: Any,
    dtype: Any = None,
    *,
    overflow: Optional[str] = None,
    rounding: Optional[str] = None,
    nan: Optional[str] = None,
    out: Optional[Any] = None,
    threads: Optional[int] = None,
) -> Any:
    """Converts every element of `x`, with one exact rounding.

    `x` is an array, a castor.Tensor, or an object with __array_interface__, a buffer or __dlpack__.
    `dtype` is a name or a dtype of castor, NumPy, ml_dtypes, torch or ONNX; with `out` it may be
    left out. `overflow` ("saturate", "saturate_finite", "wrap", "nan"), `rounding` ("toward_zero",
    "nearest_even", "nearest_away", "down", "up", "half_up") and `nan` ("zero") are castor's options
    (ir/README.md, Convert). Large tensors are split over `threads` threads; 0 stands for one for
    each core.

    The result is a NumPy array where NumPy, or ml_dtypes where that is installed, has a dtype for
    the type, else a castor.Tensor. Elements narrower than a byte are packed in a castor.Tensor,
    unless `dtype` is ml_dtypes' own. With `out`, an array, a castor.Tensor or an object that lends
    its memory, the result is stored there, and `out` returned.

    >>> import numpy as np
    >>> convert(np.float32([0.5, 1.5, 300.0, -1.0]), "u8", rounding="nearest_even")
    array([  0,   2, 255,   0], dtype=uint8)
    >>> convert(np.float32([1, -2, 9]), "i4", overflow="saturate")
    castor.Tensor([1, -2, 7], 'i4')
    """
    given = (dtype, overflow, rounding, nan)
    location: Optional[Tuple[Any, int]] = None
    prepared: Optional[PreparedCall]
    try:
        if out is not None:
            if _converted_into(x, given, out, threads):
                return out
        elif type(x) is np.ndarray:
            prepared = _prepared.get((x.dtype, dtype, overflow, rounding, nan, x.shape, x.strides))
            if prepared is not None:
                return prepared.at([address_of(x)], threads)
        elif isinstance(x, Tensor):
            prepared = _prepared.get((x._element, dtype, overflow, rounding, nan, x._shape))
            if prepared is not None:
                return prepared.at([address_of(x._data)], threads)
        else:
            location = located(x)
            prepared = None if location is None else _prepared.get((location[0], given))
            if location is not None and prepared is not None:
                return prepared.at([location[1]], threads)
    except TypeError:  # An option that cannot be a key is told as other wrong ones are.
        _check(dtype, Options(overflow, rounding, nan))
        raise
    options = Options(overflow, rounding, nan)
    _check(dtype, options)
    source, codes = _source(x, dtype, options) if out is None else (input_operand(x), NO_CODES)
    if out is not None:
        _convert_into(x, source, given, options, out, threads)
        return out
    target = element_type(dtype)
    if target.bits < 8 and not isinstance(dtype, (str, ElementType)):
        bound = _bound_to_codes(source, target, options)
        if bound is None:
            return _convert_unpacked(source, target, options, threads)
        prepared = PreparedCall(bound, [(target, source.shape)], unpacked=True)
        if are_lent([source], [x]) and not isinstance(x, Tensor):
            _prepared.add((x.dtype, dtype, overflow, rounding, nan, x.shape, x.strides), prepared)
        return prepared.at([source.address], threads)
    order = "F" if is_column_major(source) and target.dtype is not None else "C"
    result = new_output(target, source.shape, order)
    destination = output_operand(result)
    bound = bound_conversion(source, destination, options, codes)
    bound.run((source.address, destination.address), threads)
    if are_lent([source], [x]):
        key = (dtype, overflow, rounding, nan, x.shape)
        whole = (x.element, *key) if isinstance(x, Tensor) else (x.dtype, *key, x.strides)
        _prepared.add(whole, PreparedCall(bound, [(target, source.shape)], order))
    elif location is not None and location[1] == source.address:
        _prepared.add((location[0], given), PreparedCall(bound, [(target, source.shape)], order))
    return result


def _check(dtype: Any, options: Options) -> None:
    """Says what is wrong with a type or an option."""
    if dtype is not None:
        element_type(dtype)
    options.check()


def _converted_into(x: Any, given: Tuple[Any, ...], out: Any, threads: Optional[int]) -> bool:
    """Whether a call of this form was seen before, and is done."""
    source, target = located(x), located_output(out)
    if source is None or target is None:
        return False
    bound: Optional[Bound] = _prepared_into.get((source[0], target[0], given))
    if bound is None:
        return False
    bound.run((source[1], target[1]), threads)
    return True


def _source(x: Any, dtype: Any, options: Options) -> Tuple[Operand, Codes]:
    """The operand, of whose bytes the low bits may be the elements.

    Arrays of ml_dtypes with integers narrower than a byte are not packed before, unless the target
    wants packed ones, or options, which say more of a narrow type than of bytes.
    """
    plain = options == Options(None, None, None) and element_type(dtype).bits >= 8
    if plain and type(x) is np.ndarray:
        element = element_of_dtype(x.dtype)
        operand = operand_of_codes(x, element)
        if operand is not None:
            return operand, Codes(source=element)
    return input_operand(x), NO_CODES


def _bound_to_codes(source: Operand, target: ElementType, options: Options) -> Optional[Bound]:
    """The kernel that writes integers narrower than a byte to a byte each; None for others."""
    dtype = target.unpacked_dtype
    codes = None if dtype is None else operand_of_codes(np.empty(source.shape, dtype), target)
    if codes is None:
        return None
    return bound_conversion(source, codes, options, Codes(target=target))


def _convert_unpacked(
    source: Operand, target: ElementType, options: Options, threads: Optional[int]
) -> Any:
    dtype = target.unpacked_dtype
    if dtype is None:
        raise TypeError(f"ml_dtypes has no dtype for {target}")
    result = np.empty(source.shape, dtype)
    packed = empty_tensor(target, source.shape)
    destination = output_operand(packed)
    bound = bound_conversion(source, destination, options)
    bound.run((source.address, destination.address), threads)
    unpack(packed, result)
    return result


def _convert_into(
    x: Any,
    source: Operand,
    given: Tuple[Any, ...],
    options: Options,
    out: Any,
    threads: Optional[int],
) -> None:
    unpacked = unpacked_output(out)
    codes = None if unpacked is None else operand_of_codes(*unpacked)
    if unpacked is None:
        destination = output_operand(out)
    elif codes is not None:
        destination = codes
    else:
        packed = empty_tensor(unpacked[1], unpacked[0].shape)
        destination = output_operand(packed)
    dtype = given[0]
    element = destination.element if unpacked is None else unpacked[1]
    if dtype is not None and element_type(dtype) is not element:
        raise TypeError(f"dtype is {element_type(dtype)}, but out has {element}")
    if destination.shape != source.shape:
        raise ValueError(f"out has shape {destination.shape}, expected {source.shape}")
    kept = NO_CODES if codes is None else Codes(target=element)
    bound = bound_conversion(source, destination, options, kept)
    bound.run((source.address, destination.address), threads)
    if codes is not None:
        return
    if unpacked is not None:
        unpack(packed, unpacked[0])
        return
    # Where the operands are the memory of x and out themselves, the next call finds it as here.
    location, target = located(x), located_output(out)
    if location is None or target is None:
        return
    if location[1] == source.address and target[1] == destination.address:
        _prepared_into.add((location[0], target[0], given), bound)
