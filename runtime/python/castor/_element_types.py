# SPDX-License-Identifier: Apache-2.0
"""Element types, by castor's names and by those of NumPy, ml_dtypes, torch and ONNX."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import numpy as np

from castor import _library


class ElementType:
    """What the elements of a tensor are. There is one object for each type.

    `name` is castor's name, `number` that of the C API, `bits` the width of an element.
    """

    __slots__ = ("__weakref__", "_dtype", "_foreign", "bits", "name", "number")

    def __init__(self, name: str, own: Optional[str], foreign: Optional[str]) -> None:
        self.name = name
        self.number: int = _library.element_named(name.encode())
        self.bits: int = _library.element_bits(self.number)
        self._dtype: Optional[np.dtype[Any]] = None if own is None else np.dtype(own)
        self._foreign = foreign

    def __repr__(self) -> str:
        return f"castor.element_type({self.name!r})"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return element_type, (self.name,)

    @property
    def dtype(self) -> Optional[np.dtype[Any]]:
        """The dtype of NumPy arrays that store such elements as castor does.

        None for elements narrower than a byte, and where ml_dtypes would have it but is not
        installed: their arrays are castor.Tensor.
        """
        if self._dtype is None and self._foreign is not None and self.bits >= 8:
            self._dtype = _dtype_of_ml_dtypes(self._foreign)
        return self._dtype

    @property
    def unpacked_dtype(self) -> Optional[np.dtype[Any]]:
        """ml_dtypes' dtype with a whole byte for each element that is narrower than a byte.

        None where there is none.
        """
        if self._foreign is None or self.bits >= 8:
            return None
        return _dtype_of_ml_dtypes(self._foreign)

    @property
    def is_integer(self) -> bool:
        """Whether the elements are integers."""
        return self.name[0] in "iu"

    def needed_rounding(self, rounding: Optional[str]) -> Optional[str]:
        """None for what conversions to floats do anyway, and know no other of."""
        is_float = self.name[0] in "fb" and self.name not in ("f8e8m0", "boolean")
        return None if is_float and rounding == "nearest_even" else rounding

    @property
    def is_signed(self) -> bool:
        """Whether the elements are integers that may be negative."""
        return self.name[0] == "i"

    def bytes_of(self, elements: int) -> int:
        """How many bytes that many packed elements take."""
        packed = (elements * self.bits + 7) // 8
        return (packed + 2) // 3 * 3 if self.name.endswith(".split") else packed  # groups of three


def _dtype_of_ml_dtypes(name: str) -> Optional[np.dtype[Any]]:
    try:
        import ml_dtypes
    except ImportError:
        return None
    found = getattr(ml_dtypes, name, None)  # older versions have fewer types
    return None if found is None else np.dtype(found)


# castor's name; NumPy's; ml_dtypes', which torch shares; ONNX's.
_TABLE = """
boolean     bool    -               BOOL
u1          -       uint1           -
u2          -       uint2           UINT2
u3          -       -               -
u4          -       uint4           UINT4
u6          -       -               -
u8          uint8   -               UINT8
u16         uint16  -               UINT16
u32         uint32  -               UINT32
u64         uint64  -               UINT64
i2          -       int2            INT2
i4          -       int4            INT4
i8          int8    -               INT8
i16         int16   -               INT16
i32         int32   -               INT32
i64         int64   -               INT64
f4e2m1      -       float4_e2m1fn   FLOAT4E2M1
f6e2m3      -       float6_e2m3fn   -
f6e3m2      -       float6_e3m2fn   -
f8e4m3      -       float8_e4m3fn   FLOAT8E4M3FN
f8e4m3fnuz  -       float8_e4m3fnuz FLOAT8E4M3FNUZ
f8e5m2      -       float8_e5m2     FLOAT8E5M2
f8e5m2fnuz  -       float8_e5m2fnuz FLOAT8E5M2FNUZ
f8e8m0      -       float8_e8m0fnu  FLOAT8E8M0
bf16        -       bfloat16        BFLOAT16
f16         float16 -               FLOAT16
f32         float32 -               FLOAT
f64         float64 -               DOUBLE
nf4         -       -               -
u1.lsb_first -      -               -
u2.msb_first -      -               -
u3.split    -       -               -
u6.split    -       -               -
"""

# torch's other names; without "torch." some of them are NumPy's for something else.
_TORCH_NAMES = {
    "torch.half": "f16",
    "torch.float": "f32",
    "torch.double": "f64",
    "torch.short": "i16",
    "torch.int": "i32",
    "torch.long": "i64",
    "torch.float4_e2m1fn_x2": "f4e2m1",
}

_BY_NAME: Dict[str, ElementType] = {}


def _fill() -> None:
    for line in _TABLE.split("\n")[1:-1]:
        name, own, foreign, onnx = (None if word == "-" else word for word in line.split())
        assert name is not None
        element = ElementType(name, own, foreign)
        _BY_NAME[name] = element
        for other in (own, foreign):
            if other is not None:
                _BY_NAME[other] = _BY_NAME["torch." + other] = element
        if onnx is not None:
            _BY_NAME[onnx] = element
    for other, name in _TORCH_NAMES.items():
        _BY_NAME[other] = _BY_NAME[name]


_fill()

BY_NUMBER: Dict[int, ElementType] = {element.number: element for element in _BY_NAME.values()}


def element_types() -> List[ElementType]:
    """All element types, in the order of the C API's numbers."""
    return [BY_NUMBER[number] for number in sorted(BY_NUMBER)]


def element_type(dtype: Any) -> ElementType:
    """The element type of that name, dtype or scalar type; a dtype has the machine's byte order.

    >>> element_type("f8e4m3") is element_type("float8_e4m3fn") is element_type("FLOAT8E4M3FN")
    True
    >>> element_type(np.float32), element_type("torch.bfloat16")
    (castor.element_type('f32'), castor.element_type('bf16'))
    """
    if isinstance(dtype, ElementType):
        return dtype
    if isinstance(dtype, str):
        found = _BY_NAME.get(dtype)
    else:
        found = _BY_NAME.get(str(dtype)) if str(dtype).startswith("torch.") else None
    if found is None:
        found = _of_numpy(dtype)
    if found is None:
        raise TypeError(
            f"no element type {dtype!r}: expected one of {', '.join(map(str, element_types()))},"
            " or a dtype or its name in NumPy, ml_dtypes, torch or ONNX"
        )
    return found


def _of_numpy(dtype: Any) -> Optional[ElementType]:
    if dtype is None:  # NumPy's default type
        return None
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        return None
    if not found.isnative:
        raise TypeError(f"{found.str!r} has the other byte order: expected that of the machine")
    return _BY_NAME.get(found.name)
