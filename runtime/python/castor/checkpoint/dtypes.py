# SPDX-License-Identifier: Apache-2.0
"""The dtypes of safetensors files, and castor's element types for them."""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional


class Dtype(NamedTuple):
    """`element` is castor's name, None where castor has no such type."""

    name: str
    bits: int
    element: Optional[str]


DTYPES: Dict[str, Dtype] = {
    dtype.name: dtype
    for dtype in (
        Dtype("BOOL", 8, "boolean"),
        Dtype("F4", 4, "f4e2m1"),
        Dtype("F6_E2M3", 6, "f6e2m3"),
        Dtype("F6_E3M2", 6, "f6e3m2"),
        Dtype("U8", 8, "u8"),
        Dtype("I8", 8, "i8"),
        Dtype("F8_E5M2", 8, "f8e5m2"),
        Dtype("F8_E4M3", 8, "f8e4m3"),
        Dtype("F8_E8M0", 8, "f8e8m0"),
        Dtype("F8_E4M3FNUZ", 8, "f8e4m3fnuz"),
        Dtype("F8_E5M2FNUZ", 8, "f8e5m2fnuz"),
        Dtype("I16", 16, "i16"),
        Dtype("U16", 16, "u16"),
        Dtype("F16", 16, "f16"),
        Dtype("BF16", 16, "bf16"),
        Dtype("I32", 32, "i32"),
        Dtype("U32", 32, "u32"),
        Dtype("F32", 32, "f32"),
        Dtype("C64", 64, None),
        Dtype("F64", 64, "f64"),
        Dtype("I64", 64, "i64"),
        Dtype("U64", 64, "u64"),
    )
}
"""In the order that the safetensors library stores tensors in, from the last to the first."""

FLOATS = ("BF16", "F16", "F32")
"""What weights are quantized from, and dequantized to."""

BY_ELEMENT: Dict[str, str] = {
    dtype.element: dtype.name for dtype in DTYPES.values() if dtype.element is not None
}
