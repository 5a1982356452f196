# SPDX-License-Identifier: Apache-2.0
"""ml_dtypes' arrays of elements narrower than a byte, which have a whole byte for each.

The bits of the element are the low ones of its byte, the others are 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from castor._element_types import ElementType, element_type
from castor._tensor import Tensor, empty_tensor

if TYPE_CHECKING:
    import numpy.typing as npt


def _codes(element: ElementType) -> ElementType:
    """The unsigned integers that have the bits of that type's elements."""
    return element_type(f"u{element.bits}")


def pack(array: npt.NDArray[Any], element: ElementType) -> Tensor:
    """The same elements as castor stores them."""
    from castor._convert import convert

    packed = empty_tensor(_codes(element), array.shape)
    convert(array.view(np.uint8), packed.element, out=packed)
    return Tensor(packed.data, element, packed.shape)


def unpack(tensor: Tensor, out: npt.NDArray[Any]) -> None:
    """The same elements as ml_dtypes stores them, in an array of its dtype."""
    from castor._convert import convert

    codes = Tensor(tensor.data, _codes(tensor.element), tensor.shape)
    convert(codes, "u8", out=out.view(np.uint8))
