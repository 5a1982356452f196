# SPDX-License-Identifier: Apache-2.0
"""castor.convert against ml_dtypes and against exact rationals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, List

import castor
import exact
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

FLOATS = {
    "f4e2m1": ml_dtypes.float4_e2m1fn,
    "f6e2m3": ml_dtypes.float6_e2m3fn,
    "f6e3m2": ml_dtypes.float6_e3m2fn,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
}
INTEGERS = {"i2": (2, True), "u2": (2, False), "i4": (4, True), "u4": (4, False)}
INTEGERS |= {"i8": (8, True), "u8": (8, False), "i16": (16, True), "i32": (32, True)}

bits32 = hnp.arrays(np.uint32, st.integers(0, 70), elements=st.integers(0, 2**32 - 1))
# Near the numbers of narrow formats, where rounding decides.
moderate = hnp.arrays(
    np.float32,
    st.integers(0, 70),
    elements=st.floats(-600, 600, width=32) | st.floats(-8, 8, width=32),
)


def codes(array: Any) -> List[int]:
    """The bits of each element."""
    if isinstance(array, castor.Tensor):
        bits = castor.Tensor(array.data, f"u{array.element.bits}", array.shape)
        return list(castor.convert(bits, "u8").reshape(-1).tolist())
    return list(array.reshape(-1).view(f"u{array.itemsize}").tolist())


def fractions(array: np.ndarray) -> List[exact.Number]:
    """The exact values of float32."""
    return [exact.decode(code, "f32") for code in codes(array)]


def are_nan(array: Any) -> np.ndarray:
    return np.isnan(np.asarray(array, np.float32)).reshape(-1)


def check_against_ml_dtypes(x: np.ndarray, name: str) -> None:
    dtype = FLOATS[name]
    x = x[~np.isnan(x)] if name.startswith(("f4", "f6")) else x
    with np.errstate(all="ignore"):
        expected = x.astype(dtype)
    for found in (castor.convert(x, dtype), castor.convert(x, name)):
        nan = are_nan(expected)
        assert (are_nan(found) == nan).all()
        assert (np.array(codes(found), int)[~nan] == np.array(codes(expected), int)[~nan]).all()


@pytest.mark.parametrize("name", FLOATS)
@given(bits32)
def test_any_bits_of_f32_as_ml_dtypes(name: str, bits: np.ndarray) -> None:
    check_against_ml_dtypes(bits.view(np.float32), name)


@pytest.mark.parametrize("name", FLOATS)
@given(moderate)
def test_numbers_of_f32_as_ml_dtypes(name: str, x: np.ndarray) -> None:
    check_against_ml_dtypes(x, name)


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", FLOATS)
def test_all_codes_as_ml_dtypes(source: str, target: str) -> None:
    dtype = np.dtype(FLOATS[source])
    bits = castor.element_type(source).bits
    x = np.arange(1 << bits).astype(f"u{dtype.itemsize}").view(dtype)
    if target.startswith(("f4", "f6")):
        x = x[~are_nan(x)]
    with np.errstate(all="ignore"):
        expected = x.astype(np.float32).astype(FLOATS[target])
    found = castor.convert(x, FLOATS[target])
    nan = are_nan(expected)
    assert (are_nan(found) == nan).all()
    assert (np.array(codes(found))[~nan] == np.array(codes(expected))[~nan]).all()


@pytest.mark.parametrize("name", [name for name in FLOATS if name not in ("bf16", "f16")])
@pytest.mark.parametrize("overflow", ["", "saturate"])
@given(bits32, moderate)
def test_floats_as_exact_rationals(
    name: str, overflow: str, bits: np.ndarray, numbers: np.ndarray
) -> None:
    x = np.concatenate([bits.view(np.float32), numbers])
    options = {"overflow": overflow} if overflow else {}
    found = castor.convert(x, name, **options)
    for value, sign, code in zip(fractions(x), np.signbit(x).tolist(), codes(found)):
        expected = exact.encode(value, name, overflow)
        if expected == "nan":
            if exact.FORMATS[name].specials != "none":
                assert exact.decode(code, name) == "nan"
            continue
        if value == 0 and sign and exact.FORMATS[name].specials != "fnuz":
            expected = 1 << (exact.FORMATS[name].bits - 1)
        assert code == expected, (value, code, expected)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize(
    "rounding", ["toward_zero", "nearest_even", "nearest_away", "down", "up", "half_up"]
)
@pytest.mark.parametrize("overflow", ["saturate", "wrap"])
@given(bits32, moderate)
def test_integers_as_exact_rationals(
    name: str, rounding: str, overflow: str, bits: np.ndarray, numbers: np.ndarray
) -> None:
    width, signed = INTEGERS[name]
    x = np.concatenate([bits.view(np.float32), numbers, np.round(numbers) + np.float32(0.5)])
    found = castor.convert(x, name, rounding=rounding, overflow=overflow)
    expected = [exact.to_integer(v, width, signed, rounding, overflow) for v in fractions(x)]
    assert np.asarray(found).tolist() == expected


@pytest.mark.parametrize("name", ["i4", "u4", "i2", "u2"])
@given(moderate)
def test_packed_integers_as_ml_dtypes(name: str, x: np.ndarray) -> None:
    width, signed = INTEGERS[name]
    dtype = castor.element_type(name).unpacked_dtype
    assert dtype is not None
    low = -(1 << (width - 1)) if signed else 0
    x = np.clip(x, low, (1 << (width - signed)) - 1)
    expected = x.astype(dtype)
    unpacked = castor.convert(x, dtype)
    assert unpacked.dtype == dtype
    assert codes(unpacked) == codes(expected)
    packed = castor.convert(x, name)
    assert packed.element.name == name
    assert codes(packed) == codes(expected)
    back = castor.convert(expected, "f32")
    assert back.tolist() == expected.astype(np.float32).tolist()


# ---- Integers of ml_dtypes, which have a byte each


def unpacked(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """All codes of the type, again and again."""
    dtype = castor.element_type(name).unpacked_dtype
    assert dtype is not None
    numbers = np.arange(np.prod(shape)) % (1 << INTEGERS[name][0])
    return numbers.astype(np.uint8).view(dtype).reshape(shape)


def numbers_of(x: np.ndarray, name: str) -> np.ndarray:
    """What the low bits of the bytes stand for."""
    width, signed = INTEGERS[name]
    found = x.view(np.uint8).astype(np.int64) & ((1 << width) - 1)
    return np.where(found >> (width - 1), found - (1 << width), found) if signed else found


@pytest.mark.parametrize("name", ["i4", "u4", "i2", "u2"])
@pytest.mark.parametrize("target", ["f32", "bf16", "i8", "u8", "i64", "f8e4m3"])
def test_bytes_of_integers_in_every_form(name: str, target: str) -> None:
    x = unpacked(name, (6, 40))
    read_only = x.copy()
    read_only.flags.writeable = False
    for form in (x, x[::2, 3:], x.T, x[::-1], x[:, ::-3], x[0], x[0, 0:0], x[3, 5], read_only):
        whole = np.asarray(form)
        expected = castor.convert(numbers_of(whole, name).astype(np.int8), target)
        for _ in range(2):  # the second call is prepared
            found = castor.convert(whole, target)
            assert found.shape == whole.shape
            assert codes(found) == codes(expected)


@pytest.mark.parametrize("name", ["i4", "u4", "i2", "u2"])
def test_upper_bits_of_bytes_do_not_count(name: str) -> None:
    dtype = castor.element_type(name).unpacked_dtype
    x = np.arange(256, dtype=np.uint8).view(dtype)
    assert castor.convert(x, "i32").tolist() == numbers_of(x, name).tolist()


@pytest.mark.parametrize("name", ["i4", "u4", "i2", "u2"])
def test_integers_into_bytes_of_an_output(name: str) -> None:
    dtype = castor.element_type(name).unpacked_dtype
    assert dtype is not None
    x = np.linspace(-20, 20, 60, dtype=np.float32).reshape(6, 10)
    expected = castor.convert(x, dtype).view(np.uint8)
    assert not np.any(expected >> INTEGERS[name][0])
    assert castor.convert(x, dtype).view(np.uint8).tolist() == expected.tolist()  # prepared
    assert codes(castor.convert(x, name)) == expected.ravel().tolist()
    around = np.full((6, 23), 0xA5, np.uint8)
    inner = around[:, 1:21:2]
    assert castor.convert(x, out=inner.view(dtype)) is not None
    assert inner.tolist() == expected.tolist()
    inner[...] = 0xA5
    assert np.all(around == 0xA5)
    with pytest.raises(ValueError, match="expected positive strides"):
        castor.convert(x, dtype, out=np.zeros((6, 10), np.uint8)[::-1].view(dtype))
    with pytest.raises(TypeError, match="dtype is f32, but out has " + name):
        castor.convert(x, "f32", out=inner.view(dtype))


@given(hnp.arrays(np.float64, 20, elements=st.floats(allow_nan=False)))
def test_f64_is_rounded_once(x: np.ndarray) -> None:
    found = castor.convert(x, "bf16")
    for value, code in zip(x.tolist(), codes(found)):
        number = Fraction(value) if np.isfinite(value) else ("-inf" if value < 0 else "inf")
        expected = exact.encode(number, "bf16", "")
        if value == 0 and np.signbit(value):
            expected = 0x8000
        if isinstance(number, Fraction) and number < 0 and expected == 0:
            expected = 0x8000  # rounded to zero from below
        assert code == expected


def test_a_rounding_that_is_the_only_one_may_be_named() -> None:
    x = np.float32([1, 500, 0.3])
    for element in ("f8e4m3", "f8e5m2", "f4e2m1", "f6e3m2", "bf16", "f16", "f64", "f8e8m0"):
        usual = castor.convert(x, element, overflow="saturate" if element == "f8e4m3" else None)
        named = castor.convert(
            x,
            element,
            overflow="saturate" if element == "f8e4m3" else None,
            rounding="nearest_even",
            out=None,
        )
        assert codes(named) == codes(usual)
        traced = castor.function(
            lambda x, to=element: castor.ops.convert(x, to, rounding="nearest_even")
        )
        assert codes(traced(x)) == codes(castor.convert(x, element))
    for element in ("nf4", "boolean"):
        with pytest.raises(castor.Error, match="nearest_even"):
            castor.convert(x, element, rounding="nearest_even")
    with pytest.raises(castor.Error, match="rounding = up"):
        castor.convert(x, "f8e4m3", rounding="up")


def test_a_dtype_of_the_other_byte_order_is_refused() -> None:
    """Whoever asks for one means the bytes, which castor does not write."""
    for dtype in (">i2", np.dtype(">f4")):
        with pytest.raises(TypeError, match="has the other byte order"):
            castor.convert(np.float32([1]), dtype)
    assert castor.convert(np.array([1, 2], ">f4"), np.dtype("<i2")).tolist() == [1, 2]
