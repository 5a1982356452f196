# SPDX-License-Identifier: Apache-2.0
"""Calls whose forms were seen before: they only find addresses, make results and run."""

from __future__ import annotations

import math
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from castor import _torch
from castor._address import address_of
from castor._bound import Bound
from castor._element_types import ElementType
from castor._operands import Operand
from castor._tensor import Tensor, empty_tensor, packed_tensor, refuse_mask


def form_of(inputs: Sequence[Any]) -> Tuple[Any, ...]:
    """What a prepared call of these inputs is kept by, where all are as are_lent asks."""
    return tuple(
        [
            (x.dtype, x.shape, x.strides)
            if type(x) is np.ndarray
            else (x._element, x._shape)
            if isinstance(x, Tensor)
            else None
            for x in inputs
        ]
    )


def located(x: Any) -> Optional[Tuple[Any, int]]:
    """The form of a tensor and the address of its data, where both are found at once."""
    if type(x) is np.ndarray:
        return (x.dtype, x.shape, x.strides), address_of(x)
    if isinstance(x, Tensor):
        return (x._element, x._shape), address_of(x._data)
    if isinstance(x, np.ndarray):  # its class derives from that of NumPy
        refuse_mask(x)
        return (x.dtype, x.shape, x.strides), address_of(x)
    return _torch.form_and_address(x) if _torch.is_tensor(x) else None


def located_output(x: Any) -> Optional[Tuple[Any, int]]:
    """As located; None where the memory may be read-only."""
    if isinstance(x, np.ndarray):
        return located(x) if x.flags.writeable else None
    if isinstance(x, Tensor):
        return located(x) if x._data.flags.writeable else None
    return located(x)


def locations_of(
    inputs: Sequence[Any], outputs: Sequence[Any]
) -> Optional[Tuple[Tuple[Any, ...], List[int]]]:
    """The forms and the addresses of all, where all are found at once."""
    forms = []
    addresses = []
    for index, x in enumerate((*inputs, *outputs)):
        location = located(x) if index < len(inputs) else located_output(x)
        if location is None:
            return None
        forms.append(location[0])
        addresses.append(location[1])
    return tuple(forms), addresses


def are_lent(operands: Sequence[Operand], inputs: Sequence[Any]) -> bool:
    """Whether the operands are the memory of the inputs themselves, arrays or tensors.

    Arrays of classes that derive from NumPy's are not among them: some are masked.
    """
    return all(
        operand.owner is x and (type(x) is np.ndarray or isinstance(x, Tensor))
        for operand, x in zip(operands, inputs)
    )


def new_output(element: ElementType, shape: Tuple[int, ...], order: Any = "C") -> Any:
    """Memory for a result: an array where NumPy has a dtype for it, else a castor.Tensor."""
    dtype = element.dtype
    return empty_tensor(element, shape) if dtype is None else np.empty(shape, dtype, order)


class PreparedCall:
    """All that is known of a call before its data is: the kernel, the views, the results."""

    __slots__ = ("_bound", "_makers", "_order")

    def __init__(
        self,
        bound: Bound,
        results: Sequence[Tuple[ElementType, Tuple[int, ...]]],
        order: Any = "C",
        unpacked: bool = False,
    ) -> None:
        """`unpacked`: results narrower than a byte are arrays of ml_dtypes."""
        self._bound = bound
        self._order = order
        self._makers = [
            (
                element,
                element.unpacked_dtype if unpacked else element.dtype,
                shape,
                element.bytes_of(math.prod(shape)),
            )
            for element, shape in results
        ]

    def __call__(self, inputs: Sequence[Any], threads: Optional[int]) -> Any:
        """The result, or a tuple of several."""
        addresses = [address_of(x if isinstance(x, np.ndarray) else x._data) for x in inputs]
        return self.at(addresses, threads)

    def at(self, addresses: List[int], threads: Optional[int]) -> Any:
        """The result, or a tuple of several, from inputs whose data are at these addresses."""
        results: List[Any] = []
        for element, dtype, shape, size in self._makers:
            if dtype is None:
                data = np.empty(size, np.uint8)
                results.append(packed_tensor(data, element, shape))
            else:
                data = np.empty(shape, dtype, self._order)
                results.append(data)
            addresses.append(address_of(data))
        self._bound.run(addresses, threads)
        return results[0] if len(results) == 1 else tuple(results)
