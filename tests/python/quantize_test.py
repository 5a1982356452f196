# SPDX-License-Identifier: Apache-2.0
"""Quantization against exact rationals, each step rounded once as ir/README.md says."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, List

import castor
import exact
import ml_dtypes
import numpy as np
import pytest
from castor import _operands, ops
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

values = hnp.arrays(np.float32, (3, 64), elements=st.floats(-1000, 1000, width=32))
scales = st.floats(2.0**-10, 100, width=32)


def f32(value: Fraction) -> Fraction:
    """Rounded to float32 once."""
    code = exact.encode(value, "f32", "")
    assert isinstance(code, int)
    found = exact.decode(code, "f32")
    assert isinstance(found, Fraction)
    return found


@given(values, scales, st.integers(-100, 100), st.sampled_from([None, "reciprocal"]))
def test_quantize(x: np.ndarray, scale: float, zero_point: int, scaling: Any) -> None:
    found = castor.quantize(x, "i8", scale, zero_point, scaling=scaling)
    divisor = Fraction(float(np.float32(scale)))
    expected = []
    for value in x.reshape(-1).tolist():
        if scaling is None:
            quotient = f32(Fraction(value) / divisor)
        else:
            quotient = f32(Fraction(value) * f32(1 / divisor))
        expected.append(min(max(round(quotient) + zero_point, -128), 127))
    assert found.reshape(-1).tolist() == expected
    back = castor.dequantize(found, scale, zero_point).reshape(-1).tolist()
    assert back == [float(f32((q - zero_point) * divisor)) for q in expected]


def test_granularities() -> None:
    x = np.arange(-32, 32, dtype=np.float32).reshape(4, 16)
    rows = np.float32([1, 2, 4, 8])
    by_axis = castor.quantize(x, "i8", rows, axis=0)
    assert (by_axis == np.round(x / rows[:, None])).all()
    assert (castor.quantize(x, "i8", rows[:, None]) == by_axis).all()
    blocks = np.float32([[1, 2], [3, 4], [5, 6], [7, 8]])
    by_block = castor.quantize(x, "i8", blocks, axis=1, block_size=8)
    assert (by_block == np.round(x / np.repeat(blocks, 8, axis=1))).all()
    tiles = np.float32([[1, 2], [3, 4]])
    by_tile = castor.quantize(x, "f8e4m3", tiles, axes=[0, 1], block=[2, 8])
    spread = np.repeat(np.repeat(tiles, 2, axis=0), 8, axis=1)
    assert (by_tile == (x / spread).astype(ml_dtypes.float8_e4m3fn)).all()
    back = castor.dequantize(by_tile, tiles, dtype="bf16", axes=[0, 1], block=[2, 8])
    expected = by_tile.astype(np.float32) * spread
    assert (back == expected.astype(ml_dtypes.bfloat16)).all()


@pytest.mark.parametrize("element", ["i8", "u8", "i4"])
def test_numbers_fill_the_shape_of_the_scale(element: str) -> None:
    x = np.arange(-12, 12, dtype=np.float32).reshape(4, 6)
    for scale, options in (
        (np.float32([1, 2, 4, 8]), {"axis": np.int64(0)}),
        (np.float32([[1], [2], [4], [8]]), {}),
        (np.ones((4, 3), np.float32), {"axis": np.int8(1), "block_size": np.uint8(2)}),
        (np.ones((2, 2), np.float32), {"axes": np.array([0, 1]), "block": np.int64([2, 3])}),
        (np.int64(2), {}),
        (0.5, {}),
    ):
        shape = np.shape(scale)
        full = castor.convert(np.full(shape, 3), element)
        given = np.float32(scale)
        expected = castor.quantize(x, element, given, full, **options)
        values = castor.dequantize(expected, given, full, **options)
        for zero_point in (3, 3.0, np.int64(3), np.uint8(3)):
            found = castor.quantize(x, element, scale, zero_point, **options)
            assert np.asarray(found).tolist() == np.asarray(expected).tolist()
            assert (castor.dequantize(found, scale, zero_point, **options) == values).all()
    with pytest.raises(ValueError, match=f"{element} has no zero point 999"):
        castor.quantize(x, element, np.ones(4, np.float32), 999, axis=0)
    parts = castor.quantize_mx(np.ones((32, 3), np.float32), "mxfp4", axis=np.int64(0))
    assert parts[1].shape == (1, 3)


def test_rules_without_scale() -> None:
    x = np.float32([[-1, 0.5, 2], [4, -8, 1]])
    y, scale = castor.quantize(x, "i8")
    assert scale == np.float32(8) / np.float32(127)
    assert y.tolist() == np.round(x / scale).tolist()
    y, scale = castor.quantize(x, "i8", axes=[-1])
    assert scale.tolist() == (np.float32([[2], [8]]) / np.float32(127)).tolist()
    y, scale, zero_point = castor.quantize(x, "u8", rule="linear")
    assert scale == np.float32(12) / np.float32(255) and zero_point == 170
    assert abs(castor.dequantize(y, scale, zero_point) - x).max() <= scale
    y, scale, zero_point = castor.quantize(x, "i8", rule="linear", scaling="reciprocal")
    assert scale == np.float32(12) / np.float32(255) and zero_point == 42
    assert y.tolist() == (np.round(x * (np.float32(1) / scale)) + 42).clip(-128, 127).tolist()


@given(values, st.sampled_from([None, "ocp_floor", "ceil_power", "even_round"]))
@pytest.mark.parametrize("format", [name for name in ops.MX_FORMATS if name != "nvfp4"])
def test_quantize_mx(format: str, x: np.ndarray, scale_rule: Any) -> None:
    y, scale = castor.quantize_mx(x, format, scale_rule=scale_rule)
    element = y.element.name if isinstance(y, castor.Tensor) else ops.MX_FORMATS[format][0]
    if element == "i8":
        biggest, mantissa = Fraction(127, 64), 6
    else:
        biggest = Fraction(exact.decode(exact.largest_code(element), element))
        mantissa = exact.FORMATS[element].mantissa
    top = Fraction(2) ** exact.floor_log2(biggest)
    for row in range(3):
        for block in range(2):
            part = [Fraction(v) for v in x[row, 32 * block : 32 * block + 32].tolist()]
            amax = max(map(abs, part))
            code = int(scale.view(np.uint8)[row, block])
            if amax == 0:
                assert code == 0
                continue
            ratio = amax / top
            if scale_rule == "even_round":
                ratio /= 1 - Fraction(1, 2 ** (mantissa + 2))
            if scale_rule == "ceil_power":
                ratio = Fraction(float(amax / biggest))
                exponent = exact.floor_log2(ratio) + (
                    ratio != Fraction(2) ** exact.floor_log2(ratio)
                )
            else:
                exponent = exact.floor_log2(ratio)
            assert code - 127 == max(exponent, -127)


@pytest.mark.parametrize("format", ops.MX_FORMATS)
def test_round_trips(format: str) -> None:
    x = np.random.default_rng(1).standard_normal((5, 96)).astype(np.float32)
    for axis, given in ((-1, x), (0, np.ascontiguousarray(x.T))):
        parts = castor.quantize_mx(given, format, axis=axis)
        back = castor.dequantize_mx(*parts, format=format, axis=axis)
        assert back.shape == given.shape
        assert abs(back - given).max() < 0.7
        half = castor.dequantize_mx(*parts, dtype="bf16", format=format, axis=axis)
        assert (half == back.astype(ml_dtypes.bfloat16)).all()
        # What has been quantized once, stays.
        scale = {"tensor_scale": parts[2]} if format == "nvfp4" else {}
        again = castor.quantize_mx(back, format, axis=axis, **scale)
        assert (
            castor.dequantize_mx(*again[:2], *parts[2:], format=format, axis=axis) == back
        ).all()


def test_the_last_block_may_be_short() -> None:
    x = np.linspace(-3, 3, 2 * 48, dtype=np.float32).reshape(2, 48)
    whole = np.zeros((2, 64), np.float32)
    whole[:, :48] = x
    for format in ("mxfp8_e4m3", "mxfp6_e2m3", "mxfp4", "mxint8"):
        y, scale = castor.quantize_mx(x, format)
        expected, expected_scale = castor.quantize_mx(whole, format)
        assert scale.shape == (2, 2)
        assert (scale == expected_scale).all()
        back = castor.dequantize_mx(y, scale, format=format)
        assert (back == castor.dequantize_mx(expected, expected_scale, format=format)[:, :48]).all()
    y, scale = castor.quantize_mx(x, "mxfp4", block=10**12)
    assert scale.shape == (2, 1)


def test_what_is_refused() -> None:
    x = np.ones((2, 48), np.float32)
    with pytest.raises(castor.Error, match="block = 0, expected at least 1"):
        castor.quantize_mx(x, "mxfp4", block=0)
    with pytest.raises(ValueError, match="format 'mx4', expected mxfp8_e4m3"):
        castor.quantize_mx(x, "mx4")
    with pytest.raises(castor.Error, match="scale_rule = near"):
        castor.quantize_mx(x[:, :32], "mxfp4", scale_rule="near")
    with pytest.raises(TypeError, match="no scale of the tensor"):
        castor.quantize_mx(x[:, :32], "mxfp4", tensor_scale=1.0)
    with pytest.raises(ValueError, match="i8 has no zero point 200"):
        castor.quantize(x, "i8", 0.5, 200)
    with pytest.raises(ValueError, match="rule 'best', expected 'symmetric' or 'linear'"):
        castor.quantize(x, "i8", rule="best")
    with pytest.raises(TypeError, match="zero_point needs a scale"):
        castor.quantize(x, "i8", zero_point=1)
    with pytest.raises(castor.Error, match="quantize_linear"):
        castor.quantize(x, "i8", np.ones(3, np.float32))


MX_RANGES = {
    "mxfp8_e4m3": ("f8e4m3", 448.0, 3),
    "mxfp8_e5m2": ("f8e5m2", 57344.0, 2),
    "mxfp6_e2m3": ("f6e2m3", 7.5, 3),
    "mxfp6_e3m2": ("f6e3m2", 28.0, 2),
    "mxfp4": ("f4e2m1", 6.0, 1),
    "mxint8": ("i8", 127 / 64, 6),
}
"""The element type, its largest number and the bits of its significands after the first."""


@pytest.mark.parametrize("isa", castor.info()["isas"])
@pytest.mark.parametrize("rule", ["ocp_floor", "ceil_power", "even_round"])
@pytest.mark.parametrize("format", MX_RANGES)
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_power_scales_of_every_number(isa: str, rule: str, format: str, element: str) -> None:
    """The rule's power of two of every 16-bit number, computed from significands alone."""
    stored, largest, bits = MX_RANGES[format]
    x = np.arange(1 << 16, dtype=np.uint16).view(
        np.float16 if element == "f16" else ml_dtypes.bfloat16
    )
    text = f"""func @f(%x: {element}[?n, 1]) -> f8e8m0[?n, 1] {{
  %y, %s = quantize_mx %x {{format = {format}, scale_rule = {rule}, block = 1}} : {stored}
  return %s
}}"""
    function = castor.compile(text)
    found = function._call(*function._variant(isa, False), [x.reshape(-1, 1)], None, None)
    found = np.asarray(found.data if isinstance(found, castor.Tensor) else found.view(np.uint8))
    power = 2.0 ** np.floor(np.log2(largest))
    divisors = {
        "ocp_floor": power,
        "ceil_power": largest,
        "even_round": power * (1 - 2.0 ** -(bits + 2)),
    }
    divisor, divisor_exponent = np.frexp(divisors[rule])
    with np.errstate(invalid="ignore"):  # signalling NaNs
        number = np.abs(x.astype(np.float64))
    significand, exponent = np.frexp(number)
    if rule == "ceil_power":
        above = exponent - divisor_exponent + (significand > divisor)
    else:
        above = exponent - divisor_exponent - (significand < divisor)
    expected = np.clip(above + 127, 0, 254)
    expected[significand == 0] = 0
    expected[~np.isfinite(number)] = 255
    assert (found.reshape(-1) == expected).all()


class Once:
    """A tensor that is lent by DLPack one time."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.calls = 0

    def __dlpack__(self, **options: Any) -> Any:
        self.calls += 1
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_operands_are_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What must be copied is copied once, and what is lent is asked for once."""
    copies: List[Any] = []
    dense_copy = _operands.dense_copy

    def counted(array: Any) -> Any:
        copies.append(array)
        return dense_copy(array)

    monkeypatch.setattr(_operands, "dense_copy", counted)
    x = np.arange(64, dtype=np.float32).reshape(2, 32)
    scale = np.float32([[2], [3]])
    for call, count in (
        (lambda x: castor.quantize(x, "i8", axes=[1]), 1),
        (lambda x: castor.quantize(x, "i8", scale=0.5, zero_point=3), 1),
        (lambda x: castor.quantize(x, "i8", scale=scale[::-1]), 2),
        (lambda x: castor.quantize_mx(x, "mxfp4"), 1),
        (lambda x: castor.quantize_mx(x, "nvfp4"), 1),
        (lambda x: castor.dequantize(x.astype(np.int8)[::-1], 0.5), 1),
    ):
        copies.clear()
        call(x[::-1])
        assert len(copies) == count
        lent = Once(x)
        if count == 1 and not call.__code__.co_names.count("astype"):
            call(lent)
            assert lent.calls == 1
